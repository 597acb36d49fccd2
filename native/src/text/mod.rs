//! Full text: from words to ranked documents.

pub mod analysis;

use pyo3::prelude::*;

pub fn register(_m: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
