//! The index in files: a head, and one file for each chunk of each arena.
//!
//! The head holds the configuration, the counts, the entry, the tail, and the list of chunks with the LSN each was
//! last written at; a chunk file whose own LSN is another one belongs to another checkpoint. All integers are
//! little-endian:
//!
//! ```text
//! dim u32 · m u32 · ef_construction u32 · metric u8 · precision u8 · layout u8 · reserved u8
//! applied lsn u64 · entry u64 · written u64 · live u64 · erased u64 · linked u64 · dead u64
//! limit u32 · heights [u64; 16]
//! number of chunks u32 · (arena u32 · number u32 · used bytes u64 · lsn u64) each
//! length of the tail u32 · slot u32 each
//! length of the centre u32 · f32 each (since layout 1)
//! crc32c u32 of everything before
//! ```
//!
//! Layout 0 had neither centre nor codes; its codes are made when it is opened.
//!
//! A chunk's payload is the part of the chunk in use, exactly as in memory.

use super::arena::{Arena, Listed};
use super::codes::Codes;
use super::index::{unpack_entry, Config, Index};
use super::links::MAX_LEVELS;
use super::states::States;
use super::{Error, Metric};
use crate::chunks::{write_file, Chunk, Header, Mapped, Written};
use pyo3::{PyErr, PyResult};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

const HEAD: &str = "head.chunk";
const HEAD_KIND: &str = "vec.head";
const METRICS: [Metric; 3] = [Metric::Cosine, Metric::L2, Metric::Dot];
/// `precision` in the head: rows of f32.
const F32: u8 = 0;
const LAYOUT: u8 = 1;

/// What the index remembers of the last checkpoint, and of the one being written.
#[derive(Default)]
pub struct Checkpoints {
    saved: Option<(u64, Arc<[u8]>)>,
    frozen: Option<Frozen>,
}

struct Frozen {
    lsn: u64,
    head: Arc<[u8]>,
}

impl Index {
    fn arenas(&self) -> Vec<&Arena> {
        let always = [&self.rows.arena, &self.states.arena, &self.links.base, &self.links.upper];
        always.into_iter().chain(self.codes.as_ref().map(|codes| &codes.arena)).collect()
    }

    /// Slots in a chunk of an arena.
    fn per_chunk(&self, arena: usize) -> usize {
        match arena {
            0 => self.rows.per_chunk(),
            1 => States::CHUNK,
            2 | 3 => self.links.per_chunk(),
            _ => self.codes.as_ref().map_or(1, Codes::per_chunk),
        }
    }

    /// Bytes of a whole chunk.
    fn chunk_bytes(&self, arena: usize, number: usize) -> usize {
        match arena {
            0 => self.rows.chunk_bytes(),
            1 => States::CHUNK,
            2 => self.links.base_bytes(),
            3 => self.links.upper_bytes(number),
            _ => self.codes.as_ref().map_or(0, Codes::chunk_bytes),
        }
    }

    /// Bytes of a chunk that slots below the limit use.
    fn chunk_used(&self, arena: usize, number: usize) -> usize {
        let per_chunk = self.per_chunk(arena);
        let slots = (self.limit() as usize).saturating_sub(number * per_chunk).min(per_chunk);
        match arena {
            0 => slots * self.rows.stride(),
            1 => slots,
            2 => self.links.base_used(slots),
            3 => self.links.upper_used(number, slots),
            _ => slots * self.codes.as_ref().map_or(0, Codes::stride),
        }
    }

    /// Mark everything as the content of a checkpoint at `lsn`; nothing is copied but the head.
    pub fn freeze(&self, lsn: u64) -> Result<Vec<Chunk>, Error> {
        let _writer = self.writer.lock();
        let _gate = self.gate.write();
        let mut checkpoints = self.checkpoints.lock();
        if checkpoints.frozen.is_some() {
            return Err(Error::State("the index is frozen already; release it first".into()));
        }
        let mut listed = Vec::new();
        for (i, arena) in self.arenas().into_iter().enumerate() {
            listed.extend(
                arena.freeze(lsn, |number| self.chunk_used(i, number)).into_iter().map(|chunk| (i, chunk)),
            );
        }
        let head: Arc<[u8]> = self.encode_head(&listed).into();
        let (lsn, dirty) = match &checkpoints.saved {
            Some((saved, bytes)) if *bytes == head => (*saved, false),
            _ => (lsn, true),
        };
        let mut chunks = vec![Chunk { name: HEAD.into(), dirty }];
        for (arena, chunk) in listed {
            let name = self.arenas()[arena].file_name(chunk.number as usize);
            chunks.push(Chunk { name, dirty: chunk.dirty });
        }
        checkpoints.frozen = Some(Frozen { lsn, head });
        Ok(chunks)
    }

