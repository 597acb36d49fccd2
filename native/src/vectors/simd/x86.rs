//! AVX2 with FMA, and AVX-512.

use super::codes::x86 as codes;
use super::{prefetch_row, Kernels};
use std::arch::x86_64::*;

pub const AVX2: Kernels = Kernels { name: "avx2", dot: avx2::<false>, l2: avx2::<true>, codes: codes::avx2 };
pub const AVX512: Kernels =
    Kernels { name: "avx512", dot: avx512::<false>, l2: avx512::<true>, codes: codes::avx2 };
pub const AVX512_VNNI: Kernels = Kernels { name: "avx512-vnni", codes: codes::vnni, ..AVX512 };

/// # Safety
/// As [`super::Kernel`].
#[target_feature(enable = "avx512f")]
unsafe fn avx512<const L2: bool>(query: *const f32, rows: &[*const f32], dim: usize, out: *mut f32) {
    let mut i = 0;
    // SAFETY: the caller vouches for `dim` floats behind every pointer and for `rows.len()` behind `out`.
    unsafe {
        while i + 4 <= rows.len() {
            for next in rows[i + 4..].iter().take(4) {
                prefetch_row(*next, dim);
            }
            let sums = rows512::<L2, 4>(query, rows[i..i + 4].try_into().expect("four rows"), dim);
            out.add(i).copy_from_nonoverlapping(sums.as_ptr(), 4);
            i += 4;
        }
        while i < rows.len() {
            *out.add(i) = rows512::<L2, 1>(query, [rows[i]], dim)[0];
            i += 1;
        }
    }
}

/// # Safety
/// As [`super::Kernel`].
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn rows512<const L2: bool, const N: usize>(
    query: *const f32,
    rows: [*const f32; N],
    dim: usize,
) -> [f32; N] {
    let mut low = [_mm512_setzero_ps(); N];
    let mut high = [_mm512_setzero_ps(); N];
    let mut at = 0;
    // SAFETY: full blocks end at or before `dim`; masked loads read only elements below it.
    unsafe {
        while at + 32 <= dim {
            let (q0, q1) = (_mm512_loadu_ps(query.add(at)), _mm512_loadu_ps(query.add(at + 16)));
            for r in 0..N {
                low[r] = step512::<L2>(q0, _mm512_loadu_ps(rows[r].add(at)), low[r]);
                high[r] = step512::<L2>(q1, _mm512_loadu_ps(rows[r].add(at + 16)), high[r]);
            }
            at += 32;
        }
        let left = dim - at;
        if left > 0 {
            let mask = |n: usize| if n >= 16 { u16::MAX } else { (1u16 << n) - 1 };
            let (m0, m1) = (mask(left), mask(left.saturating_sub(16)));
            let q0 = _mm512_maskz_loadu_ps(m0, query.add(at));
            let q1 = _mm512_maskz_loadu_ps(m1, query.wrapping_add(at + 16));
            for r in 0..N {
                let x0 = _mm512_maskz_loadu_ps(m0, rows[r].add(at));
                let x1 = _mm512_maskz_loadu_ps(m1, rows[r].wrapping_add(at + 16));
                low[r] = step512::<L2>(q0, x0, low[r]);
                high[r] = step512::<L2>(q1, x1, high[r]);
            }
        }
    }
    let mut sums = [0.0; N];
    for r in 0..N {
        let sum = _mm512_add_ps(low[r], high[r]);
        let upper = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(sum)));
        sums[r] = halve256(_mm256_add_ps(_mm512_castps512_ps256(sum), upper));
    }
    sums
}

#[target_feature(enable = "avx512f")]
#[inline]
fn step512<const L2: bool>(q: __m512, x: __m512, sum: __m512) -> __m512 {
    if L2 {
        let d = _mm512_sub_ps(q, x);
        _mm512_fmadd_ps(d, d, sum)
    } else {
        _mm512_fmadd_ps(q, x, sum)
    }
}

/// # Safety
/// As [`super::Kernel`].
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2<const L2: bool>(query: *const f32, rows: &[*const f32], dim: usize, out: *mut f32) {
    let mut i = 0;
    // SAFETY: the caller vouches for `dim` floats behind every pointer and for `rows.len()` behind `out`.
    unsafe {
        while i + 2 <= rows.len() {
            for next in rows[i + 2..].iter().take(2) {
                prefetch_row(*next, dim);
            }
            let sums = rows256::<L2, 2>(query, [rows[i], rows[i + 1]], dim);
            out.add(i).copy_from_nonoverlapping(sums.as_ptr(), 2);
            i += 2;
        }
        if i < rows.len() {
            *out.add(i) = rows256::<L2, 1>(query, [rows[i]], dim)[0];
        }
    }
}

/// # Safety
/// As [`super::Kernel`].
#[target_feature(enable = "avx2,fma")]
#[inline]
unsafe fn rows256<const L2: bool, const N: usize>(
    query: *const f32,
    rows: [*const f32; N],
    dim: usize,
) -> [f32; N] {
    let mut lanes = [[_mm256_setzero_ps(); 4]; N];
    let mut at = 0;
    // SAFETY: full blocks end at or before `dim`; masked loads read only elements below it.
    unsafe {
        while at + 32 <= dim {
            let from = query.add(at);
            let q = [
                _mm256_loadu_ps(from),
                _mm256_loadu_ps(from.add(8)),
                _mm256_loadu_ps(from.add(16)),
                _mm256_loadu_ps(from.add(24)),
            ];
            for r in 0..N {
                for (block, lane) in lanes[r].iter_mut().enumerate() {
                    *lane = step256::<L2>(q[block], _mm256_loadu_ps(rows[r].add(at + block * 8)), *lane);
                }
            }
            at += 32;
        }
        let mut block = 0;
        while at < dim {
            let mask = mask256(dim - at);
            let q = _mm256_maskload_ps(query.add(at), mask);
            for r in 0..N {
                let x = _mm256_maskload_ps(rows[r].add(at), mask);
                lanes[r][block] = step256::<L2>(q, x, lanes[r][block]);
            }
            at += 8;
            block += 1;
        }
    }
    let mut sums = [0.0; N];
    for r in 0..N {
        let [a, b, c, d] = lanes[r];
        sums[r] = halve256(_mm256_add_ps(_mm256_add_ps(a, c), _mm256_add_ps(b, d)));
    }
    sums
}

#[target_feature(enable = "avx2,fma")]
#[inline]
fn step256<const L2: bool>(q: __m256, x: __m256, sum: __m256) -> __m256 {
    if L2 {
        let d = _mm256_sub_ps(q, x);
        _mm256_fmadd_ps(d, d, sum)
    } else {
        _mm256_fmadd_ps(q, x, sum)
    }
}

/// All ones in the first `n` of eight lanes.
#[target_feature(enable = "avx2")]
#[inline]
fn mask256(n: usize) -> __m256i {
    let lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_cmpgt_epi32(_mm256_set1_epi32(n.min(8) as i32), lane)
}

/// The last three halvings of the canonical sum.
#[target_feature(enable = "avx")]
#[inline]
fn halve256(sum: __m256) -> f32 {
    let four = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps::<1>(sum));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    let one = _mm_add_ss(two, _mm_shuffle_ps::<1>(two, two));
    _mm_cvtss_f32(one)
}
