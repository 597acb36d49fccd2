"""What a caller means by a time."""

import math
from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kektor import times
from kektor.errors import Invalid
from kektor.times import Extent, as_end, as_of, as_start, parse, validity_label


def at(text: str) -> int:
    return parse(text, field="at").start


def shown(extent: Extent) -> tuple[str, str, str]:
    return times.format(extent.start), times.format(extent.end), extent.precision


@pytest.mark.parametrize(
    ("words", "start", "end", "precision"),
    [
        ("2024", "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z", "year"),
        ("2024-02", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z", "month"),
        ("2024-12", "2024-12-01T00:00:00Z", "2025-01-01T00:00:00Z", "month"),
        ("2024-02-29", "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z", "day"),
        ("0001", "0001-01-01T00:00:00Z", "0002-01-01T00:00:00Z", "year"),
        ("2026-03-01T12:00:00Z", "2026-03-01T12:00:00Z", "2026-03-01T12:00:00.000001Z", "instant"),
        ("2026-03-01t12:00:00z", "2026-03-01T12:00:00Z", "2026-03-01T12:00:00.000001Z", "instant"),
        ("2026-03-01 12:00:00+02:00", "2026-03-01T10:00:00Z", "2026-03-01T10:00:00.000001Z", "instant"),
        ("2026-03-01T12:00:00-00:30", "2026-03-01T12:30:00Z", "2026-03-01T12:30:00.000001Z", "instant"),
        ("2026-03-01T12:00:00.25Z", "2026-03-01T12:00:00.250000Z", "2026-03-01T12:00:00.250001Z", "instant"),
        (
            "2026-03-01T12:00:00.000001000Z",
            "2026-03-01T12:00:00.000001Z",
            "2026-03-01T12:00:00.000002Z",
            "instant",
        ),
        ("2026-03-01T12:30", "2026-03-01T12:30:00Z", "2026-03-01T12:30:00.000001Z", "instant"),
    ],
)
def test_each_form_covers_its_extent_and_keeps_its_words(words: str, start: str, end: str, precision: str) -> None:
    extent = parse(words, field="at")
    assert shown(extent) == (start, end, precision)
    assert extent.words == words


def test_the_last_year_can_be_asked_for_though_nothing_names_its_end() -> None:
    extent = parse("9999", field="valid_to")
    assert as_of(extent) == times.LAST
    assert as_end(extent) == times.LAST
    again = parse(times.format(as_end(extent)), field="valid_to")
    assert as_end(again) == times.LAST


def test_dates_and_times_without_offset_are_read_in_the_callers_zone() -> None:
    assert shown(parse("2026-07-01", field="at", tz="Europe/Rome"))[:2] == (
        "2026-06-30T22:00:00Z",
        "2026-07-01T22:00:00Z",
    )
    assert shown(parse("2026", field="at", tz="America/New_York"))[:2] == (
        "2026-01-01T05:00:00Z",
        "2027-01-01T05:00:00Z",
    )
    assert times.format(parse("2026-07-01T09:00:00", field="at", tz="Asia/Tokyo").start) == "2026-07-01T00:00:00Z"
    with_offset = parse("2026-07-01T09:00:00+00:00", field="at", tz="Asia/Tokyo")
    assert times.format(with_offset.start) == "2026-07-01T09:00:00Z"


def test_a_day_that_clocks_change_in_has_the_hours_it_has() -> None:
    hour = 3_600_000_000
    spring = parse("2026-03-29", field="at", tz="Europe/Rome")
    autumn = parse("2026-10-25", field="at", tz="Europe/Rome")
    assert (spring.end - spring.start, autumn.end - autumn.start) == (23 * hour, 25 * hour)
    no_midnight = parse("2018-11-04", field="at", tz="America/Sao_Paulo")
    assert shown(no_midnight)[:2] == ("2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z")


def test_a_local_time_shown_twice_is_the_first_and_one_skipped_is_refused() -> None:
    twice = parse("2026-10-25T02:30:00", field="at", tz="Europe/Rome")
    assert times.format(twice.start) == "2026-10-25T00:30:00Z"
    second = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Rome"), fold=1)
    assert times.format(parse(second, field="at").start) == "2026-10-25T01:30:00Z"
    with pytest.raises(Invalid, match="clocks skipped"):
        parse("2026-03-29T02:30:00", field="at", tz="Europe/Rome")
    assert times.format(parse("2026-03-29T03:30:00", field="at", tz="Europe/Rome").start) == "2026-03-29T01:30:00Z"
    with pytest.raises(Invalid, match="skipped that day"):
        parse("2011-12-30", field="at", tz="Pacific/Apia")
    assert parse("2011-12-31", field="at", tz="Pacific/Apia").precision == "day"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59Z"),
        (1_700_000_000, "2023-11-14T22:13:20Z"),
        (1_700_000_000.123457, "2023-11-14T22:13:20.123457Z"),
        (0.1, "1970-01-01T00:00:00.100000Z"),
        (99_999_999_999, "5138-11-16T09:46:39Z"),
    ],
)
def test_numbers_are_seconds_since_the_epoch(seconds: float, text: str) -> None:
    extent = parse(seconds, field="at", tz="Asia/Tokyo")
    assert (times.format(extent.start), extent.words, extent.precision) == (text, text, "instant")
    assert extent.end == extent.start + 1


