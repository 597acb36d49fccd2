//! The best documents of one set of postings, without looking at those that cannot be among them.
//!
//! Documents are visited in windows of slots. In each window a term has a bound, the best of its blocks there. The
//! terms with the lowest bounds that together cannot lift a document into the result are left aside: the others are
//! summed up for the whole window, and only a document whose sum could still make it is looked up in those left aside.
//! A window whose bounds do not reach the result is skipped unread. See `scoring` for why nothing is lost thereby.

use super::documents::Documents;
use super::memory::{List, BLOCK};
use super::scoring::Scorer;
use super::segment::{Checked, Place, Segment};
use roaring::RoaringBitmap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Slots summed up at a time, at most and, where lists are dense, at least.
const WINDOW: u32 = 4096;
const LEAST_WINDOW: u32 = 1024;

/// The k best so far; of equal scores the lower slot is better.
pub struct Top {
    k: usize,
    /// Scores are positive, so their bits are in their order.
    heap: BinaryHeap<Reverse<(u64, Reverse<u32>)>>,
}

impl Top {
    pub fn new(k: usize, documents: usize) -> Self {
        Self { k, heap: BinaryHeap::with_capacity(k.min(documents) + 1) }
    }

    /// Whether a document at or above `slot` could be among the k with this score.
    #[inline]
    fn admits(&self, score: f64, slot: u32) -> bool {
        if self.heap.len() < self.k {
            return true;
        }
        self.heap.peek().is_some_and(|Reverse(worst)| (score.to_bits(), Reverse(slot)) > *worst)
    }

    pub fn push(&mut self, score: f64, slot: u32) {
        if self.admits(score, slot) {
            self.heap.push(Reverse((score.to_bits(), Reverse(slot))));
            if self.heap.len() > self.k {
                self.heap.pop();
            }
        }
    }

    /// Best first.
    pub fn into_sorted(self) -> Vec<(u32, f32)> {
        let sorted = self.heap.into_sorted_vec();
        sorted
            .into_iter()
            .map(|Reverse((score, Reverse(slot)))| (slot, f64::from_bits(score) as f32))
            .collect()
    }
}

/// Where the postings of a term come from.
#[derive(Clone, Copy)]
pub enum Blocks<'a> {
    Memory(&'a List),
    Segment(&'a Segment, Place),
}

/// A place in the postings of one query term.
pub struct Cursor<'a> {
    blocks: Blocks<'a>,
    pub scorer: Scorer,
    /// The block that holds the next posting, if any does.
    block: usize,
    count: usize,
    /// Postings below this are behind.
    floor: u32,
    loaded: usize,
    next: usize,
    filled: usize,
    slots: Box<[u32; BLOCK]>,
    inverses: Box<[f32; BLOCK]>,
    /// The most that any posting can add.
    highest: f64,
    /// The most that a posting within the window can add.
    bound: f64,
}

impl<'a> Cursor<'a> {
    pub fn new(blocks: Blocks<'a>, scorer: Scorer) -> Checked<Self> {
        let (count, best) = match blocks {
            Blocks::Memory(list) => (list.blocks.len(), list.best),
            Blocks::Segment(segment, place) => (segment.blocks(place), segment.best(place)?),
        };
        Ok(Self {
            blocks,
            scorer,
            block: 0,
            count,
            floor: 0,
            loaded: usize::MAX,
            next: 0,
            filled: 0,
            slots: Box::new([0; BLOCK]),
            inverses: Box::new([0.0; BLOCK]),
            highest: scorer.bound(&best),
            bound: 0.0,
        })
    }

    fn last_slot(&self, block: usize) -> Checked<u32> {
        match self.blocks {
            Blocks::Memory(list) => Ok(list.blocks[block].last()),
            Blocks::Segment(segment, place) => segment.last_slot(place, block),
        }
    }

    fn block_bound(&self, block: usize) -> Checked<f64> {
        Ok(match self.blocks {
            _ if self.count == 1 => self.highest,
            Blocks::Memory(list) => self.scorer.bound(&list.blocks[block].best),
            Blocks::Segment(segment, place) => self.scorer.bound(&segment.block_best(place, block)?),
        })
    }

