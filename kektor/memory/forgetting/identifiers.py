"""Identifiers in a text, whole, and under one name however they are written."""

import re
from collections.abc import Callable, Iterator

from kektor.text import unmask

__all__ = ["identifiers", "spelled"]

_AT = r"at|arroba|arobase|chiocciola|собака|собачка"
_DOT = r"dot|punto|punkt|point|ponto|точка"


def _ascii(pattern: str) -> re.Pattern[str]:
    """Letters of other scripts end an identifier, as they do where words have no spaces between them."""
    return re.compile(pattern, re.ASCII | re.IGNORECASE)


_BRACKETED_AT = _ascii(rf"\s*[(\[{{<]\s*(?:@|{_AT})\s*[)\]}}>]\s*")
_BRACKETED_DOT = _ascii(rf"\s*[(\[{{<]\s*(?:\.|{_DOT})\s*[)\]}}>]\s*")
_SPOKEN = _ascii(
    rf"(?<![\w@.])([\w.+-]+)\s+(?:{_AT})\s+"
    rf"([\w-]+(?:\s*(?:\.|\s(?:{_DOT})\s)\s*[\w-]+)*\s*(?:\.|\s(?:{_DOT})\s)\s*[a-z]{{2,12}})(?![\w@])"
)
_SPOKEN_DOT = _ascii(rf"\s*(?:\.|\s(?:{_DOT})\s)\s*")
_SPACED_AT = _ascii(r"(?<=[a-z0-9])\s*@\s*(?=[a-z0-9-]+\s*\.\s*[a-z]{2,})")

_EMAIL = _ascii(r"[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*@[a-z0-9-]+(?:\.[a-z0-9-]+)+")
_URL = _ascii(
    r"(?:https?|ftp|ssh|git|wss?)://[^\s<>\"'()\[\]{}]+|www\.[a-z0-9-]+\.[^\s<>\"'()\[\]{}]+"
    r"|(?<![\w@./-])(?:[a-z0-9-]+\.)+[a-z]{2,12}(?::\d+)?/[^\s<>\"'()\[\]{}]*"
)
_PATH = _ascii(
    r"(?<![\w/.@:-])(?:[a-z]:[\\/]|~?/|\.{1,2}/|\\\\)[\w.@+~%-]+(?:[\\/][\w.@+~%-]+)*[\\/]?"
    r"|(?<![\w/.@:-])[\w.@-]+(?:/[\w.@-]+){2,}/?"
)
_IBAN = _ascii(r"(?<![a-z0-9])[a-z]{2}\d{2}(?:[ -]?[a-z0-9]{4}){2,7}(?:[ -]?[a-z0-9]{1,4})?(?![a-z0-9])")
_DATE = _ascii(r"(?<![\d.-])(\d{4})[-/.](\d{1,2})(?:[-/.](\d{1,2}))?(?![\d-])")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_MONTH = "|".join(f"{name}|{name[:3]}" for name in _MONTHS)
_NAMED_DATE = _ascii(
    rf"(?<![a-z])(?:(\d{{1,2}})(?:st|nd|rd|th)?\.?\s+(?:of\s+)?)?({_MONTH})\.?"
    r"(?:\s+(\d{1,2})(?:st|nd|rd|th)?(?!\d))?,?\s+(\d{4})(?!\d)"
)
_ADDRESS = _ascii(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2}|:\d{1,5})?(?![\d.]*\d)")
_DIGITS = _ascii(r"(?<![\w.,_-])(?:\+|00)?\(?\d(?:[ ().\-/]{0,2}\d){6,18}(?![\w])(?!\.\d)")
_HOST = _ascii(r"(?<![\w@./-])[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,12}(?::\d+)?(?![\w@-])(?!\.\w)")
_HANDLE = _ascii(r"(?<![\w@.])[@#][a-z0-9_][a-z0-9_.-]*[a-z0-9_]|(?<![\w@.])[@#][a-z0-9]")
_CODE = _ascii(r"(?<![a-z0-9])[a-z0-9]+(?:[-_.:#/][a-z0-9]+)*(?![a-z0-9])")
_NUMBER = _ascii(r"(?<![\w.,-])[-+]?\d{1,3}(?:[,'\s]\d{3})+(?:\.\d+)?(?!\d)|(?<![\w.-])[-+]?\d+(?:[.,]\d+)?(?![\d])")
_APART = _ascii(r"(?<![a-z0-9_-])([a-z]{1,12})\s*[-–#:№nº°.]*\s*(\d+(?:[-_]\d+)*)(?![a-z0-9_-])(?!\.\d)")
_PARTS = _ascii(r"[a-z]+|\d+")
_TAILS = _ascii(r"-(?:related|based|style|like|specific|ish)$")

_COUNTRY = _ascii(r"(?:1|7|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|\d{3})")


