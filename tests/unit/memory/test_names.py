"""Names, identifiers and subjects, by the signs that writing gives."""

import pytest

from kektor.memory.recall.names import identifiers_in, names_in, subject_names
from kektor.memory.recall.question import read


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Does Quentin know where Dana lives?", ["Quentin", "Dana"]),
        ("Where does Anna Smith live?", ["Anna Smith"]),
        ("What is Priya's cat called?", ["Priya"]),
        ("Does Erik speak Danish?", ["Erik", "Danish"]),
        ("Who paints in May, on Sunday?", []),
        ("How Do I Bake Sourdough Bread At Home", []),
        ("WHERE DOES DANA LIVE NOW", []),
        ("where does dana live?", []),
        ("达娜住在哪里？", []),
    ],
)
def test_names_are_capitals_inside_a_sentence(text: str, names: list[str]) -> None:
    assert list(names_in(text)) == names


def test_a_name_that_opens_a_sentence_is_told_from_a_function_word() -> None:
    assert list(names_in("Marco is allergic to peanuts", opening=True)) == ["Marco"]
    assert list(names_in("Which of them is allergic to peanuts", opening=True)) == []
    assert list(subject_names("Melanie went hiking, and Caroline's bike broke")) == ["Melanie", "Caroline"]


@pytest.mark.parametrize(
    ("text", "identifiers"),
    [
        ("Did TKT-100 ship?", ["TKT-100"]),
        ("order 1002, please", ["1002"]),
        ("write to alice.b2@acme.io", ["alice.b2@acme.io"]),
        ("in 2023, on 2024-05-03, at 10:30, the 3rd, 90s music, 25km away, 1,200 euros, 12 cats", []),
    ],
)
def test_identifiers_are_no_dates_times_or_amounts(text: str, identifiers: list[str]) -> None:
    assert list(identifiers_in(text)) == identifiers


def test_what_is_asked_of_speakers_leaves_their_names_out() -> None:
    question = read("What did Caroline's sister say to Melanie?")._replace(speakers=frozenset({"caroline", "melanie"}))
    assert question.said == "What did sister say to ?"
    only = read("Caroline?")._replace(speakers=frozenset({"caroline"}))
    assert only.said == "Caroline?", "a question of nothing else is asked as it is"


@pytest.mark.parametrize("word", ["TKT-1", "A12", "v2", "7b"])
def test_short_ids_are_recognised_by_a_digit(word: str) -> None:
    assert word in read(f"What about {word}?").possible_ids
    assert "cat" not in read("What about the cat?").possible_ids
