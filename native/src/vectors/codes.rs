//! A byte a component for every node of the graph: what walks read instead of the vectors, four times smaller.
//!
//! A code row is `dim` codes, padded to 4 bytes, then `Meta`, then a CRC32C seeded with the slot. Vectors are encoded
//! after the centre of the data was taken off (under cosine, of the data's directions), so that what all have in common
//! costs no precision; the largest component is code 127. Two rows, or a row and a query, compare by
//!
//! ```text
//! score = scale_a * scale_b * (sum of products of codes) + shift_a + shift_b
//! ```
//!
//! under every metric: `a·b = a'·b' + (a·c - c²/2) + (b·c - c²/2)` with `a' = a - c`, and
//! `-|a - b|² = 2 a'·b' - |a'|² - |b'|²`.
//!
//! Codes are derived: they are made when a slot becomes a node, written under its lock, and zeroed with the row.
//! What is found on codes is scored again on the vectors before anyone sees it.

use super::arena::Arena;
use super::rows::{norm, Row};
use super::score::{Measure, UNKNOWN};
use super::simd::codes::{prefetch_code, CodeKernel};
use super::Metric;
use std::io;
use std::sync::atomic::{fence, Ordering};
use std::sync::OnceLock;

/// Below this a vector is no longer than two cache lines, and walks read it as it is.
pub const LEAST_DIM: usize = 32;
const CHUNK_BYTES: usize = 4 << 20;
const MAX_SHIFT: u32 = 16;
const META_BYTES: usize = 16;
/// What stands for zero.
const ZERO: u8 = 128;

pub struct Codes {
    dim: usize,
    metric: Metric,
    /// Bytes of codes with their padding.
    width: usize,
    stride: usize,
    shift: u32,
    kernel: CodeKernel,
    /// Taken off every vector; empty for nothing. Decided before the first code is made.
    centre: OnceLock<Box<[f32]>>,
    pub arena: Arena,
}

/// What stands behind the codes of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Meta {
    /// 0 marks a row that was never written, or was erased.
    scale: f32,
    shift: f32,
    /// Sum of the codes.
    sum: i32,
}

