//! Chunks of memory that never move, and the copy-on-write that makes a checkpoint of them.
//!
//! An arena is a list of chunks of fixed size, each anonymous or mapped privately from a checkpoint file. `freeze`
//! only marks chunks; the first writer that touches a marked chunk sets a copy of it aside (`Cell::touch`), and
//! `Cell::image` hands out that copy, or makes it, for the file. Readers never notice.
//!
//! Invariants that the unsafe code here rests on:
//! - A cell's memory is set once, before `base` is published, and freed only with the arena.
//! - `bytes` is the size of that memory and is published before `base`.
//! - Memory that several threads may write at once is reached as atomics only.
//! - Between `freeze` and the first `touch`, nobody writes: every writer calls `touch` first, and `freeze` runs while
//!   no writer is between `touch` and its stores (the index holds its gate exclusively).

use crate::chunks::Mapped;
use memmap2::MmapMut;
use parking_lot::Mutex;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Entries of a block of a table.
const BLOCK: usize = 256;

type Block<T> = OnceLock<Box<[T]>>;

/// An append-only table without locks on the read side. Entries live in blocks made at first use, so that a gap costs
/// next to nothing; segment `s` lists `2^s` blocks, and neither ever moves.
pub struct Table<T> {
    segments: [OnceLock<Box<[Block<T>]>>; 33],
}

impl<T: Default> Table<T> {
    pub fn new() -> Self {
        Self { segments: [const { OnceLock::new() }; 33] }
    }

    #[inline(always)]
    fn place(index: usize) -> (usize, usize, usize) {
        let block = index / BLOCK;
        let segment = (block + 1).ilog2() as usize;
        (segment, block + 1 - (1 << segment), index % BLOCK)
    }

    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<&T> {
        let (segment, block, at) = Self::place(index);
        Some(&self.segments.get(segment)?.get()?[block].get()?[at])
    }

    pub fn get_or_create(&self, index: usize) -> &T {
        let (segment, block, at) = Self::place(index);
        let blocks =
            self.segments[segment].get_or_init(|| (0..1usize << segment).map(|_| Block::new()).collect());
        &blocks[block].get_or_init(|| (0..BLOCK).map(|_| T::default()).collect())[at]
    }

    /// Entries below `end` in blocks that exist, ascending.
    fn entries(&self, end: usize) -> impl Iterator<Item = (usize, &T)> {
        let blocks = self.segments.iter().enumerate().flat_map(|(segment, blocks)| {
            let first = (1usize << segment) - 1;
            blocks.get().into_iter().flatten().enumerate().map(move |(i, block)| (first + i, block))
        });
        let entries = blocks.flat_map(|(number, block)| {
            let entries = block.get().into_iter().flatten().enumerate();
            entries.map(move |(at, entry)| (number * BLOCK + at, entry))
        });
        entries.take_while(move |(index, _)| *index < end)
    }
}

/// Huge pages are worth asking for (and aligning to) from this size on.
const HUGE_PAGE: usize = 2 << 20;

enum Memory {
    Anonymous { map: MmapMut, offset: usize },
    File(Mapped),
}

impl Memory {
    /// Zeroed memory. `huge` asks for huge pages, which random access over many rows needs; a small index does not.
    fn anonymous(bytes: usize, huge: bool) -> io::Result<Self> {
        if !huge || bytes < HUGE_PAGE {
            return Ok(Self::Anonymous { map: MmapMut::map_anon(bytes.max(64))?, offset: 0 });
        }
        let bytes = bytes.next_multiple_of(HUGE_PAGE);
        let map = MmapMut::map_anon(bytes + HUGE_PAGE)?;
        let offset = (map.as_ptr() as usize).next_multiple_of(HUGE_PAGE) - map.as_ptr() as usize;
        #[cfg(target_os = "linux")]
        // Refused where the kernel was built without huge pages: they are a matter of speed only.
        let _ = map.advise_range(memmap2::Advice::HugePage, offset, bytes);
        Ok(Self::Anonymous { map, offset })
    }

    fn base(&mut self) -> *mut u8 {
        match self {
            Self::Anonymous { map, offset } => map.as_mut_ptr().wrapping_add(*offset),
            Self::File(mapped) => mapped.payload_ptr(),
        }
    }
}

/// What a frozen chunk is remembered as until the freeze is released.
struct Frozen {
    /// Bytes of the chunk that were in use.
    used: usize,
    lsn: u64,
    dirty: bool,
    image: Option<Arc<[u8]>>,
    written: bool,
}

