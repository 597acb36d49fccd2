use super::*;
use proptest::prelude::*;

const SEGMENT: SegmentHeader = SegmentHeader { salt: 0xfeed_beef_dead_cafe, first_lsn: 1, number: 1 };

/// A segment of `payloads`, LSNs from 1, where `durable(lsn)` is what each frame claims.
fn segment(
    header: SegmentHeader,
    payloads: &[Vec<u8>],
    durable: impl Fn(u64) -> u64,
    sealed: bool,
    spare: usize,
) -> Vec<u8> {
    let mut out = header.preamble();
    let mut push = |lsn: u64, kind: u16, payload: &[u8], durable_lsn: u64| {
        let frame = FrameHeader { length: payload.len() as u32, lsn, durable_lsn: 0, kind, flags: 0 };
        push_frame(&mut out, Key::new(header.salt), frame, payload).finish(&mut out, durable_lsn);
    };
    let mut lsn = header.first_lsn;
    for payload in payloads {
        push(lsn, 1, payload, durable(lsn));
        lsn += 1;
    }
    if sealed {
        push(lsn - 1, SEAL, b"", lsn - 1);
    }
    out.resize(out.len() + spare, 0);
    out
}

fn one_by_one(lsn: u64) -> u64 {
    lsn - 1
}

fn lsns(walk: &Walk) -> Vec<u64> {
    walk.items
        .iter()
        .filter_map(|item| match item {
            Item::Frame { header, .. } => Some(header.lsn),
            Item::Damage { .. } => None,
        })
        .collect()
}

fn damage(walk: &Walk) -> Vec<(usize, usize, u64)> {
    walk.items
        .iter()
        .filter_map(|item| match *item {
            Item::Frame { .. } => None,
            Item::Damage { offset, length, after_lsn } => Some((offset, length, after_lsn)),
        })
        .collect()
}

fn payloads(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|i| vec![b'a' + i as u8; i * 5]).collect()
}

fn start_of(bytes: &[u8], lsn: u64) -> usize {
    let found = walk(bytes, SEGMENT, None);
    let frame = found.items.iter().find_map(|item| match item {
        Item::Frame { offset, header, .. } if header.lsn == lsn => Some(*offset),
        _ => None,
    });
    frame.expect("the frame stands there")
}

#[test]
fn a_segment_reads_back_whole() {
    for (sealed, spare) in [(false, 0), (false, 4096), (true, 0)] {
        let bytes = segment(SEGMENT, &payloads(9), one_by_one, sealed, spare);
        let found = walk(&bytes, SEGMENT, None);
        assert_eq!(lsns(&found), (1..=9).collect::<Vec<_>>());
        assert_eq!((damage(&found), found.torn, found.sealed), (vec![], 0, sealed));
        assert_eq!(found.end, bytes.len() - spare);
    }
}

#[test]
fn damage_below_a_later_claim_costs_one_frame() {
    let good = segment(SEGMENT, &payloads(9), one_by_one, false, 512);
    let mut bytes = good.clone();
    let (at, next) = (start_of(&good, 4), start_of(&good, 5));
    bytes[at + 33] ^= 4;
    let found = walk(&bytes, SEGMENT, None);
    assert_eq!(lsns(&found), [1, 2, 3, 5, 6, 7, 8, 9]);
    assert_eq!(damage(&found), [(at, next - at, 3)]);
}

#[test]
fn a_break_above_every_claim_ends_the_log() {
    // One group of nine was being written, nothing of it acknowledged.
    let good = segment(SEGMENT, &payloads(9), |_| 0, false, 512);
    let at = start_of(&good, 4);
    let mut bytes = good.clone();
    bytes[at + 33] ^= 4;
    let found = walk(&bytes, SEGMENT, None);
    assert_eq!((lsns(&found), damage(&found), found.end), (vec![1, 2, 3], vec![], at));
    assert_eq!(found.torn, good.len() - 512 - at);
}

#[test]
fn the_next_segment_says_what_was_acknowledged() {
    let mut bytes = segment(SEGMENT, &payloads(9), |_| 0, false, 512);
    let (at, next) = (start_of(&bytes, 4), start_of(&bytes, 5));
    bytes[at + 33] ^= 4;
    let kept = walk(&bytes, SEGMENT, Some(10));
    assert_eq!((lsns(&kept), damage(&kept)), (vec![1, 2, 3, 5, 6, 7, 8, 9], vec![(at, next - at, 3)]));
    // A recovery that gave up at 4 wrote 4 anew in the next segment: the old 5 to 9 must not come back.
    let given_up = walk(&bytes, SEGMENT, Some(4));
    assert_eq!((lsns(&given_up), damage(&given_up)), (vec![1, 2, 3], vec![]));
}

#[test]
fn an_acknowledged_end_that_is_gone_is_damage() {
    let good = segment(SEGMENT, &payloads(9), one_by_one, false, 512);
    let at = start_of(&good, 8);
    let mut zeroed = good.clone();
    zeroed[at..].fill(0);
    for bytes in [&good[..at], &zeroed] {
        let found = walk(bytes, SEGMENT, Some(10));
        assert_eq!((lsns(&found), damage(&found)), ((1..=7).collect(), vec![(at, bytes.len() - at, 7)]));
        assert_eq!(damage(&walk(bytes, SEGMENT, Some(8))), []);
    }
}

