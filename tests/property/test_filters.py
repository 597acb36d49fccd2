"""Random filters: what is written reads back equal, and means what sets of records say it means."""

import json
import random
import re
import string
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kektor.engine.filters import (
    MEMORY_FIELDS,
    And,
    Compare,
    Contains,
    Exists,
    Field,
    Filter,
    In,
    Like,
    Not,
    Or,
    canonical,
    lookup_in,
    matches,
    to_json,
)
from kektor.errors import Invalid, TooLarge
from kektor.query import parse_filter
from kektor.times import Extent
from kektor.times import parse as parse_time

# --- filters and records, from small pools so that they meet ---

NASTY = [
    "", " ", "a", "A", "ab", "abc", "crm", "5", "1.5", "true", "NULL", "AND", "a OR b", "NOT (x = 'y')", "(",
    "))", "it's", '"', "'\"'", "\\", "\\'", "\\n", "\n\t", "100%", "%", "a%b", "é", "e\u0301", "日本", "🙂",
    "\x00", "\u2028",
]  # fmt: skip
NUMBERS = [0, 1, -1, 5, 2**53, 2**53 + 1, -(2**70), 0.0, -0.0, 1.0, 0.1, 1.5, 1e-9, float(2**53), 1e300]
DATES = ["2023", "2024", "2024-02", "2024-02-29", "2024-02-29T12:00:00Z", "2024-02-29T13:00:00+01:00"]
KEYS = ["x", "y", "odd key", "a.b", 'say "hi"', "and", "2024", "größe", "\\", "it's"]
BARE = ["x", "y", "stage", "not-ready", "größe"]
TZ = "Europe/Rome"

texts = st.sampled_from(NASTY) | st.text(max_size=8)
numbers = st.sampled_from(NUMBERS) | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
scalars = texts | numbers | st.booleans() | st.none()
extents = st.sampled_from(DATES).map(lambda words: parse_time(words, field="at", tz=TZ))

metadata_fields = st.lists(st.sampled_from(KEYS), min_size=1, max_size=2).map(
    lambda keys: Field(("metadata", *keys))
) | st.lists(st.sampled_from(BARE), min_size=1, max_size=2).map(lambda keys: Field(("metadata", *keys), bare=True))


def memory_fields(*types: str) -> st.SearchStrategy[Field]:
    """Without choices, and without scopes, whose texts are normalised."""
    known = {name: field for name, field in MEMORY_FIELDS.items() if not field.choices and "scope" not in name}
    names = [name for name, field in known.items() if field.type in types]
    return st.sampled_from([Field(tuple(name.split("."))) for name in names])


def chosen(field: Field) -> st.SearchStrategy[Filter]:
    choices = st.sampled_from(MEMORY_FIELDS[".".join(field.path)].choices)
    return st.builds(Compare, st.sampled_from(["=", "!="]), st.just(field), choices) | st.builds(
        In, st.just(field), st.lists(choices, max_size=3).map(tuple)
    )


any_operator = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
equality = st.sampled_from(["=", "!="])
tags = st.just(Field(("tags",)))
leaves: st.SearchStrategy[Filter] = st.one_of(
    st.builds(Compare, equality, metadata_fields, scalars),
    st.builds(Compare, any_operator, metadata_fields, texts | numbers),
    st.builds(In, metadata_fields, st.lists(scalars, max_size=3).map(tuple)),
    st.builds(Contains, metadata_fields, scalars),
    st.builds(Like, metadata_fields | memory_fields("text") | tags, texts),
    st.builds(Exists, metadata_fields | memory_fields("text", "number", "bool", "time", "array", "map")),
    st.builds(Compare, any_operator, memory_fields("text"), texts),
    st.builds(Compare, any_operator, memory_fields("number"), numbers),
    st.builds(Compare, equality, memory_fields("bool"), st.booleans()),
    st.builds(Compare, any_operator, memory_fields("time"), extents),
    st.builds(In, memory_fields("time"), st.lists(extents, max_size=3).map(tuple)),
    st.builds(Compare, equality, tags, texts),
    st.builds(Contains, tags | st.just(Field(("text",))), texts),
    st.sampled_from([Field(("status",)), Field(("freshness", "state"))]).flatmap(chosen),
)