impl Codes {
    pub fn new(dim: usize, metric: Metric, kernel: CodeKernel) -> Self {
        let width = dim.next_multiple_of(4);
        let stride = (width + META_BYTES).next_multiple_of(64);
        let shift = (CHUNK_BYTES / stride).max(1).ilog2().min(MAX_SHIFT);
        let arena = Arena::new("vec.codes", "codes");
        Self { dim, metric, width, stride, shift, kernel, centre: OnceLock::new(), arena }
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

    fn chunk_of(&self, slot: u32) -> usize {
        (slot >> self.shift) as usize
    }

    pub fn ensure(&self, slot: u32) -> io::Result<()> {
        self.arena.ensure(self.chunk_of(slot), self.chunk_bytes())
    }

    #[inline(always)]
    pub fn get(&self, slot: u32) -> Option<Row> {
        let base = self.arena.cell(self.chunk_of(slot))?.base()?;
        let at = (slot as usize & (self.per_chunk() - 1)) * self.stride;
        Some(Row::at(base.wrapping_add(at)))
    }

    /// What is taken off every vector, once that is decided.
    pub fn centre(&self) -> Option<&[f32]> {
        self.centre.get().map(|centre| &**centre)
    }

    /// Decide on the centre, unless that was done.
    pub fn decide_centre(&self, centre: impl FnOnce() -> Box<[f32]>) {
        self.centre.get_or_init(centre);
    }

    /// The mean of vectors as they are compared; nothing when some of them would lose precision without it, as where
    /// norms differ by orders of magnitude.
    pub fn centre_of(&self, vectors: &[&[f32]]) -> Box<[f32]> {
        let directions = vectors.iter().map(|vector| self.centred(vector));
        let directions: Vec<_> = directions.filter(|v| v.iter().all(|x| x.is_finite())).collect();
        let mut sum = vec![0.0f64; self.dim];
        for vector in &directions {
            sum.iter_mut().zip(vector).for_each(|(sum, x)| *sum += f64::from(*x));
        }
        let mean: Vec<f32> = sum.iter().map(|x| (x / directions.len().max(1) as f64) as f32).collect();
        let grows = |vector: &&Vec<f32>| {
            let centred = vector.iter().zip(&mean).map(|(x, c)| x - c);
            greatest(centred) > 1.1 * greatest(vector.iter().copied())
        };
        if directions.iter().filter(grows).count() * 50 > directions.len() {
            return Box::default();
        }
        mean.into()
    }

    fn by(&self, vector: &[f32]) -> f64 {
        if self.metric == Metric::Cosine {
            1.0 / norm(vector)
        } else {
            1.0
        }
    }

    /// The vector as it is compared, without the centre: its direction under cosine.
    fn centred(&self, vector: &[f32]) -> Vec<f32> {
        let by = self.by(vector);
        let centre = self.centre().unwrap_or_default();
        let off = centre.iter().copied().chain(std::iter::repeat(0.0));
        vector.iter().zip(off).map(|(x, c)| (f64::from(*x) * by) as f32 - c).collect()
    }

    /// Codes of a vector into `out`, which has `width` bytes.
    fn encode(&self, vector: &[f32], out: &mut [u8]) -> Meta {
        let centred = self.centred(vector);
        let greatest = greatest(centred.iter().copied());
        let step = if greatest > 0.0 { (greatest / 127.0).max(f32::MIN_POSITIVE) } else { 1.0 };
        let (mut sum, mut squares) = (0i32, 0i64);
        out.fill(ZERO);
        for (x, code) in centred.iter().zip(out) {
            let rounded = (x / step).round() as i8;
            sum += i32::from(rounded);
            squares += i64::from(rounded) * i64::from(rounded);
            *code = (rounded as u8) ^ ZERO;
        }
        let shift = match self.metric {
            Metric::L2 => -(f64::from(step) * f64::from(step) * squares as f64) as f32,
            _ => {
                let centre = self.centre().unwrap_or_default();
                let pairs = centred.iter().zip(centre).map(|(x, c)| (f64::from(*x), f64::from(*c)));
                // x·c - c²/2, where x is the centred vector and the centre.
                pairs.map(|(x, c)| (x + c) * c - c * c / 2.0).sum::<f64>() as f32
            }
        };
        let scale = if self.metric == Metric::L2 { step * std::f32::consts::SQRT_2 } else { step };
        Meta { scale, shift, sum }
    }

    /// Write the codes of a slot. The caller holds the slot's lock and called `ensure`.
    pub fn write(&self, slot: u32, vector: &[f32]) {
        let mut bytes = vec![0u8; self.stride];
        let meta = self.encode(vector, &mut bytes[..self.width]);
        let at = self.width;
        bytes[at..at + 4].copy_from_slice(&meta.scale.to_le_bytes());
        bytes[at + 4..at + 8].copy_from_slice(&meta.shift.to_le_bytes());
        bytes[at + 8..at + 12].copy_from_slice(&meta.sum.to_le_bytes());
        let crc = crc32c::crc32c_append(slot, &bytes[..at + 12]);
        bytes[at + 12..at + 16].copy_from_slice(&crc.to_le_bytes());
        let Some(words) = self.words(slot, true) else { return };
        for (word, bytes) in words.iter().zip(bytes.chunks_exact(4)) {
            word.store(u32::from_le_bytes(bytes.try_into().expect("four bytes")), Ordering::Relaxed);
        }
    }

    fn words(&self, slot: u32, touch: bool) -> Option<&[std::sync::atomic::AtomicU32]> {
        let cell = self.arena.cell(self.chunk_of(slot))?;
        if touch && cell.base().is_some() {
            cell.touch();
        }
        cell.words((slot as usize & (self.per_chunk() - 1)) * self.stride, self.stride / 4)
    }

    /// Zero every byte of a slot's codes, if there are any. The caller holds the slot's lock.
    pub fn erase(&self, slot: u32) {
        if self.is_erased(slot) {
            return;
        }
        let Some(words) = self.words(slot, true) else { return };
        fence(Ordering::Release);
        for word in words {
            word.store(0, Ordering::Relaxed);
        }
    }

    pub fn is_erased(&self, slot: u32) -> bool {
        self.words(slot, false).is_none_or(|words| words.iter().all(|w| w.load(Ordering::Relaxed) == 0))
    }

    /// Whether the codes of a slot are those of this vector.
    pub fn are_of(&self, slot: u32, vector: &[f32]) -> bool {
        let Some(row) = self.get(slot) else { return false };
        let mut expected = vec![0u8; self.width];
        let meta = self.encode(vector, &mut expected);
        self.bytes(row) == expected && self.meta(row) == meta
    }

    /// The codes of a row with their padding.
    fn bytes(&self, row: Row) -> &[u8] {
        // SAFETY: `get` and `CodeQuery` make rows of `stride` bytes. A concurrent erasure may change them while they
        // are read; every byte is a valid code, and callers check that the slot is live after they have used them.
        unsafe { std::slice::from_raw_parts(row.pointer(), self.width) }
    }

    #[inline(always)]
    fn meta(&self, row: Row) -> Meta {
        // SAFETY: it stands behind the codes, inside the row, aligned to 4 bytes.
        unsafe {
            let at = row.pointer().add(self.width);
            Meta {
                scale: at.cast::<f32>().read(),
                shift: at.add(4).cast::<f32>().read(),
                sum: at.add(8).cast::<i32>().read(),
            }
        }
    }
}

fn greatest(components: impl Iterator<Item = f32>) -> f32 {
    components.fold(0.0, |most, x| most.max(x.abs()))
}

/// A query, or a stored row, that rows of codes are compared with.
pub struct CodeTarget<'a> {
    codes: &'a Codes,
    row: Row,
    meta: Meta,
    /// The row, when it is no stored one.
    _own: Option<Box<[u32]>>,
}

