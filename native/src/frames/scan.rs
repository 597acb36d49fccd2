//! Reading a segment back: which frames stand in it, what is damaged, and where it ends.
//!
//! A segment that was written well is a run of frames. Where the run breaks, the next sound frame with a greater
//! LSN is looked for. Whether the break is damage or the end of the log is decided by what is known to have been
//! durable: every sound frame says it of the time it was written, and a following segment says it of all before
//! its first LSN. A break at or below that is damage, and reading goes on behind it; a break above it is a write
//! that a crash cut short, and nothing behind it was ever acknowledged.

use super::layout::*;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// One thing found in a segment, in file order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    Frame { offset: usize, header: FrameHeader, payload: Range<usize> },
    Damage { offset: usize, length: usize, after_lsn: u64 },
}

/// All that a segment holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Walk {
    pub items: Vec<Item>,
    /// Offset behind the last frame that counts.
    pub end: usize,
    /// Bytes from `end` to the last one that is not zero.
    pub torn: usize,
    /// LSN of the last frame that counts; one less than the segment's first when there is none.
    pub last_lsn: u64,
    /// Whether the segment was closed in good order.
    pub sealed: bool,
}

/// Read a segment whose header is known. `next_lsn` is the first LSN of the segment that follows, if one does: all
/// before it was durable when that segment began, and what stands here at or above it was given up by a recovery.
pub fn walk(bytes: &[u8], segment: SegmentHeader, next_lsn: Option<u64>) -> Walk {
    let (runs, sealed) = sound_frames(bytes, segment, next_lsn.unwrap_or(u64::MAX));
    let claimed = runs.iter().map(|run| run.1.durable_lsn).max().unwrap_or(0);
    let durable = claimed.max(next_lsn.unwrap_or(0).saturating_sub(1));

    let mut out = Walk { end: DATA_START.min(bytes.len()), ..Walk::default() };
    out.last_lsn = segment.first_lsn.saturating_sub(1);
    damaged_preamble(bytes, segment, &mut out.items);
    let after = |out: &Walk| if out.last_lsn < segment.first_lsn { 0 } else { out.last_lsn };
    for (offset, header, payload) in runs {
        if offset > out.end {
            if durable <= out.last_lsn {
                break;
            }
            let after_lsn = after(&out);
            out.items.push(Item::Damage { offset: out.end, length: offset - out.end, after_lsn });
        }
        let padding = payload.end..(offset + frame_bytes(payload.len())).min(bytes.len());
        out.end = padding.end;
        out.last_lsn = header.lsn;
        if header.kind == SEAL {
            out.sealed = sealed;
        } else {
            out.items.push(Item::Frame { offset, header, payload });
        }
        if bytes[padding.clone()].iter().any(|byte| *byte != 0) {
            let after_lsn = header.lsn;
            out.items.push(Item::Damage { offset: padding.start, length: padding.len(), after_lsn });
        }
    }
    let used = out.end + bytes[out.end..].iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    if durable > out.last_lsn && !out.sealed {
        // The acknowledged end of the segment is missing, be it overwritten, zeroed or cut off. Behind a seal
        // nothing can be: the LSNs up to the next segment lie in one that is lost.
        let after_lsn = after(&out);
        out.items.push(Item::Damage { offset: out.end, length: used.max(bytes.len()) - out.end, after_lsn });
        out.end = bytes.len();
    } else {
        out.torn = used - out.end;
    }
    out
}

type Sound = (usize, FrameHeader, Range<usize>);

/// Every sound frame in order of LSN, up to the seal if there is one.
fn sound_frames(bytes: &[u8], segment: SegmentHeader, below: u64) -> (Vec<Sound>, bool) {
    let key = Key::new(segment.salt);
    let mut runs = Vec::new();
    let mut last = segment.first_lsn.saturating_sub(1);
    let mut at = DATA_START;
    while at + FRAME_BYTES <= bytes.len() {
        let found = bytes[at..at + 4] == key.mark;
        let found = if found { frame_at(bytes, at, key) } else { None };
        // A seal repeats the LSN of the last frame, which may itself be damaged.
        match found.filter(|(frame, _)| {
            frame.lsn < below && (frame.lsn > last || frame.kind == SEAL && frame.lsn >= last)
        }) {
            None => at += 8,
            Some((header, payload)) => {
                last = header.lsn;
                let next = at + frame_bytes(payload.len());
                runs.push((at, header, payload));
                if header.kind == SEAL {
                    return (runs, true);
                }
                at = next;
            }
        }
    }
    (runs, false)
}

/// What does not belong before the first frame: a bad copy of the header, or anything beside the two.
fn damaged_preamble(bytes: &[u8], segment: SegmentHeader, items: &mut Vec<Item>) {
    let expected = segment.preamble();
    let differ = |part: &Range<usize>| bytes.get(part.clone()) != Some(&expected[part.clone()]);
    let parts = [0..64, 64..4096, 4096..4160, 4160..DATA_START];
    for part in parts.into_iter().filter(differ) {
        items.push(Item::Damage { offset: part.start, length: part.len(), after_lsn: 0 });
    }
}

/// A whole segment in memory. Blocks the device cannot read come back as 0xff, so that they count as damage and
/// cost only the frames they hold.
pub fn read_segment(path: &Path) -> io::Result<Vec<u8>> {
    const STEP: usize = 1 << 20;
    const BLOCK: usize = 4096;
    let file = File::open(path)?;
    let length = file.metadata()?.len() as usize;
    let mut bytes = vec![0; length];
    for start in (0..length).step_by(STEP) {
        let stop = length.min(start + STEP);
        if unreadable(file.read_exact_at(&mut bytes[start..stop], start as u64))? {
            for block in (start..stop).step_by(BLOCK) {
                let part = &mut bytes[block..stop.min(block + BLOCK)];
                if unreadable(file.read_exact_at(part, block as u64))? {
                    part.fill(0xff);
                }
            }
        }
    }
    Ok(bytes)
}

fn unreadable(result: io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(false),
        Err(error) if error.raw_os_error() == Some(libc::EIO) => Ok(true),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
