//! Postings as they lie in a file: written once, searched where they are mapped.
//!
//! The payload of a chunk file is a table of sections, each with its length and checksum, and then the sections:
//! the documents by slot with the terms each holds, the terms in order with a hash table over them, and the postings in
//! blocks. A block is bit-packed gaps of slots and codes of frequencies; before the blocks of a term stands one entry
//! for each with its last slot and its bound, and one that bounds them all if they are several. Everything but the postings and the documents' terms is checked when the
//! file is opened; those two are checked as they are read, and whole by `validate`.

use super::memory::BLOCK;
use super::packing::{unpack, width_bytes};
use super::scoring::Best;
use crate::chunks::Mapped;
use std::cmp::Ordering;

pub const KIND: &str = "text-segment";
pub const SECTIONS: usize = 10;
pub const TABLE_BYTES: usize = 32 + SECTIONS * 24;
pub const BLOCK_ENTRY: usize = 32;
/// Bytes behind the last posting, so that eight can be read at once anywhere.
pub const SLACK: usize = 8;

/// Sections in their order.
#[derive(Clone, Copy, Debug)]
pub enum Section {
    Slots,
    Lengths,
    TermsOfEnds,
    TermsOf,
    NameEnds,
    Names,
    Hash,
    Lists,
    Frequencies,
    Postings,
}
use Section::*;

const EAGER: [Section; 8] = [Slots, Lengths, TermsOfEnds, NameEnds, Names, Hash, Lists, Frequencies];

pub struct Segment {
    mapped: Mapped,
    pub documents: usize,
    pub terms: usize,
    pub fields: usize,
    pub postings: u64,
    at: [(usize, usize); SECTIONS],
    checksums: [u32; SECTIONS],
}

/// Where the postings of a term are.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub count: u32,
    at: u64,
}

pub type Checked<T> = Result<T, String>;

impl Segment {
    pub fn open(mapped: Mapped) -> Checked<Self> {
        let mut out = Self {
            mapped,
            documents: 0,
            terms: 0,
            fields: 0,
            postings: 0,
            at: [(0, 0); SECTIONS],
            checksums: [0; SECTIONS],
        };
        let payload = out.payload();
        let table = payload.get(..TABLE_BYTES).ok_or("too short for its table of sections")?;
        if crc32c::crc32c(&table[..28]) ^ crc32c::crc32c(&table[32..]) != u32_at(table, 28) {
            return Err("the checksum of the table of sections does not match".into());
        }
        let (documents, terms, fields) = (u32_at(table, 0), u32_at(table, 4), u32_at(table, 8));
        let postings = u64_at(table, 16);
        let mut at = [(0, 0); SECTIONS];
        let mut checksums = [0; SECTIONS];
        for section in 0..SECTIONS {
            let entry = &table[32 + section * 24..];
            let (start, length) = (u64_at(entry, 0) as usize, u64_at(entry, 8) as usize);
            if start.checked_add(length).is_none_or(|end| end > payload.len()) {
                return Err(format!("section {section} reaches beyond the file"));
            }
            at[section] = (start, length);
            checksums[section] = u32_at(entry, 16);
        }
        out.documents = documents as usize;
        out.terms = terms as usize;
        (out.fields, out.postings, out.at, out.checksums) = (fields as usize, postings, at, checksums);
        for section in EAGER {
            out.check(section)?;
        }
        out.check_shape()?;
        Ok(out)
    }

    /// Whether a section is what was written.
    pub fn check(&self, section: Section) -> Checked<()> {
        match crc32c::crc32c(self.section(section)) == self.checksums[section as usize] {
            true => Ok(()),
            false => Err(format!("the checksum of section {section:?} does not match")),
        }
    }

