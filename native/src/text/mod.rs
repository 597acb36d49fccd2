//! Full text: from words to ranked documents.
//!
//! `analysis` makes terms of texts, `memory` and `segment` hold postings, `search` finds the best documents in one
//! set of them, `index` keeps many sets and the statistics over all, `checkpoint` writes and opens them.

pub mod analysis;
mod build;
mod checkpoint;
mod documents;
mod index;
mod memory;
mod meta;
mod packing;
mod scoring;
mod search;
mod segment;
mod validate;

use crate::bitmap::Bitmap;
use crate::chunks::{Chunk, Written};
use crate::errors::corrupt;
use analysis::{languages, Analyzer};
use checkpoint::{segment_name, Frozen};
use index::{SealedPostings, Settings, State};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;

/// Texts of one document that are larger together would not fit the counters of the analysis.
const LARGEST_DOCUMENT: usize = 256 << 20;
/// No document: what a missing place in a batch of results holds.
const NO_SLOT: u32 = u32::MAX;

type Ranked<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f32>>);

/// BM25 over weighted fields by slot, incrementally maintained.
#[pyclass(module = "kektor_native", frozen)]
pub struct TextIndex {
    settings: Settings,
    state: RwLock<State>,
    frozen: Mutex<Option<Arc<Frozen>>>,
    /// Description of the last written checkpoint.
    written: Mutex<Vec<u8>>,
}

