//! The index: sets of postings, the statistics over all of them, and the reads and writes on both.
//!
//! New documents go to postings in memory and are searchable at once; a checkpoint turns those into a segment file and
//! merges small ones (see `checkpoint`). A removed document leaves its segment with the next merge, and every statistic
//! at once.

use super::analysis::Analyzer;
use super::build::weighted_length;
use super::documents::{Documents, Entry};
use super::memory::{Document, Memory, Occurrence};
use super::scoring::{idf, Norm, Scorer};
use super::search::{search, Blocks, Cursor, Top, Wanted};
use super::segment::{Checked, Segment};
use roaring::RoaringBitmap;
use std::collections::HashMap;
use std::sync::Arc;

/// What an index is made with and keeps for life.
pub struct Settings {
    pub names: Vec<String>,
    pub weights: Vec<f64>,
    pub k1: f64,
    pub b: f64,
    pub analyzer: Analyzer,
}

/// A set of postings that no document is added to any more.
#[derive(Clone)]
pub struct Sealed {
    pub number: u32,
    pub postings: Arc<SealedPostings>,
    pub dead: RoaringBitmap,
    /// How many dead documents hold a term, where there are any.
    pub dead_holding: HashMap<u32, u32>,
    /// Rewrite it with the next checkpoint, whatever else: it holds what must not stay on the disk.
    pub erase: bool,
}

pub enum SealedPostings {
    Memory(Memory),
    Segment(Segment),
}

pub struct State {
    pub sealed: Vec<Sealed>,
    pub growing: Memory,
    /// Number of the set of postings that grows; sets that come later have greater ones.
    pub number: u32,
    pub documents: Documents,
    pub live: u64,
    /// Terms in each field over all live documents.
    pub totals: Vec<u64>,
    pub applied_lsn: u64,
}

/// A document taken apart, ready to be added.
pub struct Analyzed {
    arena: String,
    /// Distinct terms in the arena, with their weighted frequency.
    terms: Vec<(u32, u32, f32)>,
    lengths: Box<[u32]>,
}

impl Settings {
    /// Take the texts of a document apart, one for each field.
    pub fn analyze(&self, texts: &[impl AsRef<str>]) -> Analyzed {
        let mut arena = String::new();
        let mut found: Vec<(u32, u32, usize)> = Vec::new();
        let mut lengths = vec![0; texts.len()];
        for (field, text) in texts.iter().enumerate() {
            self.analyzer.terms(text.as_ref(), |term, _| {
                found.push((arena.len() as u32, (arena.len() + term.len()) as u32, field));
                arena.push_str(term);
                lengths[field] += 1;
            });
        }
        let name = |(start, end, _): &(u32, u32, usize)| &arena[*start as usize..*end as usize];
        found.sort_unstable_by(|one, other| name(one).cmp(name(other)));
        let groups = found.chunk_by(|one, other| name(one) == name(other));
        let terms = groups.map(|group| {
            let tf: f64 = group.iter().map(|(_, _, field)| self.weights[*field]).sum();
            (group[0].0, group[0].1, tf as f32)
        });
        let terms = terms.collect();
        Analyzed { terms, arena, lengths: lengths.into() }
    }
}

impl State {
    pub fn new(fields: usize) -> Self {
        Self {
            sealed: Vec::new(),
            growing: Memory::default(),
            number: 1,
            documents: Documents::default(),
            live: 0,
            totals: vec![0; fields],
            applied_lsn: 0,
        }
    }

    pub fn contains(&self, slot: u32) -> bool {
        self.documents.get(slot).owner != 0
    }

    /// Add a document under a slot that is free.
    pub fn add(&mut self, slot: u32, document: &Analyzed, weights: &[f64]) {
        let length = weighted_length(document.lengths.iter().copied(), weights);
        let name =
            |(start, end, tf): &(u32, u32, f32)| (&document.arena[*start as usize..*end as usize], *tf);
        let terms: Vec<Occurrence<'_>> = document.terms.iter().map(name).collect();
        self.growing.add(slot, &terms, document.lengths.clone(), length);
        self.documents.set(slot, Entry { length, owner: self.number });
        self.live += 1;
        for (total, length) in self.totals.iter_mut().zip(&document.lengths) {
            *total += u64::from(*length);
        }
    }

