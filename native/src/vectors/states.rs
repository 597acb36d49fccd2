//! What each slot is: one byte, changed by atomic bit operations.

use super::arena::Arena;
use std::io;
use std::sync::atomic::{AtomicU8, Ordering};

/// The slot's row was written; set for ever.
pub const WRITTEN: u8 = 1;
/// The slot matches.
pub const LIVE: u8 = 2;
/// The slot has links and may be met in the graph.
pub const LINKED: u8 = 4;
/// The row's bytes were zeroed.
pub const ERASED: u8 = 8;
/// A node that a vacuum is about to take out: nothing new links to it.
pub const DYING: u8 = 16;
/// Every bit that has a meaning.
pub const KNOWN: u8 = WRITTEN | LIVE | LINKED | ERASED | DYING;

const SHIFT: u32 = 16;

pub struct States {
    pub arena: Arena,
}

impl States {
    pub const CHUNK: usize = 1 << SHIFT;

    pub fn new() -> Self {
        Self { arena: Arena::new("vec.states", "states") }
    }

    pub fn ensure(&self, slot: u32) -> io::Result<()> {
        self.arena.ensure((slot >> SHIFT) as usize, Self::CHUNK)
    }

    #[inline(always)]
    fn byte(&self, slot: u32) -> Option<&AtomicU8> {
        self.arena.cell((slot >> SHIFT) as usize)?.byte(slot as usize & (Self::CHUNK - 1))
    }

    /// The bits of a slot; 0 for one that was never given.
    #[inline(always)]
    pub fn get(&self, slot: u32) -> u8 {
        self.byte(slot).map_or(0, |b| b.load(Ordering::Acquire))
    }

    #[inline(always)]
    pub fn is_live(&self, slot: u32) -> bool {
        self.get(slot) & LIVE != 0
    }

    /// Set and clear bits; returns what was there before. The slot's chunk must exist.
    pub fn change(&self, slot: u32, set: u8, clear: u8) -> u8 {
        let cell = self.arena.cell((slot >> SHIFT) as usize).expect("ensured before");
        cell.touch();
        let byte = self.byte(slot).expect("ensured before");
        byte.fetch_update(Ordering::AcqRel, Ordering::Acquire, |bits| Some((bits | set) & !clear))
            .expect("the update never declines")
    }

    /// Every slot below `limit` with all of `bits`, in ascending order.
    pub fn with(&self, bits: u8, limit: u32) -> impl Iterator<Item = u32> + '_ {
        self.arena.chunks().flat_map(move |(number, cell)| {
            let first = (number as u64) << SHIFT;
            let last = (first + Self::CHUNK as u64).min(u64::from(limit)).max(first);
            (first as u32..last as u32).filter_map(move |slot| {
                let found = cell.byte(slot as usize & (Self::CHUNK - 1))?.load(Ordering::Acquire);
                (found & bits == bits).then_some(slot)
            })
        })
    }
}