    /// Write one frozen chunk to a new file.
    pub fn write_chunk(&self, name: &str, path: &Path) -> Result<Written, Error> {
        let at = |e: io::Error| Error::Io(io::Error::new(e.kind(), format!("{}: {e}", path.display())));
        if name == HEAD {
            let (lsn, head) = match &self.checkpoints.lock().frozen {
                Some(frozen) => (frozen.lsn, frozen.head.clone()),
                None => return Err(Error::Invalid(format!("{name} is no chunk of a freeze: there is none"))),
            };
            let header = Header { lsn, length: head.len() as u64, aux: [fingerprint(&self.config), 0] };
            return write_file(path, HEAD_KIND, &header, |out| out.write_all(&head)).map_err(at);
        }
        let (arena, number) = self.find_chunk(name)?;
        let (image, lsn) = arena.image(number).map_err(Error::Invalid)?;
        let aux = [fingerprint(&self.config), number as u64];
        let header = Header { lsn, length: image.len() as u64, aux };
        let written = write_file(path, arena.kind, &header, |out| out.write_all(&image)).map_err(at)?;
        arena.written(number);
        Ok(written)
    }

    fn find_chunk(&self, name: &str) -> Result<(&Arena, usize), Error> {
        let unknown = || Error::Invalid(format!("{name:?} is no chunk of this index"));
        let (prefix, number) =
            name.strip_suffix(".chunk").and_then(|n| n.split_once('-')).ok_or_else(unknown)?;
        let arena = self.arenas().into_iter().find(|a| a.prefix == prefix).ok_or_else(unknown)?;
        let number = number.parse().ok().filter(|n| arena.file_name(*n) == name).ok_or_else(unknown)?;
        Ok((arena, number))
    }

    /// End the freeze; when `written`, its files are what later freezes are compared with.
    pub fn release(&self, written: bool) -> Result<(), Error> {
        let _writer = self.writer.lock();
        let mut checkpoints = self.checkpoints.lock();
        let Some(frozen) = checkpoints.frozen.take() else {
            return Err(Error::State("the index is not frozen".into()));
        };
        for arena in self.arenas() {
            arena.release(written);
        }
        if written {
            checkpoints.saved = Some((frozen.lsn, frozen.head));
        }
        Ok(())
    }

    fn encode_head(&self, chunks: &[(usize, Listed)]) -> Vec<u8> {
        let count = |c: &AtomicUsize| c.load(Ordering::Acquire) as u64;
        let Config { dim, metric, m, ef_construction } = self.config;
        let mut out = Vec::new();
        for value in [dim, m, ef_construction] {
            out.extend((value as u32).to_le_bytes());
        }
        let metric = METRICS.iter().position(|known| *known == metric).expect("every metric is listed");
        out.extend([metric as u8, F32, LAYOUT, 0]);
        out.extend(self.applied.load(Ordering::Acquire).to_le_bytes());
        out.extend(self.packed_entry().to_le_bytes());
        for counted in self.counted() {
            out.extend(count(counted).to_le_bytes());
        }
        out.extend(self.limit().to_le_bytes());
        for height in &self.counts.heights {
            out.extend(count(height).to_le_bytes());
        }
        out.extend((chunks.len() as u32).to_le_bytes());
        for (arena, chunk) in chunks {
            out.extend((*arena as u32).to_le_bytes());
            out.extend(chunk.number.to_le_bytes());
            out.extend(chunk.used.to_le_bytes());
            out.extend(chunk.lsn.to_le_bytes());
        }
        let mut tail = Vec::new();
        self.tail.snapshot(&mut tail);
        out.extend((tail.len() as u32).to_le_bytes());
        out.extend(tail.iter().flat_map(|slot| slot.to_le_bytes()));
        let centre = self.codes.as_ref().and_then(Codes::centre).unwrap_or_default();
        out.extend((centre.len() as u32).to_le_bytes());
        out.extend(centre.iter().flat_map(|x| x.to_le_bytes()));
        out.extend(crc32c::crc32c(&out).to_le_bytes());
        out
    }

