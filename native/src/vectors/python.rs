//! The class Python sees: arrays in and out, errors, and the GIL let go for every call that does work.

use super::index::{Config, Index, NO_SLOT};
use super::maintain::Progress;
use super::{Error, Metric};
use crate::bitmap::Bitmap;
use crate::chunks::{Chunk, Written};
use numpy::ndarray::Dimension;
use numpy::{
    Element, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyMemoryError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Queries of a batch that one thread takes at a time.
const BATCH_STEP: usize = 8;
/// A step of background work unless its caller says otherwise.
const STEP_MS: u64 = 5;

#[pyclass(module = "kektor_native", frozen)]
pub struct VectorIndex {
    index: Arc<Index>,
}

impl Drop for VectorIndex {
    fn drop(&mut self) {
        self.index.close();
    }
}

/// The elements of an array in C order, without a copy when that is how they lie.
fn elements<'a, T: Element + Copy, D: Dimension>(
    array: &'a PyReadonlyArray<'_, T, D>,
) -> PyResult<Cow<'a, [T]>> {
    // `as_slice` refuses what is misaligned or has gaps, and is content with any order.
    match array.as_slice() {
        Ok(slice) if array.is_c_contiguous() => Ok(Cow::Borrowed(slice)),
        _ => {
            let copy = array.as_any().call_method1("copy", ("C",))?;
            let copy: PyReadonlyArray<'_, T, D> = copy.extract()?;
            Ok(Cow::Owned(copy.as_slice()?.to_vec()))
        }
    }
}

/// `n` copies of a value; MemoryError instead of an abort when there is no room.
fn filled<T: Copy>(value: T, n: Option<usize>) -> PyResult<Vec<T>> {
    let mut out = Vec::new();
    match n.map(|n| (n, out.try_reserve_exact(n))) {
        Some((n, Ok(()))) => out.resize(n, value),
        _ => return Err(PyMemoryError::new_err("the answer does not fit into memory")),
    }
    Ok(out)
}

fn wrong_type(name: &str, expected: &str, got: &Bound<'_, PyAny>) -> PyErr {
    let describe = || -> PyResult<String> {
        let kind = got.get_type().name()?.to_string();
        match (got.getattr("dtype"), got.getattr("shape")) {
            (Ok(dtype), Ok(shape)) => Ok(format!("{kind} of dtype {dtype} and shape {shape}")),
            _ => Ok(kind),
        }
    };
    let got = describe().unwrap_or_else(|_| "something else".into());
    PyTypeError::new_err(format!("{name} must be a numpy array of {expected}, not {got}"))
}

fn vector<'py>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArray1<'py, f32>> {
    value.extract().map_err(|_| wrong_type(name, "dtype float32 and shape (dim,)", value))
}

fn matrix<'py>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArray2<'py, f32>> {
    value.extract().map_err(|_| wrong_type(name, "dtype float32 and shape (n, dim)", value))
}

fn slots_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArray1<'py, u32>> {
    value.extract().map_err(|_| wrong_type("slots", "dtype uint32 and shape (n,)", value))
}

impl VectorIndex {
    fn ready(&self) -> PyResult<&Arc<Index>> {
        self.index.check_process()?;
        Ok(&self.index)
    }

    fn check_dim(&self, what: &str, found: usize) -> PyResult<()> {
        let dim = self.index.config.dim;
        if found == dim {
            return Ok(());
        }
        Err(Error::Invalid(format!("{what} {found} components, the index has {dim}")).into())
    }
}

#[pymethods]
impl VectorIndex {
    #[new]
    #[pyo3(signature = (dim, *, metric = "cosine", precision = "f32", m = 16, ef_construction = 200))]
    fn new(dim: usize, metric: &str, precision: &str, m: usize, ef_construction: usize) -> PyResult<Self> {
        if precision != "f32" {
            return Err(
                Error::Invalid(format!("precision is {precision:?}; the one known is \"f32\"")).into()
            );
        }
        let config = Config { dim, metric: Metric::parse(metric)?, m, ef_construction };
        Ok(Self { index: Index::new(config)? })
    }

    #[getter]
    fn dim(&self) -> usize {
        self.index.config.dim
    }

