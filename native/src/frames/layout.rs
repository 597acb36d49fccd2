//! The bytes of a log segment: its header, and one frame per transaction.
//!
//! A segment begins with its header, twice, 4 KiB apart, so that one bad block does not take the salt and with it
//! every frame. Frames follow from `DATA_START`, each on an 8-byte boundary, padded with zeros. Integers are
//! little-endian.
//!
//! ```text
//! header                                        frame
//! 0   magic      8  "KEKTLOG\0"                 0   mark         4  upper half of the segment's salt
//! 8   format     2                              4   length       4  bytes of payload
//! 10  reserved   6  zero                        8   lsn          8
//! 16  salt       8                              16  durable_lsn  8  highest LSN known durable at the write
//! 24  first_lsn  8  no frame here has less      24  type         2
//! 32  number     8  the file's place            26  flags        2
//! 40  reserved  20  zero                        28  crc32c       4  of the payload, then of bytes 0..28
//! 60  crc32c     4  of bytes 0..60              32  payload
//! ```
//!
//! Mark and checksum both hang on the segment's random salt: what a client stores cannot look like a frame of the
//! segment it is stored in, nor slow down a search for frames by pretending to. The checksum takes the payload
//! first, so that `durable_lsn` can be filled in when the frame is written without reading the payload again.

use std::ops::Range;

pub const SEGMENT_MAGIC: &[u8; 8] = b"KEKTLOG\0";
pub const FORMAT: u16 = 1;
pub const HEADER_BYTES: usize = 64;
/// Where the two copies of the header stand.
pub const HEADER_COPIES: [usize; 2] = [0, 4096];
/// Where frames begin.
pub const DATA_START: usize = 8192;
pub const FRAME_BYTES: usize = 32;
/// A transaction is at most 1 GiB.
pub const MAX_PAYLOAD: usize = 1 << 30;
/// The type of the frame that closes a segment; readers do not see it.
pub const SEAL: u16 = u16::MAX;

/// What a segment's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    pub salt: u64,
    pub first_lsn: u64,
    pub number: u64,
}

/// What a frame's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    pub length: u32,
    pub lsn: u64,
    pub durable_lsn: u64,
    pub kind: u16,
    pub flags: u16,
}

/// Why a header is not to be used.
#[derive(Debug, PartialEq, Eq)]
pub enum BadHeader {
    /// Not what was written: cut short, changed, or something else altogether.
    Damaged(&'static str),
    /// Sound, and from a later version of this program.
    Newer(u16),
}

impl SegmentHeader {
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(SEGMENT_MAGIC);
        bytes[8..10].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.salt.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.first_lsn.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.number.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Everything before the first frame.
    pub fn preamble(&self) -> Vec<u8> {
        let mut bytes = vec![0; DATA_START];
        for at in HEADER_COPIES {
            bytes[at..at + HEADER_BYTES].copy_from_slice(&self.encode());
        }
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, BadHeader> {
        let Some(bytes) = bytes.get(..HEADER_BYTES) else {
            return Err(BadHeader::Damaged("too short for a segment's header"));
        };
        if &bytes[..8] != SEGMENT_MAGIC {
            return Err(BadHeader::Damaged("not a log segment (wrong magic)"));
        }
        if crc32c::crc32c(&bytes[..60]) != u32_at(bytes, 60) {
            return Err(BadHeader::Damaged("the header's checksum does not match"));
        }
        match u16_at(bytes, 8) {
            newer if newer > FORMAT => Err(BadHeader::Newer(newer)),
            _ => {
                Ok(Self { salt: u64_at(bytes, 16), first_lsn: u64_at(bytes, 24), number: u64_at(bytes, 32) })
            }
        }
    }

    /// The first good one of the two copies.
    pub fn of_segment(bytes: &[u8]) -> Result<Self, BadHeader> {
        let copy = |at: usize| Self::decode(bytes.get(at..).unwrap_or_default());
        match copy(HEADER_COPIES[0]) {
            Err(BadHeader::Damaged(why)) => copy(HEADER_COPIES[1]).map_err(|second| match second {
                BadHeader::Newer(_) => second,
                BadHeader::Damaged(_) => BadHeader::Damaged(why),
            }),
            known => known,
        }
    }
}

/// What a salt contributes to every frame of its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    pub mark: [u8; 4],
    seed: u32,
}

impl Key {
    pub fn new(salt: u64) -> Self {
        Self { mark: ((salt >> 32) as u32).to_le_bytes(), seed: crc32c::crc32c(&salt.to_le_bytes()) }
    }

