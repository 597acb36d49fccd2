"""What was rejected does not come back."""

import unicodedata
from typing import Any

import pytest

from tests.support.callers import Caller, Refused
from tests.support.stage import Stage, known_ids, texts_of, tried

VALUE = "The safe code of the harbour office is Zephyr-4417"
TWIN = "The safe code of the ferry office is Zephyr-4418"


def _blocked(caller: Caller, text: str, **fields: Any) -> Refused:
    with pytest.raises(Refused) as refused:
        caller.remember(text, **fields)
    assert refused.value.code == "blocked", refused.value
    assert refused.value.details["tombstone"]
    return refused.value


@pytest.mark.index(meaning=True)
@pytest.mark.doors("library", "rest", "mcp", "cli")
def test_tombstone_laundering(stage: Stage) -> None:
    """Rejected, superseded by another, restated and corroborated by everything at hand: it stays rejected."""
    alice = stage.caller("alice")
    twin = alice.remember(TWIN)["id"]
    wrong = alice.remember(VALUE)["id"]
    right = alice.correct(wrong, "The safe code of the harbour office is Mistral-9")["id"]
    newer = alice.evolve(right, "The safe code of the harbour office is Sirocco-7")["id"]
    other = alice.remember("The harbour office has a safe")["id"]

    refusal = _blocked(alice, VALUE)
    assert VALUE not in refusal.message
    with pytest.raises(Refused) as refused:
        alice.evolve(newer, VALUE)  # the way back through its own lineage
    assert refused.value.code == "blocked"
    with pytest.raises(Refused) as refused:
        alice.correct(other, VALUE)  # the way in through somebody else's
    assert refused.value.code == "blocked"
    with stage.pending.part():
        _blocked(alice, VALUE, valid_from="2030-01-01")
    with stage.pending.part():
        _blocked(alice, VALUE, tags=["verified"], layer="procedural")
    with stage.pending.part():
        _blocked(alice, VALUE, id="an-id-of-its-own")
    with stage.pending.part():
        _blocked(alice, VALUE, claim=["harbour office", "safe code", "Zephyr-4417"])
    with stage.pending.part():
        said = stage.preparing("alice").ingest("talk", [{"role": "user", "content": f"I say it again. {VALUE}."}])
        _blocked(alice, VALUE, evidence=[{"source": said["ids"][0], "quote": VALUE}])
        alice.confirm(newer, evidence=said["ids"][0])
    with stage.pending.part(), pytest.raises(Refused):
        alice.confirm(wrong)
    with stage.pending.part():
        with pytest.raises(Refused) as refused:
            alice.restore(wrong)
        assert refused.value.code == "conflict"

    assert (alice.get(wrong)["status"], alice.get(wrong)["trust"]) == ("superseded", "rejected")
    recall = alice.recall("What is the safe code?", kinds=["memory"], k=50)
    assert wrong not in known_ids(recall)
    assert "Zephyr-4417" not in recall["context"]
    assert {newer, twin} <= set(known_ids(recall))
    assert alice.remember(TWIN)["outcome"] == "duplicate"


def test_tombstone_laundering_by_claim(stage: Stage) -> None:
    """A rejected claim is rejected in other words as well; a claim with another object is not."""
    alice = stage.caller("alice")
    with stage.pending.part():
        claim = ["Henderson account", "owner", "Dana"]
        wrong = alice.remember("Dana owns the Henderson account", claim=claim)["id"]
        alice.retract(wrong)
        _blocked(alice, "The Henderson account belongs to Dana", claim=claim)
        _blocked(alice, "It is Dana's, the Henderson account", claim=["HENDERSON account", "Owner", " dana "])
        other = alice.remember("The Henderson account belongs to Erik", claim=["Henderson account", "owner", "Erik"])
        assert other["outcome"] == "created"
    # Without its claim another wording is another text, which only a reader can tell is the same.
    paraphrase = alice.remember("The Henderson account belongs to Dana")
    assert paraphrase["outcome"] == "created"
    stage.pending("a paraphrase that passes is not reported as one")


def test_tombstone_laundering_as_a_title(stage: Stage) -> None:
    """A rejected value does not come back as the title of a conversation; the conversation and other titles do."""
    alice, prepared = stage.caller("alice"), stage.preparing("alice")
    alice.retract(alice.remember(VALUE)["id"])
    first = prepared.ingest("one", [{"role": "user", "content": "Good morning"}], title=VALUE)
    assert first["items"][0]["outcome"] == "created"
    assert "title" in str(first["warnings"])
    prepared.ingest("two", [{"role": "user", "content": "Good evening"}], title=TWIN)
    sessions = prepared.list(kinds=["session"])
    assert [(session["session"], session["text"]) for session in sessions] == [("one", ""), ("two", TWIN)]
    assert VALUE not in str(sessions)


