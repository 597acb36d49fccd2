"""Where sentences begin and end, in code points, without a model."""

import re
from typing import NamedTuple

__all__ = ["CUT", "Span", "blank", "sentences", "touched"]

CUT = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Stands for each code point that was erased from a text whose other offsets must stay."""

_STOP = re.compile(r"(?:[.!?…]+[)\]»”’\"']*(?=\s|$))|[。！？｡।۔]+[」』）”’]*|\n+|[\r\v\f\x85\u2028\u2029]+")
_ABBREVIATED = re.compile(
    r"(?:^|[\s(\[«“\"'])(?:[^\W\d_]|dr|mr|mrs|ms|prof|st|sr|jr|vs|etc|e\.g|i\.e|no|nr|inc|ltd|co|corp|dept|approx|ca|cf"
    r"|fig|vol|ed|al|a\.m|p\.m|jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec|bzw|z\.b|sig|dott|ing)\.$",
    re.IGNORECASE,
)


class Span(NamedTuple):
    """Part of a text: `text[start:end]`."""

    start: int
    end: int


def sentences(text: str) -> list[Span]:
    """The sentences of a text without the white space between them, in order.

    >>> [text[a:b] for text in ["Dr. Vos lives in Riga. She paid 3.50 for it!"] for a, b in sentences(text)]
    ['Dr. Vos lives in Riga.', 'She paid 3.50 for it!']
    """
    found, start = [], 0
    for stop in _STOP.finditer(text):
        if stop[0][0] == "." and not _ends(text, start, stop):
            continue
        found.append(_trimmed(text, start, stop.end()))
        start = stop.end()
    found.append(_trimmed(text, start, len(text)))
    return [span for span in found if span.start < span.end]


def touched(text: str, spans: list[Span]) -> list[Span]:
    """The sentences that some spans touch, each once."""
    return [one for one in sentences(text) if any(one.start < span.end and span.start < one.end for span in spans)]


def blank(text: str, spans: list[Span]) -> str:
    """The text with each code point of some spans replaced.

    >>> blank("ab cd", [Span(1, 4)])
    'a\ufffc\ufffc\ufffcd'
    """
    chars = list(text)
    for span in spans:
        for at in range(span.start, span.end):
            chars[at] = CUT
    return "".join(chars)


def _ends(text: str, start: int, stop: re.Match[str]) -> bool:
    """Whether a full stop ends a sentence rather than an abbreviation or an initial."""
    before = text[max(start, stop.start() - 12) : stop.start() + 1]
    if len(stop[0]) == 1 and _ABBREVIATED.search(before):
        return False
    following = text[stop.end() : stop.end() + 8].lstrip()
    return not following[:1].islower()


def _trimmed(text: str, start: int, end: int) -> Span:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return Span(start, end)
