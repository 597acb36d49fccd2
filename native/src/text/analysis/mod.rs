//! From text to terms: a pure function of the text and the language, the same for documents and queries.
//!
//! Every term is emitted in one of two strengths. All are indexed. A query asks its strong terms, and its weak ones
//! only when it has no other:
//!
//! - a function word is weak, so "the cat" asks for cats, and "to be or not to be" still finds Hamlet;
//! - the parts of an identifier are weak, so `TKT-100` asks for that ticket alone, and "order 2024" still finds
//!   `order_2024_001`; the parts of a hyphenated word are as strong as the whole;
//! - single characters of a longer run in Han, kana, Hangul or Thai are weak beside their bigrams.

pub mod fold;
pub mod language;
pub mod scan;
pub mod script;
mod stem;

use fold::{lower, normalize, strip_accents};
use language::{by_script, Language, LANGUAGES};
use rust_stemmers::Algorithm;
use scan::{humps, parts, pieces, Piece};
use script::{script, Script};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use stem::CachedStemmer;

/// Raised with every change that makes other terms of a text: stored ones are then of no use.
pub const VERSION: u32 = 1;
/// Terms longer than this many bytes are indexed by their beginning and a digest of the whole.
pub const LONGEST_TERM: usize = 128;
/// Longer words are no words; stemmers never meet them.
const LONGEST_STEMMED: usize = 48;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    Strong,
    Weak,
}
use Strength::{Strong, Weak};

pub struct Analyzer {
    pub language: &'static Language,
    stop_words: HashSet<String>,
    stemmers: Vec<(Script, CachedStemmer)>,
    turkish: bool,
}

/// Buffers that one analysis uses again and again.
#[derive(Default)]
struct Buffers {
    word: String,
    spare: String,
    term: String,
}

impl Analyzer {
    /// None when there is no such language.
    pub fn new(language: &str) -> Option<Self> {
        let language = Language::named(language)?;
        let own =
            |script| if script == language.script { Some(language.algorithm) } else { by_script(script) };
        let scripts = [Script::Latin, Script::Greek, Script::Cyrillic, Script::Arabic, Script::Tamil];
        let stemmers = scripts.into_iter().filter_map(|s| Some((s, CachedStemmer::new(own(s)?)))).collect();
        let turkish = language.algorithm == Algorithm::Turkish;
        let mut out = Self { language, stop_words: HashSet::new(), stemmers, turkish };
        let mut buffers = Buffers::default();
        let mut stop_words = HashSet::new();
        for word in language.stop_words.split_whitespace() {
            out.fold(word, &mut buffers);
            stop_words.insert(buffers.word.clone());
        }
        out.stop_words = stop_words;
        Some(out)
    }

    /// Every term of a text, in order.
    pub fn terms(&self, text: &str, mut emit: impl FnMut(&str, Strength)) {
        let text = normalize(text);
        let mut buffers = Buffers::default();
        pieces(&text, |piece| match piece {
            Piece::Word(word) => self.word_and_humps(word, Strong, &mut buffers, &mut emit),
            Piece::Joined { whole, path } => self.joined(whole, path, &mut buffers, &mut emit),
            Piece::Dense(run) => self.dense(run, &mut buffers, &mut emit),
            Piece::Hangul(run) => self.hangul(run, &mut buffers, &mut emit),
            Piece::Emoji(cluster) => emoji(cluster, &mut buffers, &mut emit),
            Piece::Phone(number) => phone(number, &mut buffers, &mut emit),
        });
    }

    /// What a query asks for: its strong terms if there are any, else all; a term named twice counts twice.
    pub fn query_terms(&self, query: &str) -> Vec<String> {
        let mut strong = Vec::new();
        let mut all = Vec::new();
        self.terms(query, |term, strength| match strength {
            Strong => strong.push(term.to_owned()),
            Weak if strong.is_empty() => all.push(term.to_owned()),
            Weak => {}
        });
        if strong.is_empty() {
            all
        } else {
            strong
        }
    }

