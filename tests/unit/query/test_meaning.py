"""What a filter says about a record."""

from typing import Any

import pytest

from kektor.engine.filters import (
    MISSING,
    And,
    Compare,
    Contains,
    Exists,
    Field,
    In,
    Not,
    Or,
    canonical,
    conjunction,
    lookup_in,
    matches,
    to_json,
)
from kektor.query import parse_filter
from kektor.times import parse as parse_time


def says(source: str, **document: Any) -> bool | None:
    expression = parse_filter(source)
    assert expression is not None
    return matches(expression, lookup_in(document))


def meta(source: str, value: Any) -> bool | None:
    return says(source, metadata={"x": value})


TRUE, FALSE, UNKNOWN = "b = 1", "b = 2", "missing = 1"


@pytest.mark.parametrize(
    ("source", "value"),
    [
        (TRUE, True), (FALSE, False), (UNKNOWN, None),
        (f"NOT {TRUE}", False), (f"NOT {FALSE}", True), (f"NOT {UNKNOWN}", None),
        (f"{TRUE} AND {UNKNOWN}", None), (f"{FALSE} AND {UNKNOWN}", False), (f"{UNKNOWN} AND {FALSE}", False),
        (f"{TRUE} OR {UNKNOWN}", True), (f"{UNKNOWN} OR {TRUE}", True), (f"{FALSE} OR {UNKNOWN}", None),
        (f"{TRUE} AND {TRUE}", True), (f"{FALSE} OR {FALSE}", False),
        (f"NOT ({UNKNOWN} OR {FALSE})", None), (f"{UNKNOWN} OR NOT EXISTS(missing)", True),
    ],
)  # fmt: skip
def test_logic_has_three_values(source: str, value: bool | None) -> None:
    assert says(source, metadata={"b": 1}) is value


@pytest.mark.parametrize(
    "test",
    ["= 1", "!= 1", "< 1", "<= 1", "> 1", ">= 1", "IN (1)", "NOT IN (1)", "IN ()", "NOT IN ()",
     "CONTAINS 'a'", "LIKE '%'", "= NULL", "!= NULL"],
)  # fmt: skip
def test_any_test_of_a_missing_field_is_unknown(test: str) -> None:
    assert says(f"metadata.x {test}", metadata={}) is None
    assert says(f"NOT metadata.x {test}", metadata={}) is None
    assert says(f"metadata.x.y {test}", metadata={"x": 1}) is None


def test_values_of_two_types_are_never_equal_and_have_no_order() -> None:
    for source, value in [
        ("5", "5"), ("'5'", 5), ("1", True), ("true", 1), ("0", False), ("null", 0), ("0", None),
        ("''", None), ("'a'", {"a": 1}),
    ]:  # fmt: skip
        assert meta(f"x = {source}", value) is False
        assert meta(f"x != {source}", value) is True
        assert meta(f"x IN ({source})", value) is False
        assert meta(f"x NOT IN ({source})", value) is True
    for source, value in [("5", "6"), ("'5'", 6), ("0", True), ("0", None), ("'a'", {}), ("1", [2])]:
        for op in ("<", "<=", ">", ">="):
            assert meta(f"x {op} {source}", value) is None


def test_numbers_compare_exactly_whatever_their_size_and_kind() -> None:
    big = 2**53
    assert meta(f"x = {big}.0", big) is True
    assert meta(f"x = {big}.0", big + 1) is False
    assert meta(f"x > {big}.0", big + 1) is True
    assert meta(f"x = {big + 1}", float(big)) is False
    assert meta(f"x < {big + 1}", float(big)) is True
    assert meta("x = 10", 10.0) is True
    assert meta(f"x >= {10**40}", 10**40 + 1) is True


def test_text_compares_by_code_points() -> None:
    assert meta("x < 'b'", "a") is True
    assert meta("x < 'a'", "Z") is True
    assert meta("x > '\uffff'", "\U00010000") is True
    assert meta("x = 'é'", "e\u0301") is False
    assert meta("x >= '2026-01'", "2026-01-15") is True


