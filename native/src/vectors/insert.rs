//! A stored slot becomes a node of the graph.

use super::codes::{CodeTarget, Codes};
use super::index::Index;
use super::score::{key, score_of, slot_of, Measure, UNKNOWN};
use super::scratch::Scratch;
use super::search::Walk;
use super::states::{DYING, ERASED, LINKED, LIVE, WRITTEN};
use std::io;
use std::sync::atomic::{fence, Ordering};

/// Fewer vectors than this say too little about where the data lies.
const CENTRE_FROM: usize = 256;
const CENTRE_SAMPLE: usize = 4096;

impl Index {
    /// Give `slot` its links and its neighbours links to it. The caller holds the gate and took the slot from the tail.
    pub fn link(&self, slot: u32, scratch: &mut Scratch) {
        let Some(row) = self.rows.get(slot) else { return };
        match &self.codes {
            Some(codes) => {
                self.decide_centre(codes);
                if let Some(vector) = self.encode(slot) {
                    self.link_by(&CodeTarget::query(codes, &vector), slot, scratch);
                }
            }
            None => self.link_by(&self.target(self.rows.values(row)), slot, scratch),
        }
    }

    /// Write the codes of a slot. An erasure that comes first leaves nothing to encode; one that comes after it zeroes
    /// the codes too.
    fn encode(&self, slot: u32) -> Option<Vec<f32>> {
        let (codes, row) = (self.codes.as_ref()?, self.rows.get(slot)?);
        let _lock = self.links.lock(slot);
        let vector = self.rows.values(row).to_vec();
        fence(Ordering::Acquire);
        if self.states.get(slot) & ERASED != 0 {
            return None;
        }
        codes.write(slot, &vector);
        Some(vector)
    }

    /// Make the codes of every node, of an index that was saved without.
    pub fn encode_all(&self) -> io::Result<()> {
        let Some(codes) = &self.codes else { return Ok(()) };
        for slot in self.states.with(LINKED, self.limit()) {
            self.decide_centre(codes);
            codes.ensure(slot)?;
            self.encode(slot);
        }
        for slot in self.states.with(WRITTEN, self.limit()) {
            codes.ensure(slot)?;
        }
        Ok(())
    }

    /// Before the first code: where the data lies, if there is enough of it to tell.
    fn decide_centre(&self, codes: &Codes) {
        codes.decide_centre(|| {
            let live: Vec<u32> = self.states.with(LIVE, self.limit()).collect();
            if live.len() < CENTRE_FROM {
                return Box::default();
            }
            let sample = live.iter().step_by(live.len().div_ceil(CENTRE_SAMPLE));
            let rows: Vec<&[f32]> =
                sample.filter_map(|slot| Some(self.rows.values(self.rows.get(*slot)?))).collect();
            codes.centre_of(&rows)
        });
    }

    fn link_by<M: Measure>(&self, target: &M, slot: u32, scratch: &mut Scratch) {
        if self.enter_first(slot) {
            self.count_node(slot);
            return;
        }
        let limit = self.limit();
        let Some((entry, top)) = self.entry() else { return };
        let height = self.links.height(slot);
        let mut nearest = self.descend(target, entry, (top, height.min(top)), limit, scratch);
        let mut chosen: Vec<(usize, Vec<u32>)> = Vec::with_capacity(height + 1);
        for level in (0..=height.min(top)).rev() {
            self.candidates(target, slot, nearest, level, limit, scratch);
            if let Some(best) = scratch.keys.first() {
                nearest = slot_of::<true>(*best);
            }
            let neighbours = self.select(target, &scratch.keys, self.config.m);
            chosen.push((level, neighbours));
        }
        for (level, neighbours) in &chosen {
            let _lock = self.links.lock(slot);
            self.links.write(slot, *level, neighbours);
        }
        self.count_node(slot);
        for (level, neighbours) in &chosen {
            for neighbour in neighbours {
                self.link_back(target, *neighbour, slot, *level, scratch);
            }
        }
        self.enter_higher(slot);
    }

