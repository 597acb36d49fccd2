//! The file that says what an index is and which segments it consists of.
//!
//! ```text
//! analyzer version u32 · next number u32 · k1 f64 · b f64 · language · fields u32, each: weight f64 · name
//! segments u32, each: number u32 · documents u32 · removed slots (roaring) · crc32c u32 of all before
//! ```
//! A text or a bitmap is its length in bytes as u32, and the bytes.

use super::analysis::{Analyzer, VERSION};
use super::index::Settings;
use super::segment::Checked;
use roaring::RoaringBitmap;

pub const NAME: &str = "text";
pub const KIND: &str = "text-index";

/// Number, documents and removed slots of a segment.
pub type Listed = (u32, u32, RoaringBitmap);

pub struct Described {
    pub settings: Settings,
    pub next_number: u32,
    pub segments: Vec<Listed>,
}

pub fn encode(settings: &Settings, next_number: u32, segments: &[Listed]) -> Vec<u8> {
    let mut out = Vec::new();
    put_u32(&mut out, VERSION);
    put_u32(&mut out, next_number);
    out.extend_from_slice(&settings.k1.to_le_bytes());
    out.extend_from_slice(&settings.b.to_le_bytes());
    put_bytes(&mut out, settings.analyzer.language.name.as_bytes());
    put_u32(&mut out, settings.names.len() as u32);
    for (name, weight) in settings.names.iter().zip(&settings.weights) {
        out.extend_from_slice(&weight.to_le_bytes());
        put_bytes(&mut out, name.as_bytes());
    }
    put_u32(&mut out, segments.len() as u32);
    for (number, documents, removed) in segments {
        put_u32(&mut out, *number);
        put_u32(&mut out, *documents);
        let mut bytes = Vec::with_capacity(removed.serialized_size());
        removed.serialize_into(&mut bytes).expect("memory takes every byte");
        put_bytes(&mut out, &bytes);
    }
    let crc = crc32c::crc32c(&out);
    put_u32(&mut out, crc);
    out
}

fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u32(out, bytes.len() as u32);
    out.extend_from_slice(bytes);
}

pub fn decode(payload: &[u8]) -> Checked<Described> {
    let (content, crc) = payload.split_last_chunk::<4>().ok_or("cut short")?;
    if crc32c::crc32c(content) != u32::from_le_bytes(*crc) {
        return Err("the checksum does not match".into());
    }
    let mut rest = Reader(content);
    let version = rest.u32()?;
    if version != VERSION {
        return Err(format!(
            "its terms are of analyzer {version}, this program has {VERSION}: rebuild the text index"
        ));
    }
    let next_number = rest.u32()?;
    let (k1, b) = (rest.f64()?, rest.f64()?);
    let language = rest.text()?;
    let analyzer = Analyzer::new(&language).ok_or_else(|| format!("unknown language {language:?}"))?;
    let (mut names, mut weights) = (Vec::new(), Vec::new());
    for _ in 0..rest.u32()? {
        weights.push(rest.f64()?);
        names.push(rest.text()?);
    }
    let mut segments = Vec::new();
    for _ in 0..rest.u32()? {
        let (number, documents, removed) = (rest.u32()?, rest.u32()?, rest.bytes()?);
        let removed = RoaringBitmap::deserialize_from(removed).map_err(|e| format!("removed slots: {e}"))?;
        if number == 0 || number >= next_number {
            return Err(format!("segment {number} is not below {next_number}"));
        }
        segments.push((number, documents, removed));
    }
    Ok(Described { settings: Settings { names, weights, k1, b, analyzer }, next_number, segments })
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Checked<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or("cut short")?;
        self.0 = rest;
        Ok(taken)
    }

    fn u32(&mut self) -> Checked<u32> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().expect("four bytes")))
    }

    fn f64(&mut self) -> Checked<f64> {
        Ok(f64::from_le_bytes(self.take(8)?.try_into().expect("eight bytes")))
    }

    fn bytes(&mut self) -> Checked<&'a [u8]> {
        let length = self.u32()?;
        self.take(length as usize)
    }

    fn text(&mut self) -> Checked<String> {
        let bytes = self.bytes()?.to_vec();
        String::from_utf8(bytes).map_err(|_| "a name is not UTF-8".into())
    }
}