    #[getter]
    fn metric(&self) -> &'static str {
        self.index.config.metric.name()
    }

    #[getter]
    fn precision(&self) -> &'static str {
        "f32"
    }

    #[getter]
    fn m(&self) -> usize {
        self.index.config.m
    }

    #[getter]
    fn ef_construction(&self) -> usize {
        self.index.config.ef_construction
    }

    #[getter]
    fn applied_lsn(&self) -> u64 {
        self.index.applied.load(Ordering::Acquire)
    }

    fn __len__(&self) -> usize {
        self.index.live()
    }

    fn __contains__(&self, slot: u32) -> bool {
        self.index.states.is_live(slot)
    }

    fn __repr__(&self) -> String {
        let Config { dim, metric, m, ef_construction } = self.index.config;
        let (metric, live, kernels) = (metric.name(), self.index.live(), self.index.kernels.name);
        format!(
            "VectorIndex(dim={dim}, metric={metric:?}, m={m}, ef_construction={ef_construction}): \
             {live} live vectors, {kernels} kernels"
        )
    }

    /// Store vectors under slots; searchable when the call returns.
    #[pyo3(signature = (slots, vectors, *, lsn, throttle = true))]
    fn add(
        &self,
        py: Python<'_>,
        slots: &Bound<'_, PyAny>,
        vectors: &Bound<'_, PyAny>,
        lsn: u64,
        throttle: bool,
    ) -> PyResult<()> {
        let index = self.ready()?;
        let (slots, vectors) = (slots_of(slots)?, matrix("vectors", vectors)?);
        let (n, rows) = (slots.len(), vectors.shape()[0]);
        if n != rows {
            return Err(
                Error::Invalid(format!("{n} slots and {rows} vectors; there must be one for each")).into()
            );
        }
        self.check_dim("vectors have", vectors.shape()[1])?;
        let (slots, vectors) = (elements(&slots)?, elements(&vectors)?);
        let (slots, vectors) = (slots.as_ref(), vectors.as_ref());
        Ok(py.detach(|| index.add(slots, vectors, lsn, throttle))?)
    }

    /// Make slots unreachable at once; returns how many were live.
    #[pyo3(signature = (slots, *, lsn, erase = false))]
    fn remove(&self, py: Python<'_>, slots: &Bound<'_, PyAny>, lsn: u64, erase: bool) -> PyResult<usize> {
        let index = self.ready()?;
        let slots = slots_of(slots)?;
        let slots = elements(&slots)?;
        let slots = slots.as_ref();
        Ok(py.detach(|| index.remove(slots, lsn, erase)))
    }

    /// The stored vectors, exactly the bits given to `add`.
    fn vectors<'py>(
        &self,
        py: Python<'py>,
        slots: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let index = self.ready()?;
        let slots = slots_of(slots)?;
        let slots = elements(&slots)?;
        let slots = slots.as_ref();
        let mut out = filled(0.0f32, slots.len().checked_mul(index.config.dim))?;
        py.detach(|| index.vectors(slots, &mut out))?;
        PyArray1::from_vec(py, out).reshape([slots.len(), index.config.dim])
    }

    /// Exact scores of a query against live slots.
    fn scores<'py>(
        &self,
        py: Python<'py>,
        query: &Bound<'py, PyAny>,
        slots: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let index = self.ready()?;
        let (query, slots) = (vector("query", query)?, slots_of(slots)?);
        self.check_dim("query has", query.len())?;
        let (query, slots) = (elements(&query)?, elements(&slots)?);
        let (query, slots) = (query.as_ref(), slots.as_ref());
        Ok(PyArray1::from_vec(py, py.detach(|| index.scores(query, slots))?))
    }

    /// Slots and scores of the k best, best first.
    #[pyo3(signature = (query, k, *, ef = None, filter = None))]
    #[allow(clippy::type_complexity)]
    fn search<'py>(
        &self,
        py: Python<'py>,
        query: &Bound<'py, PyAny>,
        k: usize,
        ef: Option<usize>,
        filter: Option<&Bitmap>,
    ) -> PyResult<(Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f32>>)> {
        let index = self.ready()?;
        let query = vector("query", query)?;
        self.check_dim("query has", query.len())?;
        check_ef(ef)?;
        let query = elements(&query)?;
        let query = query.as_ref();
        let found = py.detach(|| index.search(query, k, ef, filter))?;
        let (slots, scores): (Vec<u32>, Vec<f32>) = found.into_iter().unzip();
        Ok((PyArray1::from_vec(py, slots), PyArray1::from_vec(py, scores)))
    }

    /// The same for (n, dim) queries on several threads.
    #[pyo3(signature = (queries, k, *, ef = None, filter = None, threads = None))]
    #[allow(clippy::type_complexity)]
    fn search_batch<'py>(
        &self,
        py: Python<'py>,
        queries: &Bound<'py, PyAny>,
        k: usize,
        ef: Option<usize>,
        filter: Option<&Bitmap>,
        threads: Option<usize>,
    ) -> PyResult<(Bound<'py, PyArray2<u32>>, Bound<'py, PyArray2<f32>>)> {
        let index = self.ready()?;
        let queries = matrix("queries", queries)?;
        let (n, dim) = (queries.shape()[0], queries.shape()[1]);
        self.check_dim("queries have", dim)?;
        check_ef(ef)?;
        if threads == Some(0) {
            return Err(Error::Invalid("threads is 0; it must be at least 1".into()).into());
        }
        let queries = elements(&queries)?;
        let queries = queries.as_ref();
        let mut slots = filled(NO_SLOT, n.checked_mul(k))?;
        let mut scores = filled(f32::NAN, n.checked_mul(k))?;
        py.detach(|| batch(index, queries, Request { k, ef, filter, threads }, &mut slots, &mut scores))?;
        let slots = PyArray1::from_vec(py, slots).reshape([n, k])?;
        Ok((slots, PyArray1::from_vec(py, scores).reshape([n, k])?))
    }

    /// Link everything in the tail now, on `threads` threads beside the background ones; returns when it is done.
    #[pyo3(signature = (*, threads = None))]
    fn link(&self, py: Python<'_>, threads: Option<usize>) -> PyResult<()> {
        let index = self.ready()?;
        let threads = threads.unwrap_or_else(cores).max(1);
        while index.tail.len() > 0 {
            py.detach(|| link_for(index, threads, Duration::from_millis(100)));
            py.check_signals()?;
        }
        Ok(())
    }

    /// One step of a vacuum: how far it is, and how far it goes.
    #[pyo3(signature = (*, milliseconds = STEP_MS))]
    fn vacuum(&self, py: Python<'_>, milliseconds: u64) -> PyResult<(u64, u64)> {
        let index = self.ready()?;
        let Progress { done, total } = py.detach(|| index.vacuum(Duration::from_millis(milliseconds)));
        Ok((done, total))
    }

    /// One step of a refinement.
    #[pyo3(signature = (*, ef, milliseconds = STEP_MS))]
    fn refine(&self, py: Python<'_>, ef: usize, milliseconds: u64) -> PyResult<(u64, u64)> {
        let index = self.ready()?;
        check_ef(Some(ef))?;
        let Progress { done, total } = py.detach(|| index.refine(ef, Duration::from_millis(milliseconds)));
        Ok((done, total))
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let index = self.ready()?;
        let (figures, degree, levels) =
            py.detach(|| (index.figures(), index.mean_degree(), index.level_sizes()));
        let stats = PyDict::new(py);
        for (name, value) in figures {
            stats.set_item(name, value as i64)?;
        }
        stats.set_item("mean_degree", degree)?;
        stats.set_item("levels", levels)?;
        Ok(stats)
    }

    fn freeze(&self, py: Python<'_>, lsn: u64) -> PyResult<Vec<Chunk>> {
        let index = self.ready()?;
        Ok(py.detach(|| index.freeze(lsn))?)
    }

    fn write(&self, py: Python<'_>, chunk: &Chunk, path: PathBuf) -> PyResult<Written> {
        let index = self.ready()?;
        Ok(py.detach(|| index.write_chunk(&chunk.name, &path))?)
    }

    fn release(&self, py: Python<'_>, written: bool) -> PyResult<()> {
        let index = self.ready()?;
        Ok(py.detach(|| index.release(written))?)
    }

    #[staticmethod]
    fn open(py: Python<'_>, folder: PathBuf) -> PyResult<Self> {
        Ok(Self { index: py.detach(|| Index::open(&folder))? })
    }

    /// Every broken invariant in words; empty when sound.
    fn validate(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let index = self.ready()?;
        Ok(py.detach(|| index.validate()))
    }
}

