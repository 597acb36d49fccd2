"""What each field may be asked."""

import unicodedata

import pytest

from kektor.engine.filters import (
    ALIASES,
    MEMORY_FIELDS,
    Compare,
    Contains,
    Exists,
    Field,
    In,
    Like,
    Not,
    Or,
    check_bare,
    fields,
    memory_field,
)
from kektor.errors import Invalid
from kektor.query import parse_filter

STATUS = Field(("status",))
SAMPLE = {"text": "'x'", "number": "1", "bool": "true", "time": "'2026'"}


def invalid(source: str) -> Invalid:
    with pytest.raises(Invalid) as caught:
        parse_filter(source)
    assert caught.value.field == "filter"
    return caught.value


def test_every_memory_field_can_be_asked_for_by_its_name() -> None:
    for name, known in MEMORY_FIELDS.items():
        asked = parse_filter(f"EXISTS({name})")
        assert asked == Exists(Field(tuple(name.split("."))))
        if known.type == "map":
            assert "EXISTS" in invalid(f"{name} = 'x'").message
            continue
        value = f"'{known.choices[0]}'" if known.choices else SAMPLE[known.item or known.type]
        compared = parse_filter(f"{name} = {value}")
        assert isinstance(compared, Compare)
        assert memory_field(compared.field) is known
        assert isinstance(parse_filter(f"{name} IN ({value})"), In)


def test_the_arguments_of_remember_name_the_validity_too() -> None:
    assert dict(ALIASES) == {"valid_from": "validity.from", "valid_to": "validity.to"}
    for alias, name in ALIASES.items():
        assert parse_filter(f"{alias} > '2026'") == parse_filter(f"{name} > '2026'")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("status = 'curent'", "current, superseded, archived, erased"),
        ("status IN ('current', 'Archived')", "did you mean 'archived'"),
        ("trust != 'sure'", "accepted, contested, proposed, rejected"),
        ("kind = 'note'", "memory, source"),
        ("evidence.class CONTAINS 'users'", "user, tool, act, self, doc"),
        ("status > 'current'", "no order"),
        ("pinned > 3", "no order"),
        ("pinned > true", "no order"),
        ("pinned = 3", "true or false"),
        ("pinned = 'true'", "true or false"),
        ("pinned = 1", "true or false"),
        ("version = '1'", "a number"),
        ("version = true", "a number"),
        ("version CONTAINS 1", "a number"),
        ("version LIKE '1%'", "a number"),
        ("layer = 5", "layer is text"),
        ("layer = true", "layer is text"),
        ("layer < 5", "layer is text"),
        ("tags = 5", "a list of texts"),
        ("tags > 'a'", "no order"),
        ("tags CONTAINS null", "EXISTS(tags)"),
        ("evidence.start LIKE '1'", "a list of numbers"),
        ("recorded_at > 'garbage'", "not a time"),
        ("recorded_at > '2026-02-30'", "does not exist"),
        ("recorded_at > 1700000000000", "milliseconds"),
        ("recorded_at = true", "not a time"),
        ("recorded_at LIKE '2026%'", "a time"),
        ("recorded_at CONTAINS '2026'", "a time"),
        ("metadata.x > null", "no order"),
        ("metadata.x > false", "no order"),
        ("metadata = 5", "EXISTS(metadata)"),
        ("claim = 'x'", "claim.subject"),
        ("scope = 'x'", "scope.user, scope.agent, scope.project"),
        ("EXISTS(scope)", "scope.user"),
        ("scope.usr = 'x'", "scope.user"),
        ("status.x = 'x'", "no parts"),
        ("valid_from.x = 'x'", "no parts"),
    ],
)
def test_what_can_never_be_is_an_error_that_says_what_can(source: str, reason: str) -> None:
    assert reason in invalid(source).message


def test_a_part_of_a_word_may_be_looked_for_where_only_a_few_words_are() -> None:
    assert parse_filter("status LIKE 'curr%'") == Like(STATUS, "curr%")
    assert parse_filter("status CONTAINS 'arch'") == Contains(STATUS, "arch")
    assert "user, tool" in invalid("evidence.class CONTAINS 'us'").message


def test_null_asks_a_memory_field_whether_it_has_a_value() -> None:
    field = Field(("superseded_by",))
    assert parse_filter("superseded_by = NULL") == Not(Exists(field))
    assert parse_filter("superseded_by != NULL") == Exists(field)
    assert parse_filter("superseded_by IN ('a', NULL)") == Or((In(field, ("a",)), Not(Exists(field))))
    assert parse_filter("superseded_by IN (NULL)") == Not(Exists(field))
    assert parse_filter("recorded_at = NULL") == Not(Exists(Field(("recorded_at",))))
    assert parse_filter("metadata.x = NULL") == Compare("=", Field(("metadata", "x")), None)


def test_scopes_are_compared_in_the_form_they_are_stored_in() -> None:
    decomposed = unicodedata.normalize("NFD", "José")
    assert parse_filter(f"scope.user = '{decomposed}'") == Compare("=", Field(("scope", "user")), "José")
    assert parse_filter(f"metadata.user = '{decomposed}'") == Compare("=", Field(("metadata", "user")), decomposed)


def test_a_bare_name_is_metadata_and_must_be_stored_somewhere() -> None:
    asked = parse_filter("stage = 'x' AND metadata.nothing = 1 AND owner.name = 'y'")
    assert asked is not None
    assert {str(field) for field in fields(asked) if field.bare} == {"stage", "owner.name"}
    check_bare(asked, {"stage", "owner"})
    with pytest.raises(Invalid) as caught:
        check_bare(asked, {"stages", "owner"})
    assert caught.value.details == {"name": "stage", "nearest": "metadata.stages"}
    assert "did you mean metadata.stages?" in caught.value.message
    assert caught.value.field == "filter"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("recoded_at", "recorded_at"),
        ("user", "scope.user"),
        ("Status", "status"),
        ("freshnes", "freshness.state"),
        ("valid_form", "valid_from"),
        ("Odd_Key", 'metadata."odd.key"'),
        ("zzzzzz", None),
    ],
)
def test_a_mistaken_name_gets_the_nearest_one(name: str, near: str | None) -> None:
    asked = parse_filter(f"{name} = 'x'")
    assert asked is not None
    with pytest.raises(Invalid) as caught:
        check_bare(asked, {"odd.key"})
    assert caught.value.details["nearest"] == near
    assert STATUS not in fields(asked)
