//! What one search needs to write to, kept between searches.

use super::rows::Row;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Slots met so far, forgotten in constant time: 32 slots share a word with the round their marks belong to, and a
/// word of an earlier round counts as empty. Four times smaller than a byte a slot, it stays in the cache.
#[derive(Default)]
pub struct Visited {
    /// Round in the upper half, marks in the lower.
    words: Vec<u64>,
    round: u32,
}

impl Visited {
    /// Forget everything and make room for slots below `limit`.
    pub fn begin(&mut self, limit: u32) {
        let words = (limit as usize).div_ceil(32);
        if self.words.len() < words || self.round == u32::MAX {
            // Room for growth, so that a growing index does not allocate at every search.
            self.words = vec![0; words.next_multiple_of(1 << 11)];
            self.round = 0;
        }
        self.round += 1;
    }

    /// Mark a slot; false when it was marked before, or is beyond the limit of this round.
    #[inline(always)]
    pub fn insert(&mut self, slot: u32) -> bool {
        let Some(word) = self.words.get_mut(slot as usize / 32) else { return false };
        let marks = if (*word >> 32) as u32 == self.round { *word as u32 } else { 0 };
        let mark = 1 << (slot % 32);
        *word = u64::from(self.round) << 32 | u64::from(marks | mark);
        marks & mark == 0
    }

    #[inline(always)]
    pub fn contains(&self, slot: u32) -> bool {
        let word = self.words.get(slot as usize / 32).copied().unwrap_or_default();
        (word >> 32) as u32 == self.round && word >> (slot % 32) & 1 != 0
    }
}

/// Slots whose scores are to be computed together.
#[derive(Default)]
pub struct Batch {
    pub slots: Vec<u32>,
    pub rows: Vec<Row>,
    pub scores: Vec<f32>,
}

impl Batch {
    pub fn clear(&mut self) {
        self.slots.clear();
        self.rows.clear();
    }

    #[inline(always)]
    pub fn push(&mut self, slot: u32, row: Row) {
        self.slots.push(slot);
        self.rows.push(row);
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }
}

/// The best keys so far, at most a given number.
#[derive(Default)]
pub struct Best {
    heap: BinaryHeap<Reverse<u64>>,
    room: usize,
}

impl Best {
    pub fn begin(&mut self, room: usize) {
        self.heap.clear();
        self.room = room;
    }

    pub fn is_full(&self) -> bool {
        self.heap.len() >= self.room
    }

    /// Whether a key would be kept.
    #[inline(always)]
    pub fn admits(&self, key: u64) -> bool {
        !self.is_full() || self.heap.peek().is_some_and(|worst| key > worst.0)
    }

    #[inline(always)]
    pub fn push(&mut self, key: u64) {
        if !self.is_full() {
            self.heap.push(Reverse(key));
        } else if let Some(mut worst) = self.heap.peek_mut() {
            if key > worst.0 {
                *worst = Reverse(key);
            }
        }
    }

    /// The keys, best first; leaves nothing.
    pub fn drain_sorted(&mut self, out: &mut Vec<u64>) {
        out.clear();
        out.extend(self.heap.drain().map(|r| r.0));
        out.sort_unstable_by(|a, b| b.cmp(a));
    }
}

#[derive(Default)]
pub struct Scratch {
    pub visited: Visited,
    pub candidates: BinaryHeap<u64>,
    pub best: Best,
    pub batch: Batch,
    pub links: Vec<u32>,
    pub hop: Vec<u32>,
    pub tail: Vec<u32>,
    pub keys: Vec<u64>,
}
