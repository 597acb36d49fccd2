//! Vectors by slot: an HNSW graph (Malkov and Yashunin 2016) over rows kept bit for bit.
//!
//! ```text
//! python    the class Python sees: arrays in and out, errors, the GIL
//! index     what belongs together: configuration, counts, add and remove
//! tail      slots not linked yet            linkers   the threads that link them
//! insert    a slot becomes a node           search    plans and walks     scan   exact search
//! maintain  vacuum and refine
//! rows      vectors    codes   a byte a component, for walks
//! links     edges      states  one byte a slot
//! score     sums to scores and keys         simd      sums
//! arena     chunks that never move          store     freeze, write, open      validate
//! ```
//!
//! `add` writes rows and appends their slots to the tail, which every search scans exactly; linkers move slots from
//! the tail into the graph. Readers take no lock while they walk. Writers of rows and states are serialised by
//! `writer`; writers of links hold the lock of one slot at a time, and `gate` shared, so that `freeze` (which takes it
//! exclusively) runs between two insertions.

mod arena;
mod codes;
mod index;
mod insert;
mod linkers;
mod links;
mod maintain;
mod python;
mod rows;
mod scan;
mod score;
mod scratch;
mod search;
mod simd;
mod states;
mod store;
mod tail;
mod validate;

use crate::errors::corrupt;
use pyo3::exceptions::{PyKeyError, PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::io;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    Cosine,
    L2,
    Dot,
}

impl Metric {
    const ALL: [(Metric, &'static str); 3] = [(Self::Cosine, "cosine"), (Self::L2, "l2"), (Self::Dot, "dot")];

    fn parse(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.iter().find(|(_, n)| *n == name);
        found.map(|(metric, _)| *metric).ok_or_else(|| {
            Error::Invalid(format!("metric is {name:?}; known metrics are \"cosine\", \"l2\" and \"dot\""))
        })
    }

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(metric, _)| *metric == self).expect("every metric is listed").1
    }
}

/// Why a call was refused; each kind is one Python exception.
#[derive(Debug)]
pub enum Error {
    Invalid(String),
    NotLive(u32),
    Corrupt(String),
    State(String),
    Memory(io::Error),
    Io(io::Error),
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(what) => PyValueError::new_err(what),
            Error::NotLive(slot) => PyKeyError::new_err(format!("slot {slot} holds no live vector")),
            Error::Corrupt(what) => corrupt(what),
            Error::State(what) => PyRuntimeError::new_err(what),
            Error::Memory(e) => PyMemoryError::new_err(format!("no room for more vectors: {e}")),
            Error::Io(e) => e.into(),
        }
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<python::VectorIndex>()
}
