"""What a caller means by a time, as exact integers: microseconds since 1970-01-01T00:00:00Z.

A date without a clock time is an extent: `2024` is the whole year. A time with a clock time is one instant,
an epoch number too: an extent of one microsecond, the resolution of the database.
"""

import calendar
import difflib
import math
import re
import zoneinfo
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from fractions import Fraction
from functools import lru_cache
from typing import Final, Literal

import msgspec

from kektor.errors import Invalid

__all__ = [
    "FIRST",
    "LAST",
    "Extent",
    "Precision",
    "as_end",
    "as_of",
    "as_start",
    "date_words",
    "day",
    "day_words",
    "format",
    "parse",
    "validity_label",
    "zone",
]

Precision = Literal["year", "month", "day", "instant"]

FIRST: Final = -62_135_596_800_000_000
"""0001-01-01T00:00:00Z, the earliest instant that can be named."""

LAST: Final = 253_402_300_799_999_999
"""9999-12-31T23:59:59.999999Z, the latest instant that can be named."""


class Extent(msgspec.Struct, frozen=True):
    """What one given time covers: `start` ≤ t < `end`, in microseconds since the epoch, UTC.

    Against a stored instant t: `=` is start ≤ t < end, `>` is t ≥ end, `>=` is t ≥ start, `<` is t < start
    and `<=` is t < end. An instant has end = start + 1, which makes the five exact for it too.
    """

    start: int
    end: int
    precision: Precision
    words: str
    """The time as it was given; a number or a `datetime` has no words, and gets those of `format`."""


def parse(value: object, *, field: str, tz: str = "UTC") -> Extent:
    """The extent that a caller's time covers.

    `value` is RFC 3339 text, a local date-time without offset (read in `tz`), a date as `YYYY`, `YYYY-MM` or
    `YYYY-MM-DD` (its whole extent in `tz`), a number of seconds since the epoch, a `datetime` or a `date`.
    `field` names the argument in errors. A local time that the clocks showed twice is the first of the two.

    Raises `Invalid` for anything else: other text, impossible dates, local times that clocks skipped, leap
    seconds, more than six decimal places, years outside 0001 to 9999, epoch numbers that look like
    milliseconds, an unknown `tz`.

    >>> extent = parse("2024-02", field="valid_from")
    >>> format(extent.start), format(extent.end), extent.precision
    ('2024-02-01T00:00:00Z', '2024-03-01T00:00:00Z', 'month')
    >>> parse(1_700_000_000.5, field="at").words
    '2023-11-14T22:13:20.500000Z'
    """
    local = zone(tz)
    # bool is an int and datetime is a date: the narrower type is asked for first.
    if isinstance(value, bool):
        raise _invalid(field, f"{value} is not a time")
    if isinstance(value, int | float):
        return _from_epoch(value, field)
    if isinstance(value, datetime):
        start = _named(_instant(value, local, field), field, value)
        return Extent(start, start + 1, "instant", format(start))
    if isinstance(value, date):
        return _from_date(value.year, value.month, value.day, str(value), local, field)
    if isinstance(value, str):
        return _from_text(value, local, field)
    raise _invalid(field, f"a {type(value).__name__} is not a time")


def as_start(extent: Extent) -> int:
    """The instant from which something holds: the first one inside.

    >>> format(as_start(parse("2024", field="valid_from")))
    '2024-01-01T00:00:00Z'
    """
    return extent.start


def as_end(extent: Extent) -> int:
    """The instant at which something stops to hold: after the last day of a date, at an instant itself.

    The end of the year 9999 is given as `LAST`, since no text can name what follows it.

    >>> format(as_end(parse("2024", field="valid_to")))
    '2025-01-01T00:00:00Z'
    >>> format(as_end(parse("2024-06-01T12:00:00Z", field="valid_to")))
    '2024-06-01T12:00:00Z'
    """
    return extent.start if extent.precision == "instant" else min(extent.end, LAST)


def as_of(extent: Extent) -> int:
    """The instant that a question about this time asks about: the last one inside.

    >>> format(as_of(parse("2024", field="as_of")))
    '2024-12-31T23:59:59.999999Z'
    """
    return extent.end - 1


def format(instant: int) -> str:  # noqa: A001 — read as times.format
    """RFC 3339 in UTC, with microseconds only when there are any.

    >>> format(0), format(1_500_000)
    ('1970-01-01T00:00:00Z', '1970-01-01T00:00:01.500000Z')
    """
    return f"{(_EPOCH + timedelta(microseconds=instant)).isoformat()}Z"


