"""What a save is to what stands beside it: the cascade of duplicate, refined, conflict and new."""

from collections.abc import Iterator
from itertools import product

import pytest

import kektor
from kektor import Actor
from kektor.engine.records import Receipt
from kektor.handles import MemoryHandle
from tests.support.embedders import HashingEmbedder


@pytest.fixture
def db() -> Iterator[kektor.Database]:
    with kektor.open(":memory:", embedder=HashingEmbedder()) as db:
        yield db


@pytest.fixture
def mem(db: kektor.Database) -> MemoryHandle:
    return db.memory(user="alice")


def _trusts(mem: MemoryHandle, *receipts: Receipt) -> list[str]:
    return [mem.get(str(receipt.id)).trust for receipt in receipts]


def test_a_contradiction_puts_both_in_doubt_and_opens_a_reflection(mem: MemoryHandle) -> None:
    berlin, other = mem.remember("Dana lives in Berlin"), mem.remember("Erik lives in Berlin")
    lisbon = mem.remember("Dana lives in Lisbon")
    assert (lisbon.outcome, lisbon.conflicts) == ("conflict", [berlin.id])
    assert _trusts(mem, berlin, lisbon, other) == ["contested", "contested", "accepted"]
    reflection = mem.get(str(lisbon.reflection))
    assert (reflection.kind, reflection.status) == ("reflection", "current")
    assert "Berlin" not in reflection.text
    mem.retract(str(berlin.id))
    assert _trusts(mem, lisbon) == ["accepted"]
    assert mem.get(str(lisbon.reflection)).status == "archived"


def test_a_third_value_contradicts_both_and_one_retraction_leaves_two_in_doubt(mem: MemoryHandle) -> None:
    first, second, third = (mem.remember(f"The server uses port {port}") for port in (1, 2, 3))
    assert third.conflicts == [first.id, second.id]
    mem.retract(str(first.id))
    assert _trusts(mem, second, third) == ["contested", "contested"]
    mem.archive(str(second.id))
    assert _trusts(mem, third) == ["accepted"]
    mem.restore(str(second.id))
    assert _trusts(mem, second, third) == ["contested", "contested"]


@pytest.mark.parametrize("erases", [True, False])
def test_what_stood_against_it_is_believed_again(mem: MemoryHandle, erases: bool) -> None:
    loves, hates = mem.remember("Dana loves coriander"), mem.remember("Dana can't stand coriander")
    assert hates.outcome == "conflict"
    if erases:
        mem.forget(ids=[str(loves.id)], mode="erase")
        with pytest.raises(kektor.NotFound):
            mem.get(str(hates.reflection))
    else:
        mem.evolve(str(loves.id), "Dana eats coriander")
    assert _trusts(mem, hates) == ["accepted"]


def test_a_lower_channel_never_lowers_the_trust_of_a_higher_one(tmp_path: object) -> None:
    folder = str(tmp_path)
    said = {}
    for kind, port in (("human", 8080), ("agent", 8081), ("agent", 8082)):
        with kektor.open(folder, actor=Actor(kind, "x"), embedder=HashingEmbedder()) as db:  # type: ignore[arg-type]
            said[port] = db.memory().remember(f"The server uses port {port}")
    with kektor.open(folder, embedder=HashingEmbedder()) as db:
        mem = db.memory()
        assert _trusts(mem, *said.values()) == ["accepted", "contested", "contested"]
        person = mem.remember("The server uses port 8083")
        assert person.outcome == "conflict"
        assert _trusts(mem, *said.values()) == ["accepted", "contested", "contested"]


def test_more_of_the_same_takes_its_place(mem: MemoryHandle) -> None:
    short = mem.remember("Dana lives in Berlin", tags=["a"])
    longer = mem.remember("Dana lives in Berlin, near the park", tags=["b"])
    assert (longer.outcome, longer.of, longer.version) == ("refined", short.id, 2)
    assert mem.get(str(longer.id)).tags == ["a", "b"]
    assert mem.get(str(short.id)).superseded_by == longer.id
    again = mem.remember("Dana lives in Berlin")
    assert (again.outcome, again.of) == ("duplicate", longer.id)
    assert mem.remember("Dana lives in Berlin", valid_from="2030").outcome != "duplicate"