def identifiers(text: str) -> frozenset[str]:
    """Every identifier and number of a text, each under all the names it goes by; equal names are the same one.

    >>> identifiers("mail alice.smith@acme.io") & identifiers("alice@acme.io")
    frozenset()
    >>> bool(identifiers("+1 (555) 010-2233") & identifiers("his number: 5550102233"))
    True
    >>> bool(identifiers("TKT-100") & identifiers("about ticket TKT 100, fixed")), identifiers("TKT-100") & {"tkt-1000"}
    (True, frozenset())
    """
    return frozenset(_named(_plain_addresses(unmask(text))))


def spelled(text: str) -> str:
    """A text with the signs of an address, and the dates, written as such where they are spelled out.

    >>> spelled("alice (at) acme dot io on 5 March 2024")
    'alice@acme.io on 2024-03-05'
    """

    def date(found: re.Match[str]) -> str:
        day = found[1] or found[3]
        return f"{found[4]}-{_month(found[2]):02}{f'-{int(day):02}' if day else ''}"

    return _NAMED_DATE.sub(date, _plain_addresses(text))


def _plain_addresses(text: str) -> str:
    plain = _BRACKETED_DOT.sub(".", _BRACKETED_AT.sub("@", text))
    plain = _SPACED_AT.sub("@", plain)
    return _SPOKEN.sub(lambda found: f"{found[1]}@{_SPOKEN_DOT.sub('.', found[2])}", plain)


def _named(text: str) -> Iterator[str]:
    """From the most telling form to the least; what one form has taken the next does not see."""
    text, taken = _take(_URL, text)
    for found in taken:
        whole = re.sub(r"^(?:[a-z]+://)?(?:www\.)?", "", found.rstrip("/.,;:!?"))
        yield f"url:{whole.partition('#')[0].rstrip('/')}"
    text, taken = _take(_EMAIL, text)
    yield from (f"mail:{found.rstrip('.')}" for found in taken)
    text, taken = _take(_PATH, text)
    yield from (f"path:{found.replace(chr(92), '/').rstrip('/.,;:')}" for found in taken)
    text, taken = _take(_IBAN, text, lambda found: sum(map(str.isdigit, found)) >= 6)
    yield from (f"code:{re.sub('[ -]', '', found)}" for found in taken)
    text, taken = _take(_DATE, text)
    for found in taken:
        match = _DATE.match(found)
        assert match is not None
        yield from _dates(match[1], int(match[2]), match[3])
    text, named = _take_matches(_NAMED_DATE, text)
    for match in named:
        yield from _dates(match[4], _month(match[2]), match[1] or match[3])
    text, taken = _take(_ADDRESS, text)
    yield from (f"ip:{found}" for found in taken)
    for match in _APART.finditer(text):
        yield "-".join(_PARTS.findall(f"{match[1]}-{match[2]}"))
    text, taken = _take(_DIGITS, text)
    for found in taken:
        yield from _numbers_of_people(found)
    yield from (f"host:{found}" for found in _HOST.findall(text) if not found.replace(".", "").isdigit())
    yield from (f"at:{found.strip('@#.')}" for found in _HANDLE.findall(text))
    for found in _CODE.findall(text):
        if len(parts := _PARTS.findall(found)) > 1:
            yield "-".join(parts)
            shorter = _TAILS.sub("", "-".join(parts))
            if shorter != "-".join(parts):
                yield shorter
    for found in _NUMBER.findall(text):
        number = re.sub(r"[,'\s](?=\d{3}(?:\D|$))", "", found).lstrip("+")
        yield f"n:{number.replace(',', '.')}"


def _month(name: str) -> int:
    return next(n for n, known in enumerate(_MONTHS, 1) if known.startswith(name[:3].casefold()))


def _dates(year: str, month: int, day: str | None) -> Iterator[str]:
    yield f"n:{year}"
    yield f"date:{year}-{month:02}"
    if day:
        yield f"date:{year}-{month:02}-{int(day):02}"


def _numbers_of_people(found: str) -> Iterator[str]:
    """A telephone number with and without its country; any other long number simply by its digits."""
    digits = re.sub(r"\D", "", found)
    yield f"digits:{digits}"
    international = found.lstrip("(").startswith(("+", "00"))
    if international:
        digits = digits.removeprefix("00")
        yield f"digits:{digits}"
        country = _COUNTRY.match(digits)
        if country is not None:
            yield f"digits:{digits[country.end() :].removeprefix('0')}"
    elif digits.startswith("0") or (digits.startswith("1") and len(digits) == 11):
        yield f"digits:{digits[1:]}"


def _take(pattern: re.Pattern[str], text: str, wanted: Callable[[str], bool] = bool) -> tuple[str, list[str]]:
    """The text without what a pattern finds, and what it found."""
    rest, matches = _take_matches(pattern, text, wanted)
    return rest, [match[0] for match in matches]


def _take_matches(
    pattern: re.Pattern[str], text: str, wanted: Callable[[str], bool] = bool
) -> tuple[str, list[re.Match[str]]]:
    matches = [match for match in pattern.finditer(text) if wanted(match[0])]
    for match in reversed(matches):
        text = f"{text[: match.start()]} \x00 {text[match.end() :]}"
    return text, matches