def validity_label(
    start: int | None,
    end: int | None,
    now: int,
    *,
    start_words: str | None = None,
    end_words: str | None = None,
    superseded: bool = False,
) -> str:
    """A validity in words that a model can read, with the times as they were given.

    `start` and `end` are instants (`end` exclusive) or None for open; without words an instant is printed as
    its day in UTC. A version that a later one replaced is never called current, also when its validity has no
    end.

    >>> now = parse("2026-04-01", field="now").start
    >>> validity_label(None, None, now)
    'current'
    >>> validity_label(None, as_start(parse("2026-03-01", field="at")), now)
    'until 2026-03-01'
    >>> validity_label(as_start(parse("2026-06-01", field="at")), None, now, start_words="2026-06-01")
    'from 2026-06-01'
    """
    if start is not None and end is not None and end <= start:
        return "superseded" if superseded else "never"
    if end is None:
        if superseded:
            return "superseded"
        if start is None or start <= now:
            return "current"
        return f"from {start_words or _day_words(start)}"
    if start is None:
        return f"until {end_words or _day_words(end)}"
    begins, ends = start_words or _day_words(start), end_words or _day_words(end)
    if begins == ends and not (start_words and end_words):
        begins, ends = start_words or format(start), end_words or format(end)
    return f"{begins} to {ends}" if start <= now else f"from {begins} to {ends}"


def day(instant: int, tz: str = "UTC") -> Extent:
    """The calendar day in `tz` that holds an instant.

    >>> day(parse("2026-03-01T23:30:00Z", field="now").start, "Europe/Rome").words
    '2026-03-02'
    """
    local = zone(tz)
    there = (_EPOCH + timedelta(microseconds=instant)).replace(tzinfo=UTC).astimezone(local)
    return _from_date(there.year, there.month, there.day, str(there.date()), local, "now")


def date_words(instant: int, words: str) -> str:
    """A date as it was given, be it a year or a month; of anything finer the day in UTC.

    >>> extent = parse("2024", field="at")
    >>> date_words(extent.start, extent.words)
    '2024'
    >>> extent = parse("2024-05-03T22:00:00-05:00", field="at")
    >>> date_words(extent.start, extent.words)
    '2024-05-04'
    """
    return words if _PARTIAL.fullmatch(words) else _day_words(instant)


def day_words(instant: int) -> str:
    """The day of an instant in UTC as English says it, which is how it is asked for.

    >>> day_words(parse("2023-05-08T13:56:00Z", field="at").start)
    'Monday 8 May 2023'
    """
    there = _EPOCH + timedelta(microseconds=instant)
    return f"{calendar.day_name[there.weekday()]} {there.day} {calendar.month_name[there.month]} {there.year}"


@lru_cache(maxsize=256)
def zone(tz: str) -> tzinfo:
    """The time zone of an IANA name such as `Europe/Rome`; `Invalid` when there is none of that name."""
    if tz == "UTC":
        return UTC
    try:
        return zoneinfo.ZoneInfo(tz)
    except (KeyError, ValueError, OSError):
        pass
    names = _zone_names()
    if not names:
        raise Invalid(
            f"tz: {_shown(tz)} cannot be looked up, as this system has no time zone database; "
            "install the Python package tzdata, or use UTC",
            field="tz",
        )
    near = difflib.get_close_matches(tz[:64], names, n=1)
    raise Invalid(
        f"tz: there is no time zone {_shown(tz)}"
        + (f", did you mean {near[0]!r}?" if near else "; names are those of the IANA database, such as 'Europe/Rome'"),
        field="tz",
    )


_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_ORDINAL: Final = _EPOCH.toordinal()
_MICROSECOND: Final = timedelta(microseconds=1)
_DAY: Final = 86_400_000_000
_MILLISECONDS_FROM: Final = 100_000_000_000

_PARTIAL = re.compile(r"\d{4}(-\d\d(-\d\d)?)?", re.ASCII)
_FORM: Final = re.compile(
    r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2})(?:[Tt ]"
    r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?)?"
    r"(?P<offset>[Zz]|[+-][0-9]{2}:[0-9]{2})?)?)?)?"
)
_CLOCK: Final = ("year", "month", "day", "hour", "minute", "second")
_ACCEPTED: Final = (
    "RFC 3339 such as 2026-03-01T12:00:00Z",
    "a local date-time such as 2026-03-01T12:00:00",
    "a date such as 2026, 2026-03 or 2026-03-01",
    "seconds since the epoch",
)


def _from_epoch(value: int | float, field: str) -> Extent:
    if isinstance(value, float) and not math.isfinite(value):
        raise _invalid(field, f"{value} is not a time")
    if abs(value) >= _MILLISECONDS_FROM:
        raise _invalid(
            field, f"{_shown(value)} looks like milliseconds, and epoch numbers are seconds: divide by 1,000"
        )
    # A float of this size is good to a quarter of a microsecond at best: the nearest one is what was meant.
    start = _named(round(Fraction(value) * 1_000_000), field, value)
    return Extent(start, start + 1, "instant", format(start))


