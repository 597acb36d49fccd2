//! Kernels of one query against many rows, chosen once per index: of `f32` here, of codes in `codes`.
//!
//! Every path sums in one order, so that a score has the same bits on every machine: element `i` goes to lane
//! `i % 32` by fused multiply-add, in ascending `i`, and the 32 lanes are halved five times (lane `j` takes lane
//! `j + 16`, then `j + 8`, and so on). How many rows a kernel takes at a time does not change the sum of any row.

pub mod codes;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod x86;

/// Lanes of the canonical sum.
pub const LANES: usize = 32;

/// Scores `query` against each row and writes one raw sum per row.
///
/// # Safety
/// `query` and every pointer of `rows` must be readable for `dim` floats, `out` writable for `rows.len()`, and the
/// processor must have the features the kernel was compiled for.
pub type Kernel = unsafe fn(query: *const f32, rows: &[*const f32], dim: usize, out: *mut f32);

/// The kernels of one instruction set.
#[derive(Clone, Copy)]
pub struct Kernels {
    pub name: &'static str,
    /// Sum of products.
    pub dot: Kernel,
    /// Sum of squared differences.
    pub l2: Kernel,
    /// Sum of products of codes.
    pub codes: codes::CodeKernel,
}

/// The fastest set this processor runs.
pub fn best() -> Kernels {
    *available().last().expect("scalar kernels run everywhere")
}

/// Every set this processor runs, the reference first and the fastest last.
pub fn available() -> Vec<Kernels> {
    let mut sets = vec![scalar::KERNELS];
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            sets.push(x86::AVX2);
            if is_x86_feature_detected!("avx512f") {
                sets.push(x86::AVX512);
                if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vnni") {
                    sets.push(x86::AVX512_VNNI);
                }
            }
        }
    }
    #[cfg(target_arch = "aarch64")]
    if std::arch::is_aarch64_feature_detected!("neon") {
        sets.push(neon::KERNELS);
    }
    sets
}

/// Ask for the cache line at `address`; any address is fine, none is read.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch never faults, whatever the address.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) address, options(nostack, readonly, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

/// Bytes of a row that are asked for ahead; behind them the hardware's own streams take over.
const PREFETCH_BYTES: usize = 1024;

/// Ask for the start of a row of `dim` floats and for what stands right behind it.
#[inline(always)]
pub fn prefetch_row(row: *const f32, dim: usize) {
    let bytes = (dim * 4 + 8).min(PREFETCH_BYTES);
    let mut at = 0;
    while at < bytes {
        prefetch(row.cast::<u8>().wrapping_add(at));
        at += 64;
    }
    prefetch(row.wrapping_add(dim));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(kernel: Kernel, query: &[f32], rows: &[Vec<f32>]) -> Vec<f32> {
        let pointers: Vec<*const f32> = rows.iter().map(|r| r.as_ptr()).collect();
        let mut out = vec![f32::NAN; rows.len()];
        // SAFETY: every row is as long as the query, and `available` names only sets this processor runs.
        unsafe { kernel(query.as_ptr(), &pointers, query.len(), out.as_mut_ptr()) };
        out
    }

    fn values(seed: u64, n: usize) -> Vec<f32> {
        let mut state = seed;
        (0..n)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                ((state >> 33) as f32 / (1u64 << 30) as f32 - 1.0) * 3.0
            })
            .collect()
    }

    #[test]
    fn every_path_has_the_bits_of_the_scalar_reference_at_every_length() {
        let reference = available()[0];
        for dim in 0..=300 {
            let query = values(dim as u64, dim);
            for count in [1, 2, 3, 4, 5, 8, 11] {
                let rows: Vec<_> = (0..count).map(|r| values(1000 + (dim * 16 + r) as u64, dim)).collect();
                let dot = run(reference.dot, &query, &rows);
                let l2 = run(reference.l2, &query, &rows);
                for set in available() {
                    assert_eq!(run(set.dot, &query, &rows), dot, "{} dot, dim {dim}", set.name);
                    assert_eq!(run(set.l2, &query, &rows), l2, "{} l2, dim {dim}", set.name);
                }
            }
        }
    }

    #[test]
    fn the_reference_is_the_sum_of_products_and_of_squared_differences() {
        for dim in 0..=300 {
            let (a, b) = (values(7 + dim as u64, dim), values(77 + dim as u64, dim));
            let dot: f64 = a.iter().zip(&b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();
            let l2: f64 = a.iter().zip(&b).map(|(x, y)| (f64::from(*x) - f64::from(*y)).powi(2)).sum();
            let reference = available()[0];
            let bound = 1e-5 * (1.0 + dim as f64);
            assert!((f64::from(run(reference.dot, &a, std::slice::from_ref(&b))[0]) - dot).abs() < bound);
            assert!((f64::from(run(reference.l2, &a, &[b])[0]) - l2).abs() < bound);
        }
    }

    proptest! {
        #[test]
        fn a_row_has_the_same_score_whatever_stands_beside_it(
            dim in 1usize..200,
            count in 1usize..12,
            seed in any::<u64>(),
            extremes in proptest::collection::vec((0usize..200, -1e30f32..1e30), 0..5),
        ) {
            let query = values(seed, dim);
            let mut rows: Vec<_> = (0..count).map(|r| values(seed ^ (r as u64 + 1), dim)).collect();
            for (at, value) in extremes {
                rows[at % count][at % dim] = value;
            }
            for set in available() {
                for kernel in [set.dot, set.l2] {
                    let together = run(kernel, &query, &rows);
                    let alone: Vec<_> = rows.iter().flat_map(|r| run(kernel, &query, std::slice::from_ref(r))).collect();
                    let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                    prop_assert_eq!(bits(&together), bits(&alone));
                }
            }
        }

        #[test]
        fn dot_is_symmetric_to_the_bit(dim in 1usize..200, seed in any::<u64>()) {
            let (a, b) = (values(seed, dim), values(!seed, dim));
            for set in available() {
                prop_assert_eq!(run(set.dot, &a, std::slice::from_ref(&b)), run(set.dot, &b, std::slice::from_ref(&a)));
            }
        }
    }
}