#[derive(Default)]
struct Guarded {
    memory: Option<Memory>,
    /// LSN and used bytes of the last written file of this chunk.
    saved: Option<(u64, usize)>,
    frozen: Option<Frozen>,
}

/// One chunk: hot words first, the rest behind a lock.
#[derive(Default)]
pub struct Cell {
    base: AtomicPtr<u8>,
    bytes: AtomicUsize,
    /// A frozen chunk whose image is still the live memory: copy before the first write.
    frozen: AtomicBool,
    dirty: AtomicBool,
    guarded: Mutex<Guarded>,
}

/// A chunk as a frozen checkpoint lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    pub number: u32,
    pub used: u64,
    pub lsn: u64,
    pub dirty: bool,
}

impl Cell {
    #[inline(always)]
    pub fn base(&self) -> Option<*mut u8> {
        let base = self.base.load(Ordering::Acquire);
        (!base.is_null()).then_some(base)
    }

    /// Must precede every write: marks the chunk dirty and, when it is frozen, sets its old image aside.
    #[inline]
    pub fn touch(&self) {
        if !self.dirty.load(Ordering::Relaxed) {
            self.dirty.store(true, Ordering::Relaxed);
        }
        if self.frozen.load(Ordering::Acquire) {
            let mut guarded = self.guarded.lock();
            self.set_aside(&mut guarded);
        }
    }

    fn set_aside(&self, guarded: &mut Guarded) {
        if !self.frozen.load(Ordering::Relaxed) {
            return;
        }
        let base = self.base.load(Ordering::Acquire);
        if let Some(frozen) = guarded.frozen.as_mut() {
            if !frozen.written && frozen.image.is_none() {
                // SAFETY: `used` never exceeds the chunk, and nobody writes to a frozen chunk before its image
                // exists (see the invariants above).
                frozen.image = Some(unsafe { std::slice::from_raw_parts(base, frozen.used) }.into());
            }
        }
        self.frozen.store(false, Ordering::Release);
    }

    /// `length` words from `at` bytes into the chunk, as atomics; None when there is no such chunk or range.
    #[inline(always)]
    pub fn words(&self, at: usize, length: usize) -> Option<&[AtomicU32]> {
        let base = self.base()?;
        if at + length * 4 > self.bytes.load(Ordering::Relaxed) || !at.is_multiple_of(4) {
            return None;
        }
        // SAFETY: inside the chunk, aligned (chunks are 64-byte aligned), and only ever accessed as atomics.
        Some(unsafe { std::slice::from_raw_parts(base.add(at).cast(), length) })
    }

    /// The byte at `at`, as an atomic.
    #[inline(always)]
    pub fn byte(&self, at: usize) -> Option<&AtomicU8> {
        let base = self.base()?;
        // SAFETY: inside the chunk, and only ever accessed as atomics.
        (at < self.bytes.load(Ordering::Relaxed)).then(|| unsafe { &*base.add(at).cast() })
    }
}

/// A list of chunks under one kind of file.
pub struct Arena {
    /// Kind in the file header.
    pub kind: &'static str,
    /// First part of the file names.
    pub prefix: &'static str,
    cells: Table<Cell>,
    count: AtomicUsize,
}

impl Arena {
    pub fn new(kind: &'static str, prefix: &'static str) -> Self {
        Self { kind, prefix, cells: Table::new(), count: AtomicUsize::new(0) }
    }

    #[inline(always)]
    pub fn cell(&self, number: usize) -> Option<&Cell> {
        self.cells.get(number)
    }

    /// One more than the highest chunk there is.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Every chunk that exists, in ascending order.
    pub fn chunks(&self) -> impl Iterator<Item = (usize, &Cell)> {
        self.cells.entries(self.count()).filter(|(_, cell)| cell.base().is_some())
    }

    pub fn file_name(&self, number: usize) -> String {
        format!("{}-{number:05}.chunk", self.prefix)
    }

    /// Make sure that chunk `number` exists, with `bytes` of zeroed memory when it is new.
    pub fn ensure(&self, number: usize, bytes: usize) -> io::Result<()> {
        let cell = self.cells.get_or_create(number);
        if cell.base().is_some() {
            return Ok(());
        }
        let mut guarded = cell.guarded.lock();
        if cell.base().is_none() {
            cell.dirty.store(true, Ordering::Relaxed);
            self.install(number, cell, &mut guarded, Memory::anonymous(bytes, number > 0)?, bytes);
        }
        Ok(())
    }

