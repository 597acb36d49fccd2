//! Writing a segment from what is in memory, or merging several into one without the dead.

use super::memory::{Memory, BLOCK};
use super::packing::{pack, width};
use super::scoring::Best;
use super::segment::*;
use roaring::RoaringBitmap;
use std::collections::HashMap;

/// Postings to be written, and the slots in them that are dead.
pub struct Source<'a> {
    pub postings: Postings<'a>,
    pub dead: &'a RoaringBitmap,
}

#[derive(Clone, Copy)]
pub enum Postings<'a> {
    Memory(&'a Memory),
    Segment(&'a Segment),
}

/// The length of a document over its weighted fields.
pub fn weighted_length(lengths: impl Iterator<Item = u32>, weights: &[f64]) -> f32 {
    lengths.zip(weights).map(|(length, weight)| f64::from(length) * weight).sum::<f64>() as f32
}

/// The payload of a segment that holds the live documents of all sources.
pub fn build(sources: &[Source<'_>], weights: &[f64]) -> Checked<Vec<u8>> {
    let mut builder = Builder::new(sources, weights);
    let mut names: Vec<(&str, usize, u32)> = Vec::new();
    for (at, source) in sources.iter().enumerate() {
        match source.postings {
            Postings::Memory(memory) => {
                names.extend(memory.terms().into_iter().map(|(name, id)| (name, at, id)))
            }
            Postings::Segment(segment) => {
                for term in 0..segment.terms {
                    names.push((segment.name(term)?, at, term as u32));
                }
            }
        }
    }
    names.sort(); // runs that are in order already: a merge
    let mut postings = Vec::new();
    for group in names.chunk_by(|one, other| one.0 == other.0) {
        postings.clear();
        for (_, source, term) in group {
            live_postings(&sources[*source], *term, &mut postings)?;
        }
        if group.len() > 1 {
            postings.sort_unstable_by_key(|(slot, _)| *slot);
        }
        if !postings.is_empty() {
            builder.term(group[0].0, &postings)?;
        }
    }
    Ok(builder.finish())
}

fn live_postings(source: &Source<'_>, term: u32, out: &mut Vec<(u32, f32)>) -> Checked<()> {
    let live = |slot: u32| !source.dead.contains(slot);
    match source.postings {
        Postings::Memory(memory) => {
            let blocks = memory.list(term).blocks.iter();
            out.extend(blocks.flat_map(|block| &block.entries).filter(|(slot, _)| live(*slot)));
        }
        Postings::Segment(segment) => {
            let place = segment.place(term);
            let (mut slots, mut inverses) = ([0; BLOCK], [0.0; BLOCK]);
            for block in 0..segment.blocks(place) {
                let count = segment.decode(place, block, &mut slots, &mut inverses)?;
                let pairs = slots[..count].iter().copied().zip(inverses[..count].iter().copied());
                out.extend(pairs.filter(|(slot, _)| live(*slot)));
            }
        }
    }
    Ok(())
}

/// A document being written: the terms it holds so far, packed.
struct Document {
    slot: u32,
    length: f32,
    last: u32,
    terms: Vec<u8>,
}

struct Builder {
    fields: usize,
    documents: Vec<Document>,
    lengths: Vec<u8>,
    name_ends: Vec<u8>,
    names: Vec<u8>,
    hashes: Vec<u64>,
    lists: Vec<u8>,
    codes: HashMap<u32, u32>,
    frequencies: Vec<u8>,
    postings: Vec<u8>,
    count: u64,
}

impl Builder {
    fn new(sources: &[Source<'_>], weights: &[f64]) -> Self {
        let mut found: Vec<(u32, Vec<u32>)> = Vec::new();
        for source in sources {
            let live = |(slot, _): &(u32, Vec<u32>)| !source.dead.contains(*slot);
            match source.postings {
                Postings::Memory(memory) => {
                    let documents = memory.documents().into_iter();
                    found.extend(documents.map(|(slot, lengths)| (slot, lengths.to_vec())).filter(live));
                }
                Postings::Segment(segment) => {
                    let documents = 0..segment.documents;
                    found.extend(
                        documents.map(|at| (segment.slot(at), segment.lengths(at).collect())).filter(live),
                    );
                }
            }
        }
        found.sort_unstable_by_key(|(slot, _)| *slot);
        let mut lengths = Vec::with_capacity(found.len() * weights.len() * 4);
        let document = |(slot, fields): &(u32, Vec<u32>)| {
            lengths.extend(fields.iter().flat_map(|length| length.to_le_bytes()));
            let length = weighted_length(fields.iter().copied(), weights);
            Document { slot: *slot, length, last: 0, terms: Vec::new() }
        };
        Self {
            fields: weights.len(),
            documents: found.iter().map(document).collect(),
            lengths,
            name_ends: Vec::new(),
            names: Vec::new(),
            hashes: Vec::new(),
            lists: Vec::new(),
            codes: HashMap::new(),
            frequencies: Vec::new(),
            postings: Vec::new(),
            count: 0,
        }
    }

    fn term(&mut self, name: &str, postings: &[(u32, f32)]) -> Checked<()> {
        let id = self.hashes.len() as u32;
        self.names.extend_from_slice(name.as_bytes());
        let end = u32::try_from(self.names.len()).map_err(|_| "the terms of one segment are over 4 GiB")?;
        self.name_ends.extend_from_slice(&end.to_le_bytes());
        self.hashes.push(hash(name));
        self.count += postings.len() as u64;

        let mut lengths = Vec::with_capacity(postings.len());
        let mut at = 0;
        for (slot, _) in postings {
            at = self.document_from(at, *slot)?;
            let document = &mut self.documents[at];
            push_varint(&mut document.terms, id + 1 - document.last);
            document.last = id + 1;
            lengths.push(document.length);
        }
        let at = match postings {
            [(slot, inverse)] => u64::from(*slot) | u64::from(self.code(*inverse)) << 32,
            _ => self.blocks(postings, &lengths)?,
        };
        self.lists.extend_from_slice(&at.to_le_bytes());
        self.lists.extend_from_slice(&(postings.len() as u32).to_le_bytes());
        self.lists.extend_from_slice(&[0; 4]);
        Ok(())
    }

    /// The document of a slot, looked for from `at` on with growing steps.
    fn document_from(&self, at: usize, slot: u32) -> Checked<usize> {
        let mut step = 1;
        while self.documents.get(at + step).is_some_and(|document| document.slot < slot) {
            step *= 2;
        }
        let end = self.documents.len().min(at + step + 1);
        let found = self.documents[at..end].binary_search_by_key(&slot, |document| document.slot);
        found.map(|found| at + found).map_err(|_| format!("a posting of slot {slot}, which is no document"))
    }

    fn code(&mut self, inverse: f32) -> u32 {
        let next = self.codes.len() as u32;
        *self.codes.entry(inverse.to_bits()).or_insert_with(|| {
            self.frequencies.extend_from_slice(&inverse.to_bits().to_le_bytes());
            next
        })
    }

    fn blocks(&mut self, postings: &[(u32, f32)], lengths: &[f32]) -> Checked<u64> {
        let start = self.postings.len();
        let blocks = postings.len().div_ceil(BLOCK);
        self.postings.resize(start + (all_blocks_entry(blocks) + 1) * BLOCK_ENTRY, 0);
        let (mut next, mut all) = (0u32, Best::default());
        for (block, (part, lengths)) in postings.chunks(BLOCK).zip(lengths.chunks(BLOCK)).enumerate() {
            let mut gaps = Vec::with_capacity(BLOCK);
            let mut codes = Vec::with_capacity(BLOCK);
            let mut best = Best::default();
            for ((slot, inverse), length) in part.iter().zip(lengths) {
                gaps.push(slot - next);
                next = slot.wrapping_add(1);
                codes.push(self.code(*inverse));
                best.add(*inverse, *length);
            }
            let offset = u32::try_from(self.postings.len() - start).map_err(|_| "a list is over 4 GiB")?;
            let (gap_width, code_width) = (width(&gaps), width(&codes));
            self.postings.extend_from_slice(&[gap_width, code_width]);
            pack(&gaps, gap_width, &mut self.postings);
            pack(&codes, code_width, &mut self.postings);

            all.merge(&best);
            self.entry(start + block * BLOCK_ENTRY, part[part.len() - 1].0, offset, &best);
        }
        if blocks > 1 {
            self.entry(start + all_blocks_entry(blocks) * BLOCK_ENTRY, 0, 0, &all);
        }
        Ok(start as u64)
    }

    fn entry(&mut self, at: usize, last: u32, offset: u32, best: &Best) {
        let entry = &mut self.postings[at..at + BLOCK_ENTRY];
        entry[..4].copy_from_slice(&last.to_le_bytes());
        entry[4..8].copy_from_slice(&offset.to_le_bytes());
        for (bytes, (inverse, length)) in entry[8..].chunks_exact_mut(8).zip(best.0) {
            bytes[..4].copy_from_slice(&inverse.to_le_bytes());
            bytes[4..].copy_from_slice(&length.to_le_bytes());
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.postings.extend_from_slice(&[0; SLACK]);
        let slots = self.documents.iter().flat_map(|document| document.slot.to_le_bytes()).collect();
        let (mut terms_of, mut ends) = (Vec::new(), Vec::with_capacity(self.documents.len() * 8));
        for document in &self.documents {
            terms_of.extend_from_slice(&document.terms);
            ends.extend_from_slice(&(terms_of.len() as u64).to_le_bytes());
        }
        let table = hash_table(&self.hashes);
        let sections: [Vec<u8>; SECTIONS] = [
            slots,
            self.lengths,
            ends,
            terms_of,
            self.name_ends,
            self.names,
            table,
            self.lists,
            self.frequencies,
            self.postings,
        ];

        let mut out = vec![0; TABLE_BYTES];
        out[..4].copy_from_slice(&(self.documents.len() as u32).to_le_bytes());
        out[4..8].copy_from_slice(&(self.hashes.len() as u32).to_le_bytes());
        out[8..12].copy_from_slice(&(self.fields as u32).to_le_bytes());
        out[16..24].copy_from_slice(&self.count.to_le_bytes());
        for (at, section) in sections.iter().enumerate() {
            out.resize(out.len().next_multiple_of(8), 0);
            let start = out.len() as u64;
            out.extend_from_slice(section);
            let entry = &mut out[32 + at * 24..][..24];
            entry[..8].copy_from_slice(&start.to_le_bytes());
            entry[8..16].copy_from_slice(&(section.len() as u64).to_le_bytes());
            entry[16..20].copy_from_slice(&crc32c::crc32c(section).to_le_bytes());
        }
        let crc = crc32c::crc32c(&out[..28]) ^ crc32c::crc32c(&out[32..TABLE_BYTES]);
        out[28..32].copy_from_slice(&crc.to_le_bytes());
        out
    }
}

/// Open addressing: the place of each term plus one, where its hash points or behind.
fn hash_table(hashes: &[u64]) -> Vec<u8> {
    let buckets = (hashes.len() * 2).next_power_of_two().max(2);
    let mut table = vec![0u32; buckets];
    for (id, hash) in hashes.iter().enumerate() {
        let mut at = *hash as usize & (buckets - 1);
        while table[at] != 0 {
            at = (at + 1) & (buckets - 1);
        }
        table[at] = id as u32 + 1;
    }
    table.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn push_varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
