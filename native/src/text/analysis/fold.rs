//! Making spellings of one word equal, without making different letters equal.

use super::script::{digit, script, Script};
use std::borrow::Cow;
use unicode_normalization::char::decompose_canonical;
use unicode_normalization::{is_nfkc_quick, IsNormalized, UnicodeNormalization};

/// The text in NFKC with one kind of apostrophe.
pub fn normalize(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let straight = |c: char| if matches!(c, '\u{2018}' | '\u{2019}' | '\u{2BC}') { '\'' } else { c };
    if is_nfkc_quick(text.chars()) == IsNormalized::Yes {
        if text.contains(['\u{2018}', '\u{2019}', '\u{2BC}']) {
            return Cow::Owned(text.chars().map(straight).collect());
        }
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.nfkc().map(straight).collect())
}

/// Lower case, digits in ASCII, and without what only guides pronunciation or display: Arabic vowel signs and
/// tatweel, Hebrew points, the dots of ё, joiners and variation selectors. The stemmers want this form.
pub fn lower(word: &str, turkish: bool, out: &mut String) {
    out.clear();
    if word.is_ascii() && !turkish {
        out.push_str(word);
        out.make_ascii_lowercase();
        return;
    }
    for c in word.chars() {
        match c {
            'I' if turkish => out.push('ı'),
            'İ' if turkish => out.push('i'),
            'ς' => out.push('σ'),
            'ß' | 'ẞ' => out.push_str("ss"),
            'ё' | 'Ё' | 'ѐ' | 'Ѐ' => out.push('е'),
            'ѝ' | 'Ѝ' => out.push('и'),
            _ if is_silent(c) => {}
            _ => match digit(c) {
                Some(value) => out.push((b'0' + value) as char),
                None => out.extend(c.to_lowercase()),
            },
        }
    }
}

fn is_silent(c: char) -> bool {
    matches!(c as u32,
        0xAD | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x2064 | 0xFE00..=0xFE0F | 0xFEFF | 0x20E3 // display
        | 0x591..=0x5BD | 0x5BF | 0x5C1..=0x5C2 | 0x5C4..=0x5C5 | 0x5C7 // Hebrew points
        | 0x610..=0x61A | 0x640 | 0x64B..=0x65F | 0x670 | 0x6D6..=0x6DC | 0x6DF..=0x6E8 | 0x6EA..=0x6ED)
    // Arabic
}

/// Latin and Greek without their accents, Cyrillic without stress marks, the Arabic letters that are written for each
/// other as one. Marks of other scripts are letters of their own and stay.
pub fn strip_accents(word: &mut String, spare: &mut String) {
    if word.is_ascii() {
        return;
    }
    spare.clear();
    for c in word.chars() {
        match c {
            '\u{300}'..='\u{36F}' => {}
            'æ' => spare.push_str("ae"),
            'œ' => spare.push_str("oe"),
            'ø' => spare.push('o'),
            'đ' | 'ð' => spare.push('d'),
            'ł' => spare.push('l'),
            'ħ' => spare.push('h'),
            'ı' => spare.push('i'),
            'ŧ' => spare.push('t'),
            'þ' => spare.push_str("th"),
            'ŋ' => spare.push('n'),
            'أ' | 'إ' | 'آ' | 'ٱ' => spare.push('ا'),
            'ى' | 'ی' => spare.push('ي'),
            'ک' => spare.push('ك'),
            'ة' => spare.push('ه'),
            _ if matches!(script(c), Script::Latin | Script::Greek) && !c.is_ascii() => {
                decompose_canonical(c, |part| {
                    if !('\u{300}'..='\u{36F}').contains(&part) {
                        spare.push(part);
                    }
                });
            }
            _ => spare.push(c),
        }
    }
    std::mem::swap(word, spare);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(word: &str) -> String {
        let (mut out, mut spare) = (String::new(), String::new());
        lower(&normalize(word), false, &mut out);
        strip_accents(&mut out, &mut spare);
        out
    }

    #[test]
    fn spellings_of_one_word_become_equal() {
        for (one, other) in [
            ("Café", "cafe"),
            ("cafe\u{301}", "café"),
            ("STRASSE", "straße"),
            ("ﬁne", "fine"),
            ("Ångström", "angstrom"),
            ("Łódź", "lodz"),
            ("ΟΔΟΣ", "οδός"),
            ("Ёлка", "елка"),
            ("за\u{301}мок", "замок"),
            ("كِتَابٌ", "كتاب"),
            ("كـتـاب", "كتاب"),
            ("أحمد", "احمد"),
            ("שָׁלוֹם", "שלום"),
            ("１２３", "123"),
            ("٤٢", "42"),
            ("४२", "42"),
            ("ｶﾞ", "ガ"),
            ("don’t", "don't"),
            ("co\u{ad}operate", "cooperate"),
        ] {
            assert_eq!(folded(one), folded(other));
        }
    }

    #[test]
    fn letters_of_other_scripts_stay_themselves() {
        for (one, other) in [
            ("कि", "क"),
            ("क्या", "कया"),
            ("मैं", "मे"),
            ("ได้", "ได"),
            ("ไม่", "ไม"),
            ("が", "か"),
            ("ば", "ぱ"),
            ("мой", "мои"),
            ("їжа", "іжа"),
            ("தமிழ்", "தமழ"),
            ("বাংলা", "বাল"),
        ] {
            assert_ne!(folded(one), folded(other));
        }
    }
}