    fn word_and_humps(
        &self,
        word: &str,
        strength: Strength,
        buffers: &mut Buffers,
        emit: &mut impl FnMut(&str, Strength),
    ) {
        self.word(word, strength, buffers, emit);
        for part in humps(word) {
            self.word(part, Weak, buffers, emit);
        }
    }

    fn word(
        &self,
        word: &str,
        strength: Strength,
        buffers: &mut Buffers,
        emit: &mut impl FnMut(&str, Strength),
    ) {
        let script = self.fold(word, buffers);
        // WHO and IT in capitals are names.
        let capitals = word.len() > 1 && word.bytes().all(|b| b.is_ascii_uppercase());
        let function_word = !capitals && self.stop_words.contains(&buffers.word);
        let strength = if function_word { Weak } else { strength };
        let stemmer = self.stemmers.iter().find(|(of, _)| Some(*of) == script).map(|(_, stemmer)| stemmer);
        match stemmer {
            Some(stemmer) if buffers.term.len() <= LONGEST_STEMMED => {
                // The stemmers take the form with its accents, but English has none of its own.
                let form = if self.folds_first(script) { &buffers.word } else { &buffers.term };
                stemmer.stem(form, &mut buffers.spare);
                std::mem::swap(&mut buffers.term, &mut buffers.spare);
                strip_accents(&mut buffers.term, &mut buffers.spare);
                bounded(&buffers.term, strength, emit);
            }
            _ => bounded(&buffers.word, strength, emit),
        }
    }

    fn folds_first(&self, script: Option<Script>) -> bool {
        script == Some(Script::Latin)
            && (self.language.script != Script::Latin || self.language.algorithm == Algorithm::English)
    }

    /// Leaves the lower case in `buffers.term` and the folded form in `buffers.word`; returns the one script that all
    /// letters are of.
    fn fold(&self, word: &str, buffers: &mut Buffers) -> Option<Script> {
        lower(word, self.turkish, &mut buffers.term);
        buffers.word.clear();
        buffers.word.push_str(&buffers.term);
        strip_accents(&mut buffers.word, &mut buffers.spare);
        let mut scripts = buffers.word.chars().filter(|c| *c != '\'').map(script);
        let first = scripts.next()?;
        scripts.all(|other| other == first).then_some(first)
    }

    fn joined(&self, whole: &str, path: bool, buffers: &mut Buffers, emit: &mut impl FnMut(&str, Strength)) {
        let whole = whole.strip_suffix("'s").or_else(|| whole.strip_suffix("'S")).unwrap_or(whole);
        let letters = |c: char| !c.is_numeric() && !matches!(c, '_' | '@' | '\\' | '.');
        let identifier = path || !whole.chars().all(letters) || whole.contains("://");
        let mut words = parts(whole);
        let (Some(first), Some(second)) = (words.next(), words.next()) else {
            let name = parts(whole).next() == Some(whole);
            return match name {
                // What is left of a possessive.
                true => self.word_and_humps(whole, Strong, buffers, emit),
                // C++ and C#
                false => {
                    self.verbatim(whole, buffers, emit);
                    parts(whole).for_each(|part| self.word(part, Weak, buffers, emit));
                }
            };
        };
        let rest = words.next();
        if rest.is_none() && whole.contains('\'') && second.chars().count() < 3 && first.len() > 1 {
            return self.word(whole, Strong, buffers, emit); // don't, you're
        }
        if whole.contains('.')
            && parts(whole).all(|part| part.chars().count() == 1 && !part.starts_with(char::is_numeric))
        {
            let letters: String = parts(whole).collect(); // U.S.A.
            return self.verbatim(&letters, buffers, emit);
        }
        match thousands(whole) {
            Some(number) => self.verbatim(&number, buffers, emit),
            None => self.verbatim(whole, buffers, emit),
        }
        let strength = if identifier { Weak } else { Strong };
        for part in parts(whole) {
            self.word_and_humps(part, strength, buffers, emit);
        }
    }

    /// A term that is folded and otherwise left alone.
    fn verbatim(&self, text: &str, buffers: &mut Buffers, emit: &mut impl FnMut(&str, Strength)) {
        self.fold(text, buffers);
        bounded(&buffers.word, Strong, emit);
    }

