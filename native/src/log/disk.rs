//! What the log asks of the file system, behind a seam so that tests can make it fail.

use pyo3::exceptions::PyOSError;
use pyo3::PyErr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// An I/O error as Python knows it: by number and file.
pub fn os_error(error: &io::Error, path: &Path) -> PyErr {
    match error.raw_os_error() {
        Some(errno) => {
            let what = error.to_string();
            let what = what.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((errno, what, path.display().to_string()))
        }
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}

/// The folder of a log.
pub trait Disk: Send + Sync {
    /// A new file of `bytes` bytes that begins with `preamble` and, once it bears its name, survives a crash.
    fn create(&self, name: &str, preamble: &[u8], bytes: u64) -> io::Result<Box<dyn SegmentFile>>;
    /// Remove files, so that they stay removed.
    fn remove(&self, names: &[String]) -> io::Result<()>;
}

/// The segment being written.
pub trait SegmentFile: Send {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;
    fn sync(&mut self) -> io::Result<()>;
    fn truncate(&mut self, bytes: u64) -> io::Result<()>;
}

/// A folder of the real file system.
pub struct Folder {
    pub path: PathBuf,
}

impl Folder {
    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

/// Names of files that were never finished.
pub const UNFINISHED: &str = ".new";

impl Disk for Folder {
    fn create(&self, name: &str, preamble: &[u8], bytes: u64) -> io::Result<Box<dyn SegmentFile>> {
        let unfinished = self.path.join(format!("{name}{UNFINISHED}"));
        let file = File::options().write(true).create(true).truncate(true).open(&unfinished)?;
        let ready = || -> io::Result<()> {
            preallocate(&file, bytes)?;
            file.write_all_at(preamble, 0)?;
            file.sync_all()?;
            fs::rename(&unfinished, self.path.join(name))?;
            self.sync()
        };
        if let Err(error) = ready() {
            let _ = fs::remove_file(&unfinished);
            return Err(error);
        }
        Ok(Box::new(file))
    }

    fn remove(&self, names: &[String]) -> io::Result<()> {
        for name in names {
            match fs::remove_file(self.path.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.sync()
    }
}

impl SegmentFile for File {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }
}

/// Reserve the blocks of a file, so that a full disk shows when a segment is begun and a sync needs no new ones.
#[cfg(target_os = "linux")]
fn preallocate(file: &File, bytes: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let length = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
    loop {
        // SAFETY: a plain system call on a descriptor that `file` keeps open.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, length) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EOPNOTSUPP | libc::ENOSYS) => return file.set_len(bytes),
            _ => return Err(error),
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn preallocate(file: &File, bytes: u64) -> io::Result<()> {
    file.set_len(bytes)
}

/// A segment file of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentPath {
    pub number: u64,
    pub path: PathBuf,
}

pub fn segment_name(number: u64) -> String {
    format!("{number:08}.klog")
}

/// The segments of a folder, oldest first.
pub fn list_segments(folder: &Path) -> io::Result<Vec<SegmentPath>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".klog")).and_then(|n| n.parse().ok());
        if let Some(number) = number {
            found.push(SegmentPath { number, path: entry.path() });
        }
    }
    found.sort_by_key(|segment| segment.number);
    Ok(found)
}

/// Remove what a crash left of a segment that never got its name.
pub fn remove_unfinished(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_str().is_some_and(|path| path.ends_with(&format!(".klog{UNFINISHED}"))) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}
