//! Postings as they are built up: in memory, changed in place, searchable at once.

use super::scoring::Best;
use std::collections::HashMap;
use std::sync::Arc;

/// Postings per block: what is decoded and bounded as one.
pub const BLOCK: usize = 128;

/// One term of a document with its weighted frequency.
pub type Occurrence<'a> = (&'a str, f32);

#[derive(Default)]
pub struct Memory {
    dictionary: HashMap<Arc<str>, u32>,
    terms: Vec<(Arc<str>, List)>,
    /// Places in `terms` whose term no document holds any more.
    unused: Vec<u32>,
    documents: HashMap<u32, Document>,
    pub postings: u64,
}

pub struct Document {
    pub terms: Box<[u32]>,
    /// Number of terms in each field.
    pub lengths: Box<[u32]>,
}

/// The documents that hold a term, in blocks by slot.
#[derive(Default)]
pub struct List {
    pub blocks: Vec<Block>,
    pub count: u32,
    pub best: Best,
}

#[derive(Default)]
pub struct Block {
    /// (slot, 1 / tf)
    pub entries: Vec<(u32, f32)>,
    /// Bounds every entry; after a removal perhaps more loosely than it could.
    pub best: Best,
}

impl Memory {
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// Add a document that is not there; `length` is its weighted length.
    pub fn add(&mut self, slot: u32, occurrences: &[Occurrence<'_>], lengths: Box<[u32]>, length: f32) {
        let mut terms = Vec::with_capacity(occurrences.len());
        for (term, tf) in occurrences {
            let id = self.intern(term);
            self.terms[id as usize].1.insert(slot, 1.0 / tf, length);
            terms.push(id);
        }
        self.postings += terms.len() as u64;
        self.documents.insert(slot, Document { terms: terms.into(), lengths });
    }

    fn intern(&mut self, term: &str) -> u32 {
        if let Some(id) = self.dictionary.get(term) {
            return *id;
        }
        let name: Arc<str> = term.into();
        let id = match self.unused.pop() {
            Some(id) => {
                self.terms[id as usize] = (name.clone(), List::default());
                id
            }
            None => {
                self.terms.push((name.clone(), List::default()));
                (self.terms.len() - 1) as u32
            }
        };
        self.dictionary.insert(name, id);
        id
    }

    /// Take a document out; returns it if it was there.
    pub fn remove(&mut self, slot: u32) -> Option<Document> {
        let document = self.documents.remove(&slot)?;
        for id in &document.terms {
            let (name, list) = &mut self.terms[*id as usize];
            list.remove(slot);
            if list.count == 0 {
                self.dictionary.remove(name);
                self.unused.push(*id);
            }
        }
        self.postings -= document.terms.len() as u64;
        Some(document)
    }

    pub fn find(&self, term: &str) -> Option<u32> {
        self.dictionary.get(term).copied()
    }

    pub fn list(&self, term: u32) -> &List {
        &self.terms[term as usize].1
    }

    pub fn document(&self, slot: u32) -> Option<&Document> {
        self.documents.get(&slot)
    }

    /// Slots and field lengths, by slot.
    pub fn documents(&self) -> Vec<(u32, &[u32])> {
        let mut out: Vec<_> = self.documents.iter().map(|(slot, d)| (*slot, &*d.lengths)).collect();
        out.sort_unstable_by_key(|(slot, _)| *slot);
        out
    }

    /// Terms that documents hold, in order.
    pub fn terms(&self) -> Vec<(&str, u32)> {
        let mut out: Vec<_> = self.dictionary.iter().map(|(name, id)| (&**name, *id)).collect();
        out.sort_unstable();
        out
    }
}

impl List {
    fn insert(&mut self, slot: u32, inverse_tf: f32, length: f32) {
        self.count += 1;
        self.best.add(inverse_tf, length);
        let block = self.block_for(slot);
        let place = match block.entries.last() {
            Some((last, _)) if *last > slot => block.entries.partition_point(|entry| entry.0 < slot),
            _ => block.entries.len(),
        };
        block.entries.insert(place, (slot, inverse_tf));
        block.best.add(inverse_tf, length);
    }

    /// The block that a slot belongs into, with room for it.
    fn block_for(&mut self, slot: u32) -> &mut Block {
        let count = self.blocks.len();
        // Slots mostly come in ascending order, and then only the last block is looked at.
        if self.blocks.last().is_none_or(|block| block.last() < slot) {
            if self.blocks.last().is_none_or(|block| block.entries.len() == BLOCK) {
                let entries = if count == 0 { Vec::new() } else { Vec::with_capacity(BLOCK) };
                self.blocks.push(Block { entries, best: Best::default() });
            }
            return self.blocks.last_mut().expect("there is one now");
        }
        let mut at = self.blocks.partition_point(|block| block.last() < slot);
        if self.blocks[at].entries.len() == BLOCK {
            let half = self.blocks[at].split();
            self.blocks.insert(at + 1, half);
            at += usize::from(self.blocks[at].last() < slot);
        }
        &mut self.blocks[at]
    }

    fn remove(&mut self, slot: u32) {
        let at = self.blocks.partition_point(|block| block.last() < slot);
        let Some(block) = self.blocks.get_mut(at) else { return };
        if let Ok(place) = block.entries.binary_search_by_key(&slot, |entry| entry.0) {
            block.entries.remove(place);
            self.count -= 1;
            if block.entries.is_empty() {
                self.blocks.remove(at);
            }
        }
    }
}

impl Block {
    pub fn last(&self) -> u32 {
        self.entries.last().expect("a block in a list has entries").0
    }

    /// The upper half; both keep the bounds of the whole.
    fn split(&mut self) -> Self {
        Self { entries: self.entries.split_off(BLOCK / 2), best: self.best }
    }
}