fn check_ef(ef: Option<usize>) -> PyResult<()> {
    match ef {
        Some(0) => Err(Error::Invalid("ef is 0; it must be at least 1".into()).into()),
        _ => Ok(()),
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Link on several threads until the tail is empty or the time is over, so that signals are seen in between.
fn link_for(index: &Index, threads: usize, time: Duration) {
    let end = Instant::now() + time;
    let work = || while Instant::now() < end && index.link_some(16) > 0 {};
    std::thread::scope(|scope| {
        for _ in 1..threads {
            if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    if index.tail.waiting() == 0 && index.tail.len() > 0 {
        // The last ones are in the hands of background threads.
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[derive(Clone, Copy)]
struct Request<'a> {
    k: usize,
    ef: Option<usize>,
    filter: Option<&'a Bitmap>,
    threads: Option<usize>,
}

/// Answer each query into its `k` places of `slots` and `scores`; places without a result are left alone.
fn batch(
    index: &Index,
    queries: &[f32],
    request: Request,
    slots: &mut [u32],
    scores: &mut [f32],
) -> Result<(), Error> {
    let Request { k, ef, filter, threads } = request;
    let dim = index.config.dim;
    let n = queries.len() / dim;
    for (i, query) in queries.chunks_exact(dim).enumerate() {
        index.check_query(query).map_err(|e| match e {
            Error::Invalid(what) => Error::Invalid(format!("row {i}: {what}")),
            other => other,
        })?;
    }
    let threads = threads.unwrap_or_else(cores).min(n.div_ceil(BATCH_STEP)).max(1);
    let next = AtomicUsize::new(0);
    let work = || -> Vec<(usize, Vec<(u32, f32)>)> {
        let mut found = Vec::new();
        loop {
            let first = next.fetch_add(BATCH_STEP, Ordering::Relaxed);
            if first >= n {
                return found;
            }
            for i in first..(first + BATCH_STEP).min(n) {
                let query = &queries[i * dim..][..dim];
                found.push((i, index.search(query, k, ef, filter).expect("checked above")));
            }
        }
    };
    std::thread::scope(|scope| {
        // A thread that cannot be started leaves its share to the others.
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..threads).map_while(start).collect();
        let mine = work();
        for (i, found) in others.into_iter().flat_map(joined).chain(mine) {
            for (at, (slot, score)) in found.into_iter().enumerate() {
                slots[i * k + at] = slot;
                scores[i * k + at] = score;
            }
        }
    });
    Ok(())
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
