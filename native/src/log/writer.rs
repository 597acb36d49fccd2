//! The group-commit writer.
//!
//! `append` encodes a frame into the queue. Whoever waits first leads: it takes the whole queue, writes and syncs it
//! for everybody, and wakes those whose frames were in it, and one of those that came meanwhile to lead the next
//! group. Nothing Python is touched here, and no lock is held over a system call but the one that makes a leader
//! the only one.

use super::disk::{segment_name, Disk, SegmentFile};
use crate::frames::layout::*;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::io;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::Duration;

/// Bytes that may be queued before `append` writes instead of queueing.
const QUEUE_BYTES: usize = 32 << 20;
/// Buffers up to this size are kept for the next group: fresh memory costs more than writing to it.
const SPARE_BYTES: usize = 4 << 20;
/// Smaller segments would be all header.
pub const MIN_SEGMENT_BYTES: u64 = 2 * DATA_START as u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// A frame is kept when it is synced.
    Always,
    /// A frame is kept when it is written; a timer syncs.
    Interval(Duration),
    /// A frame is kept when it is written; only sealing and `flush` sync.
    Off,
}

/// Why a call was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The caller's mistake, in words.
    Misuse(String),
    /// The log is dead since a write or sync failed: the first such error.
    Failed { errno: Option<i32>, what: String },
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    pub frames: u64,
    pub bytes: u64,
    pub syncs: u64,
    pub groups: u64,
}

/// A segment the log knows of, oldest first.
#[derive(Clone, Debug)]
pub struct Known {
    pub name: String,
    /// None when its header could not be read.
    pub first_lsn: Option<u64>,
}

/// Frames queued for one segment.
struct Run {
    /// Set when the run begins a segment: its header and the bytes to reserve.
    begins: Option<(SegmentHeader, u64)>,
    buffer: Vec<u8>,
    frames: Vec<Unfinished>,
    last_lsn: u64,
}

struct State {
    queue: Vec<Run>,
    /// The buffers of a run that was written, for the next one.
    spare: Option<Run>,
    queued_bytes: usize,
    last_lsn: u64,
    written_lsn: u64,
    durable_lsn: u64,
    /// The segment that the next frame goes to, and where in it: ahead of the disk by what is queued.
    segment: SegmentHeader,
    offset: u64,
    leading: bool,
    group: u64,
    group_last_lsn: u64,
    failed: Option<Refused>,
    closed: bool,
    known: Vec<Known>,
    stats: Stats,
}

/// What only the leader touches.
struct Active {
    /// None once the log is closed.
    file: Option<Box<dyn SegmentFile>>,
    segment: SegmentHeader,
    offset: u64,
    durable_offset: u64,
}

pub struct Writer {
    disk: Box<dyn Disk>,
    pub sync: Sync,
    segment_bytes: u64,
    state: Mutex<State>,
    active: Mutex<Active>,
    /// Those who wait for the group being written, and for the one after it, by the parity of its number.
    groups: [Condvar; 2],
    timer: Condvar,
}

impl Writer {
    /// Begin segment `number`; `known` are the segments already there.
    pub fn start(
        disk: Box<dyn Disk>,
        sync: Sync,
        segment_bytes: u64,
        number: u64,
        next_lsn: u64,
        mut known: Vec<Known>,
    ) -> io::Result<Self> {
        let segment = SegmentHeader { salt: Key::random_salt()?, first_lsn: next_lsn, number };
        let name = segment_name(number);
        let file = disk.create(&name, &segment.preamble(), segment_bytes)?;
        known.push(Known { name, first_lsn: Some(next_lsn) });
        let (offset, last_lsn) = (DATA_START as u64, next_lsn - 1);
        Ok(Self {
            disk,
            sync,
            segment_bytes,
            state: Mutex::new(State {
                queue: Vec::new(),
                spare: None,
                queued_bytes: 0,
                last_lsn,
                written_lsn: last_lsn,
                durable_lsn: last_lsn,
                segment,
                offset,
                leading: false,
                group: 0,
                group_last_lsn: last_lsn,
                failed: None,
                closed: false,
                known,
                stats: Stats::default(),
            }),
            active: Mutex::new(Active { file: Some(file), segment, offset, durable_offset: offset }),
            groups: [Condvar::new(), Condvar::new()],
            timer: Condvar::new(),
        })
    }