    fn check_shape(&self) -> Checked<()> {
        let expect = |section: Section, count: usize, each: usize| {
            let length = self.section(section).len();
            match count.checked_mul(each) == Some(length) {
                true => Ok(()),
                false => Err(format!("section {section:?} has {length} bytes, not {count} times {each}")),
            }
        };
        expect(Slots, self.documents, 4)?;
        expect(Lengths, self.documents.saturating_mul(self.fields), 4)?;
        expect(TermsOfEnds, self.documents, 8)?;
        expect(NameEnds, self.terms, 4)?;
        expect(Lists, self.terms, 16)?;
        let buckets = self.section(Hash).len() / 4;
        if !buckets.is_power_of_two() || buckets <= self.terms || !self.section(Hash).len().is_multiple_of(4)
        {
            return Err(format!("a hash table of {buckets} for {} terms", self.terms));
        }
        if self.section(Postings).len() < SLACK {
            return Err("the postings lack their end".into());
        }
        if (1..self.documents).any(|at| self.slot(at - 1) >= self.slot(at)) {
            return Err("documents are out of order".into());
        }
        Ok(())
    }

    pub fn payload(&self) -> &[u8] {
        self.mapped.payload()
    }

    pub fn section(&self, section: Section) -> &[u8] {
        let (start, length) = self.at[section as usize];
        &self.payload()[start..start + length]
    }

    pub fn slot(&self, document: usize) -> u32 {
        u32_at(self.section(Slots), document * 4)
    }

