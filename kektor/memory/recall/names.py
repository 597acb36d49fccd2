"""Names in a text, by the signs that writing gives: capitals inside a sentence, where a script has them."""

import re
from collections.abc import Iterator

from kektor.text import content_terms

__all__ = ["identifiers_in", "names_in", "subject_names"]

_WORD = re.compile(r"[^\W_][\w'’.@-]*")
_SENTENCE_END = re.compile(r"[.!?:;\n\"“”«»]\s*$")
_POSSESSIVE = re.compile(r"['’]s?$")

# Capitalised inside an English sentence without naming anybody whom a memory could know.
_COMMON = frozenset({
    "i", "i'm", "i've", "i'd", "i'll", "mr", "mrs", "ms", "dr", "am", "pm", "ok", "english", "monday",
    "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "january", "february", "march",
    "april", "may", "june", "july", "august", "september", "october", "november", "december",
})  # fmt: skip


def names_in(text: str, *, opening: bool = False) -> Iterator[str]:
    """The names of a text, of one word or of several in a row; with `opening` also where a sentence begins.

    It abstains where capitals are no sign of a name: scripts without them, and headlines.

    >>> list(names_in("Does Quentin know where Anna Smith lives?"))
    ['Quentin', 'Anna Smith']
    """
    words = [(match, _POSSESSIVE.sub("", match[0].rstrip("'’.-"))) for match in _WORD.finditer(text)]
    inside = [word for _, word in words[1:]]
    if len(inside) > 2 and sum(word[:1].isupper() for word in inside) > (len(inside) + 1) // 2:
        return
    row: list[str] = []
    end = -1
    for match, word in words:
        if not _is_name(text, match, word, opening=opening):
            continue
        if row and text[end : match.start()].strip(" ") == "" and end >= 0:
            row.append(word)
        else:
            if row:
                yield " ".join(row)
            row = [word]
        end = match.start() + len(word) if match[0] == word else -1
    if row:
        yield " ".join(row)


def _is_name(text: str, match: re.Match[str], word: str, *, opening: bool) -> bool:
    if len(word) < 3 or not word[0].isupper() or word.casefold() in _COMMON:
        return False
    begins = not text[: match.start()].strip() or _SENTENCE_END.search(text[: match.start()])
    return not begins or (opening and bool(content_terms(word, "english")))


_OPENS = re.compile(r"^\W*([^\W\d_][\w-]+)(?:\s+[^\W\d_A-Z][\w-]*)")
_OWNER = re.compile(r"\b([^\W\d_][\w-]+)['’]s\b")


def subject_names(sentence: str) -> Iterator[str]:
    """Names that stand where a sentence says whom it is about: before its verb, or as an owner.

    >>> list(subject_names("Melanie went hiking, and Caroline's bike broke"))
    ['Melanie', 'Caroline']
    """
    opens = _OPENS.match(sentence)
    found = ([opens] if opens else []) + list(_OWNER.finditer(sentence))
    for match in found:
        word = match[1]
        if word[0].isupper() and len(word) > 2 and word.casefold() not in _COMMON and content_terms(word, "english"):
            yield word


_IDENTIFIER = re.compile(r"(?<![\w#@.:/-])(?=[^\s]*\d)[#@]?[^\W_][\w.:/#@-]*[^\W_](?![\w-])")
_CALENDAR = re.compile(
    r"(?:19|20)\d\d|\d{1,3}|\d{1,4}[-/.]\d{1,2}(?:[-/.]\d{1,4})?|\d{1,2}:\d\d.*|\d[\d.,]*[^\W\d]+|[\d.,]+"
)


def identifiers_in(text: str) -> Iterator[str]:
    """What names one thing by letters and digits; no years, dates, times, small numbers or amounts.

    >>> list(identifiers_in("Did TKT-100 or order 1002 ship on 2024-05-03, at 10:30, 3rd of the 90s, 25km away?"))
    ['TKT-100', '1002']
    """
    for match in _IDENTIFIER.finditer(text):
        word = match[0]
        if (re.fullmatch(r"\d{4,}", word) and not re.fullmatch(r"(?:19|20)\d\d", word)) or not _CALENDAR.fullmatch(
            word
        ):
            yield word
