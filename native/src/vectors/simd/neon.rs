//! NEON.

use super::{codes, prefetch_row, Kernels, LANES};
use std::arch::aarch64::*;

pub const KERNELS: Kernels =
    Kernels { name: "neon", dot: many::<false>, l2: many::<true>, codes: codes::scalar };

/// # Safety
/// As [`super::Kernel`].
#[target_feature(enable = "neon")]
unsafe fn many<const L2: bool>(query: *const f32, rows: &[*const f32], dim: usize, out: *mut f32) {
    let mut i = 0;
    // SAFETY: the caller vouches for `dim` floats behind every pointer and for `rows.len()` behind `out`.
    unsafe {
        while i + 2 <= rows.len() {
            for next in rows[i + 2..].iter().take(2) {
                prefetch_row(*next, dim);
            }
            let sums = some::<L2, 2>(query, [rows[i], rows[i + 1]], dim);
            out.add(i).copy_from_nonoverlapping(sums.as_ptr(), 2);
            i += 2;
        }
        if i < rows.len() {
            *out.add(i) = some::<L2, 1>(query, [rows[i]], dim)[0];
        }
    }
}

/// # Safety
/// As [`super::Kernel`].
#[target_feature(enable = "neon")]
#[inline]
unsafe fn some<const L2: bool, const N: usize>(
    query: *const f32,
    rows: [*const f32; N],
    dim: usize,
) -> [f32; N] {
    // SAFETY: full blocks end at or before `dim`, and so does the element loop behind them.
    unsafe {
        let mut lanes = [[vdupq_n_f32(0.0); 8]; N];
        let mut at = 0;
        while at + LANES <= dim {
            for r in 0..N {
                for (block, lane) in lanes[r].iter_mut().enumerate() {
                    let (q, x) =
                        (vld1q_f32(query.add(at + block * 4)), vld1q_f32(rows[r].add(at + block * 4)));
                    *lane = step::<L2>(q, x, *lane);
                }
            }
            at += LANES;
        }
        let mut block = 0;
        while at + 4 <= dim {
            let q = vld1q_f32(query.add(at));
            for r in 0..N {
                lanes[r][block] = step::<L2>(q, vld1q_f32(rows[r].add(at)), lanes[r][block]);
            }
            at += 4;
            block += 1;
        }
        if at < dim {
            let pad = |from: *const f32| {
                let mut four = [0.0f32; 4];
                four.as_mut_ptr().copy_from_nonoverlapping(from.add(at), dim - at);
                vld1q_f32(four.as_ptr())
            };
            let q = pad(query);
            for r in 0..N {
                lanes[r][block] = step::<L2>(q, pad(rows[r]), lanes[r][block]);
            }
        }
        let mut sums = [0.0; N];
        for r in 0..N {
            sums[r] = halve(lanes[r]);
        }
        sums
    }
}

#[target_feature(enable = "neon")]
#[inline]
fn step<const L2: bool>(q: float32x4_t, x: float32x4_t, sum: float32x4_t) -> float32x4_t {
    if L2 {
        let d = vsubq_f32(q, x);
        vfmaq_f32(sum, d, d)
    } else {
        vfmaq_f32(sum, q, x)
    }
}

/// The five halvings of the canonical sum.
#[target_feature(enable = "neon")]
#[inline]
fn halve(lanes: [float32x4_t; 8]) -> f32 {
    let eight = [0, 1, 2, 3].map(|j| vaddq_f32(lanes[j], lanes[j + 4]));
    let four = vaddq_f32(vaddq_f32(eight[0], eight[2]), vaddq_f32(eight[1], eight[3]));
    let two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two)
}
