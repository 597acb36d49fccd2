//! Nearest neighbours: which way to search, and the walk through the graph.

use super::codes::CodeTarget;
use super::index::Index;
use super::score::{key, score_of, slot_of, Measure, Target, UNKNOWN};
use super::scratch::{Batch, Scratch, Visited};
use super::Error;
use crate::bitmap::Bitmap;
use roaring::RoaringBitmap;
use std::sync::atomic::{fence, Ordering};

/// `ef` of a search that names none; a filter leaves fewer ways through the graph, which more breadth makes up for.
const DEFAULT_EF: usize = 128;
const DEFAULT_FILTERED_EF: usize = 256;
/// Below this share of passing slots a walk looks behind the others instead of scoring them: as quick where passing
/// slots lie anywhere, several times quicker where they lie together and the query elsewhere.
const HOP_BELOW: f64 = 0.4;
/// Rows that a scan scores in the time a walk takes for each of its `ef`: when everything passes, and at most.
/// Measured on 340,000 vectors of 100 dimensions; the ratio hardly changes with the dimension.
const ROWS_PER_EF: f64 = 32.0;
const MOST_ROWS_PER_EF: f64 = 140.0;

/// One search that goes through the graph.
#[derive(Clone, Copy)]
struct Plan<'a> {
    k: usize,
    ef: usize,
    filter: Option<&'a Bitmap>,
    limit: u32,
    /// Live slots that pass the filter, at most.
    passing: usize,
}

/// Rows that a scan scores in the time of a walk.
fn walk_rows(ef: usize, passing: usize, live: usize) -> usize {
    let share = passing as f64 / live.max(1) as f64;
    (ef as f64 * (ROWS_PER_EF / share).min(MOST_ROWS_PER_EF)) as usize
}

/// One walk over one level.
pub struct Walk<'a, M> {
    pub target: &'a M,
    pub level: usize,
    pub ef: usize,
    /// Slots at or above this are too young for this walk.
    pub limit: u32,
    /// Rows after which to give up.
    pub budget: usize,
    /// Look behind nodes outside this set instead of scoring them.
    pub within: Option<&'a [u64]>,
}

