//! The files of a checkpoint: one header, one payload, one protocol.
//!
//! Every structure of the engine is saved the same way: `freeze(lsn)` names its chunks under the commit lock,
//! `write(chunk, path)` writes one of them in the background, `release(written)` ends the freeze, `open(folder)`
//! maps them again and `validate()` walks their invariants. `storage/` owns the folder and the manifest (length and
//! SHA-256 of each file); the structure owns what is inside.
//!
//! A chunk file is a 64-byte header followed by the payload, so a payload mapped from the start of the file is
//! 64-byte aligned. All integers are little-endian.
//!
//! ```text
//! 0   magic      8  "KEKCHUNK"
//! 8   format     2  version of this header and of the payload's layout
//! 10  kind      14  ASCII, zero padded: which structure wrote it
//! 24  lsn        8  the log sequence number the content is exact at
//! 32  length     8  bytes of payload
//! 40  aux       16  for the structure
//! 56  reserved   4  zero
//! 60  crc32c     4  of bytes 0..60
//! ```

use crate::errors::{corrupt, newer};
use memmap2::{MmapOptions, MmapRaw};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

pub const HEADER_BYTES: usize = 64;
pub const FORMAT: u16 = 2;
const KIND_BYTES: usize = 14;
const MAGIC: &[u8; 8] = b"KEKCHUNK";

/// One file of a frozen structure, as `freeze` names it.
#[pyclass(module = "kektor_native", frozen, get_all)]
#[derive(Clone, Debug)]
pub struct Chunk {
    /// File name within the structure's folder.
    pub name: String,
    /// Whether the content differs from the file of this name in the previous written checkpoint.
    pub dirty: bool,
}

#[pymethods]
impl Chunk {
    #[new]
    fn new(name: String, dirty: bool) -> Self {
        Self { name, dirty }
    }

    fn __repr__(&self) -> String {
        format!("Chunk(name={:?}, dirty={})", self.name, self.dirty)
    }
}

/// What a header says, after it was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub lsn: u64,
    pub length: u64,
    pub aux: [u64; 2],
}