def test_a_stored_null_is_a_value_and_a_memory_field_without_one_is_missing() -> None:
    assert meta("x = NULL", None) is True
    assert meta("x != NULL", 1) is True
    assert meta("EXISTS(metadata.x)", None) is True
    assert says("EXISTS(metadata.y)", metadata={"x": None}) is False
    for document in ({"session": None}, {}):
        assert says("EXISTS(session)", **document) is False
        assert says("session = NULL", **document) is True
        assert says("session = 's'", **document) is None
        assert says("session IN ('s', NULL)", **document) is True
    assert says("session = NULL", session="s") is False


def test_equality_on_a_list_asks_for_an_element() -> None:
    assert says("tags = 'crm'", tags=["crm", "eu"]) is True
    assert says("tags != 'crm'", tags=["crm", "eu"]) is False
    assert says("tags CONTAINS 'cr'", tags=["crm"]) is False
    assert says("tags IN ('a', 'eu')", tags=["crm", "eu"]) is True
    assert says("tags LIKE 'cr%'", tags=["crm"]) is True
    assert meta("x = 1", [1, 2]) is True
    assert meta("x = true", [1, 2]) is False
    assert meta("x = 1", [[1]]) is False
    assert meta("x CONTAINS null", [None]) is True
    assert meta("x > 0", [1]) is None


def test_a_memory_without_tags_has_an_empty_list_of_them() -> None:
    for document in ({}, {"tags": []}):
        assert says("tags = 'crm'", **document) is False
        assert says("NOT tags CONTAINS 'crm'", **document) is True
        assert says("EXISTS(tags)", **document) is False
    assert says("EXISTS(tags)", tags=["crm"]) is True
    assert meta("EXISTS(x)", []) is True


def test_contains_finds_what_is_in_a_text_as_it_is_written() -> None:
    assert says("text CONTAINS 'Hend'", text="the Henderson account") is True
    assert says("text CONTAINS 'hend'", text="the Henderson account") is False
    assert meta("x CONTAINS ''", "abc") is True
    assert meta("x CONTAINS 1", "1") is None
    assert meta("x CONTAINS 'a'", 5) is None


@pytest.mark.parametrize(
    ("pattern", "text", "value"),
    [
        ("abc", "abc", True), ("abc", "abcd", False), ("a%", "abc", True), ("%c", "abc", True),
        ("%b%", "abc", True), ("%", "", True), ("", "", True), ("", "a", False), ("a%a", "a", False),
        ("a%a", "aa", True), ("a%b%c", "a__b__c", True), ("a%b%c", "acb", False), ("%ab%ab%", "ab", False),
        ("%ab%ab%", "abab", True),
        ("a_c", "abc", False), ("a_c", "a_c", True), ("a.c", "abc", False), ("[a]", "a", False),
        ("%\n%", "a\nb", True), ("a%b", "a\nb", True), ("A%", "abc", False),
    ],
)  # fmt: skip
def test_like_knows_percent_and_nothing_else(pattern: str, text: str, value: bool) -> None:
    assert matches(parse_filter({"like": ["metadata.x", pattern]}), lookup_in({"metadata": {"x": text}})) is value  # type: ignore[arg-type]


def test_like_takes_time_that_grows_with_the_text_and_not_with_a_power_of_it() -> None:
    assert meta(f"x LIKE '{'%a' * 50}%b'", "a" * 5_000) is False
    assert meta("x LIKE '%'", 5) is None


@pytest.mark.parametrize(
    ("op", "before", "first", "last", "after"),
    [
        ("=", False, True, True, False),
        ("!=", True, False, False, True),
        ("<", True, False, False, False),
        ("<=", True, True, True, False),
        (">", False, False, False, True),
        (">=", False, True, True, True),
    ],
)
def test_a_date_is_compared_as_its_whole_extent(op: str, before: bool, first: bool, last: bool, after: bool) -> None:
    year = parse_time("2024", field="at")
    for instant, value in (
        (year.start - 1, before),
        (year.start, first),
        (year.end - 1, last),
        (year.end, after),
    ):
        assert says(f"occurred_at {op} '2024'", occurred_at=instant) is value
    moment = parse_time("2024-06-01T12:00:00Z", field="at").start
    for instant, value in ((moment - 1, before), (moment, first), (moment, last), (moment + 1, after)):
        assert says(f"occurred_at {op} '2024-06-01T12:00:00Z'", occurred_at=instant) is value


