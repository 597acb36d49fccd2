"""What the rules read in a plain sentence, and what two statements are to each other."""

from pathlib import Path

import pytest

from kektor.memory.claims import SingleValued, compare, declared, remainder_of, statement_of
from kektor.memory.claims.comparing import Relation
from kektor.memory.claims.tables import default_single_valued

SINGLE = SingleValued(default_single_valued())


@pytest.mark.parametrize(
    ("text", "subject", "predicate", "value"),
    [
        ("The staging server listens on port 8080.", "staging server", "listen on port", "8080"),
        ("Dana has lived here", "dana", "live", "here"),
        ("The owner of the Henderson account is Dana", "henderson account", "owner", "dana"),
        ("The Henderson account's owner is Dana", "henderson account", "owner", "dana"),
        ("The API version is 2.3", "api", "version", "2.3"),
        ("My phone number is 555-0100", "i", "phone number", "555-0100"),
        ("Currently, Dana is working on the parser", "dana", "work on", "parser"),
        ("Dana is allergic to nuts", "dana", "allergic to", "nuts"),
        ("Mira was born in Graz", "mira", "born in", "graz"),
        ("The bridge was designed by Otto Lind", "bridge", "designed by", "otto lind"),
        ("The school where Mira was taught is Lindhof", "school where mira was taught", "be", "lindhof"),
        ("Lyon is the capital of Elbonia", "lyon", "capital of", "elbonia"),
        ("The server has port 443", "server", "port", "443"),
        ("Alice lives in Oslo since March 2020", "alice", "live in", "oslo"),
        ("The plants are watered on Mondays", "plants", "watered on", "mondays"),
        ("Priya is an engineer, and she works at Acme", "priya", "be", "engineer"),
    ],
)
def test_a_sentence_is_subject_predicate_object(text: str, subject: str, predicate: str, value: str) -> None:
    said = statement_of(text)
    assert said is not None
    assert (said.subject, said.predicate, said.object) == (subject, predicate, value)


@pytest.mark.parametrize(
    "text",
    [
        "Dana doesn't eat meat", "Dana does not eat meat any more", "Dana no longer eats meat",
        "Dana stopped eating meat", "Dana never eats meat", "Dana has stopped eating meat", "Dana eats no meat",
    ],
)  # fmt: skip
def test_a_negator_turns_a_statement_round(text: str) -> None:
    plain, said = statement_of("Dana eats meat"), statement_of(text)
    assert plain is not None
    assert said is not None
    assert said[:3] == plain[:3]
    assert (said.negative, plain.negative) == (True, False)


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("Order 1001 shipped", True), ("Dana moved to Lisbon", True), ("Dana has left Acme", True),
        ("Dana used to live in Berlin", True), ("Dana will move to Lisbon", True), ("Dana did not call", True),
        ("Dana lives in Lisbon", False), ("Mira was born in Graz", False), ("Dana has been ill", False),
        ("Dana is moving the server", False),
    ],
)  # fmt: skip
def test_what_happened_is_an_event_and_what_is_a_state(text: str, event: bool) -> None:
    said = statement_of(text)
    assert said is not None
    assert said.event is event


def test_dates_at_the_end_are_the_interval() -> None:
    said = statement_of("Dana was a vegetarian from 2014 to March 2024")
    assert said is not None
    assert said.object == "vegetarian"
    assert (said.since, said.until) == (1_388_534_400_000_000, 1_711_929_600_000_000)


