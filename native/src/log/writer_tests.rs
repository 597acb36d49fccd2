use super::super::disk::{list_segments, Folder};
use super::*;
use crate::frames::scan::{walk, Item, Walk};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;

/// A folder whose writes and syncs fail once `left` of them have succeeded.
struct Faulty {
    folder: Folder,
    left: Arc<AtomicI64>,
}

struct FaultyFile {
    file: Box<dyn SegmentFile>,
    left: Arc<AtomicI64>,
}

fn spend(left: &AtomicI64) -> io::Result<()> {
    if left.fetch_sub(1, Ordering::SeqCst) <= 0 {
        return Err(io::Error::from_raw_os_error(libc::EIO));
    }
    Ok(())
}

impl Disk for Faulty {
    fn create(&self, name: &str, preamble: &[u8], bytes: u64) -> io::Result<Box<dyn SegmentFile>> {
        spend(&self.left)?;
        let file = self.folder.create(name, preamble, bytes)?;
        Ok(Box::new(FaultyFile { file, left: Arc::clone(&self.left) }))
    }

    fn remove(&self, names: &[String]) -> io::Result<()> {
        self.folder.remove(names)
    }
}

impl SegmentFile for FaultyFile {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if let Err(error) = spend(&self.left) {
            // A short write: half of it reached the file.
            self.file.write_at(&bytes[..bytes.len() / 2], offset)?;
            return Err(error);
        }
        self.file.write_at(bytes, offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        spend(&self.left)?;
        self.file.sync()
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.file.truncate(bytes)
    }
}

fn log(folder: &Path, sync: Sync, segment_bytes: u64) -> Writer {
    let disk = Box::new(Folder { path: folder.to_owned() });
    Writer::start(disk, sync, segment_bytes, 1, 1, Vec::new()).unwrap()
}

fn read(folder: &Path) -> Vec<(SegmentHeader, Walk)> {
    let segments = list_segments(folder).unwrap();
    let read = |path: &Path| {
        let bytes = std::fs::read(path).unwrap();
        let header = SegmentHeader::of_segment(&bytes).unwrap();
        (header, walk(&bytes, header, None))
    };
    segments.iter().map(|segment| read(&segment.path)).collect()
}

fn lsns(segments: &[(SegmentHeader, Walk)]) -> Vec<u64> {
    let items = segments.iter().flat_map(|(_, found)| &found.items);
    items
        .map(|item| match item {
            Item::Frame { header, .. } => header.lsn,
            Item::Damage { .. } => panic!("{item:?}"),
        })
        .collect()
}

#[test]
fn every_mode_keeps_what_it_was_given() {
    for sync in [Sync::Always, Sync::Interval(Duration::from_millis(1)), Sync::Off] {
        let folder = tempfile::tempdir().unwrap();
        let log = log(folder.path(), sync, MIN_SEGMENT_BYTES);
        for lsn in 1..=100 {
            log.append(lsn, 1, 0, &vec![7; lsn as usize * 10], true).unwrap();
            if lsn % 3 == 0 {
                log.wait(lsn).unwrap();
            }
        }
        log.close().unwrap();
        log.close().unwrap();
        let segments = read(folder.path());
        assert_eq!(lsns(&segments), (1..=100).collect::<Vec<_>>());
        assert!(segments.len() > 3 && segments.iter().all(|(_, found)| found.sealed && found.torn == 0));
        assert!(matches!(log.append(101, 1, 0, b"", true), Err(Refused::Misuse(_))));
    }
}

#[test]
fn a_frame_larger_than_a_segment_has_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let log = log(folder.path(), Sync::Always, MIN_SEGMENT_BYTES);
    for (lsn, bytes) in [(1, 10), (2, 100_000), (3, 10), (4, 10)] {
        log.append(lsn, 1, 0, &vec![1; bytes], true).unwrap();
    }
    log.flush().unwrap();
    let firsts: Vec<_> = read(folder.path()).iter().map(|(header, _)| header.first_lsn).collect();
    assert_eq!(firsts, [1, 2, 3]);
    assert_eq!(lsns(&read(folder.path())), [1, 2, 3, 4]);
}

#[test]
fn trim_drops_what_ends_at_or_below() {
    let folder = tempfile::tempdir().unwrap();
    let log = log(folder.path(), Sync::Always, MIN_SEGMENT_BYTES);
    for lsn in 1..=6 {
        log.append(lsn, 1, 0, b"x", true).unwrap();
        if lsn % 2 == 0 {
            log.roll().unwrap();
            log.roll().unwrap(); // an empty segment is not rolled
        }
    }
    assert_eq!(log.stats().1, 4);
    assert_eq!(log.trim(1).unwrap(), Vec::<String>::new());
    assert_eq!(log.trim(3).unwrap(), ["00000001.klog"]);
    assert_eq!(log.trim(u64::MAX).unwrap(), ["00000002.klog", "00000003.klog"]);
    log.append(7, 1, 0, b"y", true).unwrap();
    log.close().unwrap();
    assert_eq!(lsns(&read(folder.path())), [7]);
}

