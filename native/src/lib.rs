//! The native core of Kektor: loops over vectors, postings, ordered keys and log frames.
//!
//! Everything here speaks dense `u32` slots; ids, scopes and records live above, in Python.
//! Each folder is one structure and registers its own classes with the module.

pub mod bitmap;
pub mod chunks;
pub mod errors;
pub mod frames;
pub mod log;
pub mod tables;
pub mod text;
pub mod vectors;

use pyo3::prelude::*;

#[pymodule]
fn kektor_native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::register(m)?;
    bitmap::register(m)?;
    chunks::register(m)?;
    frames::register(m)?;
    log::register(m)?;
    tables::register(m)?;
    text::register(m)?;
    vectors::register(m)?;
    Ok(())
}