@pytest.mark.parametrize(
    ("old", "new", "relation"),
    [
        ("Dana lives in Berlin", "Dana lives in Lisbon", "conflict"),
        ("The staging server listens on port 8080", "The staging server listens on port 8081", "conflict"),
        ("Dana loves coriander", "Dana can't stand coriander", "conflict"),
        ("Dana has a sister", "Dana has no sister", "conflict"),
        ("Dana eats meat", "Dana stopped eating meat", "conflict"),
        ("The door is open", "The door is closed", "conflict"),
        ("The door is open", "The door is not open", "conflict"),
        ("Dana vive a Berlino", "Dana non vive a Berlino", "conflict"),
        ("Дана живёт в Берлине", "Дана не живёт в Берлине", "conflict"),
        ("我喜欢咖啡", "我不喜欢咖啡", "conflict"),
        ("Dana hat eine Schwester", "Dana hat keine Schwester", "conflict"),
        ("Dana works at Acme", "Dana works at Globex", "conflict"),
        ("Dana lives in Berlin", "Dana lives in Berlin, Germany", "refines"),
        ("Dana likes tea", "Dana likes tea and coffee", "refines"),
        ("Dana likes tea (green)", "Dana likes tea", "shorter"),
        ("Dana works at Acme", "Dana works at the front desk", None),
        ("Dana lives in Berlin", "Dana lives in Kreuzberg, Berlin", None),
        ("Dana likes tea", "Dana likes coffee", None),
        ("Dana likes tea", "Dana doesn't like coffee", None),
        ("Dana lives in Berlin", "Dana doesn't live in Lisbon", None),
        ("Dana likes tea", "Dana likes teaspoons", None),
        ("Dana moved to Berlin", "Dana moved to Lisbon", None),
        ("The service was down", "The service is up", None),
        ("The build is green", "The build is fast", None),
    ],
)
def test_what_two_statements_of_one_subject_are_to_each_other(old: str, new: str, relation: Relation | None) -> None:
    one, other = statement_of(old), statement_of(new)
    assert one is not None
    assert other is not None
    assert one.subject == other.subject
    assert compare(one, other, SINGLE) == relation


@pytest.mark.parametrize(
    "text",
    ["Does Dana live in Berlin?", "He lives in Berlin", "The kettle is red. The cup is blue.", "x" * 401, "!"],
)
def test_what_the_rules_do_not_understand_has_no_subject(text: str) -> None:
    """A question, somebody unknown, several sentences: at most the whole text is compared with its denial."""
    said = statement_of(text)
    assert said is None or said.predicate == ""


def test_a_declared_claim_compares_with_a_read_one() -> None:
    claim = declared("The Henderson account", "owner", "Dana")
    said = statement_of("The owner of the Henderson account is Priya")
    assert said is not None
    assert (claim.subject, claim.predicate) == (said.subject, said.predicate)
    assert compare(claim, said, SINGLE) == "conflict"


def test_the_documentation_shows_the_list_in_force() -> None:
    page = (Path(__file__).parents[3] / "docs" / "claims.md").read_text("utf-8")
    quoted = " ".join(line.removeprefix("> ") for line in page.splitlines() if line.startswith("> "))
    assert quoted == ", ".join(default_single_valued())


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ("Priya is an engineer, and she works at Acme", "Priya is a manager", "Priya works at Acme"),
        ("Priya is an engineer and works at Acme", "Priya works at Globex", "Priya is an engineer"),
        ("Priya is an engineer. She works at Acme.", "Priya is a manager", "Priya works at Acme"),
        ("Dana loves tea; Erik lives in Oslo", "Dana hates tea", "Erik lives in Oslo"),
        ("Dana lives in Berlin, works at Acme", "Dana lives in Lisbon", None),
        ("Dana lives in Berlin, but she works in Potsdam and likes tea and cake", "Dana lives in Lisbon",
         "Dana works in Potsdam. Dana likes tea and cake"),
        ("The server listens on port 80 and has 4 cores", "The server listens on port 81", "The server has 4 cores"),
        ("Dana likes tea and coffee", "Dana likes milk", None),
        ("Priya is an engineer, and she works at Acme", "Priya rides a bicycle", None),
        ("Priya is an engineer, and she is tired", "Priya is a manager", None),
        ("Gibberish without a verb; more of it", "Priya is a manager", None),
    ],
)  # fmt: skip
def test_what_a_partial_replacement_leaves(old: str, new: str, left: str | None) -> None:
    assert remainder_of(old, new) == left
