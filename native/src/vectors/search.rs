//! Nearest neighbours: which way to search, and the walk through the graph.

use super::index::Index;
use super::rows::Row;
use super::score::{key, score_of, slot_of, Target, UNKNOWN};
use super::scratch::{Batch, Scratch};
use super::simd::prefetch_row;
use super::Error;
use crate::bitmap::Bitmap;
use roaring::RoaringBitmap;
use std::sync::atomic::{fence, Ordering};

/// `ef` of a search that names none.
pub const DEFAULT_EF: usize = 128;
/// Rows a walk scores for each of its `ef`, roughly; measured on GloVe and MiniLM vectors.
const ROWS_PER_EF: usize = 20;

/// One search that goes through the graph.
#[derive(Clone, Copy)]
struct Plan<'a, 'b> {
    target: &'a Target<'b>,
    k: usize,
    ef: usize,
    filter: Option<&'a Bitmap>,
    limit: u32,
    /// Live slots that pass the filter, at most.
    passing: usize,
}

/// Rows that a walk is expected to score, as many as a scan could score in the same time.
fn walk_rows(ef: usize, passing: usize, live: usize) -> usize {
    (ef * ROWS_PER_EF).saturating_mul(live.max(1)) / passing.max(1)
}

/// One walk over one level.
#[derive(Clone, Copy)]
pub struct Walk<'a, 'b> {
    pub target: &'a Target<'b>,
    pub level: usize,
    pub ef: usize,
    /// Slots at or above this are too young for this walk.
    pub limit: u32,
    /// Rows after which to give up.
    pub budget: usize,
}

impl Index {
    pub fn target<'a>(&'a self, query: &'a [f32]) -> Target<'a> {
        Target::query(self.config.metric, &self.kernels, &self.rows, query)
    }