    /// Take a document out of everything that counts; false when it was not there.
    pub fn remove(&mut self, slot: u32, erase: bool) -> Checked<bool> {
        let owner = self.documents.get(slot).owner;
        if owner == 0 {
            return Ok(false);
        }
        let lengths = if owner == self.number {
            let document = self.growing.remove(slot);
            document.ok_or("a document is not in the postings that own it")?.lengths
        } else {
            let sealed = self.sealed.iter_mut().find(|sealed| sealed.number == owner);
            let sealed = sealed.ok_or("a document belongs to no postings")?;
            let Document { terms, lengths } = sealed.document(slot)?;
            sealed.bury(slot, &terms);
            sealed.erase |= erase;
            lengths
        };
        self.documents.set(slot, Entry::default());
        self.live -= 1;
        for (total, length) in self.totals.iter_mut().zip(lengths) {
            *total -= u64::from(length);
        }
        Ok(true)
    }

    /// Live documents that hold a term.
    pub fn holding(&self, term: &str) -> Checked<u64> {
        let growing = self.growing.find(term).map_or(0, |id| self.growing.list(id).count);
        let mut out = u64::from(growing);
        for sealed in &self.sealed {
            out += sealed.holding(term)?;
        }
        Ok(out)
    }

    pub fn mean_length(&self, weights: &[f64]) -> f64 {
        let total: f64 = self.totals.iter().zip(weights).map(|(total, weight)| *total as f64 * weight).sum();
        if self.live == 0 {
            0.0
        } else {
            total / self.live as f64
        }
    }

    /// The k best documents for a query, best first.
    pub fn search(
        &self,
        settings: &Settings,
        query: &str,
        k: usize,
        filter: Option<&RoaringBitmap>,
    ) -> Checked<Vec<(u32, f32)>> {
        let (terms, postings) = self.scorers(settings, query)?;
        let mut top = Top::new(k, self.live as usize);
        // A filter that is small beside the postings: asking for its documents one by one is cheaper.
        if let Some(filter) = filter.filter(|filter| filter.len() < postings / 32) {
            let slots: Vec<u32> = filter.iter().collect();
            for (slot, score) in slots.iter().zip(self.score(&terms, &slots)?) {
                if let Some(score) = score {
                    top.push(score, *slot);
                }
            }
            return Ok(top.into_sorted());
        }
        for (owner, cursors) in self.cursors(&terms)? {
            let wanted = Wanted { documents: &self.documents, owner, filter };
            search(cursors, wanted, &mut top)?;
        }
        Ok(top.into_sorted())
    }

    /// The score of each slot; None for those that hold no term of the query.
    pub fn scores(&self, settings: &Settings, query: &str, slots: &[u32]) -> Checked<Vec<Option<f64>>> {
        let (terms, _) = self.scorers(settings, query)?;
        let mut order: Vec<usize> = (0..slots.len()).collect();
        order.sort_unstable_by_key(|at| slots[*at]);
        let sorted: Vec<u32> = order.iter().map(|at| slots[*at]).collect();
        let mut out = vec![None; slots.len()];
        for (at, score) in order.into_iter().zip(self.score(&terms, &sorted)?) {
            out[at] = score;
        }
        Ok(out)
    }

    /// What each term of a query adds, and the number of postings of all of them.
    fn scorers(&self, settings: &Settings, query: &str) -> Checked<(Vec<(String, Scorer)>, u64)> {
        let mut terms = settings.analyzer.query_terms(query);
        terms.sort_unstable();
        let mut weights = Vec::new();
        let mut postings = 0;
        for group in terms.chunk_by(|one, other| one == other) {
            let holding = self.holding(&group[0])?;
            if holding > 0 {
                let weight = group.len() as f64 * idf(self.live, holding) * (settings.k1 + 1.0);
                weights.push((group[0].clone(), weight));
                postings += holding;
            }
        }
        let norm = Norm::new(settings.k1, settings.b, self.mean_length(&settings.weights));
        let total = weights.iter().map(|(_, weight)| weight).sum();
        let scorer = |(term, weight)| (term, Scorer::new(norm, weight, total));
        Ok((weights.into_iter().map(scorer).collect(), postings))
    }