    /// Queue one frame. Without `block`, returns false instead of waiting for room.
    pub fn append(
        &self,
        lsn: u64,
        kind: u16,
        flags: u16,
        payload: &[u8],
        block: bool,
    ) -> Result<bool, Refused> {
        if payload.len() > MAX_PAYLOAD {
            return Err(Refused::Misuse(format!(
                "a payload of {} bytes is over the limit of {MAX_PAYLOAD} (1 GiB): split the transaction",
                payload.len()
            )));
        }
        if kind == SEAL {
            return Err(Refused::Misuse(format!("type {SEAL} is the log's own")));
        }
        let bytes = frame_bytes(payload.len());
        let mut state = self.state.lock();
        loop {
            state.usable()?;
            if lsn <= state.last_lsn {
                return Err(Refused::Misuse(format!(
                    "LSN {lsn} is not greater than the last, {}",
                    state.last_lsn
                )));
            }
            if state.queued_bytes == 0 || state.queued_bytes + bytes <= QUEUE_BYTES {
                break;
            }
            if !block {
                return Ok(false);
            }
            let in_work = state.group_last_lsn;
            state = self.lead_or_sleep(state, in_work, self.sync == Sync::Always);
        }
        if state.offset > DATA_START as u64
            && state.offset + (bytes + FRAME_BYTES) as u64 > self.segment_bytes
        {
            self.begin_segment(&mut state, lsn, bytes)?;
        }
        let key = Key::new(state.segment.salt);
        let header = FrameHeader { length: payload.len() as u32, lsn, durable_lsn: 0, kind, flags };
        if state.queue.is_empty() {
            let run = state.spare.take().unwrap_or_else(|| Run::new(None));
            state.queue.push(run);
        }
        let run = state.queue.last_mut().expect("just pushed");
        let frame = push_frame(&mut run.buffer, key, header, payload);
        run.frames.push(frame);
        run.last_lsn = lsn;
        state.last_lsn = lsn;
        state.offset += bytes as u64;
        state.queued_bytes += bytes;
        state.stats.frames += 1;
        state.stats.bytes += bytes as u64;
        Ok(true)
    }

    fn begin_segment(&self, state: &mut State, first_lsn: u64, frame: usize) -> Result<(), Refused> {
        let salt = Key::random_salt().map_err(|error| Refused::Failed {
            errno: error.raw_os_error(),
            what: format!("no salt for the next log segment: {error}"),
        })?;
        let segment = SegmentHeader { salt, first_lsn, number: state.segment.number + 1 };
        let bytes = self.segment_bytes.max((DATA_START + frame + FRAME_BYTES) as u64);
        let mut run = Run::new(Some((segment, bytes)));
        run.last_lsn = state.last_lsn;
        state.queue.push(run);
        state.segment = segment;
        state.offset = DATA_START as u64;
        Ok(())
    }

    /// Whether `lsn` is already as durable as asked.
    pub fn is_kept(&self, lsn: u64) -> bool {
        self.state.lock().reached(self.sync == Sync::Always) >= lsn
    }

    /// Return when `lsn` is as durable as asked.
    pub fn wait(&self, lsn: u64) -> Result<(), Refused> {
        self.wait_for(self.state.lock(), lsn, self.sync == Sync::Always)
    }

    /// Write and sync everything queued.
    pub fn flush(&self) -> Result<(), Refused> {
        let state = self.state.lock();
        let lsn = state.last_lsn;
        self.wait_for(state, lsn, true)
    }