def branches(terms: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    several = st.lists(terms, min_size=2, max_size=4).map(tuple)
    return st.builds(And, several) | st.builds(Or, several) | st.builds(Not, terms)


filters = st.recursive(leaves, branches, max_leaves=12)

AT_TIMES = [i for e in (parse_time(words, field="at", tz=TZ) for words in DATES) for i in (e.start - 1, e.start, e.end)]
BY_TYPE: dict[str, list[Any]] = {"text": NASTY, "number": NUMBERS, "bool": [True, False], "time": AT_TIMES}


def near(leaf: Any) -> list[Any]:
    """Values that a leaf is likely to tell apart."""
    wanted = *getattr(leaf, "values", ()), getattr(leaf, "value", None), getattr(leaf, "pattern", None)
    found: list[Any] = []
    for value in wanted:
        if isinstance(value, Extent):
            found += [value.start - 1, value.start, value.end - 1, value.end]
        elif isinstance(value, str):
            found += [value, value.replace("%", "_"), f"a{value}", f"{value}z", value[:-1]]
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found += [value, value + 1, value - 1]
        elif value is not None:
            found.append(value)
    return found


def leaves_of(expression: Filter) -> list[Any]:
    match expression:
        case And(terms) | Or(terms):
            return [leaf for term in terms for leaf in leaves_of(term)]
        case Not(term):
            return leaves_of(term)
        case _:
            return [expression]


@st.composite
def records(draw: st.DrawFn, expression: Filter) -> dict[str, Any]:
    """A record in which most fields that the filter asks for hold something close to what it asks."""
    record: dict[str, Any] = {}
    for leaf in leaves_of(expression):
        if draw(st.integers(0, 5)) == 0:
            continue
        *groups, last = leaf.field.path
        known = MEMORY_FIELDS.get(".".join(leaf.field.path)) if leaf.field.path[0] != "metadata" else None
        if known is None:
            pool = [*near(leaf), *near(leaf), None, True, 5, "5", [], {}]
            value = draw(st.sampled_from(pool))
            value = (
                [value, *draw(st.lists(st.sampled_from(pool), max_size=2))] if draw(st.integers(0, 3)) == 0 else value
            )
        elif known.type in BY_TYPE:
            value = draw(st.sampled_from([*near(leaf), *(known.choices or BY_TYPE[known.type]), None]))
        elif known.type == "array" and not groups:
            value = draw(st.lists(st.sampled_from([*near(leaf), "a"]), max_size=2))
        else:
            continue
        inner = record
        for group in groups:
            inner = inner.setdefault(group, {})
            if not isinstance(inner, dict):
                break
        else:
            inner[last] = value
    return record


cases = filters.flatmap(lambda f: st.tuples(st.just(f), st.lists(records(f), min_size=1, max_size=6)))


# --- writing a filter as text, in any of the ways a person might ---


def written(expression: Filter, pen: random.Random) -> str:
    match expression:
        case And(terms):
            return _space(pen, keyword("AND", pen)).join(_grouped(t, pen, And, Or) for t in terms)
        case Or(terms):
            return _space(pen, keyword("OR", pen)).join(_grouped(t, pen, Or) for t in terms)
        case Not(In(field, values)) if pen.random() < 0.5:
            listed = f"{pen.choice(['', ' '])},".join(literal(v, pen) for v in values)
            return f"{name(field, pen)}{_space(pen, keyword('NOT', pen))}{keyword('IN', pen)} ({listed})"
        case Not(Like(field, pattern)) if pen.random() < 0.5:
            return f"{name(field, pen)} {keyword('NOT', pen)} {keyword('LIKE', pen)} {literal(pattern, pen)}"
        case Not(term):
            return f"{keyword('NOT', pen)} {_grouped(term, pen, And, Or)}"
        case Compare(op, field, value):
            op = pen.choice(["!=", "<>"]) if op == "!=" else op
            return f"{name(field, pen)}{pen.choice(['', ' '])}{op}{pen.choice(['', ' '])}{literal(value, pen)}"
        case In(field, values):
            return f"{name(field, pen)} {keyword('IN', pen)}({', '.join(literal(v, pen) for v in values)})"
        case Contains(field, value):
            return f"{name(field, pen)} {keyword('CONTAINS', pen)} {literal(value, pen)}"
        case Exists(field):
            return f"{keyword('EXISTS', pen)}{pen.choice(['', ' '])}({name(field, pen)})"
        case Like(field, pattern):
            return f"{name(field, pen)} {keyword('LIKE', pen)} {literal(pattern, pen)}"


def keyword(word: str, pen: random.Random) -> str:
    return "".join(pen.choice([c.lower(), c]) for c in word)


def name(field: Field, pen: random.Random) -> str:
    first, *steps = field.path[1:] if field.bare else field.path
    return first + "".join(
        "." + (step if re.fullmatch(r"[\w-]+", step) and pen.random() < 0.8 else quoted(step, pen)) for step in steps
    )


def literal(value: object, pen: random.Random) -> str:
    if value is None or isinstance(value, bool):
        return keyword(str(value).upper().replace("NONE", "NULL"), pen)
    if isinstance(value, Extent):
        return quoted(value.words, pen)
    return quoted(value, pen) if isinstance(value, str) else repr(value)


def quoted(text: str, pen: random.Random) -> str:
    quote = pen.choice("'\"")

    def escaped(character: str) -> str:
        if character in (quote, "\\"):
            return f"\\{character}"
        if pen.random() < 0.1:
            units = character.encode("utf-16-be")
            return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
        return character

    return quote + "".join(map(escaped, text)) + quote


def _grouped(term: Filter, pen: random.Random, *inside: type) -> str:
    text = written(term, pen)
    return f"({text})" if isinstance(term, inside) or pen.random() < 0.1 else text


def _space(pen: random.Random, word: str) -> str:
    return f"{pen.choice([' ', '  ', chr(10)])}{word}{pen.choice([' ', chr(9)])}"


# --- the second opinion: a filter is the set where it is true and the set where it is false ---

Sets = tuple[frozenset[int], frozenset[int]]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def opinion(expression: Filter, people: list[dict[str, Any]]) -> Sets:
    everyone = frozenset(range(len(people)))
    if isinstance(expression, And):
        parts = [opinion(term, people) for term in expression.terms]
        return frozenset.intersection(*(p[0] for p in parts)), frozenset.union(*(p[1] for p in parts))
    if isinstance(expression, Or):
        parts = [opinion(term, people) for term in expression.terms]
        return frozenset.union(*(p[0] for p in parts)), frozenset.intersection(*(p[1] for p in parts))
    if isinstance(expression, Not):
        true, false = opinion(expression.term, people)
        return false, true
    found = {i: got for i, person in enumerate(people) if (got := find(expression.field, person)) is not None}
    if isinstance(expression, Exists):
        by_type = MEMORY_FIELDS.get(".".join(expression.field.path)) if len(expression.field.path) < 3 else None
        filled = (by_type is not None and expression.field.path[0] != "metadata") or expression.field.path == (
            "metadata",
        )
        there = frozenset(i for i, (value,) in found.items() if not (filled and value in ([], {})))
        return there, everyone - there
    if isinstance(expression, In):
        equal = [opinion(Compare("=", expression.field, v), people)[0] for v in expression.values]
        hits = frozenset().union(*equal)
        return hits, frozenset(found) - hits
    if isinstance(expression, Compare) and expression.op in ("=", "!="):
        hits = frozenset(
            i
            for i, (v,) in found.items()
            if any(same(e, expression.value) for e in (v if isinstance(v, list) else [v]))
        )
        sets = hits, frozenset(found) - hits
        return sets if expression.op == "=" else sets[::-1]
    judged = {i: judge(expression, value) for i, (value,) in found.items()}
    return frozenset(i for i, j in judged.items() if j is True), frozenset(i for i, j in judged.items() if j is False)


def find(field: Field, person: dict[str, Any]) -> tuple[Any] | None:
    here: Any = person
    for step in field.path:
        try:
            here = here[step] if isinstance(here, dict) else None.missing  # type: ignore[attr-defined]
        except (KeyError, AttributeError):
            return ([],) if field.path == ("tags",) or field.path[0] == "evidence" else None
    return None if here is None and (field.path[0] != "metadata" or len(field.path) == 1) else (here,)


def same(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Extent):
        return moment(wanted.start) <= moment(value) < moment(wanted.end)
    groups = (bool, (int, float), str, type(None))
    kinds = [next((n for n, kind in enumerate(groups) if isinstance(each, kind)), None) for each in (value, wanted)]
    if kinds[0] is None or kinds[0] != kinds[1]:
        return False
    return Fraction(value) == Fraction(wanted) if kinds[0] == 1 else value == wanted


def judge(leaf: Any, value: Any) -> bool | None:
    if isinstance(leaf, Like):
        form = re.compile(".*".join(map(re.escape, leaf.pattern.split("%"))), re.DOTALL)
        if isinstance(value, list):
            return any(isinstance(each, str) and form.fullmatch(each) is not None for each in value)
        return form.fullmatch(value) is not None if isinstance(value, str) else None
    if isinstance(leaf, Contains):
        if isinstance(value, list):
            return any(same(each, leaf.value) for each in value)
        if isinstance(value, str) and isinstance(leaf.value, str):
            return len(value.split(leaf.value)) > 1 if leaf.value else True
        return None
    wanted = leaf.value
    if isinstance(wanted, Extent):
        edges = {"<": wanted.start, ">=": wanted.start, "<=": wanted.end, ">": wanted.end}
        earlier = moment(value) < moment(edges[leaf.op])
        return earlier if leaf.op in ("<", "<=") else not earlier
    if isinstance(value, str) and isinstance(wanted, str):
        pair: list[Any] = [value.encode("utf-32-be"), wanted.encode("utf-32-be")]
    elif all(isinstance(each, int | float) and not isinstance(each, bool) for each in (value, wanted)):
        pair = [Fraction(value), Fraction(wanted)]
    else:
        return None
    low, high = pair
    return {"<": low < high, "<=": not high < low, ">": high < low, ">=": not low < high}[leaf.op]


def moment(instant: int) -> datetime:
    return EPOCH + timedelta(microseconds=instant)


# --- the properties ---


@settings(max_examples=300, deadline=None)
@given(filters, st.randoms(use_true_random=False))
def test_a_filter_written_as_text_reads_back_equal(expression: Filter, pen: random.Random) -> None:
    source = written(expression, pen)
    assert parse_filter(source, tz=TZ) == expression, source


@settings(max_examples=200, deadline=None)
@given(filters)
def test_a_filter_written_as_json_reads_back_equal(expression: Filter) -> None:
    form = to_json(expression)
    assert parse_filter(form, tz=TZ) == expression
    assert parse_filter(json.dumps(form), tz=TZ) == expression


@settings(max_examples=300, deadline=None)
@given(cases, st.randoms(use_true_random=False))
def test_a_filter_read_from_text_means_what_sets_say(
    case: tuple[Filter, list[dict[str, Any]]], pen: random.Random
) -> None:
    expression, people = case
    read = parse_filter(written(expression, pen), tz=TZ)
    assert read is not None
    true, false = opinion(expression, people)
    for i, person in enumerate(people):
        assert matches(read, lookup_in(person)) is (True if i in true else False if i in false else None)


def rewritten(expression: Filter, pen: random.Random) -> Filter:
    """The same filter in another form."""
    match expression:
        case And(terms) | Or(terms):
            made = [rewritten(term, pen) for term in terms]
            pen.shuffle(made)
            if pen.random() < 0.5:
                made.append(pen.choice(made))
            if len(made) > 2 and pen.random() < 0.5:
                made = [type(expression)(tuple(made[:2])), *made[2:]]
            return type(expression)(tuple(made))
        case Compare("!=", field, value):
            return Not(Compare("=", field, value))
        case In(field, values) if values:
            return Or(tuple(Compare("=", field, value) for value in reversed(values)))
        case _:
            return Not(Not(expression)) if pen.random() < 0.3 else expression


@settings(max_examples=150, deadline=None)
@given(cases, st.randoms(use_true_random=False))
def test_filters_with_one_canonical_key_match_the_same_records(
    case: tuple[Filter, list[dict[str, Any]]], pen: random.Random
) -> None:
    expression, people = case
    other = rewritten(expression, pen)
    assert canonical(other) == canonical(expression)
    assert hash(canonical(other)) == hash(canonical(expression))
    for person in people:
        assert matches(other, lookup_in(person)) is matches(expression, lookup_in(person))


X = Field(("metadata", "x"))
alike = st.sampled_from([0, 1, 1.0, -0.0, 2, "", "1", "a", True, False, None])
close_leaves = st.one_of(
    st.builds(Compare, equality, st.just(X), alike),
    st.builds(Compare, any_operator, st.just(X), st.sampled_from([0, 1, 1.0, "1"])),
    st.builds(In, st.just(X), st.lists(alike, max_size=2).map(tuple)),
    st.builds(Contains, st.just(X), alike),
    st.builds(Like, st.just(X), st.sampled_from(["", "1", "a", "%"])),
    st.just(Exists(X)),
)
close_filters = st.recursive(close_leaves, branches, max_leaves=3)
WITNESSES = [
    {"metadata": m} for m in [{}, *({"x": v} for v in [0, 1, 2, 1.5, "", "1", "a", True, False, None, [], [1], {}])]
]


@settings(max_examples=500, deadline=None)
@given(close_filters, close_filters)
def test_a_shared_canonical_key_is_never_an_accident(a: Filter, b: Filter) -> None:
    if canonical(a) == canonical(b):
        for witness in WITNESSES:
            assert matches(a, lookup_in(witness)) is matches(b, lookup_in(witness))


PIECES = [
    "a", "tags", "layer", "status", "metadata.x", "metadata.", "recorded_at", "scope", "=", "!=", "<", ">=",
    "==", "(", ")", ",", "'x'", '"y"', "'", '"', "\\", "1", "-1.5e3", "1e999", "2026-01-01", "'2026'", "AND",
    "OR", "NOT", "IN", "CONTAINS", "LIKE", "EXISTS", "TRUE", "NULL", " ", "\n", "%", ".", "[", "{", "}", ":",
    "é", "\x00", "\ud800",
]  # fmt: skip
garbage = st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text(string.printable, max_size=20)


def refusal(source: str) -> Invalid | TooLarge | None:
    try:
        parse_filter(source)
    except (Invalid, TooLarge) as error:
        return error
    return None


@settings(max_examples=400, deadline=None)
@given(garbage)
def test_any_text_is_a_filter_or_an_error_that_points_into_it(source: str) -> None:
    error = refusal(source)
    if error is not None:
        assert error.field == "filter"
        assert 1 <= error.details.get("position", 1) <= len(source) + 1