    /// For each set of postings the places where the terms begin in it; the largest set first, since what it finds
    /// lets most be skipped in the others.
    fn cursors(&self, terms: &[(String, Scorer)]) -> Checked<Vec<(u32, Vec<Cursor<'_>>)>> {
        let mut out = vec![(self.growing.len(), self.number, Vec::new())];
        for (term, scorer) in terms {
            if let Some(id) = self.growing.find(term) {
                out[0].2.push(Cursor::new(Blocks::Memory(self.growing.list(id)), *scorer)?);
            }
        }
        for sealed in &self.sealed {
            let mut cursors = Vec::new();
            for (term, scorer) in terms {
                if let Some(id) = sealed.find(term)? {
                    cursors.push(Cursor::new(sealed.blocks(id), *scorer)?);
                }
            }
            out.push((sealed.len(), sealed.number, cursors));
        }
        out.retain(|(_, _, cursors)| !cursors.is_empty());
        out.sort_by_key(|(documents, _, _)| std::cmp::Reverse(*documents));
        Ok(out.into_iter().map(|(_, owner, cursors)| (owner, cursors)).collect())
    }

    /// Scores of ascending slots.
    fn score(&self, terms: &[(String, Scorer)], slots: &[u32]) -> Checked<Vec<Option<f64>>> {
        let mut out = vec![None; slots.len()];
        for (owner, cursors) in self.cursors(terms)? {
            for mut cursor in cursors {
                for (slot, score) in slots.iter().zip(&mut out) {
                    let entry = self.documents.get(*slot);
                    if entry.owner == owner {
                        if let Some(share) = cursor.share_of(*slot, entry.length)? {
                            *score = Some(score.unwrap_or(0.0) + share);
                        }
                    }
                }
            }
        }
        Ok(out)
    }

    pub fn postings(&self) -> u64 {
        self.growing.postings + self.sealed.iter().map(Sealed::postings_count).sum::<u64>()
    }
}

impl Sealed {
    pub fn new(number: u32, postings: SealedPostings) -> Self {
        let postings = Arc::new(postings);
        Self { number, postings, dead: RoaringBitmap::new(), dead_holding: HashMap::new(), erase: false }
    }

    pub fn len(&self) -> usize {
        match &*self.postings {
            SealedPostings::Memory(memory) => memory.len(),
            SealedPostings::Segment(segment) => segment.documents,
        }
    }

    pub fn postings_count(&self) -> u64 {
        match &*self.postings {
            SealedPostings::Memory(memory) => memory.postings,
            SealedPostings::Segment(segment) => segment.postings,
        }
    }

    fn find(&self, term: &str) -> Checked<Option<u32>> {
        match &*self.postings {
            SealedPostings::Memory(memory) => Ok(memory.find(term)),
            SealedPostings::Segment(segment) => segment.find(term),
        }
    }

    fn blocks(&self, term: u32) -> Blocks<'_> {
        match &*self.postings {
            SealedPostings::Memory(memory) => Blocks::Memory(memory.list(term)),
            SealedPostings::Segment(segment) => Blocks::Segment(segment, segment.place(term)),
        }
    }

    fn holding(&self, term: &str) -> Checked<u64> {
        let Some(id) = self.find(term)? else { return Ok(0) };
        let all = match self.blocks(id) {
            Blocks::Memory(list) => list.count,
            Blocks::Segment(_, place) => place.count,
        };
        Ok(u64::from(all.saturating_sub(self.dead_holding.get(&id).copied().unwrap_or(0))))
    }

    /// What a document of these postings holds.
    pub fn document(&self, slot: u32) -> Checked<Document> {
        match &*self.postings {
            SealedPostings::Memory(memory) => {
                let document =
                    memory.document(slot).ok_or("a document is not in the postings that own it")?;
                Ok(Document { terms: document.terms.clone(), lengths: document.lengths.clone() })
            }
            SealedPostings::Segment(segment) => {
                let at = segment.find_slot(slot).ok_or("a document is not in the segment that owns it")?;
                Ok(Document { terms: segment.terms_of(at)?.into(), lengths: segment.lengths(at).collect() })
            }
        }
    }

    /// Count a document of these postings as dead.
    pub fn bury(&mut self, slot: u32, terms: &[u32]) {
        if self.dead.insert(slot) {
            for term in terms {
                *self.dead_holding.entry(*term).or_insert(0) += 1;
            }
        }
    }
}
