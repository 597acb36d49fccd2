//! Which kind of writing a character belongs to: what decides how it is cut into terms.

use unicode_normalization::char::is_combining_mark;

/// What the scanner does with a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Part of a word: letters, marks, digits.
    Word,
    /// Letters of scripts that put no spaces between words.
    Dense,
    Hangul,
    Emoji,
    /// Invisible; neither part of a term nor a boundary.
    Ignorable,
    /// May join words into an identifier when it stands between them.
    Connector,
    Break,
}

/// Scripts that the folding and the stemmers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    Latin,
    Greek,
    Cyrillic,
    Arabic,
    Tamil,
    Digit,
    Other,
}

pub fn class(c: char) -> Class {
    if c.is_ascii() {
        return match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' => Class::Word,
            '_' | '-' | '.' | '/' | '\\' | '@' | ':' | '\'' | '+' | '&' | '#' | ',' => Class::Connector,
            _ => Class::Break,
        };
    }
    match c as u32 {
        0xAD | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x2064 | 0xFEFF => Class::Ignorable,
        0x2010 | 0x2011 => Class::Connector,
        0x231A..=0x23FF | 0x2600..=0x27BF | 0x2B05..=0x2B55 | 0x1F000..=0x1FAFF => Class::Emoji,
        0x1100..=0x11FF | 0x3131..=0x318E | 0xA960..=0xA97F | 0xAC00..=0xD7FB => Class::Hangul,
        _ if is_dense(c) => Class::Dense,
        _ if c.is_alphanumeric() || is_combining_mark(c) => Class::Word,
        _ => Class::Break,
    }
}

/// Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar; their digits and punctuation apart.
fn is_dense(c: char) -> bool {
    matches!(c as u32,
        0x3005 | 0x3007 | 0x3041..=0x309F | 0x30A1..=0x30FA | 0x30FC..=0x30FF | 0x31F0..=0x31FF // kana
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x323AF // Han
        | 0x0E01..=0x0E3A | 0x0E40..=0x0E4E // Thai
        | 0x0E81..=0x0ECE | 0x0EDC..=0x0EDF // Lao
        | 0x1780..=0x17D3 | 0x17DC | 0x17DD // Khmer
        | 0x1000..=0x103F | 0x1050..=0x108F | 0x109A..=0x109D | 0xA9E0..=0xA9EF | 0xAA60..=0xAA7F)
    // Myanmar
}

pub fn script(c: char) -> Script {
    match c as u32 {
        0x41..=0x5A | 0x61..=0x7A => Script::Latin,
        0x30..=0x39 => Script::Digit,
        0xAA | 0xBA | 0xC0..=0xD6 | 0xD8..=0xF6 | 0xF8..=0x24F | 0x250..=0x2AF | 0x1E00..=0x1EFF => {
            Script::Latin
        }
        0x2C60..=0x2C7F | 0xA722..=0xA7FF => Script::Latin,
        0x370..=0x3FF | 0x1F00..=0x1FFF => Script::Greek,
        0x400..=0x52F | 0x1C80..=0x1C8F | 0x2DE0..=0x2DFF | 0xA640..=0xA69F => Script::Cyrillic,
        0x600..=0x6FF | 0x750..=0x77F | 0x870..=0x8FF => match digit(c) {
            Some(_) => Script::Digit,
            None => Script::Arabic,
        },
        0xB80..=0xBE5 => Script::Tamil,
        _ if digit(c).is_some() => Script::Digit,
        _ => Script::Other,
    }
}

/// The value of a decimal digit in any of the scripts that have their own.
pub fn digit(c: char) -> Option<u8> {
    const ZEROS: [u32; 19] = [
        0x30, 0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xE50,
        0xED0, 0xF20, 0x1040, 0x17E0, 0x1810,
    ];
    let c = c as u32;
    let at = ZEROS.partition_point(|zero| *zero <= c).checked_sub(1)?;
    u8::try_from(c - ZEROS[at]).ok().filter(|value| *value < 10)
}