impl<'a> CodeTarget<'a> {
    /// The row of a slot; None where there is none, or it was erased.
    pub fn stored(codes: &'a Codes, slot: u32) -> Option<Self> {
        let row = codes.get(slot)?;
        let meta = codes.meta(row);
        (meta.scale != 0.0).then_some(Self { codes, row, meta, _own: None })
    }

    pub fn query(codes: &'a Codes, vector: &[f32]) -> Self {
        let mut bytes = vec![0u8; codes.width];
        let meta = codes.encode(vector, &mut bytes);
        let words = bytes.chunks_exact(4).map(|b| u32::from_ne_bytes(b.try_into().expect("four bytes")));
        let own: Box<[u32]> = words.collect();
        Self { codes, row: Row::at(own.as_ptr().cast_mut().cast()), meta, _own: Some(own) }
    }
}

impl Measure for CodeTarget<'_> {
    #[inline(always)]
    fn place(&self, slot: u32) -> Option<Row> {
        self.codes.get(slot)
    }

    #[inline(always)]
    fn fetch(&self, row: Row) {
        prefetch_code(row.pointer(), self.codes.width + META_BYTES);
    }

    fn like(&self, row: Row) -> Self {
        Self { codes: self.codes, row, meta: self.codes.meta(row), _own: None }
    }

    #[inline]
    fn many(&self, rows: &[Row], out: &mut [f32]) {
        assert!(out.len() >= rows.len());
        // SAFETY: `Row` is a transparent pointer, here to a whole row of codes; the kernel was chosen among those this
        // processor runs, and i32 and f32 have the same size.
        unsafe {
            let pointers = std::slice::from_raw_parts(rows.as_ptr().cast(), rows.len());
            (self.codes.kernel)(self.row.pointer(), pointers, self.codes.dim, out.as_mut_ptr().cast());
        }
        let offset = self.meta.sum.wrapping_mul(128);
        for (row, score) in rows.iter().zip(out) {
            let meta = self.codes.meta(*row);
            let products = (score.to_bits() as i32).wrapping_sub(offset) as f32;
            let value = self.meta.scale * meta.scale * products + (self.meta.shift + meta.shift);
            // Adding zero turns -0.0 into 0.0; a NaN becomes what is worst.
            *score = if meta.scale == 0.0 || value.is_nan() {
                UNKNOWN
            } else {
                value.clamp(f32::MIN, f32::MAX) + 0.0
            };
        }
    }

    fn is_copy(&self, _: f32, row: Row) -> bool {
        self.codes.meta(row) == self.meta && self.codes.bytes(row) == self.codes.bytes(self.row)
    }
}