    fn wait_for<'a>(&'a self, mut state: MutexGuard<'a, State>, lsn: u64, sync: bool) -> Result<(), Refused> {
        while state.reached(sync) < lsn {
            state.alive()?;
            if lsn > state.last_lsn {
                let last = state.last_lsn;
                return Err(Refused::Misuse(format!("LSN {lsn} was never appended, the last is {last}")));
            }
            state = self.lead_or_sleep(state, lsn, sync);
        }
        Ok(())
    }

    /// One step towards `lsn`: write the queue, or sleep while another does.
    fn lead_or_sleep<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        lsn: u64,
        sync: bool,
    ) -> MutexGuard<'a, State> {
        if !state.leading {
            return self.lead(state, sync);
        }
        let group = if lsn <= state.group_last_lsn { state.group } else { state.group + 1 };
        self.groups[(group % 2) as usize].wait(&mut state);
        state
    }

    /// Write the queue, and sync if asked, for everybody who waits.
    fn lead<'a>(&'a self, mut state: MutexGuard<'a, State>, sync: bool) -> MutexGuard<'a, State> {
        state.leading = true;
        state.group += 1;
        state.group_last_lsn = state.last_lsn;
        state.queued_bytes = 0;
        let mut runs = std::mem::take(&mut state.queue);
        let mut done =
            Progress { written: state.written_lsn, durable: state.durable_lsn, ..Progress::default() };
        drop(state);

        let result = catch_unwind(AssertUnwindSafe(|| self.write_out(&mut runs, sync, &mut done)))
            .unwrap_or_else(|_| Err(io::Error::other("the log writer panicked")));

        let mut state = self.state.lock();
        state.leading = false;
        state.written_lsn = done.written;
        state.durable_lsn = done.durable;
        state.stats.syncs += done.syncs;
        state.stats.groups += 1;
        state.known.append(&mut done.begun);
        state.spare = runs.pop().and_then(Run::emptied);
        let group = state.group;
        if let Err(error) = result {
            state.fail(&error, &done.at);
            self.groups[((group + 1) % 2) as usize].notify_all();
        }
        self.groups[(group % 2) as usize].notify_all();
        self.groups[((group + 1) % 2) as usize].notify_one();
        state
    }

    fn write_out(&self, runs: &mut [Run], sync: bool, done: &mut Progress) -> io::Result<()> {
        let mut active = self.active.lock();
        let result = self.write_runs(&mut active, runs, sync, done);
        if result.is_err() {
            // Frames whose writers are told that they failed must not come back after a restart.
            let keep = active.durable_offset;
            if let Some(file) = &mut active.file {
                let _ = file.truncate(keep);
            }
        }
        result
    }

    fn write_runs(
        &self,
        active: &mut Active,
        runs: &mut [Run],
        sync: bool,
        done: &mut Progress,
    ) -> io::Result<()> {
        done.at = segment_name(active.segment.number);
        for run in runs {
            if let Some((segment, bytes)) = run.begins {
                active.seal(done)?;
                let name = segment_name(segment.number);
                done.at.clone_from(&name);
                let file = self.disk.create(&name, &segment.preamble(), bytes)?;
                let offset = DATA_START as u64;
                *active = Active { file: Some(file), segment, offset, durable_offset: offset };
                done.begun.push(Known { name, first_lsn: Some(segment.first_lsn) });
            }
            for frame in &run.frames {
                frame.finish(&mut run.buffer, done.durable);
            }
            active.write(&run.buffer)?;
            done.written = run.last_lsn;
        }
        if sync && done.durable < done.written {
            active.sync(done)?;
        }
        Ok(())
    }

    /// Seal the segment being written and begin the next one, unless it holds nothing yet.
    pub fn roll(&self) -> Result<(), Refused> {
        let mut state = self.state.lock();
        state.usable()?;
        if state.offset > DATA_START as u64 {
            let next = state.last_lsn + 1;
            self.begin_segment(&mut state, next, 0)?;
        }
        let (number, lsn) = (state.segment.number, state.last_lsn);
        // The segment appears among the known ones once it is begun.
        let name = segment_name(number);
        while !state.known.iter().any(|known| known.name == name) {
            state.alive()?;
            state = self.lead_or_sleep(state, lsn, true);
        }
        Ok(())
    }

    /// Remove segments that end at or below `lsn`; returns their names.
    pub fn trim(&self, lsn: u64) -> Result<Vec<String>, Refused> {
        let state = self.state.lock();
        state.usable()?;
        // A segment ends before the next one's first LSN, so the newest is never among them.
        let starts: Vec<_> = state.known.iter().map(|known| known.first_lsn).collect();
        let ends_below =
            |at: &usize| starts[at + 1..].iter().flatten().next().is_some_and(|next| next - 1 <= lsn);
        let count = (0..starts.len()).take_while(ends_below).count();
        let names: Vec<String> = state.known[..count].iter().map(|known| known.name.clone()).collect();
        drop(state);
        if !names.is_empty() {
            self.disk.remove(&names).map_err(|error| Refused::Failed {
                errno: error.raw_os_error(),
                what: format!("cannot remove log segments {}: {error}", names.join(", ")),
            })?;
            self.state.lock().known.retain(|known| !names.contains(&known.name));
        }
        Ok(names)
    }

    /// Flush, seal and close; a log that failed is only let go of. Nothing can be appended afterwards.
    pub fn close(&self) -> Result<(), Refused> {
        let mut state = self.state.lock();
        if state.closed {
            return Ok(());
        }
        state.closed = true;
        self.timer.notify_all();
        if state.failed.is_some() {
            drop(state);
            self.active.lock().file = None;
            return Ok(());
        }
        let lsn = state.last_lsn;
        self.wait_for(state, lsn, true)?;
        let mut done = Progress { written: lsn, durable: lsn, ..Progress::default() };
        let sealed = self.close_file(&mut done);
        let mut state = self.state.lock();
        state.stats.syncs += done.syncs;
        if let Err(error) = sealed {
            state.fail(&error, &done.at);
        }
        state.alive()
    }

    fn close_file(&self, done: &mut Progress) -> io::Result<()> {
        let mut active = self.active.lock();
        done.at = segment_name(active.segment.number);
        if active.offset > DATA_START as u64 {
            active.seal(done)?;
            active.file = None;
            return Ok(());
        }
        // Nothing was ever written: opening and closing leaves no trace.
        active.file = None;
        self.disk.remove(std::slice::from_ref(&done.at))
    }

    /// The body of the timer thread: sync now and then, until the log is closed or dead.
    pub fn run_timer(&self, interval: Duration) {
        let mut state = self.state.lock();
        while !state.closed && state.failed.is_none() {
            self.timer.wait_for(&mut state, interval);
            let lsn = state.last_lsn;
            if !state.closed && state.durable_lsn < lsn {
                // A failure stays in the state, for the next caller to meet.
                let _ = self.wait_for(state, lsn, true);
                state = self.state.lock();
            }
        }
    }

    /// Let the timer thread end without flushing: what an owner that is simply dropped leaves is up to recovery.
    pub fn abandon(&self) {
        self.state.lock().closed = true;
        self.timer.notify_all();
    }

    pub fn durable_lsn(&self) -> u64 {
        self.state.lock().durable_lsn
    }

    pub fn last_lsn(&self) -> u64 {
        self.state.lock().last_lsn
    }

    pub fn failed(&self) -> Option<Refused> {
        self.state.lock().failed.clone()
    }

    pub fn stats(&self) -> (Stats, usize) {
        let state = self.state.lock();
        (state.stats, state.known.len())
    }
}