    fn counted(&self) -> [&AtomicUsize; 5] {
        let counts = &self.counts;
        [&counts.written, &counts.live, &counts.erased, &counts.linked, &counts.dead]
    }

    /// Map what `write_chunk` left in a folder.
    pub fn open(folder: &Path) -> PyResult<Arc<Self>> {
        let path = folder.join(HEAD);
        let mapped = open_file(&path, HEAD_KIND)?;
        let named = |what: String| PyErr::from(Error::Corrupt(format!("{}: {what}", path.display())));
        let head = Head::decode(mapped.payload()).map_err(named)?;
        if mapped.header.aux[0] != fingerprint(&head.config) {
            return Err(named("header and content disagree about the configuration".into()));
        }
        let index = Self::new(head.config).map_err(PyErr::from)?;
        for (arena, listed) in &head.chunks {
            index.open_chunk(folder, *arena as usize, listed).map_err(|e| match e {
                Problem::Head(what) => named(what),
                Problem::Chunk(e) => e,
            })?;
        }
        index.restore(&head).map_err(named)?;
        index.checkpoints.lock().saved = Some((mapped.header.lsn, mapped.payload().into()));
        index.request_linking();
        Ok(index)
    }

    fn open_chunk(&self, folder: &Path, arena: usize, listed: &Listed) -> Result<(), Problem> {
        let number = listed.number as usize;
        let Some(into) = self.arenas().get(arena).copied() else {
            return Err(Problem::Head(format!("lists a chunk of arena {arena}, which there is not")));
        };
        let per_chunk = self.per_chunk(arena);
        if number as u64 * per_chunk as u64 > u64::from(u32::MAX)
            || into.cell(number).is_some_and(|c| c.base().is_some())
        {
            return Err(Problem::Head(format!(
                "lists chunk {number} of arena {arena} twice or out of range"
            )));
        }
        let bytes = self.chunk_bytes(arena, number);
        let path = folder.join(into.file_name(number));
        let mapped = open_file(&path, into.kind).map_err(Problem::Chunk)?;
        let header = &mapped.header;
        let expected =
            Header { lsn: listed.lsn, length: listed.used, aux: [fingerprint(&self.config), number as u64] };
        if *header != expected || listed.used > bytes as u64 {
            return Err(Problem::Chunk(
                Error::Corrupt(format!(
                    "{}: not the chunk the head lists (it says {header:?}, expected {expected:?})",
                    path.display()
                ))
                .into(),
            ));
        }
        into.adopt(number, bytes, mapped).map_err(|e| Problem::Chunk(Error::Memory(e).into()))
    }

    fn restore(&self, head: &Head) -> Result<(), String> {
        let covered = self.states.arena.count() as u64 * States::CHUNK as u64;
        let [written, live, erased, linked, dead] = head.counts;
        let sound = u64::from(head.limit) <= covered
            && written <= u64::from(head.limit)
            && live <= written
            && erased <= written - live
            && linked <= written
            && dead <= linked
            && head.tail.len() as u64 <= written
            && head.tail.iter().all(|slot| *slot < head.limit);
        if !sound {
            return Err("the counts contradict each other".into());
        }
        let entry = unpack_entry(head.entry);
        if head.entry != 0
            && entry.is_none_or(|(slot, top)| slot >= head.limit || top != self.links.height(slot))
        {
            return Err(format!("the entry {entry:?} is no node"));
        }
        for (counter, value) in self.counted().into_iter().zip(head.counts) {
            counter.store(value as usize, Ordering::Release);
        }
        for (counter, value) in self.counts.heights.iter().zip(head.heights) {
            counter.store(value as usize, Ordering::Release);
        }
        self.counts.limit.store(head.limit, Ordering::Release);
        self.applied.store(head.applied, Ordering::Release);
        self.restore_entry(head.entry);
        self.tail.extend(&head.tail);
        if let Some(codes) = &self.codes {
            match &head.centre {
                // Decided already, be it to have none: what is decided counts for the codes there are.
                Some(centre) if linked > 0 => codes.decide_centre(|| centre.clone()),
                Some(_) => {}
                None => self.encode_all().map_err(|e| format!("no room for codes: {e}"))?,
            }
        }
        Ok(())
    }
}