def test_empty_lists_hold_for_whatever_has_the_field() -> None:
    assert meta("x IN ()", 1) is False
    assert meta("x NOT IN ()", 1) is True
    assert meta("x NOT IN ()", None) is True
    assert says("x NOT IN ()", metadata={}) is None


def test_evidence_is_asked_over_all_spans() -> None:
    spans = [{"source": "s1", "start": 0, "quote": "a"}, {"source": "s2", "start": 9}]
    assert says("evidence.source = 's2'", evidence=spans) is True
    assert says("evidence.start IN (9)", evidence=spans) is True
    assert says("EXISTS(evidence)", evidence=spans) is True
    assert says("EXISTS(evidence)", evidence=[]) is False
    assert says("evidence.source = 's1'", evidence=[]) is False


def test_filters_join_as_trees() -> None:
    a, b = Exists(Field(("a",))), Exists(Field(("b",)))
    assert conjunction([]) is None
    assert conjunction([None, a]) == a
    assert conjunction([a, None, b]) == And((a, b))


def test_what_python_holds_equal_and_a_filter_does_not_is_kept_apart() -> None:
    field = Field(("metadata", "x"))
    for make in (lambda v: Compare("=", field, v), lambda v: In(field, (v,)), lambda v: Contains(field, v)):
        one, true = make(1), make(True)
        assert one != true
        assert And((one,)) != And((true,))
        assert canonical(one) != canonical(true)
        assert len({one, true}) == 2
        assert one == make(1.0)
        assert hash(one) == hash(make(1.0))
    assert Compare("=", field, 1) != 1


def test_a_canonical_key_forgets_only_how_a_filter_was_written() -> None:
    def key(source: str) -> object:
        expression = parse_filter(source)
        assert expression is not None
        return canonical(expression)

    assert key("a = 1 AND b = 2") == key("b = 2 AND a = 1 AND a = 1") == key("NOT NOT (b = 2 AND (a = 1))")
    assert key("a != 1") == key("NOT a = 1")
    assert key("a IN (1, 2)") == key("a = 2 OR a = 1")
    assert key("tags CONTAINS 'x'") == key("tags = 'x'")
    assert key("a = 1") == key("metadata.a = 1")
    assert key("recorded_at > '2025'") == key("recorded_at >= '2026'")
    assert key("a CONTAINS 'x'") != key("a = 'x'")
    assert key("a = 1 AND b = 2") != key("a = 1 OR b = 2")
    assert key("a IN ()") != key("b IN ()")


def test_the_json_form_is_plain_json() -> None:
    expression = parse_filter(
        "tags = 'crm' AND (NOT stage IN ('a', null) OR recorded_at >= '2026-01') AND EXISTS(metadata.'odd key')"
    )
    assert expression is not None
    assert to_json(expression) == {
        "and": [
            {"eq": ["tags", "crm"]},
            {"or": [{"not": {"in": ["stage", ["a", None]]}}, {"ge": ["recorded_at", "2026-01"]}]},
            {"exists": 'metadata."odd key"'},
        ]
    }


def test_a_lookup_says_what_is_missing_at_any_depth() -> None:
    lookup = lookup_in({"metadata": {"a": {"b": 1}}})
    assert lookup(("metadata", "a", "b")) == 1
    assert lookup(("metadata", "a", "c")) is MISSING
    assert lookup(("metadata", "a", "b", "c")) is MISSING
    assert matches(Or((Not(Exists(Field(("id",)))), Exists(Field(("id",))))), lookup) is True
