//! Stemming, with the latest stems of each thread at hand: a few thousand words make up most of any text.

use rust_stemmers::{Algorithm, Stemmer};
use std::cell::RefCell;

const PLACES: usize = 4096;

pub struct CachedStemmer {
    algorithm: Algorithm,
    stemmer: Stemmer,
}

#[derive(Clone, Default)]
struct Place {
    algorithm: u8,
    word: String,
    stem: String,
}

thread_local! {
    static LATEST: RefCell<Vec<Place>> = const { RefCell::new(Vec::new()) };
}

impl CachedStemmer {
    pub fn new(algorithm: Algorithm) -> Self {
        Self { algorithm, stemmer: Stemmer::create(algorithm) }
    }

    /// The stem of a word in lower case; the word itself where nothing would be left.
    pub fn stem(&self, word: &str, out: &mut String) {
        out.clear();
        LATEST.with_borrow_mut(|places| {
            if places.is_empty() {
                places.resize(PLACES, Place::default());
            }
            let place = &mut places[hash(word) % PLACES];
            let algorithm = self.algorithm as u8 + 1;
            if place.algorithm != algorithm || place.word != word {
                let stem = self.stemmer.stem(word);
                place.algorithm = algorithm;
                place.word.clear();
                place.word.push_str(word);
                place.stem.clear();
                place.stem.push_str(if stem.is_empty() { word } else { &stem });
            }
            out.push_str(&place.stem);
        });
    }
}

/// Spreads words over places; which word gets which is of no consequence.
fn hash(word: &str) -> usize {
    let mut hash = 0usize;
    for byte in word.bytes() {
        hash = (hash.rotate_left(5) ^ usize::from(byte)).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as usize);
    }
    hash >> (usize::BITS / 2)
}