/// How far a group got; kept even when it failed half way.
#[derive(Default)]
struct Progress {
    written: u64,
    durable: u64,
    syncs: u64,
    begun: Vec<Known>,
    /// The segment in work, to be named when it fails.
    at: String,
}

impl Run {
    fn new(begins: Option<(SegmentHeader, u64)>) -> Self {
        Self { begins, buffer: Vec::new(), frames: Vec::new(), last_lsn: 0 }
    }

    /// Its buffers to be used again, unless they are too large to be kept.
    fn emptied(mut self) -> Option<Self> {
        self.begins = None;
        self.buffer.clear();
        self.frames.clear();
        (self.buffer.capacity() <= SPARE_BYTES).then_some(self)
    }
}

impl State {
    fn reached(&self, sync: bool) -> u64 {
        if sync {
            self.durable_lsn
        } else {
            self.written_lsn
        }
    }

    fn alive(&self) -> Result<(), Refused> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    fn usable(&self) -> Result<(), Refused> {
        self.alive()?;
        if self.closed {
            return Err(Refused::Misuse("the log is closed".into()));
        }
        Ok(())
    }

    /// The first error stays: what the kernel says after a failed sync is not to be trusted.
    fn fail(&mut self, error: &io::Error, at: &str) {
        self.failed.get_or_insert_with(|| Refused::Failed {
            errno: error.raw_os_error(),
            what: format!("log segment {at} cannot be written: {error}"),
        });
    }
}

impl Active {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.as_mut().ok_or_else(closed)?.write_at(bytes, self.offset)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self, done: &mut Progress) -> io::Result<()> {
        self.file.as_mut().ok_or_else(closed)?.sync()?;
        done.syncs += 1;
        done.durable = done.written;
        self.durable_offset = self.offset;
        Ok(())
    }

    /// Close the segment with a frame that vouches for all others, and give back what was reserved behind it.
    fn seal(&mut self, done: &mut Progress) -> io::Result<()> {
        // The claim must not reach the disk before what it claims.
        self.sync(done)?;
        let lsn = done.durable;
        let mut bytes = Vec::new();
        let header = FrameHeader { length: 0, lsn, durable_lsn: 0, kind: SEAL, flags: 0 };
        push_frame(&mut bytes, Key::new(self.segment.salt), header, &[]).finish(&mut bytes, lsn);
        self.write(&bytes)?;
        let end = self.offset;
        self.file.as_mut().ok_or_else(closed)?.truncate(end)?;
        self.sync(done)
    }
}

fn closed() -> io::Error {
    io::Error::other("the log is closed")
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
