"""From a question to a plan by rules: dates, names, latest and first, how many, before and after something.

What no rule reads stays as words to match. A question in which the rules find nothing but words is no plan: ordinary
recall answers that better.
"""

import re
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from kektor import times

__all__ = ["compile_question"]

Stage = dict[str, Any]


def compile_question(question: str, *, now: int, tz: str = "UTC") -> dict[str, Any] | None:
    """The plan, as a caller would write it, or None when rules do not help.

    >>> compile_question("What was the latest trip of Dana in 2024?", now=0)["stages"][0]["pipe"]
    [{'sort': {'by': 'time', 'desc': True}}, {'head': 1}]
    """
    text = " ".join(question.split())
    text, event = _event(text)
    text, span = _span(text, now, tz)
    text, order = _order(text)
    text, counting = _counting(text)
    who = _names(text)
    if not (event or span or order or counting):
        return None
    stage: Stage = {"name": "found"}
    sought = _content(text, who)
    if sought:
        stage["match"] = sought
    if who:
        stage["who"] = who
    stages = [stage]
    if event is not None:
        told = _names(event.words)
        before: Stage = {"name": "event", "match": _content(event.words, told) or event.words}
        if told:
            before["who"] = told
        stages.insert(0, {**before, "pipe": [{"head": 1}]})
        span = {**(span or {}), "until" if event.before else "since": "$event.date"}
    if span:
        stage["time"] = span
    pipe = ([{"count": True}] if counting else []) + order
    if pipe:
        stage["pipe"] = pipe
    return {"stages": stages} if len(stage) > 1 else None


class _Event(NamedTuple):
    before: bool
    words: str


_EVENT: Final = re.compile(
    r"\b(?:right |just |shortly |soon )?(?P<word>before|after)\s+"
    r"(?P<words>(?:(?:i|you|he|she|they|we|it|the|my|his|her|their|our)\s+|[A-Z][\w'’]*\s+|\w+ing\b)[^?]*)\??$"
)
_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_MONTH: Final = (
    r"(?P<{0}month>" + "|".join(f"{name[:3]}(?:{name[3:]})?" if name[3:] else name for name in _MONTHS) + r")"
)
_YEAR: Final = r"(?P<{0}year>(?:19|20)\d\d)"
_DATE: Final = "|".join(
    (
        r"(?P<{0}iso>(?:19|20)\d\d-\d\d(?:-\d\d)?)(?!\d)",
        r"(?P<{0}day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? "
        + _MONTH.replace("{0}", "{0}d")
        + r",? "
        + _YEAR.replace("{0}", "{0}d"),
        _MONTH.replace("{0}", "{0}m") + r" (?P<{0}mday>\d{{1,2}})(?:st|nd|rd|th)?,? " + _YEAR.replace("{0}", "{0}m"),
        _MONTH.replace("{0}", "{0}y") + r",? " + _YEAR.replace("{0}", "{0}y"),
        _YEAR,
        r"(?P<{0}near>yesterday|today|(?:last|this) (?:year|month|week))",
    )
)


def _dates(prefix: str) -> str:
    return f"(?:{_DATE.format(prefix)})"


_BETWEEN: Final = re.compile(rf"\b(?:between|from)\s+{_dates('a')}\s+(?:and|to|until|through)\s+{_dates('b')}", re.I)
_BOUND: Final = re.compile(
    rf"\b(?:(?P<word>before|until|by|after|since|in|on|during|at)\s+(?:the\s+)?)?{_dates('a')}\b", re.I
)


def _event(text: str) -> tuple[str, _Event | None]:
    found = _EVENT.search(text)
    if found is None or _BOUND.match(text, found.start("word")):
        return text, None
    return text[: found.start()].strip() + "?", _Event(found["word"] == "before", found["words"].strip())


def _span(text: str, now: int, tz: str) -> tuple[str, dict[str, Any] | None]:
    """The time a question is about, and the question without it."""
    found = _BETWEEN.search(text)
    if found is not None:
        since, until = _date(found, "a", now, tz), _date(found, "b", now, tz)
        if since is not None and until is not None:
            return _cut(text, found), {"since": since, "until": until}
    found = _BOUND.search(text)
    day = None if found is None else _date(found, "a", now, tz)
    if found is None or day is None or (found["ayear"] and not found["word"]):
        return text, None  # four digits alone may be anything
    rest = _cut(text, found)
    match (found["word"] or "").lower():
        case "before":
            return rest, {"until": times.format(times.parse(day, field="until", tz=tz).start - 1)}
        case "until" | "by":
            return rest, {"until": day}
        case "after":
            return rest, {"since": times.format(times.parse(day, field="since", tz=tz).end)}
        case "since":
            return rest, {"since": day}
        case _:
            return rest, {"since": day, "until": day}