    fn install(&self, number: usize, cell: &Cell, guarded: &mut Guarded, mut memory: Memory, bytes: usize) {
        let base = memory.base();
        guarded.memory = Some(memory);
        cell.bytes.store(bytes, Ordering::Relaxed);
        cell.base.store(base, Ordering::Release);
        self.count.fetch_max(number + 1, Ordering::AcqRel);
    }

    /// Take a chunk from a checkpoint: mapped when its file is whole, copied when the chunk was not yet full (so that
    /// it can grow in place).
    pub fn adopt(&self, number: usize, bytes: usize, mapped: Mapped) -> io::Result<()> {
        let cell = self.cells.get_or_create(number);
        let (lsn, used) = (mapped.header.lsn, mapped.header.length as usize);
        let mut guarded = cell.guarded.lock();
        let memory = if used == bytes && bytes > 0 {
            Memory::File(mapped)
        } else {
            let mut memory = Memory::anonymous(bytes, number > 0)?;
            // SAFETY: the caller checked that `used` is at most `bytes`, the size of the new memory.
            unsafe { memory.base().copy_from_nonoverlapping(mapped.payload().as_ptr(), used.min(bytes)) };
            memory
        };
        guarded.saved = Some((lsn, used));
        self.install(number, cell, &mut guarded, memory, bytes);
        Ok(())
    }

    /// Mark every chunk frozen at `lsn`; `used` says how many bytes of a chunk are in use.
    pub fn freeze(&self, lsn: u64, used: impl Fn(usize) -> usize) -> Vec<Listed> {
        self.chunks()
            .map(|(number, cell)| {
                let mut guarded = cell.guarded.lock();
                let dirty = cell.dirty.swap(false, Ordering::Relaxed) || guarded.saved.is_none();
                let (lsn, used) = match guarded.saved {
                    Some(saved) if !dirty => saved,
                    _ => (lsn, used(number).min(cell.bytes.load(Ordering::Relaxed))),
                };
                guarded.frozen = Some(Frozen { used, lsn, dirty, image: None, written: false });
                cell.frozen.store(true, Ordering::Release);
                Listed { number: number as u32, used: used as u64, lsn, dirty }
            })
            .collect()
    }

    /// The frozen bytes of a chunk and the LSN they are exact at; an error in words when there are none (any more).
    pub fn image(&self, number: usize) -> Result<(Arc<[u8]>, u64), String> {
        let name = self.file_name(number);
        let cell = self.cell(number).ok_or_else(|| format!("{name} is no chunk of this freeze"))?;
        let mut guarded = cell.guarded.lock();
        writable(&guarded, &name)?;
        cell.set_aside(&mut guarded);
        let frozen = guarded.frozen.as_ref().expect("checked above");
        Ok((frozen.image.clone().expect("set aside above"), frozen.lsn))
    }

    /// The file of a chunk was written: its image is needed no longer.
    pub fn written(&self, number: usize) {
        let Some(cell) = self.cell(number) else { return };
        if let Some(frozen) = cell.guarded.lock().frozen.as_mut() {
            frozen.written = true;
            frozen.image = None;
        }
    }

    /// End the freeze of every chunk. When the checkpoint was not `written`, what was dirty is dirty again.
    pub fn release(&self, written: bool) {
        for (_, cell) in self.chunks() {
            let mut guarded = cell.guarded.lock();
            cell.frozen.store(false, Ordering::Release);
            if let Some(frozen) = guarded.frozen.take() {
                if written {
                    guarded.saved = Some((frozen.lsn, frozen.used));
                } else if frozen.dirty {
                    cell.dirty.store(true, Ordering::Relaxed);
                }
            }
        }
    }

    /// Bytes of address space the chunks take, and how many of these are mapped from files.
    pub fn bytes(&self) -> (usize, usize) {
        self.chunks().fold((0, 0), |(all, mapped), (_, cell)| {
            let bytes = cell.bytes.load(Ordering::Relaxed);
            let file = matches!(cell.guarded.lock().memory, Some(Memory::File(_)));
            (all + bytes, mapped + if file { bytes } else { 0 })
        })
    }
}

fn writable(guarded: &Guarded, name: &str) -> Result<(), String> {
    match &guarded.frozen {
        None => Err(format!("{name} is no chunk of this freeze")),
        Some(frozen) if frozen.written => Err(format!("{name} was already written in this freeze")),
        Some(_) => Ok(()),
    }
}