fn encode_header(kind: &str, header: &Header) -> [u8; HEADER_BYTES] {
    assert!(kind.len() <= KIND_BYTES && kind.is_ascii(), "chunk kinds are at most 14 ASCII bytes");
    let mut bytes = [0u8; HEADER_BYTES];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..10].copy_from_slice(&FORMAT.to_le_bytes());
    bytes[10..10 + kind.len()].copy_from_slice(kind.as_bytes());
    bytes[24..32].copy_from_slice(&header.lsn.to_le_bytes());
    bytes[32..40].copy_from_slice(&header.length.to_le_bytes());
    bytes[40..48].copy_from_slice(&header.aux[0].to_le_bytes());
    bytes[48..56].copy_from_slice(&header.aux[1].to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..60]);
    bytes[60..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Why a header is not to be used.
#[derive(Debug, PartialEq, Eq)]
pub enum BadHeader {
    Damaged(String),
    /// Sound, and from a later version of this program.
    Newer(u16),
}

impl BadHeader {
    fn named(&self, path: &Path) -> PyErr {
        match self {
            Self::Damaged(what) => corrupt(format!("{}: {what}", path.display())),
            Self::Newer(format) => newer(format!(
                "{}: format {format} is newer than this program's {FORMAT}: upgrade kektor",
                path.display()
            )),
        }
    }
}

/// Check a header against the kind and the size of the file it stands in.
pub fn decode_header(bytes: &[u8], kind: &str, file_bytes: u64) -> Result<Header, BadHeader> {
    let damaged = |what: String| Err(BadHeader::Damaged(what));
    if bytes.len() < HEADER_BYTES {
        return damaged(format!("{} bytes are too few for a header of {HEADER_BYTES}", bytes.len()));
    }
    let bytes = &bytes[..HEADER_BYTES];
    if &bytes[..8] != MAGIC {
        return damaged("not a chunk file (wrong magic)".into());
    }
    if crc32c::crc32c(&bytes[..60]) != u32::from_le_bytes(bytes[60..64].try_into().expect("four bytes")) {
        return damaged("the header's checksum does not match".into());
    }
    let format = u16::from_le_bytes([bytes[8], bytes[9]]);
    if format > FORMAT {
        return Err(BadHeader::Newer(format));
    }
    let found = bytes[10..24].split(|b| *b == 0).next().unwrap_or_default();
    if found != kind.as_bytes() {
        return damaged(format!("holds {:?}, expected {kind:?}", String::from_utf8_lossy(found)));
    }
    let header = Header {
        lsn: u64_at(bytes, 24),
        length: u64_at(bytes, 32),
        aux: [u64_at(bytes, 40), u64_at(bytes, 48)],
    };
    if header.length.checked_add(HEADER_BYTES as u64) != Some(file_bytes) {
        return damaged(format!(
            "{file_bytes} bytes long, the header says {} + {HEADER_BYTES}",
            header.length
        ));
    }
    Ok(header)
}

/// Counts and hashes what passes through to the file.
struct Hashing<W: Write> {
    inner: W,
    hash: Sha256,
    bytes: u64,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(data)?;
        self.hash.update(&data[..n]);
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Length and SHA-256 (hex) of a file as written, for the manifest.
pub type Written = (u64, String);

/// Write a new chunk file and sync its bytes. `payload` must produce exactly `header.length` bytes.
pub fn write_file(
    path: &Path,
    kind: &str,
    header: &Header,
    payload: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<Written> {
    let file = File::options().write(true).create_new(true).open(path)?;
    let mut out = Hashing { inner: BufWriter::with_capacity(1 << 20, file), hash: Sha256::new(), bytes: 0 };
    out.write_all(&encode_header(kind, header))?;
    payload(&mut out)?;
    out.flush()?;
    if out.bytes != header.length + HEADER_BYTES as u64 {
        return Err(io::Error::other(format!(
            "{} wrote {} bytes of payload, its header says {}",
            path.display(),
            out.bytes - HEADER_BYTES as u64,
            header.length
        )));
    }
    let file = out.inner.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_data()?;
    let digest = out.hash.finalize();
    let hex = digest.iter().map(|b| format!("{b:02x}")).collect();
    Ok((out.bytes, hex))
}

/// A chunk mapped private and copy-on-write: writes stay in memory, the file never changes.
pub struct Mapped {
    pub header: Header,
    map: MmapRaw,
}

impl Mapped {
    /// Map a whole chunk file after checking its header against its length.
    pub fn open(path: &Path, kind: &str) -> PyResult<Self> {
        let file = File::open(path)?;
        let file_bytes = file.metadata()?.len();
        if file_bytes < HEADER_BYTES as u64 {
            let what = format!("{file_bytes} bytes are too few for a header of {HEADER_BYTES}");
            return Err(BadHeader::Damaged(what).named(path));
        }
        // SAFETY: checkpoint files are written once, under a name that is never reused, and nobody truncates
        // one while it is mapped; the mapping is private, so no store through it reaches the file.
        let map = unsafe { MmapOptions::new().map_copy(&file)? };
        let header = decode_header(&map[..HEADER_BYTES], kind, file_bytes).map_err(|bad| bad.named(path))?;
        Ok(Self { header, map: MmapRaw::from(map) })
    }

    /// First byte of the payload, 64-byte aligned.
    pub fn payload_ptr(&self) -> *mut u8 {
        // The header was checked, so the mapping is at least as long as it.
        self.map.as_mut_ptr().wrapping_add(HEADER_BYTES)
    }

    /// The payload as it is now; only for structures that do not write through `payload_ptr`.
    pub fn payload(&self) -> &[u8] {
        // SAFETY: the mapping covers header and payload for as long as `self` lives.
        unsafe { std::slice::from_raw_parts(self.payload_ptr(), self.header.length as usize) }
    }
}

/// Write one chunk file for a structure that lives in Python; returns (length, sha256 hex).
#[pyfunction]
fn write_chunk(py: Python<'_>, path: PathBuf, kind: &str, lsn: u64, payload: &[u8]) -> PyResult<Written> {
    if kind.len() > KIND_BYTES || !kind.is_ascii() {
        return Err(PyValueError::new_err(format!(
            "a chunk's kind is at most {KIND_BYTES} ASCII bytes, not {kind:?}"
        )));
    }
    let header = Header { lsn, length: payload.len() as u64, aux: [0, 0] };
    Ok(py.detach(|| write_file(&path, kind, &header, |out| out.write_all(payload)))?)
}

/// Check the header of a chunk file against its kind and length; returns (lsn, payload length).
#[pyfunction]
fn check_chunk(path: PathBuf, kind: &str) -> PyResult<(u64, u64)> {
    let file = File::open(&path)?;
    let file_bytes = file.metadata()?.len();
    let mut bytes = Vec::with_capacity(HEADER_BYTES);
    file.take(HEADER_BYTES as u64).read_to_end(&mut bytes)?;
    let header = decode_header(&bytes, kind, file_bytes).map_err(|bad| bad.named(&path))?;
    Ok((header.lsn, header.length))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("CHUNK_HEADER_BYTES", HEADER_BYTES)?;
    m.add_function(wrap_pyfunction!(write_chunk, m)?)?;
    m.add_function(wrap_pyfunction!(check_chunk, m)?)?;
    m.add_class::<Chunk>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(length: u64) -> Header {
        Header { lsn: 7, length, aux: [1, u64::MAX] }
    }

    #[test]
    fn a_written_file_maps_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.chunk");
        let (length, sha) = write_file(&path, "test", &header(5), |w| w.write_all(b"hello")).unwrap();
        assert_eq!(length, 69);
        assert_eq!(sha.len(), 64);
        let mapped = Mapped::open(&path, "test").unwrap();
        assert_eq!(mapped.payload(), b"hello");
        assert_eq!(mapped.header, header(5));
        assert_eq!(mapped.payload_ptr() as usize % 64, 0);
    }

    #[test]
    fn a_payload_of_another_length_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write_file(&folder.path().join("a"), "test", &header(4), |w| w.write_all(b"hello")).is_err());
    }

    proptest! {
        #[test]
        fn any_changed_header_byte_is_refused(at in 0usize..HEADER_BYTES, bit in 0u8..8) {
            let mut bytes = encode_header("test", &header(5));
            prop_assert!(decode_header(&bytes, "test", 69).is_ok());
            bytes[at] ^= 1 << bit;
            prop_assert!(decode_header(&bytes, "test", 69).is_err());
        }

        #[test]
        fn arbitrary_bytes_never_pass(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(decode_header(&bytes, "test", bytes.len() as u64).is_err());
        }
    }
}
