//! The classes through which Python reads a segment.

use super::layout::*;
use super::scan::{read_segment, walk, Item, Walk};
use crate::errors::{corrupt, newer};
use crate::log::disk::os_error;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// One decoded frame of the log: one transaction.
#[pyclass(module = "kektor_native", frozen, get_all)]
pub struct Frame {
    lsn: u64,
    durable_lsn: u64,
    r#type: u16,
    flags: u16,
    payload: Py<PyBytes>,
    /// Where the frame starts in its segment.
    offset: usize,
}

#[pymethods]
impl Frame {
    fn __repr__(&self, py: Python<'_>) -> String {
        let bytes = self.payload.as_bytes(py).len();
        format!("Frame(lsn={}, type={}, {bytes} bytes at {})", self.lsn, self.r#type, self.offset)
    }
}

/// Bytes of a segment that are no good frame although an acknowledged one stood there.
#[pyclass(module = "kektor_native", frozen, get_all)]
pub struct Damage {
    offset: usize,
    length: usize,
    /// LSN of the last good frame before them, 0 when there is none.
    after_lsn: u64,
}

#[pymethods]
impl Damage {
    fn __repr__(&self) -> String {
        format!("Damage({} bytes at {}, after LSN {})", self.length, self.offset, self.after_lsn)
    }
}

/// A `Frame` or a `Damage` from what a walk over `bytes` found.
pub fn item_to_python(py: Python<'_>, bytes: &[u8], item: &Item) -> PyResult<Py<PyAny>> {
    match item {
        Item::Damage { offset, length, after_lsn } => {
            let damage = Damage { offset: *offset, length: *length, after_lsn: *after_lsn };
            Ok(Py::new(py, damage)?.into_any())
        }
        Item::Frame { offset, header, payload } => {
            let frame = Frame {
                lsn: header.lsn,
                durable_lsn: header.durable_lsn,
                r#type: header.kind,
                flags: header.flags,
                payload: PyBytes::new(py, &bytes[payload.clone()]).unbind(),
                offset: *offset,
            };
            Ok(Py::new(py, frame)?.into_any())
        }
    }
}

/// The header of a segment's file, or the reason why it cannot be had.
pub fn read_header(path: &Path) -> std::io::Result<Result<SegmentHeader, BadHeader>> {
    let mut bytes = Vec::with_capacity(DATA_START);
    File::open(path)?.take(DATA_START as u64).read_to_end(&mut bytes)?;
    Ok(SegmentHeader::of_segment(&bytes))
}

/// How a header that is not to be used is told to the caller.
pub fn bad_header(path: &Path, bad: &BadHeader) -> PyErr {
    match bad {
        BadHeader::Damaged(why) => corrupt(format!("{}: {why}", path.display())),
        BadHeader::Newer(format) => newer(format!(
            "{}: log format {format} is newer than this program's {FORMAT}: upgrade kektor",
            path.display()
        )),
    }
}

/// A log segment opened for reading.
#[pyclass(module = "kektor_native", frozen)]
pub struct Segment {
    path: PathBuf,
    header: SegmentHeader,
    /// `end`, `torn` and `sealed` of the last walk.
    last: Mutex<Option<(usize, usize, bool)>>,
}

impl Segment {
    fn walk(&self, py: Python<'_>, next_lsn: Option<u64>) -> PyResult<(Vec<u8>, Walk)> {
        let (bytes, found) = py
            .detach(|| -> std::io::Result<_> {
                let bytes = read_segment(&self.path)?;
                let found = walk(&bytes, self.header, next_lsn);
                Ok((bytes, found))
            })
            .map_err(|error| os_error(&error, &self.path))?;
        *self.last.lock() = Some((found.end, found.torn, found.sealed));
        Ok((bytes, found))
    }

    fn known(&self, py: Python<'_>) -> PyResult<(usize, usize, bool)> {
        let last = *self.last.lock();
        match last {
            Some(known) => Ok(known),
            None => self.walk(py, None).map(|(_, found)| (found.end, found.torn, found.sealed)),
        }
    }
}

#[pymethods]
impl Segment {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        let header = read_header(&path)
            .map_err(|error| os_error(&error, &path))?
            .map_err(|bad| bad_header(&path, &bad))?;
        Ok(Self { path, header, last: Mutex::new(None) })
    }

    #[getter]
    fn path(&self) -> String {
        self.path.display().to_string()
    }

    #[getter]
    fn salt(&self) -> u64 {
        self.header.salt
    }

    #[getter]
    fn first_lsn(&self) -> u64 {
        self.header.first_lsn
    }

    /// All frames with a greater LSN and all damage, in order.
    #[pyo3(signature = (after_lsn=0, *, next_lsn=None))]
    fn frames<'py>(
        &self,
        py: Python<'py>,
        after_lsn: u64,
        next_lsn: Option<u64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let (bytes, found) = self.walk(py, next_lsn)?;
        let out = PyList::empty(py);
        for item in found.items.iter().filter(|item| wanted(item, after_lsn)) {
            out.append(item_to_python(py, &bytes, item)?)?;
        }
        Ok(out)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.frames(py, 0, None)?.try_iter()?.into_any())
    }

    /// Offset behind the last good frame.
    #[getter]
    fn end(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.known(py)?.0)
    }

    /// Bytes that follow `end` and are not zero padding.
    #[getter]
    fn torn(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.known(py)?.1)
    }

    /// Whether the segment was closed in good order.
    #[getter]
    fn sealed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.known(py)?.2)
    }

    fn __repr__(&self) -> String {
        format!("Segment({:?}, first_lsn={})", self.path(), self.header.first_lsn)
    }
}

/// Damage always matters; a frame only above the LSN the caller has.
pub fn wanted(item: &Item, after_lsn: u64) -> bool {
    match item {
        Item::Damage { .. } => true,
        Item::Frame { header, .. } => header.lsn > after_lsn,
    }
}