def test_what_refines_a_doubtful_statement_stays_in_doubt(mem: MemoryHandle) -> None:
    berlin, lisbon = mem.remember("Dana lives in Berlin"), mem.remember("Dana lives in Lisbon")
    longer = mem.remember("Dana lives in Berlin, near the park")
    assert longer.outcome == "refined"
    assert _trusts(mem, lisbon, longer) == ["contested", "contested"]
    mem.retract(str(lisbon.id))
    assert _trusts(mem, longer) == ["accepted"]
    assert mem.get(str(berlin.id)).status == "superseded"


def test_an_old_value_told_again_changes_nothing_unless_it_begins_later(mem: MemoryHandle) -> None:
    first = mem.remember("Tom works at Acme")
    head = mem.evolve(str(first.id), "Tom works at Globex", valid_from="2020")
    for again in (mem.remember("Tom works at Acme"), mem.remember("Tom works at Acme", valid_from="2019")):
        assert (again.outcome, again.of) == ("duplicate", first.id)
    back = mem.remember("Tom works at Acme", valid_from="2024")
    assert (back.outcome, back.of, back.version) == ("superseded", head.id, 3)
    assert [m.validity.label for m in mem.history(str(first.id))] == ["until 2020", "2020 to 2024", "current"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("Dana lives in Berlin", {"valid_to": "2020"}), ("Dana lives in Lisbon", {"valid_from": "2021"})),
        (("Dana lives in Berlin", {"occurred_at": "2020"}), ("Dana lives in Lisbon", {})),
        (("Dana lives in Berlin until 2020", {}), ("Dana lives in Lisbon since 2021", {})),
        (("Order 1001 shipped", {}), ("Order 1002 shipped", {})),
        (("Order 1001 has status open", {}), ("Order 1002 has status closed", {})),
    ],
)
def test_other_times_events_and_subjects_do_not_contradict(mem: MemoryHandle, first: object, second: object) -> None:
    for text, fields in (first, second):  # type: ignore[misc]
        assert mem.remember(text, **fields).outcome == "created"


def test_another_scope_is_never_compared(db: kektor.Database, mem: MemoryHandle) -> None:
    mem.remember("Dana lives in Berlin")
    assert db.memory(user="bob").remember("Dana lives in Lisbon").outcome == "created"
    assert db.memory().remember("Dana lives in Porto").outcome == "created"
    assert mem.remember("Dana lives in Lisbon").outcome == "conflict"


def test_the_user_is_whom_the_scope_names(mem: MemoryHandle) -> None:
    home = mem.remember("I live in Oslo")
    assert mem.remember("Alice lives in Bergen").conflicts == [home.id]


def test_single_valued_is_what_the_index_says(db: kektor.Database) -> None:
    db.create_index("own", policy={"single_valued": ["favorite color"]})
    mem = db.memory("own")
    assert mem.remember("Dana's favorite color is red").outcome == "created"
    assert mem.remember("Dana's favorite color is blue").outcome == "conflict"
    assert mem.remember("Dana lives in Berlin").outcome == "created"
    assert mem.remember("Dana lives in Lisbon").outcome == "created"


SHAPES = [
    "{who} lives in {where}", "{who} owns the {where} account", "The {where} server listens on port {n}",
    "{who}'s phone number is 555-{n}", "Order {n} shipped to {where}", "The status of ticket {n} is {word}",
    "{who} was born in {where}", "Version {n} of the {where} client is {word}", "{who} is allergic to {word}",
    "{who} can't stand {word}", "{who} loves {word2}", "The {where} office is {word}", "{who} works at {where}",
    "Invoice {n} is due in {where}", "{who} moved to {where}", "{who} doesn't eat {word}",
    "The capital of {where} is {who}", "Room {n} has no {word}", "{who} reports to {who2}",
    "The deadline of project {n} is {word}",
]  # fmt: skip
PEOPLE = ["Dana", "Erik", "Priya", "Tomás", "Wei", "Noor", "Ivan", "Lucia", "Kofi", "Anya"]
PLACES = ["Oslo", "Graz", "Lima", "Porto", "Turin", "Kyoto", "Bergen", "Quito", "Dakar", "Perth"]
WORDS = ["open", "peanuts", "closed", "coriander", "ready", "olives", "blue", "milk", "late", "chess"]