impl Index {
    pub fn target<'a>(&'a self, query: &'a [f32]) -> Target<'a> {
        Target::query(self.config.metric, &self.kernels, &self.rows, query)
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
        let ef = ef.unwrap_or(if filter.is_some() { DEFAULT_FILTERED_EF } else { DEFAULT_EF }).max(k);
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
            let plan = Plan { k, ef, filter, limit, passing };
            match &self.codes {
                Some(codes) => {
                    let coded = CodeTarget::query(codes, target.vector());
                    self.search_graph(&plan, target, &coded, true, entry, scratch)
                }
                None => self.search_graph(&plan, target, target, false, entry, scratch),
            }
        });
        if !by_graph {
            self.scan_all(target, k, set, limit, passing, scratch);
        }
    }

    fn scan_tail(&self, target: &Target, k: usize, set: Option<&RoaringBitmap>, scratch: &mut Scratch) {
        let Scratch { tail, best, batch, keys, .. } = scratch;
        best.begin(k);
        let slots = tail.iter().copied().filter(|slot| set.is_none_or(|set| set.contains(*slot)));
        self.scan(target, slots, best, batch);
        best.drain_sorted(keys);
    }

    /// Walk the graph as `by` sees it and scan the tail; false when that did not find `k` or cost more than a scan of
    /// everything. What the walk found is scored again when `by` is not exact.
    fn search_graph<M: Measure>(
        &self,
        plan: &Plan,
        target: &Target,
        by: &M,
        rescore: bool,
        (entry, top): (u32, usize),
        scratch: &mut Scratch,
    ) -> bool {
        let Plan { k, ef, filter, limit, passing } = *plan;
        let start = self.descend(by, entry, (top, 0), limit, scratch);
        let walk = Walk { target: by, level: 0, ef, limit, budget: passing, within: None };
        let complete = match filter {
            None if self.counts.dead.load(Ordering::Acquire) == 0 => {
                self.walk::<M, false>(&walk, start, |_| true, scratch)
            }
            None => self.walk::<M, false>(&walk, start, |slot| self.states.is_live(slot), scratch),
            Some(filter) => {
                let words = filter.words();
                let few = (passing as f64) < HOP_BELOW * self.live() as f64;
                let walk = Walk { budget: passing / 2, within: few.then_some(words), ..walk };
                let pass = |slot: u32| has(words, slot) && self.states.is_live(slot);
                self.walk::<M, false>(&walk, start, pass, scratch)
            }
        };
        if !complete {
            return false;
        }
        scratch.best.drain_sorted(&mut scratch.keys);
        if rescore {
            self.rescore(target, scratch);
        }
        let Scratch { tail, best, batch, visited, keys, .. } = scratch;
        best.begin(ef);
        keys.iter().for_each(|key| best.push(*key));
        let set = filter.map(|f| f.inner.as_ref());
        let unseen = tail.iter().copied().filter(|slot| !visited.contains(*slot));
        self.scan(target, unseen.filter(|slot| set.is_none_or(|set| set.contains(*slot))), best, batch);
        best.drain_sorted(keys);
        // Some may have been removed since the walk met them.
        let mut kept = 0;
        for i in 0..keys.len() {
            if kept < k && self.states.is_live(slot_of::<false>(keys[i])) {
                keys[kept] = keys[i];
                kept += 1;
            }
        }
        keys.truncate(kept);
        keys.len() >= k.min(passing)
    }

    /// Exact scores in place of those on codes, for all of `scratch.keys`.
    fn rescore(&self, target: &Target, scratch: &mut Scratch) {
        let Scratch { batch, keys, .. } = scratch;
        batch.clear();
        for key in keys.iter() {
            let slot = slot_of::<false>(*key);
            let Some(row) = target.place(slot) else { continue };
            target.fetch(row);
            batch.push(slot, row);
        }
        let Batch { slots, rows, scores } = batch;
        scores.resize(rows.len(), 0.0);
        target.many(rows, scores);
        fence(Ordering::Acquire);
        keys.clear();
        keys.extend(slots.iter().zip(scores.iter()).map(|(slot, score)| key::<false>(*score, *slot)));
    }

    /// From the entry on level `top` down to where level `to` begins, one node at a time.
    pub fn descend<M: Measure>(
        &self,
        target: &M,
        entry: u32,
        (top, to): (usize, usize),
        limit: u32,
        scratch: &mut Scratch,
    ) -> u32 {
        let Some(row) = target.place(entry) else { return entry };
        let mut nearest = key::<false>(target.one(row), entry);
        let Scratch { links, batch, .. } = scratch;
        for level in (to + 1..=top).rev() {
            loop {
                self.links.read(slot_of::<false>(nearest), level, limit, links);
                batch.clear();
                for slot in links.iter() {
                    if let Some(row) = target.place(*slot) {
                        target.fetch(row);
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

    /// Put the slots not met yet into the batch and their rows on the way.
    #[inline(always)]
    fn gather(
        target: &impl Measure,
        slots: impl Iterator<Item = u32>,
        visited: &mut Visited,
        batch: &mut Batch,
    ) {
        for slot in slots {
            if !visited.insert(slot) {
                continue;
            }
            if let Some(row) = target.place(slot) {
                target.fetch(row);
                batch.push(slot, row);
            }
        }
    }

    /// As `gather` for the slots of a set, looking behind neighbours outside it for more, until the batch is as long as
    /// a list. As long as there is nothing to compare with (`lead`), the others are scored too: they lead the way.
    fn gather_within<M: Measure>(&self, words: &[u64], walk: &Walk<M>, lead: bool, scratch: Around) {
        let Around { visited, batch, links, hop } = scratch;
        hop.clear();
        hop.extend(links.iter().filter(|slot| !has(words, **slot)));
        hop.iter().for_each(|slot| self.links.prefetch(*slot));
        Self::gather(walk.target, links.iter().copied().filter(|slot| has(words, *slot)), visited, batch);
        let most = if lead { usize::MAX } else { self.links.capacity(walk.level) };
        for between in hop.iter() {
            if batch.len() >= most {
                break;
            }
            if !visited.insert(*between) {
                continue;
            }
            if let (true, Some(row)) = (lead, walk.target.place(*between)) {
                batch.push(*between, row);
            }
            self.links.read(*between, walk.level, walk.limit, links);
            Self::gather(walk.target, links.iter().copied().filter(|slot| has(words, *slot)), visited, batch);
        }
    }

    /// Best-first search on one level. The `ef` best nodes that `pass` are left in `scratch.best`; others are walked
    /// through. False when the budget ran out first.
    pub fn walk<M: Measure, const BUILD: bool>(
        &self,
        walk: &Walk<M>,
        start: u32,
        pass: impl Fn(u32) -> bool,
        scratch: &mut Scratch,
    ) -> bool {
        let Scratch { visited, candidates, best, batch, links, hop, .. } = scratch;
        visited.begin(walk.limit);
        candidates.clear();
        best.begin(walk.ef);
        let Some(row) = walk.target.place(start) else { return true };
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
            match walk.within {
                None => Self::gather(walk.target, links.iter().copied(), visited, batch),
                Some(words) => {
                    self.gather_within(words, walk, !best.is_full(), Around { visited, batch, links, hop });
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

/// What gathering neighbours writes to.
struct Around<'a> {
    visited: &'a mut Visited,
    batch: &'a mut Batch,
    links: &'a mut Vec<u32>,
    hop: &'a mut Vec<u32>,
}

/// Whether a slot is in a set given as words of bits.
#[inline(always)]
pub fn has(words: &[u64], slot: u32) -> bool {
    words.get(slot as usize / 64).is_some_and(|word| word >> (slot % 64) & 1 != 0)
}