    /// Go to the block that may hold `slot`, without decoding it.
    fn seek_block(&mut self, slot: u32) -> Checked<()> {
        self.floor = self.floor.max(slot);
        if self.block == self.count || self.last_slot(self.block)? >= slot {
            return Ok(());
        }
        let (mut low, mut step) = (self.block, 1);
        while low + step < self.count && self.last_slot(low + step)? < slot {
            low += step;
            step *= 2;
        }
        let mut high = self.count.min(low + step);
        while low + 1 < high {
            let middle = (low + high) / 2;
            match self.last_slot(middle)? < slot {
                true => low = middle,
                false => high = middle,
            }
        }
        self.block = high;
        Ok(())
    }

    /// Go to the first posting at or above `slot`; its slot, or None behind the last.
    fn seek(&mut self, slot: u32) -> Checked<Option<u32>> {
        self.seek_block(slot)?;
        if self.block == self.count {
            return Ok(None);
        }
        self.load()?;
        let rest = &self.slots[self.next..self.filled];
        self.next += match rest.first() {
            Some(first) if *first >= slot => 0,
            _ => rest.partition_point(|found| *found < slot),
        };
        // The block's last slot is at or above `slot`, unless its bytes are not what they were.
        match self.slots[..self.filled].get(self.next) {
            Some(found) => Ok(Some(*found)),
            None => Err("a block ends before its last slot".into()),
        }
    }

    fn load(&mut self) -> Checked<()> {
        if self.loaded == self.block {
            return Ok(());
        }
        self.filled = match self.blocks {
            Blocks::Memory(list) => {
                let entries = &list.blocks[self.block].entries;
                for (at, (slot, inverse)) in entries.iter().enumerate() {
                    self.slots[at] = *slot;
                    self.inverses[at] = *inverse;
                }
                entries.len()
            }
            Blocks::Segment(segment, place) => {
                segment.decode(place, self.block, &mut self.slots, &mut self.inverses)?
            }
        };
        (self.loaded, self.next) = (self.block, 0);
        Ok(())
    }

    /// Leave the decoded postings below `slot` behind.
    fn pass(&mut self, slot: u32) {
        if self.loaded == self.block {
            self.next += self.slots[self.next..self.filled].partition_point(|found| *found < slot);
        }
    }

    /// A slot that no posting is below: the next one where that is known.
    fn lowest(&self) -> u32 {
        match self.loaded == self.block && self.next < self.filled {
            true => self.floor.max(self.slots[self.next]),
            false => self.floor,
        }
    }

    /// Set `bound` to the most that a posting within the window can add.
    fn bound_window(&mut self, end: u32) -> Checked<()> {
        self.bound = 0.0;
        if self.lowest() >= end {
            return Ok(());
        }
        for block in self.block..self.count {
            self.bound = self.bound.max(self.block_bound(block)?);
            if self.last_slot(block)? >= end - 1 {
                break;
            }
        }
        Ok(())
    }

    /// The share that this term adds to the score of `slot`, if it occurs there.
    pub fn share_of(&mut self, slot: u32, length: f32) -> Checked<Option<f64>> {
        let found = self.seek(slot)?;
        Ok((found == Some(slot)).then(|| self.scorer.share(self.inverses[self.next], length)))
    }
}

/// Which documents are wanted out of one set of postings.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    pub documents: &'a Documents,
    /// Number of the set; a slot that another set holds was removed from this one.
    pub owner: u32,
    pub filter: Option<&'a RoaringBitmap>,
}

/// Sums of shares for a range of slots.
struct Window {
    start: u32,
    end: u32,
    sums: Box<[f64; WINDOW as usize]>,
    touched: [u64; WINDOW as usize / 64],
}

/// Offer the documents of one set of postings to `top`.
pub fn search(mut cursors: Vec<Cursor<'_>>, wanted: Wanted<'_>, top: &mut Top) -> Checked<()> {
    let zeros = Box::new([0.0; WINDOW as usize]);
    let mut window = Window { start: 0, end: 0, sums: zeros, touched: [0; WINDOW as usize / 64] };
    loop {
        cursors.retain(|cursor| cursor.block < cursor.count);
        let Some(start) = next_start(&mut cursors, top)? else { return Ok(()) };
        (window.start, window.end) = (start, start.saturating_add(WINDOW));
        for cursor in &mut cursors {
            cursor.seek_block(start)?;
            if cursor.block < cursor.count {
                window.end = window.end.min(cursor.last_slot(cursor.block)?.saturating_add(1));
            }
        }
        window.end = window.end.max(start.saturating_add(LEAST_WINDOW));
        for cursor in &mut cursors {
            cursor.bound_window(window.end)?;
        }
        cursors.sort_unstable_by(|one, other| one.bound.total_cmp(&other.bound));

        let (split, aside) = left_aside(&cursors, start, top, |cursor| cursor.bound);
        let (left, summed) = cursors.split_at_mut(split);
        for cursor in summed.iter_mut().filter(|cursor| cursor.bound > 0.0) {
            window.sum(cursor, wanted.documents)?;
        }
        if !summed.is_empty() {
            window.offer(left, aside, wanted, top)?;
        }
        for cursor in &mut cursors {
            cursor.seek_block(window.end)?;
            cursor.pass(window.end);
        }
    }
}