def test_five_hundred_pairs_of_one_shape_are_all_new(mem: MemoryHandle) -> None:
    """Sentences that share everything but whom or what they are about: 0 conflicts, 0 duplicates."""
    texts = []
    for shape, at in product(SHAPES, range(10)):
        texts.append(
            shape.format(
                who=PEOPLE[at], who2=PEOPLE[(at + 3) % 10], where=PLACES[(at * 3 + 1) % 10], n=1000 + at,
                word=WORDS[(at * 7 + 2) % 10], word2=WORDS[(at * 7 + 5) % 10],
            )
        )  # fmt: skip
    pairs = sum(1 for group in range(len(SHAPES)) for one in range(10) for _ in range(one))
    assert pairs >= 500
    outcomes = {text: mem.remember(text).outcome for text in texts}
    assert {text: outcome for text, outcome in outcomes.items() if outcome != "created"} == {}
    # Control: the same shapes about the same subject with another value do contradict.
    assert mem.remember("Dana lives in Nairobi").outcome == "conflict"
    assert mem.remember("The status of ticket 1000 is lost").outcome == "conflict"
    assert mem.remember("Erik hates tea").outcome == "created"
    assert mem.remember("Erik loves tea").outcome == "conflict"


def test_what_changes_on_a_later_day_holds_until_then(mem: MemoryHandle) -> None:
    mem.remember("The office is in Rome", id="rome")
    milan = mem.evolve("rome", "The office is in Milan", valid_from="2999")
    assert [m.text for m in mem.list().items] == ["The office is in Rome", "The office is in Milan"]
    answer = mem.recall("Where is the office?")
    assert [(hit.memory.id, hit.memory.validity.label) for hit in answer] == [
        ("rome", "until 2999"),
        (milan.id, "from 2999"),
    ]
    assert "superseded" not in answer.context
    then = mem.recall("Where is the office?", now="3000")
    assert [hit.memory.id for hit in then] == [milan.id]
    assert [m.text for m in mem.list(as_of="3000").items] == ["The office is in Milan"]


def test_of_two_values_the_latest_is_first_and_the_other_was_told_earlier(mem: MemoryHandle) -> None:
    old, new = mem.remember("Dana lives in Berlin"), mem.remember("Dana lives in Lisbon")
    mem.remember("Dana lives for chess")
    for question in ("Does Dana live in Berlin?", "Where does Dana live?", "Dana lives in Berlin"):
        answer = mem.recall(question)
        shown = [(hit.memory.id, hit.told_earlier) for hit in answer][:2]
        assert shown == [(new.id, False), (old.id, True)]
        assert answer.context.count("told earlier") == 1
        assert [hit.memory.id for hit in mem.recall(question, k=1)] == [new.id]


def test_the_latest_beginning_is_first_whenever_it_was_told(mem: MemoryHandle) -> None:
    late = mem.remember("Dana lives in Lisbon", valid_from="2024", valid_to="2999")
    early = mem.remember("Dana lives in Berlin", valid_from="2020", valid_to="2999")
    assert [hit.memory.id for hit in mem.recall("Where does Dana live?")] == [late.id, early.id]


def test_what_was_said_again_is_not_restored_beside_itself(mem: MemoryHandle) -> None:
    first = mem.remember("The kettle is red")
    mem.archive(str(first.id))
    again = mem.remember("The kettle is red")
    assert again.outcome == "created"
    with pytest.raises(kektor.Conflict) as refused:
        mem.restore(str(first.id))
    assert refused.value.details == {"twin": again.id}
    mem.archive(str(again.id))
    assert mem.restore(str(first.id)).outcome == "restored"


def test_a_correction_leaves_no_empty_interval(mem: MemoryHandle) -> None:
    mem.remember("Dana lives in Berlin", id="home", valid_from="2020", valid_to="2021")
    with pytest.raises(kektor.Invalid) as refused:
        mem.correct("home", "Dana lives in Lisbon", valid_from="2025")
    assert refused.value.field == "valid_from"
    assert mem.get("home").status == "current"
