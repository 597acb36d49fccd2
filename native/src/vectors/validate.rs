//! Every invariant, walked; and the figures an operator asks for.

use super::index::{Index, LONG_TAIL};
use super::links::MAX_LEVELS;
use super::rows::scale_of;
use super::states::{DYING, ERASED, KNOWN, LINKED, LIVE, WRITTEN};
use std::collections::HashSet;
use std::fmt::Display;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Further problems are counted, not worded.
const MOST_PROBLEMS: usize = 100;

#[derive(Default)]
struct Problems {
    worded: Vec<String>,
    more: usize,
}

impl Problems {
    fn add(&mut self, what: impl Display) {
        if self.worded.len() < MOST_PROBLEMS {
            self.worded.push(what.to_string());
        } else {
            self.more += 1;
        }
    }

    fn check(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.add(what());
        }
    }

    fn finish(mut self) -> Vec<String> {
        if self.more > 0 {
            self.worded.push(format!("and {} more", self.more));
        }
        self.worded
    }
}

/// What the states add up to.
#[derive(Default)]
struct Seen {
    counts: [usize; 5],
    heights: [usize; MAX_LEVELS],
    unlinked: usize,
}

impl Index {
    /// Every broken invariant in words. Writers wait, searches do not.
    pub fn validate(&self) -> Vec<String> {
        let _writer = self.writer.lock();
        let _gate = self.gate.write();
        let mut problems = Problems::default();
        let mut tail = Vec::new();
        self.tail.snapshot(&mut tail);
        let waiting: HashSet<u32> = tail.iter().copied().collect();
        problems.check(waiting.len() == tail.len(), || "the tail names a slot twice".into());
        let mut seen = Seen::default();
        for slot in self.states.with(0, self.limit()) {
            self.check_slot(slot, waiting.contains(&slot), &mut seen, &mut problems);
        }
        self.check_counts(&seen, &mut problems);
        self.check_entry(&mut problems);
        problems.finish()
    }

    fn check_slot(&self, slot: u32, waiting: bool, seen: &mut Seen, problems: &mut Problems) {
        let bits = self.states.get(slot);
        let (written, live) = (bits & WRITTEN != 0, bits & LIVE != 0);
        let (linked, erased) = (bits & LINKED != 0, bits & ERASED != 0);
        for (count, is) in seen.counts.iter_mut().zip([written, live, erased, linked, linked && !live]) {
            *count += usize::from(is);
        }
        problems.check(bits & !KNOWN == 0, || format!("slot {slot}: state {bits:#04x} has unknown bits"));
        problems.check(written || bits == 0, || format!("slot {slot}: has a state and was never written"));
        problems.check(!(live && erased), || format!("slot {slot}: live and erased"));
        if !written {
            problems.check(!waiting, || format!("slot {slot}: in the tail and never written"));
            return;
        }
        seen.unlinked += usize::from(live && !linked);
        problems.check(!(linked && waiting), || format!("slot {slot}: linked and in the tail"));
        problems.check(linked || waiting || !live, || format!("slot {slot}: neither linked nor in the tail"));
        self.check_row(slot, erased, problems);
        self.check_codes(slot, linked, erased, problems);
        if linked {
            seen.heights[self.links.height(slot)] += 1;
            for level in 0..=self.links.height(slot) {
                self.check_links(slot, level, problems);
            }
        }
    }

    fn check_row(&self, slot: u32, erased: bool, problems: &mut Problems) {
        let Some(row) = self.rows.get(slot) else {
            return problems.add(format!("slot {slot}: its rows chunk is missing"));
        };
        if erased {
            return problems
                .check(self.rows.is_erased(slot), || format!("slot {slot}: erased, yet bytes are left"));
        }
        if !self.rows.intact(slot, row) {
            return problems.add(format!("slot {slot}: the vector does not match its checksum"));
        }
        let values = self.rows.values(row);
        problems.check(values.iter().all(|x| x.is_finite()), || {
            format!("slot {slot}: a component is not finite")
        });
        let scale = scale_of(values, self.config.metric);
        problems.check(scale == self.rows.scale(row), || {
            format!("slot {slot}: the scale is not that of the vector")
        });
    }

    fn check_codes(&self, slot: u32, linked: bool, erased: bool, problems: &mut Problems) {
        let Some(codes) = &self.codes else { return };
        if erased {
            problems.check(codes.is_erased(slot), || format!("slot {slot}: erased, yet codes are left"));
        } else if let (true, Some(row)) = (linked, self.rows.get(slot)) {
            problems.check(codes.are_of(slot, self.rows.values(row)), || {
                format!("slot {slot}: the codes are not those of the vector")
            });
        }
    }

