"""The filter language as JSON."""

import json
from datetime import date
from typing import Any

import pytest

from kektor.errors import Invalid, TooLarge
from kektor.query import parse_filter


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ({"eq": ["tags", "crm"]}, "tags = 'crm'"),
        ({"ne": ["metadata.x", 1]}, "metadata.x != 1"),
        ({"lt": ["metadata.x", 1.5]}, "metadata.x < 1.5"),
        ({"le": ["metadata.x", 1]}, "metadata.x <= 1"),
        ({"lte": ["metadata.x", 1]}, "metadata.x <= 1"),
        ({"gt": ["recorded_at", "2026-01"]}, "recorded_at > '2026-01'"),
        ({"gt": ["recorded_at", 1_700_000_000]}, "recorded_at > 1700000000"),
        ({"gt": ["recorded_at", date(2026, 1, 1)]}, "recorded_at > '2026-01-01'"),
        ({"ge": ["metadata.x", 1]}, "metadata.x >= 1"),
        ({"gte": ["metadata.x", 1]}, "metadata.x >= 1"),
        ({"in": ["metadata.x", [1, "a", None, True]]}, "metadata.x IN (1, 'a', null, true)"),
        ({"in": ["metadata.x", []]}, "metadata.x IN ()"),
        ({"nin": ["metadata.x", [1]]}, "metadata.x NOT IN (1)"),
        ({"contains": ["text", "50%"]}, "text CONTAINS '50%'"),
        ({"like": ["text", "%x%"]}, "text LIKE '%x%'"),
        ({"exists": "metadata.owner"}, "EXISTS(metadata.owner)"),
        ({"exists": ["metadata.owner"]}, "EXISTS(metadata.owner)"),
        ({"eq": ['metadata."odd key"', 1]}, 'metadata."odd key" = 1'),
        ({"eq": ["stage", "x"]}, "stage = 'x'"),
        ({"and": [{"eq": ["tags", "crm"]}]}, "tags = 'crm'"),
        (
            {"and": [{"eq": ["tags", "crm"]}, {"or": [{"exists": "a"}, {"not": {"eq": ["b", False]}}]}]},
            "tags = 'crm' AND (EXISTS(a) OR NOT b = false)",
        ),
    ],
)
def test_each_operator_means_what_its_text_means(form: dict[str, Any], text: str) -> None:
    assert parse_filter(form) == parse_filter(text)
    if not any(isinstance(value, date) for value in next(iter(form.values()))):
        assert parse_filter(json.dumps(form)) == parse_filter(f"  {json.dumps(form, indent=1)}\n") == parse_filter(text)


@pytest.mark.parametrize(
    ("form", "path", "reason"),
    [
        ({}, "filter", "exactly one operator"),
        ({"eq": ["a", 1], "ne": ["a", 1]}, "filter", "exactly one operator"),
        ({"equals": ["a", 1]}, "filter", "no operator 'equals'"),
        ({1: 2}, "filter", "no operator"),
        ({"and": []}, "filter.and", "at least one"),
        ({"or": {"eq": ["a", 1]}}, "filter.or", "must be a list"),
        ({"and": [5]}, "filter.and[0]", "not a number"),
        ({"not": [{"eq": ["a", 1]}]}, "filter.not", "not a list"),
        ({"eq": ["a"]}, "filter.eq", "a list of two"),
        ({"eq": ["a", 1, 2]}, "filter.eq", "a list of two"),
        ({"eq": "a"}, "filter.eq", "a list of two"),
        ({"eq": [5, 1]}, "filter.eq", "the field must be text"),
        ({"eq": ["odd key", 1]}, "filter.eq", "no field name"),
        ({"eq": ["", 1]}, "filter.eq", "no field name"),
        ({"eq": ["a", {}]}, "filter.eq", "not an object"),
        ({"eq": ["a", [1]]}, "filter.eq", "not a list"),
        ({"eq": ["a", float("nan")]}, "filter.eq", "no number"),
        ({"eq": ["a", "\ud800"]}, "filter.eq", "surrogate"),
        ({"in": ["a", 1]}, "filter.in", "a list of values"),
        ({"nin": ["a", [[1]]]}, "filter.nin", "not a list"),
        ({"exists": ["a", "b"]}, "filter.exists", "the field must be text"),
        ({"like": ["a", 5]}, "filter.like", "LIKE takes text"),
        (
            {"and": [{"eq": ["a", 1]}, {"not": {"eq": ["status", "x"]}}]},
            "filter.and[1].not.eq",
            "current, superseded",
        ),
    ],
)
def test_a_mistake_is_named_by_its_path(form: dict[Any, Any], path: str, reason: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_filter(form)
    assert caught.value.field == "filter"
    assert caught.value.details["path"] == path
    assert caught.value.message.startswith(f"{path}: ")
    assert reason in caught.value.message


def test_json_text_is_read_strictly() -> None:
    for source, reason in {
        '{"eq": ["a", 1]': "character 16: not JSON",
        '{"eq": ["a", NaN]}': "no JSON number",
        '{"eq": ["a", 1], "eq": ["a", 2]}': "twice",
        '{"eq": ["a", ' + "9" * 5_000 + "]}": "too many digits",
        '{"eq": ["a", 1]} x': "not JSON",
    }.items():
        with pytest.raises(Invalid, match=reason):
            parse_filter(source)


def test_json_is_bounded_like_text() -> None:
    def refused(form: Any) -> str:
        with pytest.raises(TooLarge) as caught:
            parse_filter(form)
        assert caught.value.field == "filter"
        return caught.value.message

    deep: dict[str, Any] = {"eq": ["a", 1]}
    for _ in range(64):
        deep = {"not": deep}
    assert parse_filter(deep) is not None
    assert "64 levels" in refused({"not": deep})
    assert "64 levels" in refused('{"not":' * 100_000)
    assert "64 levels" in refused('{"and":[' * 70 + '{"exists":"a"}' + "]}" * 70)
    assert "1,000 conditions" in refused({"or": [{"exists": "a"}] * 1_001})
    assert parse_filter({"in": ["id", [str(n) for n in range(10_000)]]}) is not None
    assert "10,000 values" in refused({"in": ["id", ["a"] * 10_001]})
    assert "characters" in refused({"eq": ["a", "x" * 20_001]})
