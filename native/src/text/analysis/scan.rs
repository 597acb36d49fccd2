//! Cutting a normalised text into pieces: words, identifiers, runs of scripts without spaces, emoji.

use super::script::{class, Class};
use unicode_segmentation::UnicodeSegmentation;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Letters and digits without anything between them, or joined by an apostrophe that belongs to the word.
    Word(&'a str),
    /// Words joined by characters that hold identifiers together; `joints` says which.
    Joined {
        whole: &'a str,
        path: bool,
    },
    /// A run of Han, kana, Thai, Lao, Khmer or Myanmar.
    Dense(&'a str),
    Hangul(&'a str),
    Emoji(&'a str),
    /// A telephone number with its spaces and brackets. Its parts come as pieces of their own too.
    Phone(&'a str),
}

/// The pieces of a text in order.
pub fn pieces<'a>(text: &'a str, mut emit: impl FnMut(Piece<'a>)) {
    let (mut at, mut in_phone) = (0, 0);
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        at += match class(c) {
            Class::Word => {
                if let Some(phone) = phone(text, at).filter(|_| at >= in_phone) {
                    in_phone = at + phone.len();
                    emit(Piece::Phone(phone));
                }
                let (whole, joined) = compound(rest);
                emit(match joined {
                    false => Piece::Word(whole),
                    true => Piece::Joined { whole, path: text[..at].ends_with(['/', '\\', '~']) },
                });
                whole.len()
            }
            Class::Dense => {
                let run = run(rest, Class::Dense);
                emit(Piece::Dense(run));
                run.len()
            }
            Class::Hangul => {
                let run = run(rest, Class::Hangul);
                emit(Piece::Hangul(run));
                run.len()
            }
            Class::Emoji => {
                let cluster = rest.graphemes(true).next().unwrap_or(rest);
                emit(Piece::Emoji(cluster));
                cluster.len()
            }
            Class::Ignorable | Class::Connector | Class::Break => c.len_utf8(),
        };
    }
}

/// The characters of one class from the start on; marks and invisible ones belong to what they follow.
fn run(text: &str, wanted: Class) -> &str {
    let end = text.char_indices().find(|(_, c)| {
        let class = class(*c);
        class != wanted && class != Class::Ignorable && !is_mark(*c)
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

fn is_mark(c: char) -> bool {
    !c.is_ascii() && unicode_normalization::char::is_combining_mark(c)
}

/// The longest identifier or word at the start, and whether anything joins its parts.
fn compound(text: &str) -> (&str, bool) {
    let bytes = text.as_bytes();
    let mut end = word_end(text, 0);
    let mut joined = false;
    loop {
        if text[end..].starts_with("://") {
            return (url(text, end + 3), true);
        }
        let joint = match bytes.get(end) {
            Some(b':') if bytes.get(end + 1) == Some(&b':') => 2,
            Some(b',') if !digit_on_both_sides(bytes, end) => 0,
            Some(_) => {
                text[end..].chars().next().filter(|c| class(*c) == Class::Connector).map_or(0, char::len_utf8)
            }
            None => 0,
        };
        let next = if joint == 0 { end } else { word_end(text, end + joint) };
        if joint == 0 || next == end + joint {
            break;
        }
        joined = true;
        end = next;
    }
    // C++, C#, F#: the signs are part of the name.
    let name = &text[..end];
    let signs = text[end..].bytes().take_while(|b| *b == b'+' || *b == b'#').take(2).count();
    let stops = text[end + signs..]
        .chars()
        .next()
        .is_none_or(|c| !matches!(class(c), Class::Word | Class::Connector));
    if signs > 0 && stops && !joined && name.len() <= 2 && name.bytes().all(|b| b.is_ascii_alphabetic()) {
        return (&text[..end + signs], true);
    }
    (name, joined)
}

fn word_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = start;
    while at < bytes.len() {
        if bytes[at].is_ascii() {
            if !bytes[at].is_ascii_alphanumeric() {
                break;
            }
            at += 1;
        } else {
            let c = text[at..].chars().next().expect("within the text");
            let follows = class(c) == Class::Ignorable && at > start;
            if class(c) != Class::Word && !follows {
                break;
            }
            at += c.len_utf8();
        }
    }
    at
}

fn digit_on_both_sides(bytes: &[u8], at: usize) -> bool {
    at > 0 && bytes[at - 1].is_ascii_digit() && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
}

/// A URL whose scheme ends at `start`: up to a blank, quote or bracket, without the sentence's own punctuation.
fn url(text: &str, start: usize) -> &str {
    let stop = |c: char| {
        c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`' | '{' | '}' | '|' | '^' | '\\')
    };
    let end = text[start..].find(stop).map_or(text.len(), |found| start + found);
    let url = &text[..end];
    let trimmed =
        url.trim_end_matches(['/', '.', ',', ';', ':', '!', '?', ')', ']', '*', '…', '。', '、', '，', '）']);
    &text[..trimmed.len().max(start)]
}

/// A telephone number that begins at `at`: +1 (555) 010-2233, (030) 123 456, 555-010-2233.
fn phone(text: &str, at: usize) -> Option<&str> {
    let bytes = text.as_bytes();
    if !bytes[at].is_ascii_digit() {
        return None;
    }
    let before = at.checked_sub(1).map(|before| bytes[before]);
    let marked = matches!(before, Some(b'+' | b'('));
    // Only what is marked as a number may have spaces in it; else any two counts would be one.
    let (mut end, mut digits, mut groups, mut gap) = (at, 0, 1, 0);
    for (i, byte) in bytes[at..].iter().enumerate().take(40) {
        match byte {
            b'0'..=b'9' => {
                groups += usize::from(gap > 0);
                (digits, gap, end) = (digits + 1, 0, at + i + 1);
            }
            b'-' => gap += 1,
            b' ' | b'(' | b')' | b'.' | b'/' if marked => gap += 1,
            _ => break,
        }
        if gap > 2 {
            break;
        }
    }
    let whole = (7..=15).contains(&digits) && (groups > 1 || before == Some(b'+'));
    let stops = text[end..].chars().next().is_none_or(|c| class(c) != Class::Word && c != '_' && c != '@');
    let starts = before.is_none_or(|b| !matches!(b, b'-' | b'.' | b'/' | b'_' | b'@' | b':'));
    (whole && stops && starts).then(|| &text[at - usize::from(before == Some(b'+'))..end])
}

/// The words of a joined piece.
pub fn parts(whole: &str) -> impl Iterator<Item = &str> {
    whole
        .split(|c: char| !matches!(class(c), Class::Word | Class::Dense | Class::Hangul | Class::Ignorable))
        .filter(|part| !part.is_empty())
}

/// The words inside one: camelCase, HTTPServer, order2024. Empty when it is a single one.
pub fn humps(word: &str) -> Vec<&str> {
    const LONGEST: usize = 64;
    if word.len() > LONGEST || word.len() < 3 {
        return Vec::new();
    }
    let plain = |(at, byte): (usize, u8)| byte.is_ascii_lowercase() || at == 0 && byte.is_ascii_uppercase();
    if word.bytes().enumerate().all(plain) {
        return Vec::new(); // nearly every word
    }
    let chars: Vec<(usize, char)> = word.char_indices().collect();
    let plural = chars.len() > 1 && chars[..chars.len() - 1].iter().all(|(_, c)| c.is_uppercase());
    let mut cuts = Vec::new();
    for i in 1..chars.len() {
        let (before, (at, here)) = (chars[i - 1].1, chars[i]);
        let after_is_lower = chars.get(i + 1).is_some_and(|(_, c)| c.is_lowercase());
        let hump = before.is_lowercase() && here.is_uppercase()
            || before.is_uppercase() && here.is_uppercase() && after_is_lower && !plural;
        if hump {
            cuts.push(at);
        }
    }
    if cuts.is_empty() {
        cuts = letters_and_digits(&chars).into_iter().collect();
    }
    if cuts.is_empty() {
        return Vec::new();
    }
    cuts.push(word.len());
    let starts = std::iter::once(0).chain(cuts.iter().copied());
    starts.zip(&cuts).map(|(start, end)| &word[start..*end]).collect()
}

/// Where letters become digits or the reverse, if that happens once and there are at least two letters. More
/// changes are those of a random code, whose fragments say nothing.
fn letters_and_digits(chars: &[(usize, char)]) -> Option<usize> {
    let mut changes = chars.windows(2).filter(|pair| pair[0].1.is_numeric() != pair[1].1.is_numeric());
    let at = changes.next()?[1].0;
    let letters = chars.iter().filter(|(_, c)| !c.is_numeric()).count();
    (changes.next().is_none() && letters >= 2).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<Piece<'_>> {
        let mut out = Vec::new();
        pieces(text, |piece| out.push(piece));
        out
    }

    fn wholes(text: &str) -> Vec<&str> {
        let whole = |piece| match piece {
            Piece::Word(text) | Piece::Dense(text) | Piece::Hangul(text) | Piece::Emoji(text) => Some(text),
            Piece::Joined { whole, .. } => Some(whole),
            Piece::Phone(_) => None,
        };
        found(text).into_iter().filter_map(whole).collect()
    }

    #[test]
    fn identifiers_are_one_piece_and_sentences_are_not() {
        for (text, expected) in [
            ("Mail alice.smith@acme.io, please.", vec!["Mail", "alice.smith@acme.io", "please"]),
            ("see order_2024_001!", vec!["see", "order_2024_001"]),
            ("(/etc/app/conf.bak)", vec!["etc/app/conf.bak"]),
            ("v1.2.3... and v2", vec!["v1.2.3", "and", "v2"]),
            ("TKT-100 is not TKT-1000.", vec!["TKT-100", "is", "not", "TKT-1000"]),
            ("one,two and 1,000.50", vec!["one", "two", "and", "1,000.50"]),
            ("std::vec::Vec<u8>", vec!["std::vec::Vec", "u8"]),
            ("go to https://a.io/x?y=1&z=(2), then", vec!["go", "to", "https://a.io/x?y=1&z=(2", "then"]),
            ("C++ or C# or C+", vec!["C++", "or", "C#", "or", "C+"]),
            ("don't 'quote' me", vec!["don't", "quote", "me"]),
            ("well--known end. Start", vec!["well", "known", "end", "Start"]),
            ("iPhone手机 KBS에서", vec!["iPhone", "手机", "KBS", "에서"]),
            ("ok 👍🏽! 🇩🇪", vec!["ok", "👍🏽", "🇩🇪"]),
            ("?!  -- …", vec![]),
        ] {
            assert_eq!(wholes(text), expected);
        }
    }

    #[test]
    fn telephone_numbers_are_seen_and_counts_are_not() {
        for (text, expected) in [
            ("call +1 (555) 010-2233 now", Some("+1 (555) 010-2233")),
            ("(555) 010-2233", Some("555) 010-2233")),
            ("555-010-2233.", Some("555-010-2233")),
            ("+15550102233", Some("+15550102233")),
            ("between 2000 and 2001", None),
            ("192.168.100.200", None),
            ("10 2000 30000", None),
            ("550e8400-e29b-41d4-a716-446655440000", None),
        ] {
            let phone = found(text).into_iter().find_map(|piece| match piece {
                Piece::Phone(text) => Some(text),
                _ => None,
            });
            assert_eq!(phone, expected, "{text}");
        }
    }

    #[test]
    fn words_inside_words() {
        for (word, expected) in [
            ("getUserName", vec!["get", "User", "Name"]),
            ("HTTPServer", vec!["HTTP", "Server"]),
            ("order2024", vec!["order", "2024"]),
            ("APIs", vec![]),
            ("word", vec![]),
            ("v1", vec![]),
            ("e29b", vec![]),
            ("STRASSE", vec![]),
        ] {
            assert_eq!(humps(word), expected, "{word}");
        }
    }
}
