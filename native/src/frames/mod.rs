//! Frames: how one transaction lies in a log segment, and how a segment is read back after anything.

pub mod layout;
pub mod python;
pub mod scan;

use pyo3::prelude::*;

/// CRC-32C of `data`; `seed` continues from the checksum of what came before.
#[pyfunction(name = "crc32c")]
#[pyo3(signature = (data, seed=0))]
fn checksum(data: &[u8], seed: u32) -> u32 {
    ::crc32c::crc32c_append(seed, data)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(checksum, m)?)?;
    m.add_class::<python::Frame>()?;
    m.add_class::<python::Damage>()?;
    m.add_class::<python::Segment>()
}
