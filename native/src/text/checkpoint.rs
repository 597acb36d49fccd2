//! Freezing an index, writing it, and taking the written files into use.
//!
//! A freeze seals the postings in memory and decides which sets are written anew: those in memory, those with many
//! dead documents, those from which something was erased, and with them small segments, so that segments stay few.
//! Until `release` the old sets answer; then the new files take their place, and what was removed meanwhile is removed
//! from them too.

use super::build::{build, weighted_length, Postings, Source};
use super::documents::Entry;
use super::index::{Sealed, SealedPostings, Settings, State};
use super::meta;
use super::segment::{Checked, Segment, KIND};
use crate::chunks::{write_file, Chunk, Header, Mapped, Written};
use crate::errors::corrupt;
use crate::log::disk::os_error;
use parking_lot::Mutex;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::Path;

/// Documents that a merge makes a segment of at most.
const LARGEST_MERGE: u64 = 1 << 18;

/// An index at one LSN, to be written while it changes.
pub struct Frozen {
    lsn: u64,
    applied_lsn: u64,
    pub meta: Vec<u8>,
    meta_changed: bool,
    kept: Vec<Sealed>,
    rewrites: Vec<Rewrite>,
}

/// Sets of postings that become one new segment, or none when nothing in them lives.
struct Rewrite {
    number: u32,
    live: u64,
    sources: Vec<Sealed>,
    written: Mutex<Option<Segment>>,
}

pub fn segment_name(number: u32) -> String {
    format!("segment-{number:08}")
}

fn live(sealed: &Sealed) -> u64 {
    sealed.len() as u64 - sealed.dead.len()
}

impl Frozen {
    /// Freeze `state`; `last` is the description of the last written checkpoint.
    pub fn new(state: &mut State, settings: &Settings, lsn: u64, last: &[u8]) -> Self {
        if !state.growing.is_empty() {
            let memory = std::mem::take(&mut state.growing);
            state.sealed.push(Sealed::new(state.number, SealedPostings::Memory(memory)));
            state.number += 1;
        }
        let (kept, groups) = plan(&state.sealed);
        let mut rewrites = Vec::new();
        for sources in groups {
            let live = sources.iter().map(live).sum();
            rewrites.push(Rewrite { number: state.number, live, sources, written: Mutex::new(None) });
            // The growing set keeps the greatest number.
            state.number += 1;
        }
        let old = kept.iter().map(|sealed| (sealed.number, sealed.len() as u32, sealed.dead.clone()));
        let new = rewrites.iter().filter(|rewrite| rewrite.live > 0);
        let new = new.map(|rewrite| (rewrite.number, rewrite.live as u32, Default::default()));
        let segments: Vec<_> = old.chain(new).collect();
        let meta = meta::encode(settings, state.number, &segments);
        let meta_changed = meta != last;
        Self { lsn, applied_lsn: state.applied_lsn, meta, meta_changed, kept, rewrites }
    }

    pub fn chunks(&self) -> Vec<Chunk> {
        let chunk = |name: String, dirty: bool| Chunk { name, dirty };
        let mut out = vec![chunk(meta::NAME.into(), self.meta_changed)];
        out.extend(self.kept.iter().map(|sealed| chunk(segment_name(sealed.number), false)));
        let new = self.rewrites.iter().filter(|rewrite| rewrite.live > 0);
        out.extend(new.map(|rewrite| chunk(segment_name(rewrite.number), true)));
        out
    }

