"""The filter language as text."""

import pytest

from kektor.engine.filters import And, Compare, Contains, Exists, Field, Filter, In, Like, Not, Or
from kektor.errors import Invalid, KektorError, TooLarge
from kektor.query import parse_filter
from kektor.times import parse as parse_time


def meta(*path: str) -> Field:
    return Field(("metadata", *path))


def bare(*path: str) -> Field:
    return Field(("metadata", *path), bare=True)


LAYER = Field(("layer",))
TAGS = Field(("tags",))
A, B, C = (Compare("=", bare(name), 1) for name in "abc")


def invalid(source: str) -> Invalid:
    with pytest.raises(Invalid) as caught:
        parse_filter(source)
    assert caught.value.field == "filter"
    return caught.value


def test_every_operator_is_read() -> None:
    field = meta("x")
    cases: dict[str, Filter] = {
        "metadata.x = 1": Compare("=", field, 1),
        "metadata.x != 1": Compare("!=", field, 1),
        "metadata.x <> 1": Compare("!=", field, 1),
        "metadata.x < 1": Compare("<", field, 1),
        "metadata.x <= 1": Compare("<=", field, 1),
        "metadata.x > 1": Compare(">", field, 1),
        "metadata.x >= 1": Compare(">=", field, 1),
        "metadata.x IN (1, 'a', TRUE, NULL)": In(field, (1, "a", True, None)),
        "metadata.x IN ()": In(field, ()),
        "metadata.x NOT IN ('a')": Not(In(field, ("a",))),
        "metadata.x NOT IN ()": Not(In(field, ())),
        "metadata.x CONTAINS 'a'": Contains(field, "a"),
        "metadata.x NOT CONTAINS 2": Not(Contains(field, 2)),
        "metadata.x LIKE 'a%'": Like(field, "a%"),
        "metadata.x NOT LIKE 'a%'": Not(Like(field, "a%")),
        "EXISTS(metadata.x)": Exists(field),
        "NOT EXISTS ( metadata.x )": Not(Exists(field)),
    }
    for source, expected in cases.items():
        assert parse_filter(source) == expected, source


def test_the_example_of_the_contract_is_read() -> None:
    assert parse_filter(
        "tags CONTAINS 'crm' AND (layer = 'semantic' OR NOT metadata.stage IN ('draft','old')) "
        "AND metadata.price >= 10.5 AND recorded_at > '2026-01-01' AND EXISTS(metadata.owner)"
    ) == And(
        (
            Contains(TAGS, "crm"),
            Or((Compare("=", LAYER, "semantic"), Not(In(meta("stage"), ("draft", "old"))))),
            Compare(">=", meta("price"), 10.5),
            Compare(">", Field(("recorded_at",)), parse_time("2026-01-01", field="recorded_at")),
            Exists(meta("owner")),
        )
    )


def test_not_binds_tighter_than_and_and_and_tighter_than_or() -> None:
    assert parse_filter("a = 1 OR b = 1 AND c = 1") == Or((A, And((B, C))))
    assert parse_filter("(a = 1 OR b = 1) AND c = 1") == And((Or((A, B)), C))
    assert parse_filter("NOT a = 1 AND b = 1") == And((Not(A), B))
    assert parse_filter("NOT (a = 1 AND b = 1)") == Not(And((A, B)))
    assert parse_filter("NOT NOT a = 1") == Not(Not(A))
    assert parse_filter("((a = 1))") == A
    assert parse_filter("a = 1 AND b = 1 AND c = 1") == And((A, B, C))
    assert parse_filter("a = 1 AND (b = 1 AND c = 1)") == And((A, And((B, C))))


def test_keywords_have_no_case_and_white_space_is_free() -> None:
    assert parse_filter("a=1 and\tb\n=\r\n1 oR(c=1)") == Or((And((A, B)), C))
    assert parse_filter("nOt(a in(1))") == Not(In(bare("a"), (1,)))
    assert parse_filter("x = true OR x = False OR x = nUll") == Or(
        tuple(Compare("=", bare("x"), value) for value in (True, False, None))
    )


