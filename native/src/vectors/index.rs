//! The index as a whole: configuration, counts, and what changes them.

use super::codes::{self, Codes};
use super::links::{Links, MAX_LEVELS};
use super::maintain::Maintenance;
use super::rows::{norm, Rows};
use super::score::Measure;
use super::scratch::Scratch;
use super::simd::{self, Kernels};
use super::states::{States, ERASED, LINKED, LIVE, WRITTEN};
use super::store::Checkpoints;
use super::tail::Tail;
use super::{linkers, Error, Metric};
use parking_lot::{Mutex, RwLock};
use roaring::RoaringBitmap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

/// Up to this many vectors an exact scan is as quick as the graph, and nothing is linked.
pub const SMALL: usize = 4096;
/// Once there is a graph, a tail of this length is not worth waking a thread for.
const SLACK: usize = 64;
/// Past this many unlinked rows `add` links one row for each it adds.
pub const LONG_TAIL: usize = 32_768;

pub const MAX_DIM: usize = 65_536;
/// Slot numbers end below this one, which stands for "none" in batch answers.
pub const NO_SLOT: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    pub dim: usize,
    pub metric: Metric,
    pub m: usize,
    pub ef_construction: usize,
}

impl Config {
    pub fn check(&self) -> Result<(), String> {
        let ranges = [
            ("dim", self.dim, 1, MAX_DIM),
            ("m", self.m, 2, 256),
            ("ef_construction", self.ef_construction, 1, 65_536),
        ];
        for (name, value, low, high) in ranges {
            if !(low..=high).contains(&value) {
                return Err(format!("{name} is {value}; it must be from {low} to {high}"));
            }
        }
        Ok(())
    }
}

pub struct Index {
    pub config: Config,
    pub kernels: Kernels,
    pub rows: Rows,
    /// What walks read; None where they read the rows.
    pub codes: Option<Codes>,
    pub states: States,
    pub links: Links,
    pub tail: Tail,
    /// Shared by whoever inserts into the graph, exclusive for what must see no insertion half done.
    pub gate: RwLock<()>,
    /// Serialises add, remove, freeze and release.
    pub writer: Mutex<()>,
    pub counts: Counts,
    /// `(slot + 1) << 8 | level` of the node searches start from; 0 when there is none.
    entry: AtomicU64,
    entry_lock: Mutex<()>,
    pub applied: AtomicU64,
    pub checkpoints: Mutex<Checkpoints>,
    pub maintenance: Mutex<Maintenance>,
    scratch: Mutex<Vec<Scratch>>,
    queued: AtomicBool,
    closing: AtomicBool,
    generation: u32,
}

#[derive(Default)]
pub struct Counts {
    /// Slots that match.
    pub live: AtomicUsize,
    /// Slots ever written.
    pub written: AtomicUsize,
    pub erased: AtomicUsize,
    /// Nodes of the graph, and those of them that are no longer live.
    pub linked: AtomicUsize,
    pub dead: AtomicUsize,
    /// Nodes by height.
    pub heights: [AtomicUsize; MAX_LEVELS],
    /// One more than the highest slot ever written.
    pub limit: AtomicU32,
}

impl Index {
    pub fn new(config: Config) -> Result<Arc<Self>, Error> {
        config.check().map_err(Error::Invalid)?;
        let kernels = simd::best();
        let coded = config.dim >= codes::LEAST_DIM;
        Ok(Arc::new(Self {
            config,
            kernels,
            rows: Rows::new(config.dim),
            codes: coded.then(|| Codes::new(config.dim, config.metric, kernels.codes)),
            states: States::new(),
            links: Links::new(config.m),
            tail: Tail::default(),
            gate: RwLock::new(()),
            writer: Mutex::new(()),
            counts: Counts::default(),
            entry: AtomicU64::new(0),
            entry_lock: Mutex::new(()),
            applied: AtomicU64::new(0),
            checkpoints: Mutex::default(),
            maintenance: Mutex::default(),
            scratch: Mutex::default(),
            queued: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            generation: linkers::generation(),
        }))
    }

    /// Every public call starts here.
    pub fn check_process(&self) -> Result<(), Error> {
        if self.generation == linkers::generation() {
            return Ok(());
        }
        Err(Error::State(
            "this index was made before a fork; open it again in the process that uses it".into(),
        ))
    }

    pub fn live(&self) -> usize {
        self.counts.live.load(Ordering::Acquire)
    }

    pub fn limit(&self) -> u32 {
        self.counts.limit.load(Ordering::Acquire)
    }

