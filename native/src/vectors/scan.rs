//! Exact search: every slot of a set is scored.

use super::index::Index;
use super::score::{key, Target};
use super::scratch::{Batch, Best, Scratch};
use super::simd::prefetch_row;
use super::states::LIVE;
use roaring::RoaringBitmap;
use std::sync::atomic::{fence, Ordering};

/// Rows scored in one call of a kernel.
const BATCH: usize = 64;

impl Index {
    /// Offer every live slot of `slots` to `best`.
    pub fn scan(
        &self,
        target: &Target,
        slots: impl Iterator<Item = u32>,
        best: &mut Best,
        batch: &mut Batch,
    ) {
        batch.clear();
        for slot in slots {
            let Some(row) = self.rows.get(slot) else { continue };
            if !self.states.is_live(slot) {
                continue;
            }
            if batch.len() < 4 {
                prefetch_row(self.rows.pointer(row), self.config.dim);
            }
            batch.push(slot, row);
            if batch.len() == BATCH {
                self.offer(target, best, batch);
            }
        }
        self.offer(target, best, batch);
    }

    fn offer(&self, target: &Target, best: &mut Best, batch: &mut Batch) {
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

    /// Offer every live slot that passes the filter to `best`.
    pub fn scan_all(
        &self,
        target: &Target,
        filter: Option<&RoaringBitmap>,
        limit: u32,
        scratch: &mut Scratch,
    ) {
        let Scratch { best, batch, .. } = scratch;
        match filter {
            None => self.scan(target, self.states.with(LIVE, limit), best, batch),
            Some(filter) if filter.len() <= u64::from(limit) => {
                self.scan(target, filter.range(..limit), best, batch);
            }
            Some(filter) => {
                let slots = self.states.with(LIVE, limit).filter(|slot| filter.contains(*slot));
                self.scan(target, slots, best, batch);
            }
        }
    }
}
