"""The dates that a sentence says it holds between."""

import re

from kektor import times
from kektor.errors import Invalid

__all__ = ["take_dates"]

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_DATE = (
    r"(?:\d{4}-\d{2}-\d{2}|\d{4}-\d{2}|(?:\d{1,2}(?:st|nd|rd|th)? )?(?:" + "|".join(_MONTHS) + r")"
    r"(?: \d{1,2}(?:st|nd|rd|th)?)?,? \d{4}|\d{4})"
)
_CLOSING = re.compile(
    rf",?\s+(?:(?P<word>since|until|till|through|as of|starting(?: in| from| on)?|in|during|from|between)\s+)"
    rf"(?P<one>{_DATE})(?:\s*(?:to|until|till|through|and|-|–)\s*(?P<two>{_DATE}|now|today))?\s*$",
    re.IGNORECASE,
)


def take_dates(sentence: str) -> tuple[str, int | None, int | None]:
    """The sentence without the dates at its end, and the interval they name.

    >>> take_dates("Dana was a vegetarian from 2014 to 2024")[0]
    'Dana was a vegetarian'
    """
    found = _CLOSING.search(sentence)
    if found is None:
        return sentence, None, None
    one, two = _extent(found["one"]), _extent(found["two"])
    word = found["word"].casefold().split()[0]
    if one is None:
        return sentence, None, None
    rest = sentence[: found.start()]
    if word in ("until", "till", "through"):
        return rest, None, times.as_end(one)
    if two is not None or found["two"]:
        return rest, times.as_start(one), None if two is None else times.as_end(two)
    if word in ("in", "during", "between"):
        # "was born in 1984" says what, not when.
        return sentence, None, None
    return rest, times.as_start(one), None


def _extent(words: str | None) -> times.Extent | None:
    if words is None:
        return None
    lower = words.casefold()
    month = next((number for number, name in enumerate(_MONTHS, 1) if name in lower), None)
    if month is not None:
        numbers = [int(number) for number in re.findall(r"\d+", lower)]
        days = [f"-{number:02}" for number in numbers[:-1]]
        lower = f"{numbers[-1]:04}-{month:02}{days[0] if days else ''}"
    try:
        return times.parse(lower, field="text")
    except Invalid:
        return None  # the thirtieth of February is part of the sentence and no date
