"""tombstone.normalization, at the level of the text itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kektor.text import Digester, fold, plain, readings


@pytest.mark.parametrize(
    "disguise",
    [
        "THE PASSWORD IS HUNTER2",
        "  the   password\tis\nhunter2  ",
        "ｔｈｅ ｐａｓｓｗｏｒｄ ｉｓ ｈｕｎｔｅｒ２",
        "the p\u0430ssw\u043erd is hunter2",
        "the pass\u200bword is hun\u00adter2",
        "the pa\u0301ssword i\u0336s hunter2",
        "the password is hunter2!!!",
        "\u201cThe password is hunter2.\u201d",
        "the password is hunter2\ufe0f",
        "\u202ethe password is hunter2\u202c",
    ],
)
def test_a_disguise_folds_to_the_same(disguise: str) -> None:
    assert fold(disguise) == fold("the password is hunter2")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("the password is hunter2", "the password is hunter3"),
        ("temperature is -5", "temperature is 5"),
        ("#5", "5"),
        ("मेरी किताब", "मेरा किताब"),
        ("!!!", "???"),
        ("東京", "京都"),
        ("port 8080", "port 8081"),
    ],
)
def test_what_differs_stays_different(one: str, other: str) -> None:
    assert fold(one) != fold(other)
    assert plain(one) != plain(other)


@pytest.mark.parametrize(
    ("one", "other"), [("5 %", "5"), ("-5", "5"), ("#5", "5"), ("the rate is 5%", "the rate is 5"), ("a-b", "ab")]
)
def test_no_reading_takes_the_sign_of_a_number(one: str, other: str) -> None:
    assert not set(readings(one)) & set(readings(other))


def test_plain_keeps_what_only_a_disguise_would_change() -> None:
    assert plain("Papá") != plain("Papa")
    assert fold("Papá") == fold("Papa")


@given(st.text())
def test_folding_is_stable(text: str) -> None:
    assert plain(plain(text)) == plain(text)
    assert fold(fold(text)) == fold(text)


def test_digests_depend_on_the_key_and_on_where_parts_end() -> None:
    one, other = Digester(b"a"), Digester(b"b")
    assert one.digest("x") != other.digest("x")
    assert one.exact("ab", "c") != one.exact("a", "bc")
    assert one.digest("ab", "c") != one.digest("a", "bc")
