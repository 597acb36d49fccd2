//! Vacuum and refine: work on the graph in short steps, beside searches and insertions.
//!
//! Vacuum takes out the nodes that were dead when it began. It marks them (`DYING`), which keeps insertions from
//! linking to them; then gives every node that links to one of them the best of what lay behind; then, when nobody
//! links to them, unlinks them and zeroes their bytes. Refine looks for better neighbours of every node.
//!
//! Whoever drives them calls one step after the other and may stop after any: what is done is done, and the next call
//! goes on. A checkpoint between two steps is sound; after opening it, a vacuum begins anew with the marks it finds.

use super::codes::CodeTarget;
use super::index::Index;
use super::score::{key, slot_of, Measure, UNKNOWN};
use super::scratch::Scratch;
use super::search::Walk;
use super::states::{DYING, ERASED, LINKED, LIVE, WRITTEN};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Nodes between two looks at the clock.
const STRIDE: usize = 16;

/// What is under way.
#[derive(Default)]
pub struct Maintenance {
    vacuum: Option<Vacuum>,
    refine: Option<Refine>,
}

struct Vacuum {
    /// Slots that existed when it began.
    limit: u32,
    phase: Phase,
    next: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Repair,
    Unlink,
}

struct Refine {
    limit: u32,
    ef: usize,
    next: u32,
}

/// How far a run is, in slots looked at; over when nothing is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
}

impl Index {
    /// One step of a vacuum, begun when none is under way.
    pub fn vacuum(&self, time: Duration) -> Progress {
        let end = Instant::now() + time;
        let mut maintenance = self.maintenance.lock();
        let mut vacuum = maintenance.vacuum.take().unwrap_or_else(|| self.begin_vacuum());
        let total = u64::from(vacuum.limit) * 2;
        if vacuum.phase == Phase::Repair {
            let repair = |slot, scratch: &mut Scratch| self.repair(slot, scratch);
            self.each_node(&mut vacuum.next, vacuum.limit, end, repair);
            if vacuum.next < vacuum.limit {
                let done = u64::from(vacuum.next);
                maintenance.vacuum = Some(vacuum);
                return Progress { done, total };
            }
            vacuum = Vacuum { phase: Phase::Unlink, next: 0, ..vacuum };
        }
        self.unlink_dying(&mut vacuum, end);
        let done = u64::from(vacuum.limit) + u64::from(vacuum.next);
        if done < total {
            maintenance.vacuum = Some(vacuum);
        }
        Progress { done, total }
    }

    /// No insertion is half done while the dead are marked, so none links to them afterwards.
    fn begin_vacuum(&self) -> Vacuum {
        let _writer = self.writer.lock();
        let _gate = self.gate.write();
        let limit = self.limit();
        let dead: Vec<u32> =
            self.states.with(LINKED, limit).filter(|slot| !self.states.is_live(*slot)).collect();
        for slot in dead {
            self.states.change(slot, DYING, 0);
        }
        Vacuum { limit, phase: Phase::Repair, next: 0 }
    }

    /// One step of a search for better neighbours with breadth `ef`.
    pub fn refine(&self, ef: usize, time: Duration) -> Progress {
        let end = Instant::now() + time;
        let mut maintenance = self.maintenance.lock();
        let begun = maintenance.refine.take().filter(|refine| refine.ef == ef);
        let mut refine = begun.unwrap_or_else(|| Refine { limit: self.limit(), ef, next: 0 });
        let improve = |slot, scratch: &mut Scratch| self.improve(slot, ef, scratch);
        self.each_node(&mut refine.next, refine.limit, end, improve);
        let progress = Progress { done: refine.next.into(), total: refine.limit.into() };
        if progress.done < progress.total {
            maintenance.refine = Some(refine);
        }
        progress
    }

    /// Do something with every live node from `next` on until it is `end`.
    fn each_node(&self, next: &mut u32, limit: u32, end: Instant, work: impl Fn(u32, &mut Scratch)) {
        let mut scratch = self.borrow_scratch();
        while *next < limit {
            let _gate = self.gate.read();
            let mut worked = 0;
            while *next < limit && worked < STRIDE {
                if self.states.get(*next) & (LINKED | LIVE) == LINKED | LIVE {
                    work(*next, &mut scratch);
                    worked += 1;
                }
                *next += 1;
            }
            if Instant::now() >= end {
                break;
            }
        }
        self.return_scratch(scratch);
    }

    fn repair(&self, slot: u32, scratch: &mut Scratch) {
        let Some(row) = self.rows.get(slot) else { return };
        match &self.codes {
            Some(codes) => self.repair_by(&CodeTarget::stored(codes, slot), slot, scratch),
            None => self.repair_by(&Some(self.target(self.rows.values(row))), slot, scratch),
        }
    }

    /// In place of links to dying nodes, as many to the best of the nodes around them, and links back.
    ///
    /// Links that stay are left as they are: choosing all of them anew would thin a list out a little at every vacuum.
    fn repair_by<M: Measure>(&self, target: &Option<M>, slot: u32, scratch: &mut Scratch) {
        let Some(target) = target else { return };
        let limit = self.limit();
        let dying = |other: &u32| self.states.get(*other) & DYING != 0;
        let mut before = Vec::new();
        for level in 0..=self.links.height(slot) {
            let kept = {
                let _lock = self.links.lock(slot);
                self.links.read(slot, level, limit, &mut before);
                if !before.iter().any(dying) {
                    continue;
                }
                let around = self.around(slot, level, &before, dying);
                self.score_all(target, &around, scratch);
                let mut kept: Vec<u32> = before.iter().copied().filter(|other| !dying(other)).collect();
                let chosen = self.select(target, &scratch.keys, before.len());
                // Where few point in directions of their own, the nearest of the others fill the list up.
                let others = scratch.keys.iter().map(|key| slot_of::<true>(*key));
                for other in chosen.into_iter().chain(others) {
                    if kept.len() < before.len() && !kept.contains(&other) {
                        kept.push(other);
                    }
                }
                self.links.write(slot, level, &kept);
                kept
            };
            for neighbour in kept.into_iter().filter(|other| !before.contains(other)) {
                self.link_back(target, neighbour, slot, level, scratch);
            }
        }
    }

