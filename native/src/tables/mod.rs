//! Tables over slots that records need beside bitmaps.

mod ordered;

use pyo3::prelude::*;

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<ordered::OrderedIndex>()
}