@pytest.mark.doors("library", "rest", "mcp", "cli")
def test_tombstone_survives_prune(stage: Stage) -> None:
    """Neither checkpoints and restarts nor the archive bring it back; the unrejected twin is still there."""
    alice = stage.caller("alice")
    twin = alice.remember(TWIN)["id"]
    wrong = alice.remember(VALUE)["id"]
    alice.retract(wrong)
    for happens in (stage.restart, stage.settle, stage.settle, stage.restart):
        happens()
    _blocked(alice, VALUE)
    alice.archive(twin)
    with stage.pending.part():
        alice.restore(twin)
    assert alice.get(wrong)["trust"] == "rejected"
    assert alice.get(twin)["trust"] == "accepted"
    with pytest.raises(Refused):
        alice.evolve(wrong, "The safe code of the harbour office is new")
    # Erasing what was rejected must not lift the rejection.
    alice.erase(wrong)
    _blocked(alice, VALUE)
    stage.settle()
    stage.restart()
    _blocked(alice, VALUE)
    assert alice.remember("The safe code of the mill is Zephyr-4419")["outcome"] == "created"


def test_tombstone_survives_prune_in_the_archive(stage: Stage) -> None:
    """A copy that lay in the archive while its value was rejected stays there; another archived memory comes back."""
    alice = stage.caller("alice")
    archived = alice.remember(VALUE)["id"]
    alice.archive(archived)
    again = alice.remember(VALUE)
    assert again["outcome"] == "created"
    alice.retract(again["id"])
    twin = alice.remember(TWIN)["id"]
    alice.archive(twin)
    with stage.pending.part():
        with pytest.raises(Refused) as refused:
            alice.restore(archived)
        assert refused.value.code == "blocked"
        alice.restore(twin)
        assert texts_of(alice.list()) == [TWIN]
    assert alice.get(archived)["status"] == "archived"


def _disguises(text: str) -> dict[str, str]:
    """One text in every costume that a reader sees through."""
    wide = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)
    cyrillic = text.translate(str.maketrans("aeopcxy", "аеорсху"))
    greek = text.translate(str.maketrans("oZ", "οΖ"))
    return {
        "upper case": text.upper(),
        "lower case": text.lower(),
        "white space": f"  {text.replace(' ', chr(9) + ' ')}\n",
        "other spaces": text.replace(" ", "\u00a0").replace("\u00a0o", "\u2003o"),
        "no spaces": text.replace(" ", ""),
        "full stop": f"{text}.",
        "punctuation": f"«{text}!?»…",
        "quotes": f'"{text}"',
        "full width": wide,
        "Cyrillic letters": cyrillic,
        "Greek letters": greek,
        "zero-width spaces": "\u200b".join(text),
        "joiners and marks": text.replace("a", "a\u200d").replace("e", "\ufeffe").replace("o", "o\u2060"),
        "soft hyphens": text.replace("o", "\u00ado"),
        "right-to-left marks": f"\u202e{text}\u202c",
        "combining marks": text.replace("a", "a\u0301").replace("o", "o\u0308"),
        "decomposed accents": unicodedata.normalize("NFD", text.replace("e", "é")),
        "variation selectors": text.replace(" ", "\ufe0f "),
        "mathematical letters": "".join(
            chr(0x1D41A + ord(c) - ord("a")) if "a" <= c <= "z" else c for c in text
        ),
        "control characters": text.replace("c", "c\u0007"),
        "blanks that are none": text.replace("o", "o\u3164").replace("a", "a\u2800").replace("i", "i\U000e0100\u180b"),
        "marks of other scripts": text.replace("o", "o\u0483").replace("a", "a\u0591").replace("e", "e\u064b"),
        "emphasis": f"**{text}**",
        "emphasis of a word": text.replace("safe", "_safe_").replace("code", "`code`"),
        "a bullet": f"- # @ {text}",
        "signs at the end": f"{text} - * / %",
        "Armenian letters": text.replace("h", "հ").replace("o", "օ"),
        "small capitals": text.translate(str.maketrans("aeiorf", "ᴀᴇɪᴏʀꜰ")),
        "Greek letters by their shape": text.replace("u", "υ").replace("y", "γ"),
        "other dashes": text.replace("-", "\u2011"),
        "Devanagari digits": text.translate(str.maketrans("4417", "४४१७")),
    }  # fmt: skip


def test_tombstone_normalization(stage: Stage) -> None:
    """No disguise gets it back; a text of another number, name or meaning is not mistaken for it."""
    alice = stage.caller("alice")
    alice.retract(alice.remember(VALUE)["id"])
    for name, disguise in _disguises(VALUE).items():
        assert disguise != VALUE, name
        answer = tried(lambda: alice.remember(disguise))  # noqa: B023
        assert isinstance(answer, Refused), f"{name} got through: {answer}"
        assert answer.code == "blocked", name
    others = (TWIN, VALUE.replace("4417", "4471"), VALUE.replace("is", "is not"), VALUE.replace("Zephyr-", "Zephyr"))
    for other in (*others, VALUE[:-1], f"{VALUE} 2"):
        assert alice.remember(other)["outcome"] == "created", other
    with stage.pending.part():
        assert VALUE not in texts_of(alice.list(limit=1000))


