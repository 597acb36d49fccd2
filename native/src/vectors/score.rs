//! From raw sums to scores: larger is better under every metric, never NaN, the same bits wherever computed.

use super::rows::{norm, scale_of, Row, Rows};
use super::simd::{prefetch_row, Kernel, Kernels};
use super::Metric;

/// What an erased row scores: nothing can be said about it, and it is never a result.
pub const UNKNOWN: f32 = f32::NEG_INFINITY;

/// One side of a comparison: what rows of one arena are compared with. Walks and scans are written against this, so
/// that what they read, vectors or codes, is decided outside of them.
pub trait Measure: Sized {
    /// Where a slot's row is.
    fn place(&self, slot: u32) -> Option<Row>;
    /// Ask for a row that will be scored soon.
    fn fetch(&self, row: Row);
    /// The same measure with a stored row as the side that is compared with.
    fn like(&self, row: Row) -> Self;
    /// Scores of `rows`, in their order.
    fn many(&self, rows: &[Row], out: &mut [f32]);
    /// Whether `score` says that a row is a copy of this one (its direction, under cosine).
    fn is_copy(&self, score: f32, row: Row) -> bool;

    fn one(&self, row: Row) -> f32 {
        let mut out = [0.0];
        self.many(&[row], &mut out);
        out[0]
    }
}

/// The exact side: a query, or a stored vector.
pub struct Target<'a> {
    metric: Metric,
    kernel: Kernel,
    rows: &'a Rows,
    vector: &'a [f32],
    scale: f32,
}

impl<'a> Target<'a> {
    pub fn query(metric: Metric, kernels: &Kernels, rows: &'a Rows, vector: &'a [f32]) -> Self {
        let kernel = if metric == Metric::L2 { kernels.l2 } else { kernels.dot };
        Self { metric, kernel, rows, vector, scale: scale_of(vector, metric) }
    }

    /// What rows are compared with.
    pub fn vector(&self) -> &'a [f32] {
        self.vector
    }

    #[inline(always)]
    fn finish(&self, raw: f32, row: Row) -> f32 {
        let scale = self.rows.scale(row);
        let score = match self.metric {
            Metric::Cosine => raw * (self.scale * scale),
            Metric::Dot => raw,
            Metric::L2 => -raw,
        };
        if scale == 0.0 || self.scale == 0.0 || !score.is_finite() {
            return self.exact(row);
        }
        // Adding zero turns -0.0 into 0.0: equal scores must be equal in bits too.
        match self.metric {
            Metric::Cosine => score.clamp(-1.0, 1.0) + 0.0,
            _ => score + 0.0,
        }
    }

    /// In f64, for rows whose norm or products leave the range of f32.
    #[cold]
    #[inline(never)]
    fn exact(&self, row: Row) -> f32 {
        let values = self.rows.values(row);
        if self.rows.scale(row) == 0.0 && norm(values) == 0.0 {
            return UNKNOWN;
        }
        let pairs = self.vector.iter().zip(values).map(|(a, b)| (f64::from(*a), f64::from(*b)));
        let score = match self.metric {
            Metric::Dot => pairs.map(|(a, b)| a * b).sum::<f64>(),
            Metric::L2 => -pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f64>(),
            Metric::Cosine => {
                let dot = pairs.map(|(a, b)| a * b).sum::<f64>();
                (dot / (norm(self.vector) * norm(values))).clamp(-1.0, 1.0)
            }
        };
        let score = score as f32 + 0.0;
        if score.is_nan() {
            UNKNOWN
        } else {
            score
        }
    }
}

impl Measure for Target<'_> {
    #[inline(always)]
    fn place(&self, slot: u32) -> Option<Row> {
        self.rows.get(slot)
    }

    #[inline(always)]
    fn fetch(&self, row: Row) {
        prefetch_row(row.pointer().cast(), self.rows.dim);
    }

    fn like(&self, row: Row) -> Self {
        Self { vector: self.rows.values(row), scale: self.rows.scale(row), ..*self }
    }

    #[inline]
    fn many(&self, rows: &[Row], out: &mut [f32]) {
        self.rows.run(self.kernel, self.vector, rows, out);
        for (row, score) in rows.iter().zip(out) {
            *score = self.finish(*score, *row);
        }
    }

    fn is_copy(&self, score: f32, row: Row) -> bool {
        match self.metric {
            Metric::Cosine => score >= 1.0 - 2.0 * f32::EPSILON,
            Metric::L2 => score == 0.0,
            Metric::Dot => self.rows.values(row) == self.vector,
        }
    }
}

/// Orders candidates: a greater key is a better score, or an equal score and a better tie.
///
/// Ties go to the lower slot in a search. While building they go to the higher one, so that among many equal vectors
/// a new one meets the latest and not for ever the first few.
#[inline(always)]
pub fn key<const BUILD: bool>(score: f32, slot: u32) -> u64 {
    let bits = score.to_bits();
    let ordered = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
    u64::from(ordered) << 32 | u64::from(if BUILD { slot } else { !slot })
}

#[inline(always)]
pub fn slot_of<const BUILD: bool>(key: u64) -> u32 {
    if BUILD {
        key as u32
    } else {
        !(key as u32)
    }
}

#[inline(always)]
pub fn score_of(key: u64) -> f32 {
    let ordered = (key >> 32) as u32;
    f32::from_bits(if ordered >> 31 == 1 { ordered & !(1 << 31) } else { !ordered })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_order_as_scores_then_slots(a in -1e38f32..1e38, b in -1e38f32..1e38, s in any::<u32>(), t in any::<u32>()) {
            let (a, b) = (a + 0.0, b + 0.0);
            let expected = a.partial_cmp(&b).unwrap().then(t.cmp(&s));
            prop_assert_eq!(key::<false>(a, s).cmp(&key::<false>(b, t)), expected);
            prop_assert_eq!((score_of(key::<false>(a, s)), slot_of::<false>(key::<false>(a, s))), (a, s));
            prop_assert_eq!((score_of(key::<true>(a, s)), slot_of::<true>(key::<true>(a, s))), (a, s));
        }
    }
}