def _date(found: re.Match[str], prefix: str, now: int, tz: str) -> str | None:
    """A partial date as a plan takes it; None for a day that no calendar has."""
    part = found.groupdict()
    if near := part[f"{prefix}near"]:
        return _near(near.lower(), now, tz)
    if part[f"{prefix}iso"]:
        date = part[f"{prefix}iso"]
    elif part[f"{prefix}day"]:
        date = f"{part[f'{prefix}dyear']}-{_number(part[f'{prefix}dmonth'])}-{int(part[f'{prefix}day']):02}"
    elif part[f"{prefix}mday"]:
        date = f"{part[f'{prefix}myear']}-{_number(part[f'{prefix}mmonth'])}-{int(part[f'{prefix}mday']):02}"
    elif part[f"{prefix}yyear"]:
        date = f"{part[f'{prefix}yyear']}-{_number(part[f'{prefix}ymonth'])}"
    else:
        date = part[f"{prefix}year"]
    year, month, day = [*(int(number) for number in date.split("-")), 1, 1][:3]
    try:
        datetime(year, month, day)
    except ValueError:
        return None
    return date


def _near(words: str, now: int, tz: str) -> str | None:
    today = datetime.fromtimestamp(now / 1e6, times.zone(tz)).date()
    if words in ("today", "yesterday"):
        return (today - timedelta(days=words == "yesterday")).isoformat()
    if words.endswith("year"):
        return str(today.year - words.startswith("last"))
    if words.endswith("month"):
        first = today.replace(day=1)
        return (first - timedelta(days=1) if words.startswith("last") else first).isoformat()[:7]
    return None  # a week has no partial date


def _number(month: str) -> str:
    return f"{next(n for n, name in enumerate(_MONTHS, 1) if name.startswith(month.lower()[:3])):02}"


_COUNTS: Final = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
_ORDER: Final = re.compile(
    r"\b(?:the |my |his |her |their |our )?(?P<word>latest|newest|most recent|last|first|earliest|oldest)\b"
    rf"(?: (?P<count>\d{{1,2}}|{'|'.join(_COUNTS)})\b)?(?! (?:name|names|year|month|week|time))",
    re.I,
)
_LATE: Final = frozenset({"latest", "newest", "most recent", "last"})


def _order(text: str) -> tuple[str, list[dict[str, Any]]]:
    found = _ORDER.search(text)
    if found is None:
        return text, []
    count = found["count"] or "1"
    number = int(count) if count.isdecimal() else _COUNTS[count.lower()]
    late = found["word"].lower() in _LATE
    steps: list[dict[str, Any]] = [{"sort": {"by": "time", "desc": late}}]
    return _cut(text, found), [*steps, {"head": max(1, number)}]


_COUNTING: Final = re.compile(
    r"^\s*(?:how many(?: times| different| of)?|how often|count(?: the)?|what is the number of)\b", re.I
)


def _counting(text: str) -> tuple[str, bool]:
    found = _COUNTING.search(text)
    return (text, False) if found is None else (_cut(text, found), True)


_WORD: Final = re.compile(r"[^\W_][\w'’.@-]*")
_NO_NAMES: Final = frozenset(_MONTHS) | frozenset(
    re.findall(
        r"\w+",
        "i what who whom whose when where why which how is are was were did does do has have had can could will would "
        "the a an my our his her their in on at list show tell name give find count monday tuesday wednesday thursday "
        "friday saturday sunday english and or if before after since until",
    )
)


def _names(text: str) -> list[str]:
    """Capitalised words that are not how a sentence begins, neighbours as one name; at most four."""
    found: list[list[str]] = []
    last_end = -2
    matches = list(_WORD.finditer(text))
    # Where nearly every word is written large, letters say nothing.
    if sum(match[0][0].isupper() for match in matches[1:]) > max(2, len(matches) // 2):
        return []
    for match in matches:
        word = re.sub(r"['’]s$", "", match[0].rstrip("'’.-"))
        if len(word) < 2 or not word[0].isupper() or word.lower() in _NO_NAMES:
            continue
        if found and match.start() == last_end + 1:
            found[-1].append(word)
        else:
            found.append([word])
        last_end = match.end()
    return list(dict.fromkeys(" ".join(words) for words in found))[:4]


_ASKING: Final = re.compile(
    r"^\s*(?:what|who|whom|which|where|when|list|show me|tell me|name|give me|find)\b"
    r"(?:\s+(?:is|are|was|were|did|does|do|has|have|had|about|all)\b)*",
    re.I,
)


def _content(text: str, names: list[str]) -> str:
    """The words to look for, without those that ask and without names, which are looked for as such."""
    rest = _ASKING.sub("", text)
    for name in names:
        rest = re.sub(rf"\b{re.escape(name)}\b(?:['’]s)?", " ", rest)
    rest = re.sub(r"\b(?:did|does|do|was|were|is|are|has|have|had|happen(?:ed)?|there)\b", " ", rest, flags=re.I)
    words = [word.strip("?!.,;: ") for word in rest.split()]
    kept = [word for word in words if word and word.lower() not in _FILLERS]
    return " ".join(kept)


_FILLERS: Final = frozenset(
    re.findall(
        r"\w+",
        "a an the of to in on at by for with from about and or i me my you your he she it they we us his her their our "
        "its this that these those be been than then so as go goes went",
    )
)


def _cut(text: str, found: re.Match[str]) -> str:
    return " ".join(f"{text[: found.start()]} {text[found.end() :]}".split())