def test_tombstone_reextraction(stage: Stage) -> None:
    """The conversation comes in again with its other facts; what was rejected is named as blocked, and made no unit."""
    talk = [
        {"role": "user", "content": "The mill stands by the river", "at": "2026-01-01"},
        {"role": "user", "content": VALUE, "at": "2026-01-02"},
        {"role": "user", "content": "The miller is called Piet", "at": "2026-01-03"},
    ]
    prepared = stage.preparing("alice")
    first = prepared.ingest("mill", talk)
    alice = stage.caller("alice")
    memory = prepared.remember(VALUE, evidence=[{"source": first["ids"][1], "quote": VALUE}])["id"]
    alice.retract(memory)

    for session in ("mill", "mill told elsewhere"):
        with stage.pending.part():
            again = alice.ingest(session, talk)
            outcomes = [item["outcome"] for item in again["items"]]
            fresh = "duplicate" if session == "mill" else "created"
            assert outcomes == [fresh, "blocked", fresh]
            assert "tombstone" in again["items"][1]["error"]
            assert again["warnings"]
    stage.settle()
    stage.restart()
    with stage.pending.part():
        again = alice.ingest("mill", talk)
        assert [item["outcome"] for item in again["items"]] == ["duplicate", "blocked", "duplicate"]
    with stage.pending.part():
        memories = [item["id"] for item in alice.list(include=["superseded", "archived", "rejected"])]
        assert memories == [memory]
        sources = texts_of(alice.list(kinds=["source"], limit=100))
        assert sources.count(VALUE) == 1
        assert "The miller is called Piet" in sources
    _blocked(alice, VALUE)
    context = alice.recall("What is the safe code of the harbour office?")["context"]
    assert "Zephyr-4417" not in context


@pytest.mark.doors("library", "rest", "cli")
def test_tombstone_lift(stage: Stage) -> None:
    """No agent lifts a rejection; a person does, in one step for the value, and then it can be told again."""
    alice = stage.caller("alice")
    wrong = alice.remember(VALUE)["id"]
    alice.retract(wrong, reason="a slip of the tongue")
    alice.retract(alice.remember(TWIN)["id"])
    stones = alice.tombstones()
    of_value, of_twin = stones
    assert (of_value["class"], of_value["node"]) == ("value", wrong)
    assert of_value["reason"] == "a slip of the tongue"
    assert "Zephyr" not in str(stones)
    assert stage.caller("bob").tombstones() == []
    others: list[dict[str, Any]] = [{"kind": "agent"}, {"user": "bob"}]
    if stage.door.name != "cli":  # whose caller holds every right
        others.append({"rights": ("read", "write")})
    for who in others:
        with stage.pending.part():
            somebody = stage.caller(**{"user": "alice", **who})
            with pytest.raises(Refused) as refused:
                somebody.lift(of_value["id"])
            assert refused.value.code == ("not_found" if "user" in who else "forbidden")
            assert refused.value.without(of_value["id"]) == _unknown_to(somebody) or "user" not in who
            _blocked(alice, VALUE)

    person = alice if stage.door.name == "cli" else stage.caller("alice", kind="human", rights=("read", "write"))
    noted = len(stage.events())
    assert person.lift(of_value["id"], reason="it was right")["outcome"] == "lifted"
    (event,) = stage.events()[noted:]
    assert (event.operation, event.ids, event.reason) == ("lift", [of_value["id"]], "it was right")
    with pytest.raises(Refused) as refused:
        person.lift(of_value["id"])
    assert refused.value.code == "not_found"
    stage.settle()
    stage.restart()
    assert alice.tombstones() == [of_twin]
    told_again = alice.remember(VALUE)
    assert told_again["outcome"] == "created"
    assert told_again["id"] != wrong
    _blocked(alice, TWIN)


def _unknown_to(caller: Caller) -> Any:
    with pytest.raises(Refused) as refused:
        caller.lift("never-given")
    return refused.value.without("never-given")


def test_tombstone_lift_with_its_claim(stage: Stage) -> None:
    """A value and its claim are one tombstone; an erasure has one a sentence, with no text."""
    alice, operator = stage.caller("alice"), stage.preparing("alice")
    with stage.pending.part():
        claim = ["Henderson account", "owner", "Dana"]
        alice.retract(alice.remember("Dana owns the Henderson account", claim=claim)["id"])
        (stone,) = operator.tombstones()
        operator.lift(stone["id"])
        assert alice.remember("The Henderson account belongs to Dana", claim=claim)["outcome"] == "created"
    erased = alice.remember("The word is Zephyr-4417. The day is Monday.")["id"]
    alice.erase(erased)
    stones = operator.tombstones()
    assert [stone["class"] for stone in stones] == ["erasure"] * 3
    assert "Zephyr" not in str(stones)
    for stone in stones:
        operator.lift(stone["id"])
    assert alice.remember("The word is Zephyr-4417. The day is Monday.")["outcome"] == "created"
