//! Kernels of one row of codes against many: sums of products of small integers, exact on every machine.
//!
//! A code is a byte that stands for `byte - 128`. One side of a product is read as it is, the other with its top bit
//! flipped, as a signed byte, because that pair is what processors multiply; what the offset of the first adds,
//! 128 times the sum of the other, is known beforehand and taken off by the caller.

use super::prefetch;

/// Bytes of a row that are asked for ahead; behind them the hardware's own streams take over.
const PREFETCH_BYTES: usize = 1024;

/// Writes `sum of row[i] * (query[i] - 128)` for each row.
///
/// # Safety
/// `query` and every pointer of `rows` must be readable for `dim` bytes, `out` writable for `rows.len()`, and the
/// processor must have the features the kernel was compiled for.
pub type CodeKernel = unsafe fn(query: *const u8, rows: &[*const u8], dim: usize, out: *mut i32);

/// Ask for the first `bytes` of a row.
#[inline(always)]
pub fn prefetch_code(row: *const u8, bytes: usize) {
    let mut at = 0;
    while at < bytes.min(PREFETCH_BYTES) {
        prefetch(row.wrapping_add(at));
        at += 64;
    }
}

/// # Safety
/// As [`CodeKernel`].
pub unsafe fn scalar(query: *const u8, rows: &[*const u8], dim: usize, out: *mut i32) {
    for (i, row) in rows.iter().enumerate() {
        // SAFETY: the caller vouches for `dim` bytes behind both pointers and for `rows.len()` behind `out`.
        unsafe {
            let query = std::slice::from_raw_parts(query, dim);
            let row = std::slice::from_raw_parts(*row, dim);
            let products = query.iter().zip(row).map(|(q, x)| i32::from(*x) * (i32::from(*q) - 128));
            *out.add(i) = products.fold(0, i32::wrapping_add);
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub mod x86 {
    use std::arch::x86_64::*;

    /// # Safety
    /// As [`super::CodeKernel`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub unsafe fn vnni(query: *const u8, rows: &[*const u8], dim: usize, out: *mut i32) {
        let mut i = 0;
        // SAFETY: the caller vouches for `dim` bytes behind every pointer and for `rows.len()` behind `out`.
        unsafe {
            while i + 4 <= rows.len() {
                let four = [rows[i], rows[i + 1], rows[i + 2], rows[i + 3]];
                let sums = fold4(rows512(query, four, dim));
                _mm_storeu_si128(out.add(i).cast(), sums);
                i += 4;
            }
            while i < rows.len() {
                *out.add(i) = _mm512_reduce_add_epi32(rows512(query, [rows[i]], dim)[0]);
                i += 1;
            }
        }
    }

    /// # Safety
    /// As [`super::CodeKernel`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    #[inline]
    unsafe fn rows512<const N: usize>(query: *const u8, rows: [*const u8; N], dim: usize) -> [__m512i; N] {
        let flip = _mm512_set1_epi8(-128);
        let mut sums = [_mm512_setzero_si512(); N];
        let mut at = 0;
        // SAFETY: full blocks end at or before `dim`; masked loads read only bytes below it.
        unsafe {
            while at + 64 <= dim {
                let q = _mm512_xor_si512(_mm512_loadu_si512(query.add(at).cast()), flip);
                for r in 0..N {
                    sums[r] = _mm512_dpbusd_epi32(sums[r], _mm512_loadu_si512(rows[r].add(at).cast()), q);
                }
                at += 64;
            }
            if at < dim {
                let mask = (1u64 << (dim - at)) - 1;
                let q = _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, query.add(at).cast()), flip);
                for r in 0..N {
                    let x = _mm512_maskz_loadu_epi8(mask, rows[r].add(at).cast());
                    sums[r] = _mm512_dpbusd_epi32(sums[r], x, q);
                }
            }
        }
        sums
    }

    /// The sum of the lanes of each of four vectors.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn fold4([a, b, c, d]: [__m512i; 4]) -> __m128i {
        let half = |x| _mm256_add_epi32(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64::<1>(x));
        fold4_256([half(a), half(b), half(c), half(d)])
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn fold4_256([a, b, c, d]: [__m256i; 4]) -> __m128i {
        let four = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
        _mm_add_epi32(_mm256_castsi256_si128(four), _mm256_extracti128_si256::<1>(four))
    }

    /// # Safety
    /// As [`super::CodeKernel`].
    #[target_feature(enable = "avx2")]
    pub unsafe fn avx2(query: *const u8, rows: &[*const u8], dim: usize, out: *mut i32) {
        let mut i = 0;
        // SAFETY: the caller vouches for `dim` bytes behind every pointer and for `rows.len()` behind `out`.
        unsafe {
            while i + 4 <= rows.len() {
                let four = [rows[i], rows[i + 1], rows[i + 2], rows[i + 3]];
                let mut sums = [0i32; 4];
                _mm_storeu_si128(sums.as_mut_ptr().cast(), fold4_256(rows256(query, four, dim)));
                for (r, sum) in sums.iter().enumerate() {
                    *out.add(i + r) = sum.wrapping_add(rest(query, four[r], dim));
                }
                i += 4;
            }
            while i < rows.len() {
                let zero = _mm256_setzero_si256();
                let [sum] = rows256(query, [rows[i]], dim);
                let sum = _mm_cvtsi128_si32(fold4_256([sum, zero, zero, zero]));
                *out.add(i) = sum.wrapping_add(rest(query, rows[i], dim));
                i += 1;
            }
        }
    }

    /// The products of whole blocks of sixteen.
    ///
    /// # Safety
    /// As [`super::CodeKernel`].
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn rows256<const N: usize>(query: *const u8, rows: [*const u8; N], dim: usize) -> [__m256i; N] {
        let flip = _mm_set1_epi8(-128);
        let mut sums = [_mm256_setzero_si256(); N];
        let mut at = 0;
        // SAFETY: blocks end at or before `dim`.
        unsafe {
            while at + 16 <= dim {
                // Widened to 16 bits first: products of unwidened pairs would saturate.
                let q = _mm_xor_si128(_mm_loadu_si128(query.add(at).cast()), flip);
                let q = _mm256_cvtepi8_epi16(q);
                for r in 0..N {
                    let x = _mm256_cvtepu8_epi16(_mm_loadu_si128(rows[r].add(at).cast()));
                    sums[r] = _mm256_add_epi32(sums[r], _mm256_madd_epi16(q, x));
                }
                at += 16;
            }
        }
        sums
    }

    /// The products behind the last whole block.
    ///
    /// # Safety
    /// As [`super::CodeKernel`].
    #[inline]
    unsafe fn rest(query: *const u8, row: *const u8, dim: usize) -> i32 {
        // SAFETY: below `dim`.
        (dim & !15..dim).map(|i| unsafe { i32::from(*row.add(i)) * (i32::from(*query.add(i)) - 128) }).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::available;
    use super::*;
    use proptest::prelude::*;

    fn run(kernel: CodeKernel, query: &[u8], rows: &[Vec<u8>]) -> Vec<i32> {
        let pointers: Vec<*const u8> = rows.iter().map(|r| r.as_ptr()).collect();
        let mut out = vec![i32::MIN; rows.len()];
        // SAFETY: every row is as long as the query, and `available` names only sets this processor runs.
        unsafe { kernel(query.as_ptr(), &pointers, query.len(), out.as_mut_ptr()) };
        out
    }

    fn bytes(seed: u64, n: usize) -> Vec<u8> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 56) as u8
        };
        (0..n).map(|_| next()).collect()
    }

    fn reference(query: &[u8], row: &[u8]) -> i64 {
        query.iter().zip(row).map(|(q, x)| i64::from(*x) * (i64::from(*q) - 128)).sum()
    }

    #[test]
    fn every_path_is_the_sum_of_products_at_every_length() {
        for dim in 0..=300 {
            let query = bytes(dim as u64, dim);
            for count in [1, 2, 3, 4, 5, 8, 11] {
                let rows: Vec<_> = (0..count).map(|r| bytes(1000 + (dim * 16 + r) as u64, dim)).collect();
                let expected: Vec<_> = rows.iter().map(|row| reference(&query, row) as i32).collect();
                for set in available() {
                    assert_eq!(run(set.codes, &query, &rows), expected, "{} dim {dim}", set.name);
                }
            }
        }
    }

    #[test]
    fn the_largest_sums_of_the_largest_dimension_fit() {
        for (q, x) in [(255, 255), (0, 255), (1, 255), (255, 0)] {
            let (query, row) = (vec![q; 65_536], vec![x; 65_536]);
            let expected = i32::try_from(reference(&query, &row)).unwrap();
            for set in available() {
                assert_eq!(run(set.codes, &query, std::slice::from_ref(&row)), [expected], "{}", set.name);
            }
        }
    }

    proptest! {
        #[test]
        fn every_path_agrees_on_any_bytes(
            query in proptest::collection::vec(any::<u8>(), 0..200),
            count in 1usize..12,
            seed in any::<u64>(),
        ) {
            let rows: Vec<_> = (0..count).map(|r| bytes(seed ^ (r as u64 + 1), query.len())).collect();
            let expected: Vec<_> = rows.iter().map(|row| reference(&query, row) as i32).collect();
            for set in available() {
                prop_assert_eq!(&run(set.codes, &query, &rows), &expected);
            }
        }
    }
}
