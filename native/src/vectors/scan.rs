//! Exact search: every slot of a set is scored.

use super::codes::CodeTarget;
use super::index::Index;
use super::score::{key, slot_of, Measure, Target};
use super::scratch::{Batch, Best, Scratch};
use super::states::{LINKED, LIVE};
use roaring::RoaringBitmap;
use std::sync::atomic::{fence, Ordering};

/// Rows scored in one call of a kernel.
const BATCH: usize = 64;
/// From this many rows on a scan reads codes first, where there are any, and vectors for the best of them.
const CODED_FROM: usize = 1024;
/// How many of the best by codes are scored again: this many for each result, and as many more.
const RESCORED_PER_K: usize = 4;
const RESCORED_MORE: usize = 64;

impl Index {
    /// Offer every live slot of `slots` to `best`.
    pub fn scan(
        &self,
        target: &impl Measure,
        slots: impl Iterator<Item = u32>,
        best: &mut Best,
        batch: &mut Batch,
    ) {
        batch.clear();
        for slot in slots {
            let Some(row) = target.place(slot) else { continue };
            if !self.states.is_live(slot) {
                continue;
            }
            target.fetch(row);
            batch.push(slot, row);
            if batch.len() == BATCH {
                self.offer(target, best, batch);
            }
        }
        self.offer(target, best, batch);
    }

    fn offer(&self, target: &impl Measure, best: &mut Best, batch: &mut Batch) {
        let Batch { slots, rows, scores } = batch;
        scores.resize(rows.len(), 0.0);
        target.many(rows, scores);
        // A row that was erased under the kernel's eyes is found not live below.
        fence(Ordering::Acquire);
        for (slot, score) in slots.iter().zip(scores.iter()) {
            let key = key::<false>(*score, *slot);
            if best.admits(key) && self.states.is_live(*slot) {
                best.push(key);
            }
        }
        batch.clear();
    }

    /// The `k` best of the live slots that pass the filter, `passing` at most, into `scratch.keys`.
    pub fn scan_all(
        &self,
        target: &Target,
        k: usize,
        filter: Option<&RoaringBitmap>,
        limit: u32,
        passing: usize,
        scratch: &mut Scratch,
    ) {
        let more = k * RESCORED_PER_K + RESCORED_MORE;
        match &self.codes {
            Some(codes) if passing >= CODED_FROM.max(more) => {
                let coded = CodeTarget::query(codes, target.vector());
                let linked = |slot: &u32| self.states.get(*slot) & LINKED != 0;
                scratch.best.begin(more);
                self.scan_set(&coded, filter, limit, linked, scratch);
                scratch.best.drain_sorted(&mut scratch.keys);
                let found: Vec<u32> = scratch.keys.iter().map(|key| slot_of::<false>(*key)).collect();
                scratch.best.begin(k);
                self.scan(target, found.into_iter(), &mut scratch.best, &mut scratch.batch);
                self.scan_set(target, filter, limit, |slot| !linked(slot), scratch);
            }
            _ => {
                scratch.best.begin(k);
                self.scan_set(target, filter, limit, |_| true, scratch);
            }
        }
        scratch.best.drain_sorted(&mut scratch.keys);
    }

    /// Offer every live slot that passes the filter, and `also`, to `best`.
    fn scan_set(
        &self,
        target: &impl Measure,
        filter: Option<&RoaringBitmap>,
        limit: u32,
        also: impl Fn(&u32) -> bool,
        scratch: &mut Scratch,
    ) {
        let Scratch { best, batch, .. } = scratch;
        match filter {
            None => self.scan(target, self.states.with(LIVE, limit).filter(also), best, batch),
            Some(filter) if filter.len() <= u64::from(limit) => {
                self.scan(target, filter.range(..limit).filter(also), best, batch);
            }
            Some(filter) => {
                let slots = self.states.with(LIVE, limit).filter(|slot| filter.contains(*slot));
                self.scan(target, slots.filter(also), best, batch);
            }
        }
    }
}