    /// The neighbours of a list that stay, and what lies behind those that do not.
    fn around(&self, slot: u32, level: usize, list: &[u32], dying: impl Fn(&u32) -> bool) -> Vec<u32> {
        let limit = self.limit();
        let mut found: Vec<u32> = list.iter().copied().filter(|other| !dying(other)).collect();
        let mut behind: Vec<u32> = list.iter().copied().filter(|other| dying(other)).collect();
        let mut passed = 0;
        let mut next = Vec::new();
        // Where whole regions die at once, what is left lies several steps away.
        while passed < behind.len() && (passed < list.len() || found.is_empty()) {
            self.links.read(behind[passed], level, limit, &mut next);
            for other in &next {
                if dying(other) {
                    if behind.len() < self.config.ef_construction.max(list.len()) && !behind.contains(other) {
                        behind.push(*other);
                    }
                } else if *other != slot && !found.contains(other) {
                    found.push(*other);
                }
            }
            passed += 1;
        }
        if found.is_empty() {
            found.extend(
                self.entry().filter(|(entry, top)| *entry != slot && *top >= level).map(|(entry, _)| entry),
            );
        }
        found
    }

    /// Keys of slots as `target` sees them, best first, into `scratch.keys`; of live ones, where there are any.
    fn score_all<M: Measure>(&self, target: &M, slots: &[u32], scratch: &mut Scratch) {
        let Scratch { batch, keys, .. } = scratch;
        batch.clear();
        for slot in slots {
            if let Some(row) = target.place(*slot) {
                target.fetch(row);
                batch.push(*slot, row);
            }
        }
        batch.scores.resize(batch.rows.len(), 0.0);
        target.many(&batch.rows, &mut batch.scores);
        keys.clear();
        keys.extend(batch.slots.iter().zip(&batch.scores).map(|(slot, score)| key::<true>(*score, *slot)));
        if keys.iter().any(|key| self.states.is_live(slot_of::<true>(*key))) {
            keys.retain(|key| self.states.is_live(slot_of::<true>(*key)));
        }
        keys.sort_unstable_by(|a, b| b.cmp(a));
    }

    fn unlink_dying(&self, vacuum: &mut Vacuum, end: Instant) {
        let _writer = self.writer.lock();
        let _gate = self.gate.write();
        let mut done = 0;
        while vacuum.next < vacuum.limit {
            let slot = vacuum.next;
            vacuum.next += 1;
            let bits = self.states.get(slot);
            let removed = bits & WRITTEN != 0 && bits & LIVE == 0;
            if removed && bits & DYING != 0 {
                self.unlink(slot);
            }
            if removed && bits & ERASED == 0 && (bits & DYING != 0 || bits & LINKED == 0) {
                self.erase(slot);
            }
            done += usize::from(removed);
            if done.is_multiple_of(STRIDE) && Instant::now() >= end {
                break;
            }
        }
    }

    /// Take a node that nobody links to out of the graph.
    fn unlink(&self, slot: u32) {
        for level in 0..=self.links.height(slot) {
            let _lock = self.links.lock(slot);
            self.links.write(slot, level, &[]);
        }
        self.states.change(slot, 0, LINKED | DYING);
        self.counts.linked.fetch_sub(1, Ordering::AcqRel);
        self.counts.dead.fetch_sub(1, Ordering::AcqRel);
        self.counts.heights[self.links.height(slot)].fetch_sub(1, Ordering::AcqRel);
    }

    fn improve(&self, slot: u32, ef: usize, scratch: &mut Scratch) {
        let Some(row) = self.rows.get(slot) else { return };
        match &self.codes {
            Some(codes) => self.improve_by(&CodeTarget::stored(codes, slot), slot, ef, scratch),
            None => self.improve_by(&Some(self.target(self.rows.values(row))), slot, ef, scratch),
        }
    }

    /// Choose a node's neighbours anew among those it has and those a walk from it finds.
    fn improve_by<M: Measure>(&self, target: &Option<M>, slot: u32, ef: usize, scratch: &mut Scratch) {
        let Some(target) = target else { return };
        let limit = self.limit();
        for level in 0..=self.links.height(slot) {
            let walk = Walk { target, level, ef, limit, budget: usize::MAX, within: None };
            let other = |found: u32| found != slot && self.states.is_live(found);
            self.walk::<M, true>(&walk, slot, other, scratch);
            let mut found = Vec::new();
            scratch.best.drain_sorted(&mut found);
            let mut before = Vec::new();
            let added = {
                let _lock = self.links.lock(slot);
                self.links.read(slot, level, limit, &mut before);
                let mut around: Vec<u32> = found.iter().map(|key| slot_of::<true>(*key)).collect();
                around.extend(
                    before.iter().copied().filter(|other| !around.contains(other)).collect::<Vec<_>>(),
                );
                self.score_all(target, &around, scratch);
                scratch.keys.retain(|key| super::score::score_of(*key) != UNKNOWN);
                let kept = self.select(target, &scratch.keys, self.links.capacity(level));
                if kept.is_empty() {
                    continue;
                }
                self.links.write(slot, level, &kept);
                kept
            };
            for neighbour in added.into_iter().filter(|other| !before.contains(other)) {
                self.link_back(target, neighbour, slot, level, scratch);
            }
        }
    }
}
