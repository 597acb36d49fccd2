//! The graph's edges: fixed-size lists of slots, read and written as atomics.
//!
//! An entry is `slot + 1`, 0 ends the list; fresh memory is therefore a graph without edges. Level 0 has `2 m` entries
//! per slot. A slot's height comes from a hash of its number, so a rebuild has the same levels and nothing about them
//! needs storing: the lists of the upper levels of a chunk's slots stand one after the other, `m` entries a level, and
//! where a slot's lists begin follows from the heights before it.
//!
//! A list is rewritten in place under its slot's lock. A reader in between meets old and new neighbours; whatever it
//! reads is checked against bounds, because a mapped file may hold anything.

use super::arena::{Arena, Table};
use super::simd::prefetch;
use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::sync::atomic::{fence, AtomicU32, Ordering};
use std::sync::OnceLock;

/// Heights are below this whatever `m`.
pub const MAX_LEVELS: usize = 16;
const CHUNK_BYTES: usize = 2 << 20;
const LOCKS: usize = 1 << 12;

/// Slots of a chunk that are on level 1 or above, ascending, each with the number of lists before its own.
type Uppers = Box<[(u32, u32)]>;

pub struct Links {
    m: usize,
    shift: u32,
    heights: Heights,
    pub base: Arena,
    pub upper: Arena,
    uppers: Table<OnceLock<Uppers>>,
    locks: Box<[Mutex<()>]>,
}

impl Links {
    pub fn new(m: usize) -> Self {
        Self {
            m,
            shift: (CHUNK_BYTES / (m * 8)).ilog2(),
            heights: Heights::new(m),
            base: Arena::new("vec.links", "links"),
            upper: Arena::new("vec.upper", "upper"),
            uppers: Table::new(),
            locks: (0..LOCKS).map(|_| Mutex::new(())).collect(),
        }
    }

    pub fn per_chunk(&self) -> usize {
        1 << self.shift
    }

    /// Entries of a list on a level.
    #[inline(always)]
    pub fn capacity(&self, level: usize) -> usize {
        if level == 0 {
            self.m * 2
        } else {
            self.m
        }
    }

    pub fn height(&self, slot: u32) -> usize {
        self.heights.of(slot)
    }

    pub fn base_bytes(&self) -> usize {
        (self.m * 8) << self.shift
    }

    pub fn upper_bytes(&self, chunk: usize) -> usize {
        self.upper_used(chunk, self.per_chunk())
    }

    /// Bytes of level 0 that the first `slots` slots of a chunk need.
    pub fn base_used(&self, slots: usize) -> usize {
        slots.min(self.per_chunk()) * self.m * 8
    }

    /// Bytes of the upper levels that the first `slots` slots of a chunk need.
    pub fn upper_used(&self, chunk: usize, slots: usize) -> usize {
        let first = (chunk << self.shift) as u32;
        let uppers = self.uppers(chunk);
        let at = uppers.partition_point(|(slot, _)| ((slot - first) as usize) < slots);
        let lists = match at.checked_sub(1).map(|last| uppers[last]) {
            Some((slot, before)) => before as usize + self.height(slot),
            None => 0,
        };
        lists * self.m * 4
    }

    fn uppers(&self, chunk: usize) -> &Uppers {
        self.uppers.get_or_create(chunk).get_or_init(|| {
            let first = (chunk << self.shift) as u64;
            let mut lists = 0;
            let mut found = Vec::with_capacity(self.per_chunk() / self.m + 1);
            for slot in first..(first + self.per_chunk() as u64).min(1 << 32) {
                let height = self.height(slot as u32);
                if height > 0 {
                    found.push((slot as u32, lists));
                    lists += height as u32;
                }
            }
            found.into()
        })
    }

    pub fn ensure(&self, slot: u32) -> io::Result<()> {
        let chunk = (slot >> self.shift) as usize;
        self.base.ensure(chunk, self.base_bytes())?;
        self.upper.ensure(chunk, self.upper_bytes(chunk))
    }

    #[inline(always)]
    fn list(&self, slot: u32, level: usize) -> Option<&[AtomicU32]> {
        let chunk = (slot >> self.shift) as usize;
        if level == 0 {
            let at = (slot as usize & (self.per_chunk() - 1)) * self.m * 8;
            return self.base.cell(chunk)?.words(at, self.m * 2);
        }
        let cell = self.upper.cell(chunk)?;
        let uppers = self.uppers(chunk);
        let found = uppers.binary_search_by_key(&slot, |(slot, _)| *slot).ok()?;
        if level > self.height(slot) {
            return None;
        }
        cell.words((uppers[found].1 as usize + level - 1) * self.m * 4, self.m)
    }

