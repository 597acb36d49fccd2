//! Reading a whole log: its segments in order, each judged by what the next one says.

use super::disk::{list_segments, os_error, SegmentPath};
use crate::frames::layout::{BadHeader, SegmentHeader};
use crate::frames::python::{bad_header, item_to_python, read_header, wanted};
use crate::frames::scan::{read_segment, walk, Item};
use parking_lot::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::path::PathBuf;
use std::vec::IntoIter;

/// Payload bytes handed out at a time.
const BATCH_BYTES: usize = 8 << 20;

/// One segment in memory, with what is still to be handed out of it.
struct Open {
    path: PathBuf,
    bytes: Vec<u8>,
    items: IntoIter<Item>,
}

struct Progress {
    /// Segments still to be read, the next one last; None where the header is damaged.
    ahead: Vec<(SegmentPath, Option<SegmentHeader>)>,
    open: Option<Open>,
    last_lsn: u64,
    torn: usize,
}

/// The frames of a folder's segments, in batches of bounded size.
#[pyclass(module = "kektor_native", frozen)]
pub struct LogScan {
    after_lsn: u64,
    progress: Mutex<Progress>,
}

/// Read the log of a folder from the first frame above `after_lsn` on.
#[pyfunction]
#[pyo3(signature = (folder, after_lsn=0))]
pub fn scan_log(folder: PathBuf, after_lsn: u64) -> PyResult<LogScan> {
    let mut ahead = Vec::new();
    for segment in list_segments(&folder).map_err(|error| os_error(&error, &folder))? {
        match read_header(&segment.path).map_err(|error| os_error(&error, &segment.path))? {
            Ok(header) => ahead.push((segment, Some(header))),
            Err(BadHeader::Damaged(_)) => ahead.push((segment, None)),
            Err(newer) => return Err(bad_header(&segment.path, &newer)),
        }
    }
    // The newest segment began when all below its first LSN was durable, whether or not it holds a frame.
    let begun = ahead.iter().rev().find_map(|(_, header)| *header);
    let last_lsn = begun.map_or(0, |header| header.first_lsn.saturating_sub(1));
    ahead.reverse();
    Ok(LogScan { after_lsn, progress: Mutex::new(Progress { ahead, open: None, last_lsn, torn: 0 }) })
}

impl Progress {
    /// Open the next segment that may hold something for the caller; false when there is none.
    fn advance(&mut self, after_lsn: u64) -> PyResult<bool> {
        while let Some((segment, header)) = self.ahead.pop() {
            let next_lsn = self.ahead.iter().rev().find_map(|(_, header)| *header).map(|next| next.first_lsn);
            if next_lsn.is_some_and(|next| next <= after_lsn + 1) {
                continue;
            }
            let bytes = read_segment(&segment.path).map_err(|error| os_error(&error, &segment.path))?;
            let items = match header {
                // Without the salt nothing in it can be told from noise.
                None => vec![Item::Damage { offset: 0, length: bytes.len(), after_lsn: 0 }],
                Some(header) => {
                    let found = walk(&bytes, header, next_lsn);
                    self.last_lsn = self.last_lsn.max(found.last_lsn);
                    self.torn = found.torn;
                    found.items
                }
            };
            self.open = Some(Open { path: segment.path, bytes, items: items.into_iter() });
            return Ok(true);
        }
        Ok(false)
    }
}

#[pymethods]
impl LogScan {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<(String, Bound<'py, PyList>)>> {
        let Some(mut progress) = self.progress.try_lock() else {
            return Err(PyRuntimeError::new_err("a log scan is read by one thread at a time"));
        };
        let progress: &mut Progress = &mut progress;
        loop {
            if let Some(open) = &mut progress.open {
                let batch = PyList::empty(py);
                let mut bytes = 0;
                for item in open.items.by_ref().filter(|item| wanted(item, self.after_lsn)) {
                    if let Item::Frame { payload, .. } = &item {
                        bytes += payload.len();
                    }
                    batch.append(item_to_python(py, &open.bytes, &item)?)?;
                    if bytes >= BATCH_BYTES {
                        break;
                    }
                }
                if !batch.is_empty() {
                    return Ok(Some((open.path.display().to_string(), batch)));
                }
                progress.open = None;
            }
            let after_lsn = self.after_lsn;
            if !py.detach(|| progress.advance(after_lsn))? {
                return Ok(None);
            }
        }
    }

    /// The highest LSN the log is known to have reached, as far as it was read.
    #[getter]
    fn last_lsn(&self) -> u64 {
        self.progress.lock().last_lsn
    }

    /// Bytes of the last segment read that a crash left unfinished.
    #[getter]
    fn torn(&self) -> usize {
        self.progress.lock().torn
    }
}