    /// The place of a slot among the documents.
    pub fn find_slot(&self, slot: u32) -> Option<usize> {
        let slots = self.section(Slots);
        let (mut low, mut high) = (0, self.documents);
        while low < high {
            let middle = (low + high) / 2;
            match u32_at(slots, middle * 4).cmp(&slot) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Some(middle),
            }
        }
        None
    }

    pub fn lengths(&self, document: usize) -> impl Iterator<Item = u32> + '_ {
        let lengths = &self.section(Lengths)[document * self.fields * 4..][..self.fields * 4];
        lengths.chunks_exact(4).map(|bytes| u32_at(bytes, 0))
    }

    /// The terms that a document holds.
    pub fn terms_of(&self, document: usize) -> Checked<Vec<u32>> {
        let end = |at: usize| u64_at(self.section(TermsOfEnds), at * 8) as usize;
        let start = if document == 0 { 0 } else { end(document - 1) };
        let bytes =
            self.section(TermsOf).get(start..end(document)).ok_or("the terms of a document are misplaced")?;
        let mut out = Vec::new();
        let (mut value, mut shift, mut last) = (0u64, 0, 0u64);
        for byte in bytes {
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                last += value;
                if last > self.terms as u64 || value == 0 {
                    return Err("a document holds a term that does not exist".into());
                }
                out.push((last - 1) as u32);
                (value, shift) = (0, 0);
            } else if shift > 28 {
                return Err("the terms of a document cannot be read".into());
            }
        }
        Ok(out)
    }

    pub fn name(&self, term: usize) -> Checked<&str> {
        let ends = self.section(NameEnds);
        let start = if term == 0 { 0 } else { u32_at(ends, term * 4 - 4) as usize };
        let bytes = self.section(Names).get(start..u32_at(ends, term * 4) as usize);
        bytes
            .and_then(|bytes| std::str::from_utf8(bytes).ok())
            .ok_or_else(|| format!("term {term} has no name"))
    }

    pub fn find(&self, term: &str) -> Checked<Option<u32>> {
        let table = self.section(Hash);
        let mask = table.len() / 4 - 1;
        let mut at = hash(term) as usize & mask;
        // The table is checked to be larger than the number of terms, so a gap ends every search.
        loop {
            match u32_at(table, at * 4) {
                0 => return Ok(None),
                id if id as usize > self.terms => {
                    return Err("the hash table names a term that is not there".into())
                }
                id if self.name(id as usize - 1)? == term => return Ok(Some(id - 1)),
                _ => at = (at + 1) & mask,
            }
        }
    }

    pub fn place(&self, term: u32) -> Place {
        let entry = &self.section(Lists)[term as usize * 16..];
        Place { at: u64_at(entry, 0), count: u32_at(entry, 8) }
    }

    pub fn blocks(&self, place: Place) -> usize {
        if place.count == 1 {
            return 1;
        }
        (place.count as usize).div_ceil(BLOCK)
    }

    /// What bounds every posting of a term. A term of one document has no such entry: only its weight bounds it.
    pub fn best(&self, place: Place) -> Checked<Best> {
        match place.count {
            1 => Ok(Best([(0.0, 0.0); 3])),
            _ => self.block_best(place, all_blocks_entry(self.blocks(place))),
        }
    }

    /// What bounds the postings of a block of a term of several documents.
    pub fn block_best(&self, place: Place, block: usize) -> Checked<Best> {
        let entry = self.entry(place, block)?;
        let float = |at: usize| f32::from_bits(u32_at(entry, at));
        Ok(Best([(float(8), float(12)), (float(16), float(20)), (float(24), float(28))]))
    }

    pub fn last_slot(&self, place: Place, block: usize) -> Checked<u32> {
        match place.count {
            1 => Ok(place.at as u32),
            _ => Ok(u32_at(self.entry(place, block)?, 0)),
        }
    }

    fn entry(&self, place: Place, block: usize) -> Checked<&[u8]> {
        let start = place.at as usize + block * BLOCK_ENTRY;
        self.section(Postings)
            .get(start..start + BLOCK_ENTRY)
            .ok_or_else(|| "a block is misplaced".to_owned())
    }

    /// Decode a block into slots and 1 / tf; returns how many there are.
    pub fn decode(
        &self,
        place: Place,
        block: usize,
        slots: &mut [u32; BLOCK],
        inverses: &mut [f32; BLOCK],
    ) -> Checked<usize> {
        let frequencies = self.section(Frequencies);
        let inverse = |code: u32| match frequencies.get(code as usize * 4..code as usize * 4 + 4) {
            Some(bytes) => Ok(f32::from_bits(u32_at(bytes, 0))),
            None => Err("a posting has an unknown frequency".to_owned()),
        };
        if place.count == 1 {
            slots[0] = place.at as u32;
            inverses[0] = inverse((place.at >> 32) as u32)?;
            return Ok(1);
        }
        let entry = self.entry(place, block)?;
        let count = BLOCK.min(place.count as usize - block * BLOCK);
        let first = if block == 0 { 0 } else { u64::from(self.last_slot(place, block - 1)?) + 1 };
        let data = self.section(Postings).get(place.at as usize + u32_at(entry, 4) as usize..);
        let (&[gap_width, code_width], rest) =
            data.and_then(|data| data.split_first_chunk()).ok_or("a block is misplaced")?;
        let gap_bytes = width_bytes(count, gap_width);
        if gap_width > 32
            || code_width > 32
            || gap_bytes + width_bytes(count, code_width) + SLACK > rest.len()
        {
            return Err("a block reaches beyond the postings".into());
        }
        let mut codes = [0; BLOCK];
        unpack(rest, gap_width, &mut slots[..count]);
        unpack(&rest[gap_bytes..], code_width, &mut codes[..count]);
        let mut next = first;
        for slot in &mut slots[..count] {
            let value = next + u64::from(*slot);
            *slot = value as u32;
            next = value + 1;
        }
        if next != u64::from(u32_at(entry, 0)) + 1 {
            return Err("a block does not end where it says".into());
        }
        for (out, code) in inverses.iter_mut().zip(&codes[..count]) {
            *out = inverse(*code)?;
        }
        Ok(count)
    }
}

/// Which entry bounds all blocks of a term: one behind theirs, or the only one.
pub fn all_blocks_entry(blocks: usize) -> usize {
    if blocks == 1 {
        0
    } else {
        blocks
    }
}

/// The hash of a term, the same for ever: FNV-1a with a final mix.
pub fn hash(term: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in term.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    hash ^ hash >> 32
}

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