    /// Store vectors (row after row) under `slots` and make them searchable. A refused call changes nothing.
    pub fn add(
        self: &Arc<Self>,
        slots: &[u32],
        vectors: &[f32],
        lsn: u64,
        throttle: bool,
    ) -> Result<(), Error> {
        self.check_vectors(slots, vectors)?;
        {
            let _writer = self.writer.lock();
            self.check_slots(slots)?;
            for slot in slots {
                let room = self.rows.ensure(*slot).and_then(|()| self.states.ensure(*slot));
                let room = room.and_then(|()| self.links.ensure(*slot));
                let codes = self.codes.as_ref();
                room.and_then(|()| codes.map_or(Ok(()), |c| c.ensure(*slot))).map_err(Error::Memory)?;
            }
            for (slot, vector) in slots.iter().zip(vectors.chunks_exact(self.config.dim)) {
                self.rows.write(*slot, vector, self.config.metric);
                self.states.change(*slot, WRITTEN | LIVE, 0);
            }
            if let Some(highest) = slots.iter().max() {
                self.counts.limit.fetch_max(highest + 1, Ordering::AcqRel);
            }
            self.counts.written.fetch_add(slots.len(), Ordering::AcqRel);
            self.counts.live.fetch_add(slots.len(), Ordering::AcqRel);
            self.applied.fetch_max(lsn, Ordering::AcqRel);
            self.tail.extend(slots);
        }
        self.request_linking();
        if throttle {
            self.link_some(self.tail.waiting().saturating_sub(LONG_TAIL).min(slots.len()));
        }
        Ok(())
    }

    fn check_vectors(&self, slots: &[u32], vectors: &[f32]) -> Result<(), Error> {
        for (i, (slot, vector)) in slots.iter().zip(vectors.chunks_exact(self.config.dim)).enumerate() {
            check_vector(vector, self.config.metric)
                .map_err(|what| Error::Invalid(format!("row {i} (slot {slot}): {what}")))?;
        }
        Ok(())
    }

    fn check_slots(&self, slots: &[u32]) -> Result<(), Error> {
        let mut seen = RoaringBitmap::new();
        for (i, slot) in slots.iter().enumerate() {
            let problem = if *slot == NO_SLOT {
                "is reserved and names no vector"
            } else if !seen.insert(*slot) {
                "occurs twice in this call"
            } else if self.states.get(*slot) & WRITTEN != 0 {
                "is taken; a slot is written once"
            } else {
                continue;
            };
            return Err(Error::Invalid(format!("row {i}: slot {slot} {problem}")));
        }
        Ok(())
    }

    /// Take slots out of every answer; returns how many were live.
    pub fn remove(&self, slots: &[u32], lsn: u64, erase: bool) -> usize {
        let _writer = self.writer.lock();
        let mut removed = 0;
        for slot in slots {
            let before = self.states.get(*slot);
            if before & LIVE != 0 {
                removed += 1;
                self.counts.live.fetch_sub(1, Ordering::AcqRel);
                // A linker that sets LINKED after this counts the node as dead itself.
                if self.states.change(*slot, 0, LIVE) & LINKED != 0 {
                    self.counts.dead.fetch_add(1, Ordering::AcqRel);
                }
            }
            if erase && before & WRITTEN != 0 && before & ERASED == 0 {
                self.erase(*slot);
            }
        }
        self.applied.fetch_max(lsn, Ordering::AcqRel);
        if removed > 0 {
            self.elect_entry();
        }
        removed
    }

    /// Zero the bytes of a slot that is not live. The caller holds `writer`.
    pub fn erase(&self, slot: u32) {
        self.states.change(slot, ERASED, 0);
        self.rows.erase(slot);
        if let Some(codes) = &self.codes {
            let _lock = self.links.lock(slot);
            codes.erase(slot);
        }
        self.counts.erased.fetch_add(1, Ordering::AcqRel);
    }

    /// The stored bits of live slots, row after row.
    pub fn vectors(&self, slots: &[u32], out: &mut [f32]) -> Result<(), Error> {
        for (slot, out) in slots.iter().zip(out.chunks_exact_mut(self.config.dim)) {
            let row =
                self.rows.get(*slot).filter(|_| self.states.is_live(*slot)).ok_or(Error::NotLive(*slot))?;
            out.copy_from_slice(self.rows.values(row));
            let intact = self.rows.intact(*slot, row);
            std::sync::atomic::fence(Ordering::Acquire);
            if !self.states.is_live(*slot) {
                return Err(Error::NotLive(*slot));
            }
            if !intact {
                let name = self.rows.arena.file_name(self.rows.chunk_of(*slot));
                return Err(Error::Corrupt(format!(
                    "{name}: the vector of slot {slot} does not match its checksum"
                )));
            }
        }
        Ok(())
    }