    pub fn row_target(&self, row: Row) -> Target<'_> {
        Target::row(self.config.metric, &self.kernels, &self.rows, row)
    }

    /// The `k` best live slots with their scores, best first, lower slots first among equals.
    pub fn search(
        &self,
        query: &[f32],
        k: usize,
        ef: Option<usize>,
        filter: Option<&Bitmap>,
    ) -> Result<Vec<(u32, f32)>, Error> {
        self.check_query(query)?;
        let mut scratch = self.borrow_scratch();
        self.search_into(&self.target(query), k, ef, filter, &mut scratch);
        let found = scratch.keys.iter().take(k).map(|key| (slot_of::<false>(*key), score_of(*key))).collect();
        self.return_scratch(scratch);
        Ok(found)
    }

    /// Leaves the best keys in `scratch.keys`.
    fn search_into(
        &self,
        target: &Target,
        k: usize,
        ef: Option<usize>,
        filter: Option<&Bitmap>,
        scratch: &mut Scratch,
    ) {
        // The tail first: what leaves it after this is scanned all the same, what left before is in the graph.
        self.tail.snapshot(&mut scratch.tail);
        let limit = self.limit();
        let live = self.live();
        let k = k.min(limit as usize);
        let ef = ef.unwrap_or(DEFAULT_EF).max(k);
        let set = filter.map(|f| f.inner.as_ref());
        let passing = set.map_or(live, |set| live.min(set.len() as usize));
        scratch.keys.clear();
        if k == 0 || passing == 0 {
            return;
        }
        let entry = self.entry();
        if entry.is_none() && set.is_none_or(|set| set.len() as usize > scratch.tail.len()) {
            return self.scan_tail(target, k, set, scratch);
        }
        let by_graph = entry.filter(|_| passing > walk_rows(ef, passing, live)).is_some_and(|entry| {
            self.search_graph(&Plan { target, k, ef, filter, limit, passing }, entry, scratch)
        });
        if !by_graph {
            scratch.best.begin(k);
            self.scan_all(target, set, limit, scratch);
            scratch.best.drain_sorted(&mut scratch.keys);
        }
    }

    fn scan_tail(&self, target: &Target, k: usize, set: Option<&RoaringBitmap>, scratch: &mut Scratch) {
        let Scratch { tail, best, batch, keys, .. } = scratch;
        best.begin(k);
        let slots = tail.iter().copied().filter(|slot| set.is_none_or(|set| set.contains(*slot)));
        self.scan(target, slots, best, batch);
        best.drain_sorted(keys);
    }

    /// Walk the graph and scan the tail; false when that did not find `k` or cost more than a scan of everything.
    fn search_graph(&self, plan: &Plan, (entry, top): (u32, usize), scratch: &mut Scratch) -> bool {
        let Plan { target, k, ef, filter, limit, passing } = *plan;
        let start = self.descend(target, entry, (top, 0), limit, scratch);
        let walk = Walk { target, level: 0, ef, limit, budget: usize::MAX };
        let complete = match filter {
            None => self.walk::<false>(&walk, start, |slot| self.states.is_live(slot), scratch),
            Some(filter) => {
                let words = filter.words();
                let walk = Walk { budget: passing, ..walk };
                let pass = |slot: u32| has(words, slot) && self.states.is_live(slot);
                self.walk::<false>(&walk, start, pass, scratch)
            }
        };
        if !complete {
            return false;
        }
        let Scratch { tail, best, batch, visited, keys, .. } = scratch;
        let set = filter.map(|f| f.inner.as_ref());
        let unseen = tail.iter().copied().filter(|slot| !visited.contains(*slot));
        self.scan(target, unseen.filter(|slot| set.is_none_or(|set| set.contains(*slot))), best, batch);
        best.drain_sorted(keys);
        keys.len() >= k.min(passing)
    }

    /// From the entry on level `top` down to where level `to` begins, one node at a time.
    pub fn descend(
        &self,
        target: &Target,
        entry: u32,
        (top, to): (usize, usize),
        limit: u32,
        scratch: &mut Scratch,
    ) -> u32 {
        let Some(row) = self.rows.get(entry) else { return entry };
        let mut nearest = key::<false>(target.one(row), entry);
        let Scratch { links, batch, .. } = scratch;
        for level in (to + 1..=top).rev() {
            loop {
                self.links.read(slot_of::<false>(nearest), level, limit, links);
                batch.clear();
                for slot in links.iter() {
                    if let Some(row) = self.rows.get(*slot) {
                        prefetch_row(self.rows.pointer(row), self.config.dim);
                        batch.push(*slot, row);
                    }
                }
                let Batch { slots, rows, scores } = batch;
                scores.resize(rows.len(), 0.0);
                target.many(rows, scores);
                let best =
                    slots.iter().zip(scores.iter()).map(|(slot, score)| key::<false>(*score, *slot)).max();
                match best {
                    Some(best) if best > nearest => nearest = best,
                    _ => break,
                }
            }
        }
        slot_of::<false>(nearest)
    }

    /// Best-first search on one level. The `ef` best nodes that `pass` are left in `scratch.best`; others are walked
    /// through. False when the budget ran out first.
    pub fn walk<const BUILD: bool>(
        &self,
        walk: &Walk,
        start: u32,
        pass: impl Fn(u32) -> bool,
        scratch: &mut Scratch,
    ) -> bool {
        let Scratch { visited, candidates, best, batch, links, .. } = scratch;
        visited.begin(walk.limit);
        candidates.clear();
        best.begin(walk.ef);
        let Some(row) = self.rows.get(start) else { return true };
        visited.insert(start);
        let first = key::<BUILD>(walk.target.one(row), start);
        fence(Ordering::Acquire);
        candidates.push(first);
        if pass(start) {
            best.push(first);
        }
        let mut scored = 0;
        while let Some(next) = candidates.pop() {
            if best.is_full() && !best.admits(next) {
                break;
            }
            self.links.read(slot_of::<BUILD>(next), walk.level, walk.limit, links);
            batch.clear();
            for slot in links.iter() {
                if visited.insert(*slot) {
                    if let Some(row) = self.rows.get(*slot) {
                        if batch.len() < 4 {
                            prefetch_row(self.rows.pointer(row), self.config.dim);
                        }
                        batch.push(*slot, row);
                    }
                }
            }
            if let (0, Some(likely)) = (walk.level, candidates.peek()) {
                self.links.prefetch(slot_of::<BUILD>(*likely));
            }
            let Batch { slots, rows, scores } = &mut *batch;
            scores.resize(rows.len(), 0.0);
            walk.target.many(rows, scores);
            // A row that was erased under the kernel's eyes is found not live by `pass`.
            fence(Ordering::Acquire);
            scored += rows.len();
            for (slot, score) in slots.iter().zip(scores.iter()) {
                let own = key::<BUILD>(*score, *slot);
                // An erased node says nothing about where it is; it is as good as the node that led to it.
                let lead = if *score == UNKNOWN { key::<BUILD>(score_of(next), *slot) } else { own };
                if best.admits(lead) {
                    candidates.push(lead);
                    if pass(*slot) {
                        best.push(own);
                    }
                }
            }
            if scored > walk.budget {
                return false;
            }
        }
        true
    }
}

/// Whether a slot is in a set given as words of bits.
#[inline(always)]
pub fn has(words: &[u64], slot: u32) -> bool {
    words.get(slot as usize / 64).is_some_and(|word| word >> (slot % 64) & 1 != 0)
}