#[test]
fn a_seal_vouches_for_the_last_frame() {
    let mut bytes = segment(SEGMENT, &payloads(9), |_| 0, true, 0);
    let at = start_of(&bytes, 9);
    bytes[at + 8] ^= 1;
    let found = walk(&bytes, SEGMENT, None);
    assert_eq!((lsns(&found), found.sealed), ((1..=8).collect(), true));
    assert_eq!(damage(&found), [(at, frame_bytes(40), 8)]);
}

#[test]
fn a_payload_never_passes_for_frames() {
    let other = SegmentHeader { salt: SEGMENT.salt ^ (1 << 40), ..SEGMENT };
    let same_mark = SegmentHeader { salt: SEGMENT.salt ^ 1, ..SEGMENT };
    let aligned = |header| segment(header, &payloads(20), one_by_one, false, 0)[DATA_START..].to_vec();
    let earlier = segment(SEGMENT, &payloads(2), one_by_one, false, 0)[DATA_START..].to_vec();
    let stored =
        vec![b"x".to_vec(), b"y".to_vec(), aligned(other), aligned(same_mark), earlier, b"z".to_vec()];
    let good = segment(SEGMENT, &stored, one_by_one, false, 0);
    assert_eq!(lsns(&walk(&good, SEGMENT, None)), (1..=6).collect::<Vec<_>>());
    for lsn in [3, 4, 5] {
        let mut bytes = good.clone();
        let at = start_of(&good, lsn);
        bytes[at] ^= 1; // the search for the next frame now runs through the stored bytes
        let found = walk(&bytes, SEGMENT, None);
        assert_eq!(lsns(&found), (1..=6).filter(|l| *l != lsn).collect::<Vec<_>>());
        assert_eq!(damage(&found), [(at, start_of(&good, lsn + 1) - at, lsn - 1)]);
    }
    // The same bytes are frames where they belong.
    assert_eq!(lsns(&walk(&segment(other, &payloads(20), one_by_one, false, 0), other, None)).len(), 20);
}

#[test]
fn what_lies_between_frames_is_watched_too() {
    let good = segment(SEGMENT, &payloads(3), one_by_one, true, 0);
    let padding = start_of(&good, 2) + FRAME_BYTES + 5;
    for (at, part) in
        [(3, (0, 64, 0)), (99, (64, 4032, 0)), (4100, (4096, 64, 0)), (padding, (padding, 3, 2))]
    {
        let mut bytes = good.clone();
        bytes[at] ^= 16;
        let found = walk(&bytes, SegmentHeader::of_segment(&bytes).unwrap(), None);
        assert_eq!((lsns(&found), damage(&found)), (vec![1, 2, 3], vec![part]));
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_hold_no_frame(bytes in proptest::collection::vec(any::<u8>(), 0..2000), next in any::<Option<u64>>()) {
        let mut file = SEGMENT.preamble();
        file.extend_from_slice(&bytes);
        prop_assert!(lsns(&walk(&file, SEGMENT, next)).is_empty());
        walk(&bytes, SEGMENT, next);
    }

    #[test]
    fn cut_anywhere_a_prefix_is_left(cut in any::<prop::sample::Index>(), sealed in any::<bool>()) {
        let bytes = segment(SEGMENT, &payloads(9), one_by_one, sealed, 64);
        let cut = cut.index(bytes.len());
        let whole = walk(&bytes, SEGMENT, None);
        let found = walk(&bytes[..cut], SEGMENT, None);
        let read = lsns(&found);
        prop_assert_eq!(&read[..], &lsns(&whole)[..read.len()]);
        let stop = |item: &Item| matches!(item, Item::Frame { payload, .. } if payload.end <= cut);
        prop_assert_eq!(read.len(), whole.items.iter().filter(|item| stop(item)).count());
        prop_assert!(found.end <= cut && found.end + found.torn <= cut);
    }

    #[test]
    fn changed_bytes_cost_only_the_frames_they_hit(
        sizes in proptest::collection::vec(0usize..200, 1..30),
        group in 1u64..8,
        hits in proptest::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..6),
    ) {
        let stored: Vec<_> = sizes.iter().enumerate().map(|(i, n)| vec![i as u8; *n]).collect();
        let durable = |lsn: u64| (lsn - 1) / group * group;
        let good = segment(SEGMENT, &stored, durable, false, 0);
        let whole = walk(&good, SEGMENT, None);
        let mut bytes = good.clone();
        for (at, change) in hits {
            let at = DATA_START + at.index(bytes.len() - DATA_START);
            bytes[at] ^= change;
        }
        let found = walk(&bytes, SEGMENT, None);
        let intact = |item: &Item| match item {
            Item::Frame { offset, payload, .. } => bytes[*offset..payload.end] == good[*offset..payload.end],
            Item::Damage { .. } => false,
        };
        let survivors: Vec<_> = whole.items.iter().filter(|item| intact(item)).cloned().collect();
        let frames: Vec<_> =
            found.items.iter().filter(|item| matches!(item, Item::Frame { .. })).cloned().collect();
        prop_assert_eq!(&frames[..], &survivors[..frames.len()]);
        // What was given up lies above everything a surviving frame vouches for.
        let vouched = survivors.iter().map(|item| match item {
            Item::Frame { header, .. } => header.durable_lsn,
            Item::Damage { .. } => 0,
        }).max().unwrap_or(0);
        if frames.len() < survivors.len() {
            prop_assert!(found.last_lsn >= vouched);
        }
    }
}