    /// Exact scores of live slots.
    pub fn scores(&self, query: &[f32], slots: &[u32]) -> Result<Vec<f32>, Error> {
        self.check_query(query)?;
        let target = self.target(query);
        slots
            .iter()
            .map(|slot| {
                let row = self.rows.get(*slot).ok_or(Error::NotLive(*slot))?;
                let score = target.one(row);
                std::sync::atomic::fence(Ordering::Acquire);
                self.states.is_live(*slot).then_some(score).ok_or(Error::NotLive(*slot))
            })
            .collect()
    }

    pub fn check_query(&self, query: &[f32]) -> Result<(), Error> {
        check_vector(query, self.config.metric).map_err(|what| Error::Invalid(format!("query: {what}")))
    }

    /// The node that searches start from, and its height.
    pub fn entry(&self) -> Option<(u32, usize)> {
        unpack_entry(self.entry.load(Ordering::Acquire))
    }

    pub fn packed_entry(&self) -> u64 {
        self.entry.load(Ordering::Acquire)
    }

    pub fn restore_entry(&self, packed: u64) {
        self.entry.store(packed, Ordering::Release);
    }

    /// Make `slot` the entry when the graph has none; true when it did.
    pub fn enter_first(&self, slot: u32) -> bool {
        let _entry = self.entry_lock.lock();
        let first = self.entry().is_none();
        if first {
            self.entry.store(pack_entry(slot, self.links.height(slot)), Ordering::Release);
        }
        first
    }

    /// Make `slot` the entry when it reaches higher than the present one.
    pub fn enter_higher(&self, slot: u32) {
        let height = self.links.height(slot);
        if self.entry().is_some_and(|(_, top)| top >= height) {
            return;
        }
        let _entry = self.entry_lock.lock();
        if self.entry().is_none_or(|(_, top)| top < height) {
            self.entry.store(pack_entry(slot, height), Ordering::Release);
        }
    }

    /// When the entry is no longer live, let the highest live node take its place, the lowest slot among equals.
    /// A graph without live nodes has no entry, so that the next node starts it anew.
    fn elect_entry(&self) {
        let _entry = self.entry_lock.lock();
        if self.entry().is_none_or(|(slot, _)| self.states.is_live(slot)) {
            return;
        }
        let nodes = self.states.with(LIVE | LINKED, self.limit());
        let best = nodes.map(|slot| (self.links.height(slot), std::cmp::Reverse(slot))).max();
        self.entry.store(best.map_or(0, |(height, slot)| pack_entry(slot.0, height)), Ordering::Release);
    }

    /// Whether the tail is long enough for the background threads.
    fn wants_linking(&self) -> bool {
        let waiting = self.tail.waiting();
        let graph = self.counts.linked.load(Ordering::Acquire) > 0;
        !self.closing.load(Ordering::Relaxed) && waiting > if graph { SLACK } else { SMALL }
    }

    pub fn request_linking(self: &Arc<Self>) {
        if self.wants_linking() && !self.queued.swap(true, Ordering::AcqRel) {
            linkers::request(self);
        }
    }

    /// A linker took the index from the queue: whether it should stay there for another one.
    pub fn queue_again(&self) -> bool {
        let again = self.tail.waiting() > linkers::BURST && !self.closing.load(Ordering::Relaxed);
        self.queued.store(again, Ordering::Release);
        again
    }

    /// The handle is gone: background work ends at the next insertion.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    /// Link up to `most` slots of the tail; returns how many were taken from it.
    pub fn link_some(&self, most: usize) -> usize {
        if most == 0 {
            return 0;
        }
        let mut scratch = self.borrow_scratch();
        let mut done = 0;
        while done < most && !self.closing.load(Ordering::Relaxed) {
            let _gate = self.gate.read();
            let Some(slot) = self.tail.take() else { break };
            if self.states.is_live(slot) {
                self.link(slot, &mut scratch);
            }
            self.tail.finish(slot);
            done += 1;
        }
        self.return_scratch(scratch);
        done
    }

    pub fn borrow_scratch(&self) -> Scratch {
        self.scratch.lock().pop().unwrap_or_default()
    }

    pub fn return_scratch(&self, scratch: Scratch) {
        self.scratch.lock().push(scratch);
    }
}

fn pack_entry(slot: u32, height: usize) -> u64 {
    (u64::from(slot) + 1) << 8 | height as u64
}

pub fn unpack_entry(packed: u64) -> Option<(u32, usize)> {
    let slot = u32::try_from((packed >> 8).checked_sub(1)?).ok()?;
    Some((slot, (packed & 0xFF) as usize))
}

/// Why a vector cannot be stored or searched for.
fn check_vector(vector: &[f32], metric: Metric) -> Result<(), String> {
    if let Some(at) = vector.iter().position(|x| !x.is_finite()) {
        return Err(format!("component {at} is {}; every component must be finite", vector[at]));
    }
    if metric == Metric::Cosine && norm(vector) == 0.0 {
        return Err("a zero vector has no direction, which cosine compares".into());
    }
    Ok(())
}