#[pymethods]
impl TextIndex {
    #[new]
    #[pyo3(signature = (*, fields=None, language="english", k1=1.2, b=0.75))]
    fn new(fields: Option<Vec<(String, f64)>>, language: &str, k1: f64, b: f64) -> PyResult<Self> {
        let fields = fields.unwrap_or_else(|| vec![("text".into(), 1.0)]);
        let (names, weights): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
        if names.is_empty() {
            return Err(PyValueError::new_err("fields is empty: an index needs at least one"));
        }
        if let Some((at, name)) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            return Err(PyValueError::new_err(format!("fields[{at}] {name:?} is named twice")));
        }
        let usable = |weight: &f64| (1e-6..=1e6).contains(weight);
        if let Some(at) = weights.iter().position(|weight| !usable(weight)) {
            let what =
                format!("the weight of field {:?} must be from 1e-6 to 1e6, not {}", names[at], weights[at]);
            return Err(PyValueError::new_err(what));
        }
        if !(0.0..=1000.0).contains(&k1) {
            return Err(PyValueError::new_err(format!("k1 must be from 0 to 1000, not {k1}")));
        }
        if !(0.0..=1.0).contains(&b) {
            return Err(PyValueError::new_err(format!("b must be from 0 to 1, not {b}")));
        }
        let settings = Settings { names, weights, k1, b, analyzer: analyzer(language)? };
        let state = State::new(settings.weights.len());
        Ok(Self::with(settings, state, Vec::new()))
    }

    #[getter]
    fn language(&self) -> &'static str {
        self.settings.analyzer.language.name
    }

    #[getter]
    fn applied_lsn(&self) -> u64 {
        self.quick().applied_lsn
    }

    fn __len__(&self) -> usize {
        self.quick().live as usize
    }

    fn __contains__(&self, slot: u32) -> bool {
        self.quick().contains(slot)
    }

    /// Index a document; ValueError when the slot is taken or the number of texts is not that of fields.
    #[pyo3(signature = (slot, texts, *, lsn))]
    fn add(&self, py: Python<'_>, slot: u32, texts: Vec<PyBackedStr>, lsn: u64) -> PyResult<()> {
        let fields = &self.settings.names;
        if texts.len() != fields.len() {
            let what = format!("{} texts for the {} fields {}", texts.len(), fields.len(), fields.join(", "));
            return Err(PyValueError::new_err(what));
        }
        if slot == NO_SLOT {
            return Err(PyValueError::new_err(format!("slot {slot} is reserved")));
        }
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        if bytes > LARGEST_DOCUMENT {
            let what =
                format!("a document of {bytes} bytes is over the limit of {LARGEST_DOCUMENT}: split it");
            return Err(PyValueError::new_err(what));
        }
        py.detach(|| {
            let document = self.settings.analyze(&texts);
            let mut state = self.state.write();
            if state.contains(slot) {
                return Err(PyValueError::new_err(format!("slot {slot} is taken")));
            }
            state.add(slot, &document, &self.settings.weights);
            state.applied_lsn = state.applied_lsn.max(lsn);
            Ok(())
        })
    }

    /// Take a document out; false when it was not there.
    #[pyo3(signature = (slot, *, lsn, erase=false))]
    fn remove(&self, py: Python<'_>, slot: u32, lsn: u64, erase: bool) -> PyResult<bool> {
        py.detach(|| {
            let mut state = self.state.write();
            let removed = state.remove(slot, erase).map_err(corrupt)?;
            state.applied_lsn = state.applied_lsn.max(lsn);
            Ok(removed)
        })
    }

    /// Slots and scores of the k best documents that hold any term of the query, best first.
    #[pyo3(signature = (query, k, *, filter=None))]
    fn search<'py>(
        &self,
        py: Python<'py>,
        query: &str,
        k: usize,
        filter: Option<&Bitmap>,
    ) -> PyResult<Ranked<'py>> {
        let filter = filter.map(|filter| Arc::clone(&filter.inner));
        let search = || self.state.read().search(&self.settings, query, k, filter.as_deref());
        let found = py.detach(search).map_err(corrupt)?;
        let (slots, scores): (Vec<u32>, Vec<f32>) = found.into_iter().unzip();
        Ok((slots.into_pyarray(py), scores.into_pyarray(py)))
    }

    /// Scores of the query for the given slots; 0 where no term occurs.
    fn scores<'py>(
        &self,
        py: Python<'py>,
        query: &str,
        slots: PyReadonlyArray1<'py, u32>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let slots: Vec<u32> = slots.as_array().iter().copied().collect();
        let found = py.detach(|| self.state.read().scores(&self.settings, query, &slots)).map_err(corrupt)?;
        let scores: Vec<f32> = found.into_iter().map(|score| score.unwrap_or(0.0) as f32).collect();
        Ok(scores.into_pyarray(py))
    }

    /// The terms of a text, in order, as indexed.
    fn analyze(&self, py: Python<'_>, text: &str) -> Vec<String> {
        py.detach(|| terms(&self.settings.analyzer, text))
    }

    /// The terms that a query asks for.
    fn query_terms(&self, py: Python<'_>, query: &str) -> Vec<String> {
        py.detach(|| self.settings.analyzer.query_terms(query))
    }

    /// Live documents that hold an analysed term.
    fn document_frequency(&self, term: &str) -> PyResult<u64> {
        self.quick().holding(term).map_err(corrupt)
    }

    /// Counts: documents, removed documents still stored, postings, segments, the mean length.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let state = self.quick();
        let out = PyDict::new(py);
        out.set_item("documents", state.live)?;
        out.set_item("removed", state.sealed.iter().map(|sealed| sealed.dead.len()).sum::<u64>())?;
        out.set_item("growing", state.growing.len())?;
        out.set_item("postings", state.postings())?;
        out.set_item("segments", state.sealed.len())?;
        out.set_item("mean_length", state.mean_length(&self.settings.weights))?;
        Ok(out)
    }

    /// Name the chunks of the index as it is now; it may change on while they are written.
    fn freeze(&self, py: Python<'_>, lsn: u64) -> PyResult<Vec<Chunk>> {
        // No lock is ever held while waiting for the interpreter.
        py.detach(|| {
            let mut slot = self.frozen.lock();
            if slot.is_some() {
                return Err(PyValueError::new_err("the index is frozen already: release it first"));
            }
            let last = self.written.lock();
            let frozen = Frozen::new(&mut self.state.write(), &self.settings, lsn, &last);
            let chunks = frozen.chunks();
            *slot = Some(Arc::new(frozen));
            Ok(chunks)
        })
    }

    /// Write one frozen chunk to a new file and sync it; returns (length, sha256 hex).
    fn write(&self, py: Python<'_>, chunk: &Chunk, path: PathBuf) -> PyResult<Written> {
        let frozen = self.frozen.lock().clone();
        let frozen = frozen.ok_or_else(|| PyValueError::new_err("the index is not frozen"))?;
        py.detach(|| frozen.write(&chunk.name, &path, &self.settings))
    }

    /// End the freeze; `written` says that every chunk reached a checkpoint.
    fn release(&self, py: Python<'_>, written: bool) -> PyResult<()> {
        let Some(frozen) = self.frozen.lock().take() else {
            return Err(PyValueError::new_err("the index is not frozen"));
        };
        if !written {
            return Ok(());
        }
        if let Some(name) = frozen.unwritten() {
            return Err(PyValueError::new_err(format!("chunk {name:?} was never written")));
        }
        py.detach(|| {
            let replaced = frozen.install(&mut self.state.write()).map_err(corrupt)?;
            self.written.lock().clone_from(&frozen.meta);
            drop((replaced, frozen));
            Ok(())
        })
    }

    /// Map what `write` left in a folder; CorruptFile when it cannot be trusted.
    #[staticmethod]
    fn open(py: Python<'_>, folder: PathBuf) -> PyResult<Self> {
        let (settings, state, written) = py.detach(|| checkpoint::open(&folder))?;
        Ok(Self::with(settings, state, written))
    }

    /// Every broken invariant in words; empty when sound.
    fn validate(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| {
            let (mut problems, sealed) = {
                let state = self.state.read();
                (validate::check_counts(&self.settings, &state), state.sealed.clone())
            };
            // Without the lock: this reads everything, and writers need not wait for it.
            for sealed in sealed {
                if let SealedPostings::Segment(segment) = &*sealed.postings {
                    let found = validate::check_segment(segment, &self.settings.weights);
                    problems.extend(found.err().map(|e| format!("{}: {e}", segment_name(sealed.number))));
                }
            }
            problems
        })
    }
}

