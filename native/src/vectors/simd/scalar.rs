//! The reference: plain Rust, in the canonical order of sums.

use super::{codes, Kernels, LANES};

pub const KERNELS: Kernels =
    Kernels { name: "scalar", dot: many::<false>, l2: many::<true>, codes: codes::scalar };

/// # Safety
/// As [`super::Kernel`].
unsafe fn many<const L2: bool>(query: *const f32, rows: &[*const f32], dim: usize, out: *mut f32) {
    for (i, row) in rows.iter().enumerate() {
        // SAFETY: the caller vouches for `dim` floats behind both pointers and for `rows.len()` behind `out`.
        unsafe {
            let query = std::slice::from_raw_parts(query, dim);
            let row = std::slice::from_raw_parts(*row, dim);
            *out.add(i) = one::<L2>(query, row);
        }
    }
}

fn one<const L2: bool>(query: &[f32], row: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    for (i, (q, x)) in query.iter().zip(row).enumerate() {
        let lane = &mut lanes[i % LANES];
        *lane = if L2 { (q - x).mul_add(q - x, *lane) } else { q.mul_add(*x, *lane) };
    }
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for j in 0..width {
            lanes[j] += lanes[j + width];
        }
    }
    lanes[0]
}
