//! The exceptions this crate adds: a file that is not what it must be, and one from a later version.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(
    kektor_native,
    CorruptFile,
    PyException,
    "A file of the database is damaged, cut short, of another kind, or of a newer format."
);

create_exception!(
    kektor_native,
    NewerFile,
    CorruptFile,
    "A file of the database is sound and of a newer format than this program reads."
);

/// Shorthand for the error every parser returns on bytes it cannot trust.
pub fn corrupt(what: impl Into<String>) -> PyErr {
    CorruptFile::new_err(what.into())
}

/// A sound file that only a later version of this program understands.
pub fn newer(what: impl Into<String>) -> PyErr {
    NewerFile::new_err(what.into())
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("CorruptFile", m.py().get_type::<CorruptFile>())?;
    m.add("NewerFile", m.py().get_type::<NewerFile>())
}