    /// A random salt whose mark cannot be mistaken for padding.
    pub fn random_salt() -> std::io::Result<u64> {
        use std::io::Read;
        let mut bytes = [0; 8];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let salt = u64::from_le_bytes(bytes);
        Ok(if salt >> 32 == 0 { salt | 1 << 63 } else { salt })
    }
}

/// Bytes a frame takes in its segment.
pub fn frame_bytes(payload: usize) -> usize {
    (FRAME_BYTES + payload).next_multiple_of(8)
}

/// Append one frame whose checksum still lacks the header; returns what `finish` needs.
pub fn push_frame(out: &mut Vec<u8>, key: Key, header: FrameHeader, payload: &[u8]) -> Unfinished {
    debug_assert_eq!(header.length as usize, payload.len());
    let at = out.len();
    out.reserve(frame_bytes(payload.len()));
    out.extend_from_slice(&key.mark);
    out.extend_from_slice(&header.length.to_le_bytes());
    out.extend_from_slice(&header.lsn.to_le_bytes());
    out.extend_from_slice(&header.durable_lsn.to_le_bytes());
    out.extend_from_slice(&header.kind.to_le_bytes());
    out.extend_from_slice(&header.flags.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(payload);
    out.resize(at + frame_bytes(payload.len()), 0);
    Unfinished { at, payload_crc: crc32c::crc32c_append(key.seed, payload) }
}

/// A frame in a buffer whose `durable_lsn` and checksum are still to be written.
#[derive(Clone, Copy, Debug)]
pub struct Unfinished {
    at: usize,
    payload_crc: u32,
}

impl Unfinished {
    pub fn finish(self, out: &mut [u8], durable_lsn: u64) {
        let header = &mut out[self.at..self.at + FRAME_BYTES];
        header[16..24].copy_from_slice(&durable_lsn.to_le_bytes());
        let crc = crc32c::crc32c_append(self.payload_crc, &header[..28]);
        header[28..].copy_from_slice(&crc.to_le_bytes());
    }
}

/// The frame at `at`, if a whole and sound one stands there: its header and where its payload lies.
pub fn frame_at(bytes: &[u8], at: usize, key: Key) -> Option<(FrameHeader, Range<usize>)> {
    let header = bytes.get(at..at.checked_add(FRAME_BYTES)?)?;
    if header[..4] != key.mark {
        return None;
    }
    let length = u32_at(header, 4);
    let payload = at + FRAME_BYTES..(at + FRAME_BYTES).checked_add(length as usize)?;
    if length as usize > MAX_PAYLOAD || payload.end > bytes.len() {
        return None;
    }
    let crc = crc32c::crc32c_append(crc32c::crc32c_append(key.seed, &bytes[payload.clone()]), &header[..28]);
    if crc != u32_at(header, 28) {
        return None;
    }
    let header = FrameHeader {
        length,
        lsn: u64_at(header, 8),
        durable_lsn: u64_at(header, 16),
        kind: u16_at(header, 24),
        flags: u16_at(header, 26),
    };
    Some((header, payload))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: SegmentHeader = SegmentHeader { salt: 0x0123_4567_89ab_cdef, first_lsn: 7, number: 3 };

    fn encoded(payload: &[u8], durable_lsn: u64) -> Vec<u8> {
        let mut out = Vec::new();
        let header =
            FrameHeader { length: payload.len() as u32, lsn: 9, durable_lsn: 0, kind: 1, flags: 0x8001 };
        push_frame(&mut out, Key::new(HEADER.salt), header, payload).finish(&mut out, durable_lsn);
        out
    }

    #[test]
    fn either_copy_of_the_header_is_enough() {
        let mut bytes = HEADER.preamble();
        assert_eq!(SegmentHeader::of_segment(&bytes), Ok(HEADER));
        bytes[..4096].fill(0xff);
        assert_eq!(SegmentHeader::of_segment(&bytes), Ok(HEADER));
        bytes[4100] ^= 1;
        assert!(matches!(SegmentHeader::of_segment(&bytes), Err(BadHeader::Damaged(_))));
    }

    #[test]
    fn a_newer_format_is_told_from_damage() {
        let mut bytes = HEADER.encode();
        bytes[8..10].copy_from_slice(&(FORMAT + 1).to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(SegmentHeader::decode(&bytes), Err(BadHeader::Newer(FORMAT + 1)));
    }

    proptest! {
        #[test]
        fn frames_round_trip(payload in proptest::collection::vec(any::<u8>(), 0..300), durable in any::<u64>()) {
            let bytes = encoded(&payload, durable);
            prop_assert_eq!(bytes.len() % 8, 0);
            let (header, range) = frame_at(&bytes, 0, Key::new(HEADER.salt)).unwrap();
            prop_assert_eq!(&bytes[range], &payload[..]);
            prop_assert_eq!(header.durable_lsn, durable);
            prop_assert_eq!((header.lsn, header.kind, header.flags), (9, 1, 0x8001));
        }

        #[test]
        fn a_frame_of_another_salt_is_none(payload in proptest::collection::vec(any::<u8>(), 0..50), salt in any::<u64>()) {
            prop_assume!(salt != HEADER.salt);
            prop_assert!(frame_at(&encoded(&payload, 1), 0, Key::new(salt)).is_none());
        }

        #[test]
        fn any_changed_bit_of_a_frame_is_seen(
            payload in proptest::collection::vec(any::<u8>(), 0..50), at in any::<prop::sample::Index>(), bit in 0u8..8,
        ) {
            let mut bytes = encoded(&payload, 1);
            let at = at.index(FRAME_BYTES + payload.len());
            bytes[at] ^= 1 << bit;
            prop_assert!(frame_at(&bytes, 0, Key::new(HEADER.salt)).is_none());
        }

        #[test]
        fn any_changed_bit_of_a_header_is_seen(at in 0usize..HEADER_BYTES, bit in 0u8..8) {
            let mut bytes = HEADER.encode();
            bytes[at] ^= 1 << bit;
            prop_assert!(SegmentHeader::decode(&bytes).is_err());
        }

        #[test]
        fn arbitrary_bytes_are_neither(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0usize..210) {
            prop_assert!(SegmentHeader::decode(&bytes).is_err());
            prop_assert!(frame_at(&bytes, at, Key::new(HEADER.salt)).is_none());
        }
    }
}
