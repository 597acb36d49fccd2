//! The log: appending frames with group commit, and reading a folder of segments back.

pub mod disk;
mod folder_scan;
pub mod writer;

use crate::frames::layout::BadHeader;
use crate::frames::python::{bad_header, read_header};
use disk::{list_segments, os_error, remove_unfinished, Folder};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use writer::{Known, Refused, Sync, Writer, MIN_SEGMENT_BYTES};

/// From this size on, copying a payload is worth letting other threads of the interpreter run.
const LONG_COPY: usize = 64 << 10;

impl From<Refused> for PyErr {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Misuse(what) => PyValueError::new_err(what),
            Refused::Failed { errno: Some(errno), what } => PyOSError::new_err((errno, what)),
            Refused::Failed { errno: None, what } => PyOSError::new_err(what),
        }
    }
}

/// The append-only log of a folder, segment by segment, with group commit.
#[pyclass(module = "kektor_native", frozen)]
pub struct Log {
    writer: Arc<Writer>,
    timer: Option<JoinHandle<()>>,
}

#[pymethods]
impl Log {
    #[new]
    #[pyo3(signature = (folder, *, next_lsn, sync="always", interval_ms=100, segment_bytes=67108864))]
    fn new(
        py: Python<'_>,
        folder: PathBuf,
        next_lsn: u64,
        sync: &str,
        interval_ms: u64,
        segment_bytes: u64,
    ) -> PyResult<Self> {
        let sync = match sync {
            "always" => Sync::Always,
            "interval" if interval_ms > 0 => Sync::Interval(Duration::from_millis(interval_ms)),
            "interval" => return Err(PyValueError::new_err("interval_ms must be at least 1")),
            "off" => Sync::Off,
            other => {
                let what = format!("sync must be 'always', 'interval' or 'off', not {other:?}");
                return Err(PyValueError::new_err(what));
            }
        };
        if next_lsn == 0 {
            return Err(PyValueError::new_err("LSNs start at 1: next_lsn cannot be 0"));
        }
        if segment_bytes < MIN_SEGMENT_BYTES {
            let what = format!("segment_bytes must be at least {MIN_SEGMENT_BYTES}, not {segment_bytes}");
            return Err(PyValueError::new_err(what));
        }
        let writer = py.detach(|| start(&folder, next_lsn, sync, segment_bytes))?;
        let writer = Arc::new(writer);
        let timer = match sync {
            Sync::Interval(interval) => {
                let writer = Arc::clone(&writer);
                let thread = std::thread::Builder::new().name("kektor-log-sync".into());
                Some(thread.spawn(move || writer.run_timer(interval))?)
            }
            _ => None,
        };
        Ok(Self { writer, timer })
    }

    /// Queue one frame.
    #[pyo3(signature = (lsn, payload, *, r#type=1, flags=0))]
    fn append(
        &self,
        py: Python<'_>,
        lsn: u64,
        payload: &Bound<'_, PyBytes>,
        r#type: u16,
        flags: u16,
    ) -> PyResult<()> {
        let payload = payload.as_bytes();
        // Letting go of the interpreter costs more than queueing a small frame does.
        if payload.len() < LONG_COPY && self.writer.append(lsn, r#type, flags, payload, false)? {
            return Ok(());
        }
        py.detach(|| self.writer.append(lsn, r#type, flags, payload, true))?;
        Ok(())
    }

    /// Return when the frame is as durable as `sync` asks.
    fn wait(&self, py: Python<'_>, lsn: u64) -> PyResult<()> {
        if self.writer.is_kept(lsn) {
            return Ok(());
        }
        Ok(py.detach(|| self.writer.wait(lsn))?)
    }

    /// Write and sync everything queued.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.writer.flush())?)
    }

    #[getter]
    fn durable_lsn(&self) -> u64 {
        self.writer.durable_lsn()
    }

    /// The highest LSN queued.
    #[getter]
    fn last_lsn(&self) -> u64 {
        self.writer.last_lsn()
    }

    /// Why the log is dead, or None.
    #[getter]
    fn failed(&self) -> Option<String> {
        match self.writer.failed()? {
            Refused::Misuse(what) | Refused::Failed { what, .. } => Some(what),
        }
    }

    /// Seal the current segment and start the next, so that `trim` can drop the old one.
    fn roll(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.writer.roll())?)
    }

    /// Remove sealed segments whose frames are all at or below `lsn`; returns their names.
    fn trim(&self, py: Python<'_>, lsn: u64) -> PyResult<Vec<String>> {
        Ok(py.detach(|| self.writer.trim(lsn))?)
    }

    /// Counts since the log was started, and the segments there are.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (stats, segments) = self.writer.stats();
        let out = PyDict::new(py);
        out.set_item("frames", stats.frames)?;
        out.set_item("bytes", stats.bytes)?;
        out.set_item("syncs", stats.syncs)?;
        out.set_item("groups", stats.groups)?;
        out.set_item("segments", segments)?;
        Ok(out)
    }

    /// Flush, seal and close; idempotent.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.writer.close())?)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.writer.abandon();
        if let Some(timer) = self.timer.take() {
            let _ = timer.join();
        }
    }
}

/// Begin a new segment behind those in the folder.
fn start(folder: &Path, next_lsn: u64, sync: Sync, segment_bytes: u64) -> PyResult<Writer> {
    let here = |error| os_error(&error, folder);
    remove_unfinished(folder).map_err(here)?;
    let segments = list_segments(folder).map_err(here)?;
    let mut known = Vec::new();
    for segment in &segments {
        let name = segment.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let first_lsn = match read_header(&segment.path).map_err(here)? {
            Ok(header) => Some(header.first_lsn),
            Err(BadHeader::Damaged(_)) => None,
            Err(newer) => return Err(bad_header(&segment.path, &newer)),
        };
        if first_lsn.is_some_and(|first| first > next_lsn) {
            return Err(PyValueError::new_err(format!(
                "next_lsn {next_lsn} lies before {name}, which begins at LSN {}",
                first_lsn.unwrap_or_default()
            )));
        }
        known.push(Known { name, first_lsn });
    }
    if let Some(newest) = segments.last() {
        // The new segment vouches for everything before it; what recovery read may so far be in memory only.
        File::open(&newest.path)
            .and_then(|file| file.sync_data())
            .map_err(|error| os_error(&error, &newest.path))?;
    }
    let number = segments.last().map_or(1, |newest| newest.number + 1);
    let disk = Box::new(Folder { path: folder.to_owned() });
    Writer::start(disk, sync, segment_bytes, number, next_lsn, known).map_err(here)
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Log>()?;
    m.add_class::<folder_scan::LogScan>()?;
    m.add_function(wrap_pyfunction!(folder_scan::scan_log, m)?)
}