@pytest.mark.parametrize(
    "text",
    [
        "Tom AND Jerry",
        "a OR b",
        "NOT (x = 'y')",
        "(", ")", ")(", "()",
        "it's", 'say "hi"', "\"'\"'",
        "back\\slash", "\\", "\\n", "\n", "\t",
        "IN ('a', 'b')", "NULL", "true", "= != <= >=", ",", "%", "100%",
        "Привет", "日本語", "🙂", "e\u0301", "\u202e", "\x00", "",
        "a" * 5_000,
    ],
)  # fmt: skip
def test_whatever_stands_inside_a_text_is_data(text: str) -> None:
    escaped = text.replace("\\", "\\\\")
    for quote in "'\"":
        literal = quote + escaped.replace(quote, f"\\{quote}") + quote
        assert parse_filter(f"title = {literal} AND b = 1") == And((Compare("=", bare("title"), text), B))
        assert parse_filter(f"title IN ({literal},{literal})") == In(bare("title"), (text, text))


def test_escapes_are_read_and_unknown_ones_refused() -> None:
    source = r"'\\ \' \" \/ \n \t \r \b \f \u00e9 \ud83d\ude42'"
    assert parse_filter(f"a = {source}") == Compare("=", bare("a"), "\\ ' \" / \n \t \r \b \f é 🙂")
    error = invalid(r"a = 'x\q'")
    assert "\\q" in error.message
    assert error.details["position"] == 7
    assert invalid(r"a = '\u12'").details["position"] == 6
    assert "surrogate" in invalid(r"a = '\ud800'").message
    assert "surrogate" in invalid("a = '\ud800'").message


def test_numbers_keep_every_digit() -> None:
    big = 2**200 + 1
    for source, value in {
        "0": 0, "-5": -5, "+5": 5, "10.5": 10.5, "-0.25": -0.25, ".5": 0.5, "1e3": 1000.0, "1E-2": 0.01,
        str(2**53 + 1): 2**53 + 1, str(big): big, f"-{big}": -big,
    }.items():  # fmt: skip
        parsed = parse_filter(f"a = {source}")
        assert parsed == Compare("=", bare("a"), value)
        assert isinstance(parsed, Compare)
        assert type(parsed.value) is type(value), source


def test_paths_reach_into_metadata_and_odd_keys_are_quoted() -> None:
    assert parse_filter("metadata.a.b.c = 1") == Compare("=", meta("a", "b", "c"), 1)
    assert parse_filter("a.b = 1") == Compare("=", bare("a", "b"), 1)
    assert parse_filter('metadata."odd key".b = 1') == Compare("=", meta("odd key", "b"), 1)
    assert parse_filter("metadata.'a.b' = 1") == Compare("=", meta("a.b"), 1)
    assert parse_filter(r'metadata."say \"hi\"" = 1') == Compare("=", meta('say "hi"'), 1)
    assert parse_filter("metadata.2024 = 1") == Compare("=", meta("2024"), 1)
    assert parse_filter("metadata.and.or.not.null = 1") == Compare("=", meta("and", "or", "not", "null"), 1)
    assert parse_filter("metadata.größe = 1") == Compare("=", meta("größe"), 1)
    assert parse_filter("not-ready = 1") == Compare("=", bare("not-ready"), 1)
    assert parse_filter("notes = 1 AND inner_id = 2") == And(
        (Compare("=", bare("notes"), 1), Compare("=", bare("inner_id"), 2))
    )