#[test]
fn an_unused_segment_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    log(folder.path(), Sync::Always, MIN_SEGMENT_BYTES).close().unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn wherever_it_fails_the_acknowledged_is_there_and_the_rest_is_not() {
    for allowed in 1..60 {
        let folder = tempfile::tempdir().unwrap();
        let left = Arc::new(AtomicI64::new(allowed));
        let disk = Faulty { folder: Folder { path: folder.path().to_owned() }, left };
        let log = Writer::start(Box::new(disk), Sync::Always, MIN_SEGMENT_BYTES, 1, 1, Vec::new()).unwrap();
        let mut kept = 0;
        let mut first = None;
        for lsn in 1..=40 {
            let outcome = log.append(lsn, 1, 0, &[lsn as u8; 1000], true).and_then(|_| log.wait(lsn));
            match outcome {
                Ok(()) => kept = lsn,
                Err(error) => {
                    assert!(matches!(error, Refused::Failed { errno: Some(libc::EIO), .. }), "{error:?}");
                    assert_eq!(first.get_or_insert(error.clone()), &error);
                }
            }
        }
        if first.is_some() {
            assert_eq!(log.failed(), first);
            assert!(log.flush().is_err() || kept == log.last_lsn());
            assert!(log.roll().is_err() && log.trim(1).is_err());
            assert_eq!(log.wait(kept), Ok(()), "what was acknowledged stays so");
        }
        let _ = log.close();
        assert_eq!(log.durable_lsn(), kept);
        assert_eq!(lsns(&read(folder.path())), (1..=kept).collect::<Vec<_>>(), "allowed {allowed}");
    }
}

#[test]
fn every_thread_that_waits_returns_with_its_frame_durable() {
    let folder = tempfile::tempdir().unwrap();
    let log = log(folder.path(), Sync::Always, 64 << 10);
    let order = Mutex::new(0u64);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let lsn = {
                        let mut last = order.lock();
                        *last += 1;
                        log.append(*last, 1, 0, &[5; 100], true).unwrap();
                        *last
                    };
                    log.wait(lsn).unwrap();
                    assert!(log.durable_lsn() >= lsn);
                }
            });
        }
    });
    let (stats, _) = log.stats();
    assert_eq!((log.durable_lsn(), stats.frames), (1600, 1600));
    assert_eq!(lsns(&read(folder.path())), (1..=1600).collect::<Vec<_>>());
}

#[test]
fn one_failure_reaches_every_thread_that_waits() {
    let folder = tempfile::tempdir().unwrap();
    let disk =
        Faulty { folder: Folder { path: folder.path().to_owned() }, left: Arc::new(AtomicI64::new(40)) };
    let log = Writer::start(Box::new(disk), Sync::Always, 64 << 10, 1, 1, Vec::new()).unwrap();
    let order = Mutex::new(0u64);
    let acknowledged = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| loop {
                let lsn = {
                    let mut last = order.lock();
                    if log.append(*last + 1, 1, 0, &[5; 100], true).is_err() {
                        return;
                    }
                    *last += 1;
                    *last
                };
                match log.wait(lsn) {
                    Ok(()) => acknowledged.lock().push(lsn),
                    Err(_) => return,
                }
            });
        }
    });
    let kept = lsns(&read(folder.path()));
    assert_eq!(kept, (1..=log.durable_lsn()).collect::<Vec<_>>());
    assert!(acknowledged.lock().iter().all(|lsn| kept.contains(lsn)));
}

#[test]
fn a_full_queue_is_written_instead_of_growing() {
    let folder = tempfile::tempdir().unwrap();
    let log = log(folder.path(), Sync::Off, 64 << 20);
    let payload = vec![3; 8 << 20];
    for lsn in 1..=4 {
        assert_eq!(log.append(lsn, 1, 0, &payload, lsn > 3), Ok(true));
    }
    assert!(log.state.lock().queued_bytes <= QUEUE_BYTES);
    assert!(log.state.lock().written_lsn >= 3);
    assert_eq!(log.append(5, 1, 0, &vec![3; 25 << 20], false), Ok(false));
    assert_eq!(log.last_lsn(), 4);
}
