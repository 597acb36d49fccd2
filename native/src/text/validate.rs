//! Walking everything an index holds and naming every contradiction.

use super::build::weighted_length;
use super::index::{Sealed, SealedPostings, Settings, State};
use super::memory::BLOCK;
use super::segment::{Checked, Section, Segment};
use std::collections::HashMap;

/// What does not agree between the sets of postings and the counts over all of them.
pub fn check_counts(settings: &Settings, state: &State) -> Vec<String> {
    let mut problems = Vec::new();
    let mut live = state.growing.len() as u64;
    let mut totals = vec![0u64; settings.weights.len()];
    let mut count = |lengths: &mut dyn Iterator<Item = u32>| {
        totals.iter_mut().zip(lengths).for_each(|(total, length)| *total += u64::from(length));
    };
    for (slot, lengths) in state.growing.documents() {
        if state.documents.get(slot).owner != state.number {
            problems.push(format!("slot {slot} is indexed and not counted"));
        }
        count(&mut lengths.iter().copied());
    }
    for sealed in &state.sealed {
        live += sealed.len() as u64 - sealed.dead.len();
        let owned = match &*sealed.postings {
            SealedPostings::Segment(segment) => {
                for at in (0..segment.documents).filter(|at| !sealed.dead.contains(segment.slot(*at))) {
                    count(&mut segment.lengths(at));
                }
                check_owned(state, sealed, (0..segment.documents).map(|at| segment.slot(at)))
            }
            SealedPostings::Memory(memory) => {
                let documents = memory.documents();
                for (_, lengths) in documents.iter().filter(|(slot, _)| !sealed.dead.contains(*slot)) {
                    count(&mut lengths.iter().copied());
                }
                check_owned(state, sealed, documents.iter().map(|(slot, _)| *slot))
            }
        };
        if let Err(problem) = owned {
            problems.push(format!("segment {}: {problem}", sealed.number));
        }
    }
    if live != state.live {
        problems.push(format!("{} documents are counted, {live} are there", state.live));
    }
    if totals != state.totals {
        problems
            .push(format!("the lengths of fields are counted as {:?}, they are {totals:?}", state.totals));
    }
    problems
}

fn check_owned(state: &State, sealed: &Sealed, slots: impl Iterator<Item = u32>) -> Checked<()> {
    for slot in slots {
        let owned = state.documents.get(slot).owner == sealed.number;
        if owned == sealed.dead.contains(slot) {
            return Err(format!("slot {slot} is neither live nor removed, or both"));
        }
    }
    Ok(())
}

/// The first contradiction within a segment.
pub fn check_segment(segment: &Segment, weights: &[f64]) -> Checked<()> {
    segment.check(Section::Postings)?;
    segment.check(Section::TermsOf)?;
    let mut held: HashMap<u32, u64> = HashMap::new();
    let mut lengths = HashMap::new();
    for at in 0..segment.documents {
        *held.entry(segment.slot(at)).or_default() += segment.terms_of(at)?.len() as u64;
        lengths.insert(segment.slot(at), weighted_length(segment.lengths(at), weights));
    }
    let mut postings = 0;
    for term in 0..segment.terms {
        let name = segment.name(term)?;
        if term > 0 && segment.name(term - 1)? >= name {
            return Err(format!("term {name:?} is out of order"));
        }
        if segment.find(name)? != Some(term as u32) {
            return Err(format!("term {name:?} is not found by its name"));
        }
        let place = segment.place(term as u32);
        let best = segment.best(place)?;
        let (mut slots, mut inverses) = ([0; BLOCK], [0.0; BLOCK]);
        for block in 0..segment.blocks(place) {
            let count = segment.decode(place, block, &mut slots, &mut inverses)?;
            let bound = if place.count == 1 { best } else { segment.block_best(place, block)? };
            for (slot, inverse) in slots[..count].iter().zip(&inverses) {
                let of =
                    held.get_mut(slot).ok_or_else(|| format!("term {name:?} is in no document {slot}"))?;
                *of = of
                    .checked_sub(1)
                    .ok_or_else(|| format!("slot {slot} holds fewer terms than postings"))?;
                let length = lengths[slot];
                if !bound.covers(*inverse, length) || !best.covers(*inverse, length) {
                    return Err(format!("term {name:?} is not bounded in slot {slot}"));
                }
                postings += 1;
            }
        }
    }
    if postings != segment.postings || held.values().any(|left| *left != 0) {
        return Err("postings and documents do not agree".into());
    }
    Ok(())
}