    fn check_links(&self, slot: u32, level: usize, problems: &mut Problems) {
        let Some(entries) = self.links.entries(slot, level) else {
            return problems.add(format!("slot {slot}: its links of level {level} are missing"));
        };
        let length = entries.iter().position(|e| *e == 0).unwrap_or(entries.len());
        let at = || format!("slot {slot}, level {level}");
        problems
            .check(entries[length..].iter().all(|e| *e == 0), || format!("{}: links behind the end", at()));
        let mut met = HashSet::with_capacity(length);
        let dying = self.states.get(slot) & DYING != 0;
        for entry in &entries[..length] {
            let other = entry - 1;
            if other >= self.limit() {
                problems.add(format!("{}: a link to {other}, beyond the last slot", at()));
                continue;
            }
            problems.check(other != slot, || format!("{}: a link to itself", at()));
            problems.check(met.insert(other), || format!("{}: two links to {other}", at()));
            // Nodes on their way out may name others that went before them.
            problems.check(dying || self.states.get(other) & LINKED != 0, || {
                format!("{}: a link to {other}, no node", at())
            });
            let height = self.links.height(other);
            problems.check(height >= level, || format!("{}: a link to {other} of height {height}", at()));
        }
    }

    fn check_counts(&self, seen: &Seen, problems: &mut Problems) {
        let load = |count: &AtomicUsize| count.load(Ordering::Acquire);
        let counts = &self.counts;
        let kept = [&counts.written, &counts.live, &counts.erased, &counts.linked, &counts.dead].map(load);
        for (i, name) in ["written", "live", "erased", "linked", "dead"].into_iter().enumerate() {
            let (kept, seen) = (kept[i], seen.counts[i]);
            problems.check(kept == seen, || format!("{name} is counted as {kept}, there are {seen}"));
        }
        for (level, seen) in seen.heights.iter().enumerate() {
            let kept = load(&counts.heights[level]);
            problems.check(kept == *seen, || {
                format!("nodes of height {level} are counted as {kept}, there are {seen}")
            });
        }
    }

    fn check_entry(&self, problems: &mut Problems) {
        let live = self
            .counts
            .linked
            .load(Ordering::Acquire)
            .saturating_sub(self.counts.dead.load(Ordering::Acquire));
        let Some((slot, top)) = self.entry() else {
            return problems.check(live == 0, || "the graph has live nodes and no entry".into());
        };
        problems.check(self.states.get(slot) & LINKED != 0, || format!("the entry {slot} is no node"));
        problems
            .check(top == self.links.height(slot), || format!("the entry {slot} has not the height {top}"));
        let mut nodes = self.states.with(LIVE | LINKED, self.limit());
        if let Some(higher) = nodes.find(|node| self.links.height(*node) > top) {
            problems.add(format!("node {higher} is higher than the entry {slot}"));
        }
    }

    /// Figures by name; all but the mean degree, which is sampled, are kept up to date and cost nothing.
    pub fn figures(&self) -> Vec<(&'static str, f64)> {
        let load = |count: &AtomicUsize| count.load(Ordering::Acquire) as f64;
        let counts = &self.counts;
        let (rows, rows_mapped) = self.rows.arena.bytes();
        let (base, base_mapped) = self.links.base.bytes();
        let (upper, upper_mapped) = self.links.upper.bytes();
        let (states, states_mapped) = self.states.arena.bytes();
        let (codes, codes_mapped) = self.codes.as_ref().map_or((0, 0), |codes| codes.arena.bytes());
        let mapped = rows_mapped + base_mapped + upper_mapped + states_mapped + codes_mapped;
        vec![
            ("live", load(&counts.live)),
            ("removed", load(&counts.written) - load(&counts.live)),
            ("erased", load(&counts.erased)),
            ("linked", load(&counts.linked)),
            ("dead", load(&counts.dead)),
            ("unlinked", self.tail.waiting() as f64),
            ("slots", f64::from(self.limit())),
            ("long_tail", LONG_TAIL as f64),
            ("entry", self.entry().map_or(-1.0, |(slot, _)| f64::from(slot))),
            ("max_level", self.entry().map_or(-1.0, |(_, top)| top as f64)),
            ("bytes_rows", rows as f64),
            ("bytes_codes", codes as f64),
            ("bytes_links", base as f64),
            ("bytes_upper", upper as f64),
            ("bytes_states", states as f64),
            ("bytes_mapped", mapped as f64),
        ]
    }

    /// Links per node of level 0, over up to a thousand nodes spread evenly.
    pub fn mean_degree(&self) -> f64 {
        let limit = self.limit();
        let (mut nodes, mut degrees, mut links) = (0usize, 0usize, Vec::new());
        for slot in (0..limit).step_by((limit as usize / 1000).max(1)) {
            if self.states.get(slot) & LINKED != 0 {
                self.links.read(slot, 0, limit, &mut links);
                nodes += 1;
                degrees += links.len();
            }
        }
        degrees as f64 / nodes.max(1) as f64
    }

    /// Nodes on each level, from level 0 up.
    pub fn level_sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<usize> = self.counts.heights.iter().map(|c| c.load(Ordering::Acquire)).collect();
        for level in (0..sizes.len() - 1).rev() {
            sizes[level] += sizes[level + 1];
        }
        while sizes.last() == Some(&0) {
            sizes.pop();
        }
        sizes
    }
}