    fn dense(&self, run: &str, buffers: &mut Buffers, emit: &mut impl FnMut(&str, Strength)) {
        lower(run, false, &mut buffers.term);
        grams(&buffers.term, emit);
    }

    /// A word of Hangul whole, for itself, and in bigrams, since its particles are written on to it.
    fn hangul(&self, run: &str, buffers: &mut Buffers, emit: &mut impl FnMut(&str, Strength)) {
        lower(run, false, &mut buffers.term);
        if units(&buffers.term).count() > 2 {
            bounded(&buffers.term, Strong, emit);
        }
        grams(&buffers.term, emit);
    }
}

/// Names of all languages.
pub fn languages() -> Vec<&'static str> {
    LANGUAGES.iter().map(|language| language.name).collect()
}

/// The bigrams of a run, and its single characters; alone, a character is a strong term.
fn grams(run: &str, emit: &mut impl FnMut(&str, Strength)) {
    let alone = units(run).nth(1).is_none();
    let mut before: Option<(usize, usize)> = None;
    for (start, end) in units(run) {
        if let Some((first, _)) = before {
            bounded(&run[first..end], Strong, emit);
        }
        bounded(&run[start..end], if alone { Strong } else { Weak }, emit);
        before = Some((start, end));
    }
}

/// Characters with the marks that follow them.
fn units(run: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    let starts = || {
        let begins =
            |(at, c): &(usize, char)| *at == 0 || !unicode_normalization::char::is_combining_mark(*c);
        run.char_indices().filter(begins).map(|(at, _)| at)
    };
    starts().zip(starts().skip(1).chain([run.len()]))
}

/// An emoji as it is, and the plain one it is a variation of.
fn emoji(cluster: &str, buffers: &mut Buffers, emit: &mut impl FnMut(&str, Strength)) {
    let shown = |c: &char| !('\u{FE00}'..='\u{FE0F}').contains(c);
    buffers.term.clear();
    buffers.term.extend(cluster.chars().filter(shown));
    if buffers.term.is_empty() {
        return;
    }
    bounded(&buffers.term, Strong, emit);
    let plain = |c: &char| !('\u{1F3FB}'..='\u{1F3FF}').contains(c) && *c != '\u{200D}' && shown(c);
    let flag = buffers.term.starts_with(|c| ('\u{1F1E6}'..='\u{1F1FF}').contains(&c));
    if !flag && buffers.term.chars().nth(1).is_some() {
        let mut bytes = [0; 4];
        for c in cluster.chars().filter(plain) {
            emit(c.encode_utf8(&mut bytes), Weak);
        }
    }
}

/// The digits of a telephone number without what groups them, and without the country code in front of ten.
fn phone(number: &str, buffers: &mut Buffers, emit: &mut impl FnMut(&str, Strength)) {
    buffers.term.clear();
    buffers.term.extend(number.chars().filter(char::is_ascii_digit));
    emit(&buffers.term, Strong);
    if number.starts_with('+') && buffers.term.len() > 10 {
        emit(&buffers.term[buffers.term.len() - 10..], Strong);
    }
}

/// 1,000,000.5 without its commas.
fn thousands(text: &str) -> Option<String> {
    let (whole, _) = text.split_once('.').unwrap_or((text, ""));
    let mut groups = whole.split(',');
    let first = groups.next()?;
    let digits = |group: &str| group.bytes().all(|b| b.is_ascii_digit());
    let fits = (1..=3).contains(&first.len()) && digits(first) && whole.contains(',');
    (fits && groups.all(|group| group.len() == 3 && digits(group))).then(|| text.replace(',', ""))
}

/// Emit a term, or what stands for it when it is too long to be kept.
fn bounded(term: &str, strength: Strength, emit: &mut impl FnMut(&str, Strength)) {
    if term.is_empty() {
        return;
    }
    if term.len() <= LONGEST_TERM {
        return emit(term, strength);
    }
    let mut end = LONGEST_TERM / 2;
    while !term.is_char_boundary(end) {
        end -= 1;
    }
    let digest = Sha256::digest(term.as_bytes());
    let hex: String = digest[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    emit(&format!("{}…{hex}", &term[..end]), strength);
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