/// What every file of an index says about it, so that one of another index is noticed.
fn fingerprint(config: &Config) -> u64 {
    let metric = METRICS.iter().position(|known| *known == config.metric).unwrap_or_default() as u64;
    config.dim as u64 | metric << 32 | u64::from(F32) << 40 | (config.m as u64) << 48
}

fn open_file(path: &Path, kind: &str) -> PyResult<Mapped> {
    if !path.exists() {
        return Err(Error::Corrupt(format!("{}: the file is missing", path.display())).into());
    }
    Mapped::open(path, kind)
}

/// Which file a problem is in.
enum Problem {
    Head(String),
    Chunk(PyErr),
}

/// The decoded head.
struct Head {
    config: Config,
    applied: u64,
    entry: u64,
    counts: [u64; 5],
    limit: u32,
    heights: [u64; MAX_LEVELS],
    chunks: Vec<(u32, Listed)>,
    tail: Vec<u32>,
    /// What codes were made without; None in a head that knows no codes.
    centre: Option<Box<[f32]>>,
}

impl Head {
    fn decode(bytes: &[u8]) -> Result<Self, String> {
        let (body, crc) = bytes.split_last_chunk::<4>().ok_or("too short")?;
        if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
            return Err("the checksum of the content does not match".into());
        }
        let mut input = Reader(body);
        let (dim, m, ef_construction) = (input.u32()? as usize, input.u32()? as usize, input.u32()? as usize);
        let [metric, precision, layout, _] = input.take::<4>()?;
        let metric = *METRICS.get(metric as usize).ok_or(format!("unknown metric {metric}"))?;
        if precision != F32 {
            return Err(format!("unknown precision {precision}"));
        }
        if layout > LAYOUT {
            return Err(format!("layout {layout} is newer than this program's {LAYOUT}: upgrade kektor"));
        }
        let config = Config { dim, metric, m, ef_construction };
        config.check()?;
        let (applied, entry) = (input.u64()?, input.u64()?);
        let mut counts = [0; 5];
        for count in &mut counts {
            *count = input.u64()?;
        }
        let limit = input.u32()?;
        let mut heights = [0; MAX_LEVELS];
        for height in &mut heights {
            *height = input.u64()?;
        }
        let chunks = (0..input.u32()?).map(|_| input.chunk()).collect::<Result<_, _>>()?;
        let tail = (0..input.u32()?).map(|_| input.u32()).collect::<Result<_, _>>()?;
        let centre = if layout == 0 { None } else { Some(input.centre(dim)?) };
        if !input.0.is_empty() {
            return Err(format!("{} bytes too many", input.0.len()));
        }
        Ok(Self { config, applied, entry, counts, limit, heights, chunks, tail, centre })
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or("cut short")?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, String> {
        self.take().map(u64::from_le_bytes)
    }

    fn centre(&mut self, dim: usize) -> Result<Box<[f32]>, String> {
        let length = self.u32()? as usize;
        if length != 0 && length != dim {
            return Err(format!("a centre of {length} components"));
        }
        let centre: Box<[f32]> =
            (0..length).map(|_| self.take().map(f32::from_le_bytes)).collect::<Result<_, _>>()?;
        match centre.iter().all(|x| x.is_finite()) {
            true => Ok(centre),
            false => Err("a centre that is not finite".into()),
        }
    }

    fn chunk(&mut self) -> Result<(u32, Listed), String> {
        let arena = self.u32()?;
        let (number, used, lsn) = (self.u32()?, self.u64()?, self.u64()?);
        Ok((arena, Listed { number, used, lsn, dirty: false }))
    }
}
