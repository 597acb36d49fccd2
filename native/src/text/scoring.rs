//! BM25 in a form whose bounds are exact.
//!
//! A term's share of a score is `weight / (1 + (base + slope · length) / tf)`, which is idf · tf · (k1 + 1) /
//! (tf + k1 · (1 − b + b · length / mean length)). Written this way every floating-point step is monotone in tf and in
//! length, so the share of a block's best (tf, length) bounds every share in the block to the last bit. Shares are
//! rounded to a grid fine enough not to show and coarse enough that sums of them are exact: the same in any order,
//! with or without skipping, and equal scores are equal.

/// Length normalisation under the statistics of the moment.
#[derive(Clone, Copy, Debug)]
pub struct Norm {
    base: f64,
    slope: f64,
}

impl Norm {
    pub fn new(k1: f64, b: f64, mean_length: f64) -> Self {
        let slope = if mean_length > 0.0 { k1 * b / mean_length } else { 0.0 };
        Self { base: k1 * (1.0 - b), slope }
    }
}

pub fn idf(documents: u64, holding: u64) -> f64 {
    let (n, df) = (documents as f64, holding as f64);
    (1.0 + (n - df + 0.5) / (df + 0.5)).ln()
}

/// What turns an occurrence of one query term into a share of the score.
#[derive(Clone, Copy, Debug)]
pub struct Scorer {
    norm: Norm,
    weight: f64,
    grid: f64,
}

impl Scorer {
    /// `weight` is idf · (k1 + 1) · how often the query names the term; `total` the sum of the weights of all terms.
    pub fn new(norm: Norm, weight: f64, total: f64) -> Self {
        // Adding and subtracting 1.5 · 2^k rounds to multiples of 2^(k - 52); no sum of shares reaches 2^k.
        Self { norm, weight, grid: 1.5 * (total.max(f64::MIN_POSITIVE).log2().ceil() + 1.0).exp2() }
    }

    #[inline]
    pub fn share(&self, inverse_tf: f32, length: f32) -> f64 {
        let norm = self.norm.base + self.norm.slope * f64::from(length);
        let share = self.weight / (1.0 + norm * f64::from(inverse_tf));
        (share + self.grid) - self.grid
    }

    pub fn bound(&self, best: &Best) -> f64 {
        best.0.iter().map(|(inverse_tf, length)| self.share(*inverse_tf, *length)).fold(0.0, f64::max)
    }
}

/// The occurrences that no other occurrence beats in both frequency and shortness, as (1 / tf, length); merged where
/// there are more than three, so that each occurrence is matched or beaten by one of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best(pub [(f32, f32); 3]);

const NONE: (f32, f32) = (f32::INFINITY, f32::INFINITY);

impl Default for Best {
    fn default() -> Self {
        Self([NONE; 3])
    }
}

impl Best {
    pub fn add(&mut self, inverse_tf: f32, length: f32) {
        if self.covers(inverse_tf, length) {
            return;
        }
        let mut all = [NONE; 4];
        let kept = self.0.iter().filter(|(tf, len)| *tf < inverse_tf || *len < length);
        let mut count = 0;
        for pair in kept.copied().chain([(inverse_tf, length)]).filter(|pair| *pair != NONE) {
            all[count] = pair;
            count += 1;
        }
        if count == 4 {
            // Longer with higher tf: merge the two neighbours closest in length.
            all.sort_by(|one, other| one.1.total_cmp(&other.1));
            let gap = |i: &usize| all[i + 1].1 / all[*i].1.max(f32::MIN_POSITIVE);
            let at = (0..3).min_by(|one, other| gap(one).total_cmp(&gap(other))).unwrap_or(0);
            all[at] = (all[at].0.min(all[at + 1].0), all[at].1.min(all[at + 1].1));
            all.copy_within(at + 2.., at + 1);
        }
        self.0.copy_from_slice(&all[..3]);
    }

    pub fn covers(&self, inverse_tf: f32, length: f32) -> bool {
        self.0.iter().any(|(tf, len)| *tf <= inverse_tf && *len <= length)
    }

    pub fn merge(&mut self, other: &Self) {
        for (inverse_tf, length) in other.0.iter().filter(|pair| **pair != NONE) {
            self.add(*inverse_tf, *length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_occurrence_beats_the_bound(
            occurrences in proptest::collection::vec((1u32..50, 1u32..5000), 1..200),
            k1 in 0.0f64..3.0, b in 0.0f64..=1.0, mean in 1.0f64..500.0, weight in 1e-6f64..40.0, extra in 0.0f64..1e4,
        ) {
            let scorer = Scorer::new(Norm::new(k1, b, mean), weight, weight + extra);
            let mut best = Best::default();
            for (tf, length) in &occurrences {
                best.add(1.0 / *tf as f32, *length as f32);
            }
            let bound = scorer.bound(&best);
            for (tf, length) in occurrences {
                let (inverse, length) = (1.0 / tf as f32, length as f32);
                prop_assert!(best.covers(inverse, length));
                let share = scorer.share(inverse, length);
                prop_assert!(share <= bound);
                let tf = f64::from(tf);
                let plain = weight * tf / (tf + k1 * (1.0 - b + b * f64::from(length) / mean));
                prop_assert!((share - plain).abs() <= 1e-6 * plain);
            }
        }

        #[test]
        fn sums_do_not_depend_on_their_order(weights in proptest::collection::vec(1e-7f64..40.0, 2..20), tf in 1u32..9) {
            let total: f64 = weights.iter().sum();
            let norm = Norm::new(1.2, 0.75, 10.0);
            let shares: Vec<f64> =
                weights.iter().map(|w| Scorer::new(norm, *w, total).share(1.0 / tf as f32, 7.0)).collect();
            let forth: f64 = shares.iter().sum();
            let back: f64 = shares.iter().rev().sum();
            prop_assert_eq!(forth, back);
        }
    }
}