def test_python_times_are_taken_as_they_are() -> None:
    aware = datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert parse(aware, field="at").words == "2026-03-01T10:00:00Z"
    assert parse(datetime(2026, 3, 1, 12), field="at", tz="Asia/Tokyo").words == "2026-03-01T03:00:00Z"
    assert parse(date(2026, 3, 1), field="at") == parse("2026-03-01", field="at")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("2026-02-30", "does not exist"),
        ("2025-02-29", "does not exist"),
        ("2026-13", "does not exist"),
        ("2026-00", "does not exist"),
        ("2026-01-00", "does not exist"),
        ("0000", "does not exist"),
        ("2026-01-01T24:00:00Z", "does not exist"),
        ("2026-01-01T23:60:00Z", "does not exist"),
        ("2026-01-01T23:59:61Z", "does not exist"),
        ("2016-12-31T23:59:60Z", "leap second"),
        ("2026-01-01T00:00:00+24:00", "impossible offset"),
        ("2026-01-01T00:00:00+01:60", "impossible offset"),
        ("2026-01-01T00:00:00.0000001Z", "finer than a microsecond"),
        ("0001-01-01T00:00:00+01:00", "outside the years"),
        ("9999-12-31T23:59:59-01:00", "outside the years"),
        (" 2026", "white space"),
        ("2026-01-01\n", "white space"),
        ("", "not a time"),
        (" ", "not a time"),
        ("yesterday", "not a time"),
        ("2026-1-1", "not a time"),
        ("26", "not a time"),
        ("10000", "not a time"),
        ("-2026", "not a time"),
        ("2026-01-01T12", "not a time"),
        ("2026-01-01T00:00:00+0100", "not a time"),
        ("2026-01-01T00:00:00 +01:00", "not a time"),
        ("2026-W01", "not a time"),
        ("２０２６", "not a time"),
        ("2026" * 1000, "not a time"),
        (True, "not a time"),
        (math.nan, "not a time"),
        (math.inf, "not a time"),
        (-math.inf, "not a time"),
        (None, "not a time"),
        ([2026], "not a time"),
        (b"2026", "not a time"),
        (100_000_000_000, "milliseconds"),
        (1_700_000_000_000, "milliseconds"),
        (-1e11, "milliseconds"),
        (10**4000, "milliseconds"),
        (-70_000_000_000, "outside the years"),
    ],
)
def test_anything_else_is_refused_with_the_field_the_reason_and_the_forms(value: object, reason: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse(value, field="valid_from")
    error = caught.value
    assert error.field == "valid_from"
    assert error.message.startswith("valid_from: ")
    assert reason in error.message
    assert "RFC 3339" in error.message
    assert "RFC 3339 such as 2026-03-01T12:00:00Z" in error.details["accepted"]
    assert len(error.message) < 400


def test_an_unknown_zone_is_named_with_the_nearest_known_one() -> None:
    for tz in ("Mars/Base", "../etc/passwd", "", "America", "Europe/Rom", "a\0b"):
        with pytest.raises(Invalid) as caught:
            parse("2026-01-01T00:00:00Z", field="at", tz=tz)
        assert caught.value.field == "tz"
    with pytest.raises(Invalid, match="Europe/Rome"):
        parse("2026", field="at", tz="Europe/Rom")


def test_without_a_zone_database_utc_works_and_others_say_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(key: str) -> ZoneInfo:
        raise KeyError(key)

    monkeypatch.setattr("zoneinfo.ZoneInfo", missing)
    monkeypatch.setattr(times, "_zone_names", list)
    times.zone.cache_clear()
    try:
        assert parse("2026", field="at").precision == "year"
        with pytest.raises(Invalid, match="tzdata"):
            parse("2026", field="at", tz="Europe/Rome")
    finally:
        times.zone.cache_clear()


def test_a_date_begins_ends_and_is_asked_about_as_its_extent() -> None:
    year = parse("2024", field="at")
    assert times.format(as_start(year)) == "2024-01-01T00:00:00Z"
    assert times.format(as_end(year)) == "2025-01-01T00:00:00Z"
    assert as_start(year) <= as_of(year) < as_end(year)
    instant = parse("2024-06-01T12:00:00Z", field="at")
    assert as_start(instant) == as_end(instant) == as_of(instant)


def test_a_validity_to_2024_holds_on_new_years_eve_and_not_the_day_after() -> None:
    end = as_end(parse("2024", field="valid_to"))
    assert at("2024-12-31T23:59:59.999999Z") < end
    assert not at("2025-01-01T00:00:00Z") < end


@settings(deadline=None)
@given(st.integers(times.FIRST, times.LAST))
def test_what_is_printed_reads_back_to_the_same_instant(instant: int) -> None:
    extent = parse(times.format(instant), field="at")
    assert (extent.start, extent.end) == (instant, instant + 1)
    assert datetime.fromisoformat(times.format(instant)) == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(
        microseconds=instant
    )


@settings(deadline=None)
@given(
    # The first and the last year begin or end outside of what UTC can name, in zones away from it.
    st.datetimes(min_value=datetime(2, 1, 3), max_value=datetime(9998, 12, 29)),
    st.sampled_from(["UTC", "Europe/Rome", "America/Sao_Paulo", "Pacific/Apia", "Asia/Kathmandu"]),
)
def test_every_instant_lies_in_its_local_day_month_and_year(moment: datetime, tz: str) -> None:
    instant = parse(moment, field="at").start
    day = times.day(instant, tz)
    assert day.start <= instant < day.end
    month, year = parse(day.words[:7], field="at", tz=tz), parse(day.words[:4], field="at", tz=tz)
    assert year.start <= month.start <= day.start < day.end <= month.end <= year.end


NOW = at("2026-04-01T12:00:00Z")


@pytest.mark.parametrize(
    ("start", "end", "label"),
    [
        (None, None, "current"),
        ("2014", None, "current"),
        (None, "2026-03-01", "until 2026-03-01"),
        ("2014", "2024", "2014 to 2024"),
        ("2026-06-01", None, "from 2026-06-01"),
        ("2027", "2028", "from 2027 to 2028"),
        (None, "2030", "until 2030"),
        ("2014", "2030", "2014 to 2030"),
    ],
)
def test_a_label_prints_the_words_that_were_given(start: str | None, end: str | None, label: str) -> None:
    begins = None if start is None else as_start(parse(start, field="valid_from"))
    ends = None if end is None else as_end(parse(end, field="valid_to"))
    assert validity_label(begins, ends, NOW, start_words=start, end_words=end) == label


def test_a_label_without_words_prints_days_and_clock_times_only_within_one_day() -> None:
    assert validity_label(None, at("2026-03-01T09:30:00Z"), NOW) == "until 2026-03-01"
    assert validity_label(at("2026-02-01"), at("2026-03-01"), NOW) == "2026-02-01 to 2026-03-01"
    assert (
        validity_label(at("2026-03-01T09:30:00Z"), at("2026-03-01T10:00:00Z"), NOW)
        == "2026-03-01T09:30:00Z to 2026-03-01T10:00:00Z"
    )


def test_what_was_replaced_is_never_called_current() -> None:
    assert validity_label(None, None, NOW, superseded=True) == "superseded"
    assert validity_label(at("2020"), None, NOW, superseded=True) == "superseded"
    assert validity_label(at("2020"), at("2020"), NOW, superseded=True) == "superseded"
    assert validity_label(None, at("2026-03-01"), NOW, superseded=True) == "until 2026-03-01"
    assert validity_label(at("2020"), None, NOW) == "current"
