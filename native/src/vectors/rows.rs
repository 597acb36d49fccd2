//! The stored vectors: one row per slot, exactly the bits given, with what scoring and checking need beside them.
//!
//! A row is `dim` floats, then its scale (f32), then a CRC32C (u32) of floats and scale seeded with the slot, padded to
//! 16 bytes. The scale is 1 / |row| under cosine and 1 under the other metrics; 0 marks a row that the plain formula
//! must not be used for: erased, or of a norm so small or large that the reciprocal would lose precision.
//!
//! A row is written once, before its slot is published, and only zeroed afterwards. Zeroing races with readers, which
//! is why it stores word by word: a reader sees a mix of old values and zeros, all of them finite, and drops the slot
//! when it then finds it not live.

use super::arena::Arena;
use super::simd::Kernel;
use super::Metric;
use std::io;
use std::sync::atomic::{fence, Ordering};

/// Chunks hold as many rows as fit into this, a power of two.
const CHUNK_BYTES: usize = 4 << 20;
const MAX_SHIFT: u32 = 16;
/// Norms whose reciprocal, and the products of two of those, are ordinary numbers.
const PLAIN_NORMS: std::ops::Range<f64> = 1e-15..1e15;

pub struct Rows {
    pub dim: usize,
    stride: usize,
    shift: u32,
    pub arena: Arena,
}

/// A place in the arena; it stays valid as long as the index.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Row(*const u8);

// SAFETY: a row points into an arena whose memory never moves; its owner outlives every call that holds rows.
unsafe impl Send for Row {}

impl Row {
    #[inline(always)]
    pub fn at(place: *mut u8) -> Self {
        Self(place)
    }

    #[inline(always)]
    pub fn pointer(self) -> *const u8 {
        self.0
    }

    #[inline(always)]
    fn floats(self) -> *const f32 {
        self.0.cast()
    }
}

impl Rows {
    pub fn new(dim: usize) -> Self {
        let stride = (dim * 4 + 8).next_multiple_of(16);
        let shift = (CHUNK_BYTES / stride).max(1).ilog2().min(MAX_SHIFT);
        Self { dim, stride, shift, arena: Arena::new("vec.rows", "rows") }
    }

    /// Rows per chunk.
    pub fn per_chunk(&self) -> usize {
        1 << self.shift
    }

    /// Bytes of a row with its padding.
    pub fn stride(&self) -> usize {
        self.stride
    }

    pub fn chunk_bytes(&self) -> usize {
        self.stride << self.shift
    }

    pub fn chunk_of(&self, slot: u32) -> usize {
        (slot >> self.shift) as usize
    }

    pub fn ensure(&self, slot: u32) -> io::Result<()> {
        self.arena.ensure(self.chunk_of(slot), self.chunk_bytes())
    }

    #[inline(always)]
    pub fn get(&self, slot: u32) -> Option<Row> {
        let base = self.arena.cell(self.chunk_of(slot))?.base()?;
        let at = (slot as usize & (self.per_chunk() - 1)) * self.stride;
        Some(Row(base.wrapping_add(at)))
    }

    /// Score `query` against rows of this arena, one raw sum each.
    #[inline]
    pub fn run(&self, kernel: Kernel, query: &[f32], rows: &[Row], out: &mut [f32]) {
        assert!(query.len() == self.dim && out.len() >= rows.len());
        // SAFETY: `Row` is a transparent pointer that only `get` makes, to a whole row inside a chunk; the kernel was
        // chosen among those this processor runs.
        unsafe {
            let rows = std::slice::from_raw_parts(rows.as_ptr().cast(), rows.len());
            kernel(query.as_ptr(), rows, self.dim, out.as_mut_ptr());
        }
    }

    /// The floats of a row, as they are at this moment.
    pub fn values(&self, row: Row) -> &[f32] {
        // SAFETY: as in `run`. A concurrent erasure may change the values while they are read; every bit pattern is a
        // valid float, and callers check that the slot is live after they have used them.
        unsafe { std::slice::from_raw_parts(row.floats(), self.dim) }
    }

    #[inline(always)]
    pub fn scale(&self, row: Row) -> f32 {
        // SAFETY: the scale stands behind the floats, inside the row.
        unsafe { row.floats().add(self.dim).read() }
    }

    fn crc(&self, row: Row) -> u32 {
        // SAFETY: the checksum stands behind the scale, inside the row.
        unsafe { row.floats().add(self.dim + 1).cast::<u32>().read() }
    }

    /// Write the row of a slot that nobody was told about yet. The caller serialises writers and called `ensure`.
    pub fn write(&self, slot: u32, vector: &[f32], metric: Metric) {
        assert_eq!(vector.len(), self.dim);
        let cell = self.arena.cell(self.chunk_of(slot)).expect("ensured before");
        let row = self.get(slot).expect("ensured before");
        cell.touch();
        let scale = scale_of(vector, metric);
        // SAFETY: the row is inside its chunk, and no reader reaches a slot before it is published.
        unsafe {
            let to = row.floats().cast_mut();
            to.copy_from_nonoverlapping(vector.as_ptr(), self.dim);
            to.add(self.dim).write(scale);
            to.add(self.dim + 1).cast::<u32>().write(self.checksum(slot, row));
        }
    }

    fn checksum(&self, slot: u32, row: Row) -> u32 {
        // SAFETY: floats and scale of one row, all inside it.
        let bytes = unsafe { std::slice::from_raw_parts(row.0, self.dim * 4 + 4) };
        crc32c::crc32c_append(slot, bytes)
    }

    /// Whether the row's checksum fits its bytes and its slot.
    pub fn intact(&self, slot: u32, row: Row) -> bool {
        self.checksum(slot, row) == self.crc(row)
    }

    /// Zero every byte of a slot's row. The slot is no longer live when this is called, and a reader that met a zero
    /// finds that out when it looks after scoring.
    pub fn erase(&self, slot: u32) {
        let Some(cell) = self.arena.cell(self.chunk_of(slot)) else { return };
        let at = (slot as usize & (self.per_chunk() - 1)) * self.stride;
        cell.touch();
        let Some(words) = cell.words(at, self.stride / 4) else { return };
        fence(Ordering::Release);
        for word in words {
            word.store(0, Ordering::Relaxed);
        }
    }

    pub fn is_erased(&self, slot: u32) -> bool {
        let at = (slot as usize & (self.per_chunk() - 1)) * self.stride;
        let words = self.arena.cell(self.chunk_of(slot)).and_then(|c| c.words(at, self.stride / 4));
        words.is_some_and(|w| w.iter().all(|x| x.load(Ordering::Relaxed) == 0))
    }
}

/// What a raw sum of this row is multiplied by.
pub fn scale_of(vector: &[f32], metric: Metric) -> f32 {
    if metric != Metric::Cosine {
        return 1.0;
    }
    let norm = norm(vector);
    if PLAIN_NORMS.contains(&norm) {
        (1.0 / norm) as f32
    } else {
        0.0
    }
}

pub fn norm(vector: &[f32]) -> f64 {
    vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt()
}
