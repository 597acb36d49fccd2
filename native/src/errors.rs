//! The one exception this crate adds: a file that is not what it must be.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(
    kektor_native,
    CorruptFile,
    PyException,
    "A file of the database is damaged, cut short, of another kind, or of a newer format."
);

/// Shorthand for the error every parser returns on bytes it cannot trust.
pub fn corrupt(what: impl Into<String>) -> PyErr {
    CorruptFile::new_err(what.into())
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("CorruptFile", m.py().get_type::<CorruptFile>())
}
