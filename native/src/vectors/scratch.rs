//! What one search needs to write to, kept between searches.

use super::rows::Row;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Slots met so far, forgotten in constant time: a mark counts only while it equals the current round.
#[derive(Default)]
pub struct Visited {
    marks: Vec<u8>,
    round: u8,
}

impl Visited {
    /// Forget everything and make room for slots below `limit`.
    pub fn begin(&mut self, limit: u32) {
        if self.marks.len() < limit as usize {
            // Room for growth, so that a growing index does not copy at every search.
            let room = (limit as usize).next_multiple_of(1 << 16);
            self.marks = vec![0; room];
            self.round = 0;
        }
        if self.round == u8::MAX {
            self.marks.fill(0);
            self.round = 0;
        }
        self.round += 1;
    }

    /// Mark a slot; false when it was marked before, or is beyond the limit of this round.
    #[inline(always)]
    pub fn insert(&mut self, slot: u32) -> bool {
        match self.marks.get_mut(slot as usize) {
            Some(mark) if *mark != self.round => {
                *mark = self.round;
                true
            }
            _ => false,
        }
    }

    #[inline(always)]
    pub fn contains(&self, slot: u32) -> bool {
        self.marks.get(slot as usize).is_some_and(|mark| *mark == self.round)
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
    pub tail: Vec<u32>,
    pub keys: Vec<u64>,
}