impl TextIndex {
    /// The state for a short look with the interpreter held: it does not queue behind a writer that waits.
    fn quick(&self) -> RwLockReadGuard<'_, State> {
        self.state.read_recursive()
    }

    fn with(settings: Settings, state: State, written: Vec<u8>) -> Self {
        Self { settings, state: RwLock::new(state), frozen: Mutex::new(None), written: Mutex::new(written) }
    }
}

fn analyzer(language: &str) -> PyResult<Analyzer> {
    Analyzer::new(language).ok_or_else(|| {
        PyValueError::new_err(format!("unknown language {language:?}; known are {}", languages().join(", ")))
    })
}

fn terms(analyzer: &Analyzer, text: &str) -> Vec<String> {
    let mut out = Vec::new();
    analyzer.terms(text, |term, _| out.push(term.to_owned()));
    out
}

/// The terms an index of that language would hold for a text.
#[pyfunction]
#[pyo3(name = "analyze", signature = (text, language="english"))]
fn analyze_text(py: Python<'_>, text: &str, language: &str) -> PyResult<Vec<String>> {
    let analyzer = analyzer(language)?;
    Ok(py.detach(|| terms(&analyzer, text)))
}

/// The terms a query asks for in an index of that language.
#[pyfunction]
#[pyo3(name = "query_terms", signature = (query, language="english"))]
fn query_terms_of(py: Python<'_>, query: &str, language: &str) -> PyResult<Vec<String>> {
    let analyzer = analyzer(language)?;
    Ok(py.detach(|| analyzer.query_terms(query)))
}

/// The languages there is an analyzer for.
#[pyfunction]
#[pyo3(name = "languages")]
fn known_languages() -> Vec<&'static str> {
    languages()
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<TextIndex>()?;
    m.add_function(wrap_pyfunction!(analyze_text, m)?)?;
    m.add_function(wrap_pyfunction!(query_terms_of, m)?)?;
    m.add_function(wrap_pyfunction!(known_languages, m)?)
}