def _from_text(words: str, local: tzinfo, field: str) -> Extent:
    form = _FORM.fullmatch(words) if len(words) <= 64 else None
    if form is None:
        hint = ", because of the white space around it" if words.strip() != words and words.strip() else ""
        raise _invalid(field, f"{_shown(words)} is not a time{hint}")
    if form["hour"] is None:
        month, day_of_month = _number(form["month"]), _number(form["day"])
        return _from_date(int(form["year"]), month, day_of_month, words, local, field)
    if form["second"] == "60":
        raise _invalid(field, f"{_shown(words)} is a leap second, which no clock here has; use second 59")
    if int(form["second"] or 0) > 59:
        raise _invalid(field, f"{_shown(words)} does not exist: a minute has seconds 00 to 59")
    fraction = (form["fraction"] or "").rstrip("0")
    if len(fraction) > 6:
        raise _invalid(field, f"{_shown(words)} is finer than a microsecond; give at most six decimal places")
    year, month, day_of_month, hour, minute, second = (int(form[part] or 0) for part in _CLOCK)
    _refuse_impossible(words, field, year, month, day_of_month, hour, minute)
    clock = datetime(year, month, day_of_month, hour, minute, second, int(fraction.ljust(6, "0")))
    start = _named(_instant(clock, _offset(form["offset"], local, words, field), field), field, words)
    return Extent(start, start + 1, "instant", words)


def _from_date(year: int, month: int | None, day_of_month: int | None, words: str, local: tzinfo, field: str) -> Extent:
    first_month, first_day = 1 if month is None else month, 1 if day_of_month is None else day_of_month
    _refuse_impossible(words, field, year, first_month, first_day)
    first = date(year, first_month, first_day)
    precision: Precision
    if month is None:
        precision, days = "year", 366 if calendar.isleap(year) else 365
    elif day_of_month is None:
        precision, days = "month", calendar.monthrange(year, month)[1]
    else:
        precision, days = "day", 1
    start = _named(_midnight(first.toordinal(), local), field, words)
    end = _midnight(first.toordinal() + days, local)
    if end <= start:  # Samoa had no 30 December 2011
        raise _invalid(field, f"{_shown(words)} does not exist in {local}: its clocks skipped that day")
    return Extent(start, end, precision, words)


def _refuse_impossible(
    words: str, field: str, year: int, month: int, day_of_month: int, hour: int = 0, minute: int = 0
) -> None:
    flaw = None
    if year == 0:
        flaw = "years begin with 0001"
    elif not 1 <= month <= 12:
        flaw = "a year has months 01 to 12"
    elif day_of_month not in range(1, (days := calendar.monthrange(year, month)[1]) + 1):
        flaw = f"{year:04}-{month:02} has days 01 to {days}"
    elif hour > 23:
        flaw = "a day has hours 00 to 23"
    elif minute > 59:
        flaw = "an hour has minutes 00 to 59"
    if flaw:
        raise _invalid(field, f"{_shown(words)} does not exist: {flaw}")


def _midnight(ordinal: int, local: tzinfo) -> int:
    """When a local day begins; where clocks skip midnight, at the moment they do."""
    at = datetime.fromordinal(min(ordinal, date.max.toordinal()))
    return (ordinal - _EPOCH_ORDINAL) * _DAY - _offset_at(at, local) // _MICROSECOND


def _instant(clock: datetime, local: tzinfo, field: str) -> int:
    own = clock.utcoffset()
    naive = clock.replace(tzinfo=None)
    if own is None:
        own = _offset_at(naive, local)
        # PEP 495: only for a time that clocks skipped is the second reading further east than the first.
        if _offset_at(naive.replace(fold=0), local) < _offset_at(naive.replace(fold=1), local):
            raise _invalid(field, f"'{naive}' does not exist in {local}: its clocks skipped that time")
    return (naive - _EPOCH - own) // _MICROSECOND


def _offset(text: str | None, local: tzinfo, words: str, field: str) -> tzinfo:
    if text is None:
        return local
    if text in "Zz":
        return UTC
    hours, minutes = int(text[1:3]), int(text[4:6])
    if hours > 23 or minutes > 59:
        raise _invalid(field, f"{_shown(words)} has an impossible offset, {text}")
    return timezone(timedelta(hours=hours, minutes=minutes) * (-1 if text[0] == "-" else 1))


def _offset_at(naive: datetime, local: tzinfo) -> timedelta:
    return naive.replace(tzinfo=local).utcoffset() or timedelta()


def _named(instant: int, field: str, value: object) -> int:
    if FIRST <= instant <= LAST:
        return instant
    raise _invalid(field, f"{_shown(value)} lies outside the years 0001 to 9999 in UTC")


def _number(digits: str | None) -> int | None:
    return int(digits) if digits else None


def _day_words(instant: int) -> str:
    return format(instant)[:10]


@lru_cache(maxsize=1)
def _zone_names() -> list[str]:
    return sorted(zoneinfo.available_timezones())


def _shown(value: object) -> str:
    """A caller's value, short enough to stand in a message."""
    if isinstance(value, int) and value.bit_length() > 128:
        return f"a number of {value.bit_length()} bits"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 48 else f"{text[:40]}…"


def _invalid(field: str, what: str) -> Invalid:
    return Invalid(
        f"{field}: {what}. Accepted are {'; '.join(_ACCEPTED)}.",
        field=field,
        details={"accepted": list(_ACCEPTED)},
    )