    fn count_node(&self, slot: u32) {
        self.counts.linked.fetch_add(1, Ordering::AcqRel);
        self.counts.heights[self.links.height(slot)].fetch_add(1, Ordering::AcqRel);
        // A remover that comes after this counts the node as dead itself.
        if self.states.change(slot, LINKED, 0) & LIVE == 0 {
            self.counts.dead.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Keys of the nodes nearest to a new one on a level, best first, into `scratch.keys`: live ones, or, where the
    /// walk met none, dead ones that still lead somewhere.
    fn candidates<M: Measure>(
        &self,
        target: &M,
        slot: u32,
        start: u32,
        level: usize,
        limit: u32,
        scratch: &mut Scratch,
    ) {
        let ef = self.config.ef_construction;
        let walk = Walk { target, level, ef, limit, budget: usize::MAX, within: None };
        let other = |found: u32| found != slot;
        self.walk::<M, true>(&walk, start, other, scratch);
        let mut keys = std::mem::take(&mut scratch.keys);
        scratch.best.drain_sorted(&mut keys);
        if self.counts.dead.load(Ordering::Relaxed) > 0 {
            let live = |key: &u64| self.states.is_live(slot_of::<true>(*key));
            let enough = self.config.m.min(ef);
            if keys.iter().filter(|key| live(key)).count() >= enough {
                keys.retain(live);
            } else {
                let walk = Walk { budget: ef * 64, ..walk };
                self.walk::<M, true>(
                    &walk,
                    start,
                    |found| other(found) && self.states.is_live(found),
                    scratch,
                );
                let dead = std::mem::take(&mut keys);
                scratch.best.drain_sorted(&mut keys);
                if keys.is_empty() {
                    keys = dead;
                    keys.retain(|key| self.states.get(slot_of::<true>(*key)) & DYING == 0);
                    let entry = self.entry().filter(|(entry, top)| *entry != slot && *top >= level);
                    if let (true, Some((entry, _))) = (keys.is_empty(), entry) {
                        let score = target.place(entry).map_or(UNKNOWN, |row| target.one(row));
                        keys.push(key::<true>(score, entry));
                    }
                }
            }
        }
        scratch.keys = keys;
    }

    /// The heuristic of the HNSW paper: from near to far, keep who is nearer to the base than to anyone kept before,
    /// so that links point in different directions.
    ///
    /// Copies of the base would fill the list and cut it off from everything else: at most half of it goes to them,
    /// and they keep nobody out.
    pub fn select<M: Measure>(&self, base: &M, keys: &[u64], room: usize) -> Vec<u32> {
        let mut kept: Vec<u32> = Vec::with_capacity(room);
        let mut others = Vec::with_capacity(room);
        let mut copies = 0;
        let mut scores = [0.0; 4];
        for key in keys {
            if kept.len() == room {
                break;
            }
            let (slot, score) = (slot_of::<true>(*key), score_of(*key));
            let Some(row) = base.place(slot) else { continue };
            if score == UNKNOWN {
                continue;
            }
            if base.is_copy(score, row) {
                if copies < room.div_ceil(2) {
                    copies += 1;
                    kept.push(slot);
                }
                continue;
            }
            let candidate = base.like(row);
            let apart = others.chunks(4).all(|some| {
                candidate.many(some, &mut scores[..some.len()]);
                scores[..some.len()].iter().all(|s| *s <= score)
            });
            if apart {
                kept.push(slot);
                others.push(row);
            }
        }
        if kept.is_empty() {
            // Nothing but erased nodes was met: any link is better than none.
            kept.extend(keys.iter().take(room).map(|key| slot_of::<true>(*key)));
        }
        kept
    }

    /// Add `slot` to the list of `node`, choosing anew who stays when the list is full.
    pub fn link_back<M: Measure>(&self, by: &M, node: u32, slot: u32, level: usize, scratch: &mut Scratch) {
        let _lock = self.links.lock(node);
        let mut list = std::mem::take(&mut scratch.links);
        self.links.read(node, level, self.limit(), &mut list);
        if !list.contains(&slot) {
            let capacity = self.links.capacity(level);
            list.push(slot);
            if list.len() > capacity {
                list = self.prune(by, node, list, capacity, scratch);
            }
            self.links.write(node, level, &list);
        }
        scratch.links = list;
    }

    fn prune<M: Measure>(
        &self,
        by: &M,
        node: u32,
        list: Vec<u32>,
        capacity: usize,
        scratch: &mut Scratch,
    ) -> Vec<u32> {
        let Some(row) = by.place(node) else { return list[list.len() - capacity..].to_vec() };
        if self.states.get(node) & ERASED != 0 {
            // Nothing can be compared with an erased row; the newcomer takes the place of the oldest link.
            return list[list.len() - capacity..].to_vec();
        }
        let batch = &mut scratch.batch;
        batch.clear();
        let mut unknown = Vec::new();
        for other in list {
            match by.place(other) {
                Some(row) if self.states.get(other) & ERASED == 0 => batch.push(other, row),
                _ => unknown.push(other),
            }
        }
        let target = by.like(row);
        batch.scores.resize(batch.rows.len(), 0.0);
        target.many(&batch.rows, &mut batch.scores);
        let keys = &mut scratch.keys;
        keys.clear();
        keys.extend(batch.slots.iter().zip(&batch.scores).map(|(slot, score)| key::<true>(*score, *slot)));
        keys.sort_unstable_by(|a, b| b.cmp(a));
        let mut kept = self.select(&target, keys, capacity);
        // What was erased may be the only way to somewhere; it stays while there is room.
        unknown.truncate(capacity - kept.len().min(capacity));
        kept.extend(unknown);
        kept
    }
}