    pub fn write(&self, name: &str, path: &Path, settings: &Settings) -> PyResult<Written> {
        if name == meta::NAME {
            return self.write_payload(path, meta::KIND, &self.meta);
        }
        if let Some(sealed) = self.kept.iter().find(|sealed| segment_name(sealed.number) == name) {
            let SealedPostings::Segment(segment) = &*sealed.postings else {
                unreachable!("memory is rewritten")
            };
            return self.write_payload(path, KIND, segment.payload());
        }
        let rewrite =
            self.rewrites.iter().find(|rewrite| segment_name(rewrite.number) == name && rewrite.live > 0);
        let Some(rewrite) = rewrite else {
            return Err(PyValueError::new_err(format!("no chunk {name:?} was frozen")));
        };
        let payload = rewrite.build(&settings.weights).map_err(|e| corrupt(format!("{name}: {e}")))?;
        let written = self.write_payload(path, KIND, &payload)?;
        drop(payload);
        let named = |e: String| corrupt(format!("{}: {e}", path.display()));
        *rewrite.written.lock() = Some(Segment::open(Mapped::open(path, KIND)?).map_err(named)?);
        Ok(written)
    }

    fn write_payload(&self, path: &Path, kind: &str, payload: &[u8]) -> PyResult<Written> {
        let header = Header { lsn: self.lsn, length: payload.len() as u64, aux: [self.applied_lsn, 0] };
        write_file(path, kind, &header, |out| out.write_all(payload)).map_err(|error| os_error(&error, path))
    }

    /// The first chunk that had to be written and was not.
    pub fn unwritten(&self) -> Option<String> {
        let missing = |rewrite: &&Rewrite| rewrite.live > 0 && rewrite.written.lock().is_none();
        self.rewrites.iter().find(missing).map(|rewrite| segment_name(rewrite.number))
    }

    /// Let the written files take the place of what they were made from, which is returned: letting go of it takes
    /// longer than all else, and need not be done under the lock.
    pub fn install(&self, state: &mut State) -> Checked<Vec<Sealed>> {
        let mut replaced = Vec::new();
        for rewrite in &self.rewrites {
            let numbers: Vec<u32> = rewrite.sources.iter().map(|source| source.number).collect();
            // Something erased while the files were being written is in them still.
            let since = |now: &Sealed| {
                let then = rewrite.sources.iter().find(|source| source.number == now.number);
                now.erase && then.is_some_and(|then| then.dead.len() < now.dead.len())
            };
            let erase = state.sealed.iter().any(since);
            let written = rewrite.written.lock().take();
            if let Some(segment) = written {
                let mut sealed = Sealed::new(rewrite.number, SealedPostings::Segment(segment));
                sealed.erase = erase;
                sealed.adopt(state, |owner| numbers.contains(&owner))?;
                state.sealed.push(sealed);
            }
            let stays = |sealed: &Sealed| !numbers.contains(&sealed.number);
            let (kept, old) = std::mem::take(&mut state.sealed).into_iter().partition::<Vec<_>, _>(stays);
            state.sealed = kept;
            replaced.extend(old);
        }
        Ok(replaced)
    }
}

impl Rewrite {
    fn build(&self, weights: &[f64]) -> Checked<Vec<u8>> {
        let sources: Vec<Source<'_>> = self
            .sources
            .iter()
            .map(|sealed| Source {
                postings: match &*sealed.postings {
                    SealedPostings::Memory(memory) => Postings::Memory(memory),
                    SealedPostings::Segment(segment) => Postings::Segment(segment),
                },
                dead: &sealed.dead,
            })
            .collect();
        build(&sources, weights)
    }
}

impl Sealed {
    /// Become the owner of those documents whose owner so far `yields`; the others are dead here.
    fn adopt(&mut self, state: &mut State, yields: impl Fn(u32) -> bool) -> Checked<()> {
        let postings = std::sync::Arc::clone(&self.postings);
        let SealedPostings::Segment(segment) = &*postings else { return Ok(()) };
        for at in 0..segment.documents {
            let slot = segment.slot(at);
            let entry = state.documents.get(slot);
            if yields(entry.owner) {
                state.documents.set(slot, Entry { owner: self.number, ..entry });
            } else {
                self.bury(slot, &segment.terms_of(at)?);
            }
        }
        Ok(())
    }
}