@pytest.mark.parametrize(
    ("source", "position", "found", "expected"),
    [
        ("layer = semantic", 9, "semantic", "a value"),
        ("layer == 'x'", 8, "'='", "write = once"),
        ("layer 'x'", 7, "'x'", "a comparison"),
        ("layer =", 8, "it ends", "a value"),
        ("(layer = 'x'", 13, "it ends", "a closing parenthesis"),
        ("layer = 'x')", 12, "')'", "the end of the filter"),
        ("layer = 'x", 9, "never closed", ""),
        ("layer = \"x'", 9, "never closed", ""),
        ("a = 1 AND AND b = 2", 11, "'AND'", "a condition"),
        ("a = 1 AND", 10, "it ends", "a condition"),
        ("a = 1 b = 2", 7, "'b'", "AND, OR"),
        ("a = 1 && b = 2", 7, "'&&'", "write AND"),
        ("a IS NULL", 3, "'IS'", "EXISTS"),
        ("a BETWEEN 1 AND 2", 3, "'BETWEEN'", ">= a AND"),
        ("a IN (1,,2)", 9, "','", "a value"),
        ("a IN (1", 8, "it ends", "a comma or a closing parenthesis"),
        ("a IN 5", 6, "'5'", "an opening parenthesis"),
        ("EXISTS('a')", 8, "'a'", "a field name"),
        ("'crm' = tags", 1, "'crm'", "a condition"),
        ("a = 'it''s'", 9, "'s'", "for a quote"),
        ("recorded_at > 2026-01-01", 15, "2026-01-01", "text needs quotes"),
        ("a = v1.2.3", 5, "v1.2.3", "text needs quotes"),
        ("a = 1.2.3", 5, "1.2.3", "text needs quotes"),
        ("a LIKE 5", 8, "'5'", "text in quotes"),
        ("a NOT = 5", 7, "'='", "IN, CONTAINS or LIKE"),
        ("a = 1;", 6, "';'", "the end of the filter"),
        ("a =\n  ?", 7, "'?'", "a value"),
    ],
)
def test_a_syntax_error_gives_the_character_what_is_there_and_what_was_expected(
    source: str, position: int, found: str, expected: str
) -> None:
    error = invalid(source)
    assert error.details["position"] == position
    assert error.message.startswith(f"filter, character {position}: ")
    assert found in error.message
    assert expected in error.message
    assert error.details["expected"]


def test_an_empty_filter_is_refused_and_no_filter_is_none() -> None:
    for source in ("", " \n\t"):
        assert "empty" in invalid(source).message
    assert parse_filter(None) is None
    assert parse_filter(A) is A


def test_depth_length_and_counts_are_bounded_without_a_recursion_error() -> None:
    def refused(source: str) -> TooLarge:
        with pytest.raises(TooLarge) as caught:
            parse_filter(source)
        assert caught.value.field == "filter"
        return caught.value

    assert parse_filter("NOT " * 64 + "a = 1") is not None
    assert "64 levels" in refused("NOT " * 65 + "a = 1").message
    assert "64 levels" in refused("(NOT " * 3_000 + "a = 1" + ")" * 3_000).message
    deep = "a = 1"
    for _ in range(33):
        deep = f"a = 1 AND (a = 1 OR ({deep}))"
    assert "64 levels" in refused(deep).message
    assert parse_filter("(" * 5_000 + "a = 1" + ")" * 5_000) == A
    assert parse_filter(" OR ".join(["a = 1"] * 1_000)) is not None
    assert "1,000 conditions" in refused(" OR ".join(["a = 1"] * 1_001)).message
    assert parse_filter(f"a IN ({','.join(['1'] * 9_000)})") is not None
    assert "characters" in refused(f"a = '{'x' * 20_000}'").message


def test_no_text_makes_anything_but_a_filter_or_an_error_of_ours() -> None:
    for source in (
        "(" * 20_000,
        "'" * 19_999,
        "\\" * 19_999,
        "a." * 9_999,
        "a IN (" * 3_000,
        "NOT" * 6_000,
        "{" * 9_000,
    ):
        with pytest.raises(KektorError):
            parse_filter(source)
    with pytest.raises(Invalid, match="text or an object"):
        parse_filter(5)  # type: ignore[arg-type]


def test_one_text_read_twice_with_two_zones_gives_two_filters() -> None:
    source = "recorded_at = '2026-01-01'"
    assert parse_filter(source) != parse_filter(source, tz="Asia/Tokyo")
    assert parse_filter(source) == parse_filter(source)


def test_now_and_today_are_those_of_the_call() -> None:
    now = parse_time("2026-03-01T23:30:00Z", field="now").start
    field = Field(("recorded_at",))
    assert parse_filter("recorded_at < 'now'", now=now) == Compare(
        "<", field, parse_time("2026-03-01T23:30:00Z", field="now")
    )
    assert parse_filter("recorded_at = 'today'", now=now, tz="Europe/Rome") == Compare(
        "=", field, parse_time("2026-03-02", field="now", tz="Europe/Rome")
    )
    assert parse_filter("recorded_at < 'now'") is not None
    assert parse_filter("metadata.when = 'now'", now=now) == Compare("=", meta("when"), "now")