    /// The neighbours of a slot on a level, into `out`; slots at or above `limit` are no neighbours.
    #[inline]
    pub fn read(&self, slot: u32, level: usize, limit: u32, out: &mut Vec<u32>) {
        out.clear();
        let Some(list) = self.list(slot, level) else { return };
        for entry in list {
            match entry.load(Ordering::Relaxed) {
                0 => break,
                entry if entry <= limit => out.push(entry - 1),
                _ => {}
            }
        }
        // What the links lead to was written before they were.
        fence(Ordering::Acquire);
    }

    /// Raw entries of a list, for checks.
    pub fn entries(&self, slot: u32, level: usize) -> Option<Vec<u32>> {
        Some(self.list(slot, level)?.iter().map(|e| e.load(Ordering::Relaxed)).collect())
    }

    #[inline(always)]
    pub fn prefetch(&self, slot: u32) {
        if let Some(base) = self.base.cell((slot >> self.shift) as usize).and_then(|c| c.base()) {
            let at = base.wrapping_add((slot as usize & (self.per_chunk() - 1)) * self.m * 8);
            for line in 0..(self.m * 8).div_ceil(64) {
                prefetch(at.wrapping_add(line * 64));
            }
        }
    }

    /// Hold a slot's lists against other writers. Never hold two.
    pub fn lock(&self, slot: u32) -> MutexGuard<'_, ()> {
        self.locks[slot.wrapping_mul(0x9E37_79B1) as usize >> (32 - LOCKS.ilog2())].lock()
    }

    /// Replace a list by at most `capacity` neighbours. The caller holds the slot's lock.
    pub fn write(&self, slot: u32, level: usize, neighbours: &[u32]) {
        let chunk = (slot >> self.shift) as usize;
        let arena = if level == 0 { &self.base } else { &self.upper };
        let Some(cell) = arena.cell(chunk) else { return };
        cell.touch();
        let Some(list) = self.list(slot, level) else { return };
        debug_assert!(neighbours.len() <= list.len());
        for (at, entry) in list.iter().enumerate() {
            let new = neighbours.get(at).map_or(0, |slot| slot + 1);
            if entry.load(Ordering::Relaxed) != new {
                entry.store(new, Ordering::Release);
            } else if new == 0 {
                break;
            }
        }
    }
}

/// How high a slot reaches: level `l` with probability `m^-l`, from a hash of the slot alone.
struct Heights {
    /// A hash below `below[l - 1]` reaches level `l`.
    below: Vec<u64>,
}

impl Heights {
    fn new(m: usize) -> Self {
        let mut below = Vec::new();
        let mut bound = u64::MAX / m as u64;
        while bound > 0 && below.len() < MAX_LEVELS - 1 {
            below.push(bound);
            bound /= m as u64;
        }
        Self { below }
    }

    #[inline]
    fn of(&self, slot: u32) -> usize {
        let hash = mix(u64::from(slot));
        self.below.iter().take_while(|bound| hash < **bound).count()
    }
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_fall_by_a_factor_of_m() {
        let links = Links::new(16);
        let mut counts = [0usize; MAX_LEVELS];
        for slot in 0..400_000 {
            counts[links.height(slot)] += 1;
        }
        for level in 0..3 {
            let ratio = counts[level] as f64 / counts[level + 1] as f64;
            assert!((12.0..21.0).contains(&ratio), "level {level}: {ratio}");
        }
    }

    #[test]
    fn lists_of_all_levels_are_kept_apart() {
        let links = Links::new(4);
        let slots = 3 * links.per_chunk() as u32;
        for slot in 0..slots {
            links.ensure(slot).unwrap();
            for level in 0..=links.height(slot) {
                let neighbours: Vec<u32> =
                    (0..links.capacity(level) as u32).map(|i| slot ^ i ^ level as u32).collect();
                links.write(slot, level, &neighbours);
            }
        }
        let mut read = Vec::new();
        for slot in 0..slots {
            for level in 0..=links.height(slot) {
                links.read(slot, level, u32::MAX, &mut read);
                let expected: Vec<u32> =
                    (0..links.capacity(level) as u32).map(|i| slot ^ i ^ level as u32).collect();
                assert_eq!(read, expected);
            }
            links.read(slot, links.height(slot) + 1, u32::MAX, &mut read);
            assert!(read.is_empty());
        }
    }

    #[test]
    fn a_list_shrinks_and_what_is_out_of_bounds_is_no_neighbour() {
        let links = Links::new(4);
        links.ensure(0).unwrap();
        links.write(0, 0, &[9, 8, 7, 6, 5]);
        links.write(0, 0, &[1, 70]);
        let mut read = Vec::new();
        links.read(0, 0, 10, &mut read);
        assert_eq!(read, [1]);
    }
}