/// Which sealed sets stay as they are, and which are written anew together.
fn plan(sealed: &[Sealed]) -> (Vec<Sealed>, Vec<Vec<Sealed>>) {
    let must = |sealed: &&Sealed| {
        let memory = matches!(&*sealed.postings, SealedPostings::Memory(_));
        memory || sealed.erase || sealed.dead.len() * 4 > sealed.len() as u64
    };
    let (rewritten, mut kept): (Vec<&Sealed>, Vec<&Sealed>) = sealed.iter().partition(must);
    let (large, mut group): (Vec<&Sealed>, Vec<&Sealed>) =
        rewritten.into_iter().partition(|sealed| live(sealed) > LARGEST_MERGE / 2);
    let mut groups: Vec<Vec<Sealed>> = large.into_iter().map(|one| vec![one.clone()]).collect();

    let mut size: u64 = group.iter().map(|sealed| live(sealed)).sum();
    if !group.is_empty() {
        // Take in what is not much larger, smallest first: each document is then rewritten a logarithm of times.
        kept.sort_by_key(|sealed| live(sealed));
        while let Some(next) = kept.first().map(|sealed| live(sealed)) {
            if next > 2 * size || size + next > LARGEST_MERGE {
                break;
            }
            size += next;
            group.push(kept.remove(0));
        }
        groups.push(group.into_iter().cloned().collect());
    }
    let mut kept: Vec<Sealed> = kept.into_iter().cloned().collect();
    kept.sort_by_key(|sealed| sealed.number);
    (kept, groups)
}

/// Read what the chunks of a written freeze hold: the settings, the state, and the description they came with.
pub fn open(folder: &Path) -> PyResult<(Settings, State, Vec<u8>)> {
    let mapped = map(folder, meta::NAME, meta::KIND)?;
    let at = |name: &str, e: String| corrupt(format!("{}: {e}", folder.join(name).display()));
    let described = meta::decode(mapped.payload()).map_err(|e| at(meta::NAME, e))?;
    let settings = described.settings;
    let mut state = State::new(settings.weights.len());
    state.number = described.next_number;
    state.applied_lsn = mapped.header.aux[0];
    for (number, documents, dead) in described.segments {
        let name = segment_name(number);
        let segment = Segment::open(map(folder, &name, KIND)?).map_err(|e| at(&name, e))?;
        if segment.documents != documents as usize || segment.fields != settings.weights.len() {
            let found = (segment.documents, segment.fields);
            return Err(at(&name, format!("holds {found:?} documents and fields, not what the index says")));
        }
        let mut sealed = Sealed::new(number, SealedPostings::Segment(segment));
        own(&mut state, &mut sealed, dead, &settings.weights).map_err(|e| at(&name, e))?;
        state.sealed.push(sealed);
    }
    Ok((settings, state, mapped.payload().to_vec()))
}

fn own(state: &mut State, sealed: &mut Sealed, dead: roaring::RoaringBitmap, weights: &[f64]) -> Checked<()> {
    let postings = std::sync::Arc::clone(&sealed.postings);
    let SealedPostings::Segment(segment) = &*postings else { return Ok(()) };
    for at in 0..segment.documents {
        let slot = segment.slot(at);
        if dead.contains(slot) {
            sealed.bury(slot, &segment.terms_of(at)?);
            continue;
        }
        if state.contains(slot) {
            return Err(format!("slot {slot} is in another segment too"));
        }
        let length = weighted_length(segment.lengths(at), weights);
        state.documents.set(slot, Entry { length, owner: sealed.number });
        state.live += 1;
        for (total, length) in state.totals.iter_mut().zip(segment.lengths(at)) {
            *total += u64::from(length);
        }
    }
    match sealed.dead.len() == dead.len() {
        true => Ok(()),
        false => Err("a removed slot is no document of it".into()),
    }
}

fn map(folder: &Path, name: &str, kind: &str) -> PyResult<Mapped> {
    let path = folder.join(name);
    if !path.exists() {
        return Err(corrupt(format!("{}: the file is missing", path.display())));
    }
    Mapped::open(&path, kind)
}