/// How many of the first terms cannot lift a document at or above `start` into the result, and what they add.
fn left_aside(
    cursors: &[Cursor<'_>],
    start: u32,
    top: &Top,
    bound: impl Fn(&Cursor<'_>) -> f64,
) -> (usize, f64) {
    let mut aside = 0.0;
    for (at, cursor) in cursors.iter().enumerate() {
        if top.admits(aside + bound(cursor), start) {
            return (at, aside);
        }
        aside += bound(cursor);
    }
    (cursors.len(), aside)
}

/// Where the next document may be that can still make it: only the terms that are needed for one decide.
fn next_start(cursors: &mut [Cursor<'_>], top: &Top) -> Checked<Option<u32>> {
    cursors.sort_unstable_by(|one, other| one.highest.total_cmp(&other.highest));
    let (split, _) = left_aside(cursors, 0, top, |cursor| cursor.highest);
    let mut start = None;
    for cursor in &mut cursors[split..] {
        let sparse = cursor.last_slot(cursor.block)? - cursor.floor.min(cursor.last_slot(cursor.block)?)
            > LEAST_WINDOW;
        let lowest = if sparse { cursor.seek(cursor.floor)?.unwrap_or(u32::MAX) } else { cursor.lowest() };
        start = Some(start.map_or(lowest, |start: u32| start.min(lowest)));
    }
    // No document has the last slot of all.
    Ok(start.filter(|start| *start != u32::MAX))
}

impl Window {
    /// Add a term's shares within the window to the sums.
    fn sum(&mut self, cursor: &mut Cursor<'_>, documents: &Documents) -> Checked<()> {
        let mut found = cursor.seek(self.start)?;
        while found.is_some_and(|slot| slot < self.end) {
            let from = cursor.next;
            cursor.pass(self.end);
            for at in from..cursor.next {
                let slot = cursor.slots[at];
                let place = slot.wrapping_sub(self.start) as usize;
                let sum = self.sums.get_mut(place).ok_or("a block begins before the one before it ends")?;
                *sum += cursor.scorer.share(cursor.inverses[at], documents.length(slot));
                self.touched[place / 64] |= 1 << (place % 64);
            }
            if cursor.next < cursor.filled {
                break;
            }
            cursor.block += 1;
            if cursor.block == cursor.count {
                break;
            }
            cursor.load()?;
            found = cursor.slots[..cursor.filled].first().copied();
        }
        Ok(())
    }

    /// Complete the sums that could still make it with the terms left aside, and clear all sums.
    fn offer(
        &mut self,
        left: &mut [Cursor<'_>],
        aside: f64,
        wanted: Wanted<'_>,
        top: &mut Top,
    ) -> Checked<()> {
        for (word, bits) in self.touched.iter_mut().enumerate() {
            while *bits != 0 {
                let place = word * 64 + bits.trailing_zeros() as usize;
                *bits &= *bits - 1;
                let mut score = std::mem::take(&mut self.sums[place]);
                let slot = self.start + place as u32;
                if !top.admits(score + aside, slot) {
                    continue;
                }
                let entry = wanted.documents.get(slot);
                if entry.owner != wanted.owner || wanted.filter.is_some_and(|filter| !filter.contains(slot)) {
                    continue;
                }
                let mut rest = aside;
                for cursor in left.iter_mut().rev() {
                    rest -= cursor.bound;
                    score += cursor.share_of(slot, entry.length)?.unwrap_or(0.0);
                    if !top.admits(score + rest, slot) {
                        break;
                    }
                }
                top.push(score, slot);
            }
        }
        Ok(())
    }
}
