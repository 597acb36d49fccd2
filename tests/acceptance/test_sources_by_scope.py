"""An id names something within a scope: what stands under the same id elsewhere is neither read nor touched by it."""

from typing import Any

import pytest

from tests.support.callers import Caller, Refused
from tests.support.stage import Stage, known_ids, texts_of

PIN = "My pin is 9281"


def _said(caller: Caller, *texts: str) -> list[str]:
    answer = caller.ingest("talk", [{"role": "user", "content": text} for text in texts])
    return list(answer["ids"])


def _ids(nodes: list[dict[str, Any]]) -> list[str]:
    return [node["id"] for node in nodes]


@pytest.mark.promise("scope.caller_cannot_widen", "evidence.source_delete_reaches_derived")
@pytest.mark.parametrize("decoy_first", [True, False])
def test_scope_caller_cannot_widen_by_a_decoy(stage: Stage, decoy_first: bool) -> None:
    """Alice keeps something under the id of Bob's source: erasing it shows her and takes nothing of his."""
    bob, alice = stage.preparing("bob"), stage.caller("alice")
    (source,) = _said(bob, PIN)
    rests = {"id": "bp", "evidence": [{"source": source, "quote": PIN}]}
    if decoy_first:
        stage.preparing("alice").remember("A decoy of hers", id=source)
        bob.remember("Bob's pin is 9281", **rests)
    else:
        bob.remember("Bob's pin is 9281", **rests)
        stage.preparing("alice").remember("A decoy of hers", id=source)
    for dry_run in (True, False):
        shown = alice.erase(source, dry_run=dry_run)
        assert _ids(shown["matched"]) == [source]
        assert shown["derived"] == shown["copies"] == []
        assert "9281" not in str(shown)
    assert bob.get("bp")["evidence"][0]["quote"] == PIN
    assert bob.get(source)["text"] == PIN
    assert [span["source"] for span in bob.evidence("bp")] == [source]
    with pytest.raises(Refused):
        alice.get(source)
    assert _ids(bob.erase(source)["derived"]) == ["bp"]
    with pytest.raises(Refused):
        bob.get("bp")


@pytest.mark.promise("scope.caller_cannot_widen", "evidence.source_delete_reaches_derived")
def test_scope_caller_cannot_widen_by_a_shared_decoy(stage: Stage) -> None:
    """Nor does what is shared and has the same id: the operator erases the one that is named."""
    bob, operator = stage.preparing("bob"), stage.operator
    (source,) = _said(bob, PIN)
    bob.remember("Bob's pin is 9281", id="bp", evidence=[{"source": source, "quote": PIN}])
    stage.preparing().remember("A decoy for all", id="decoy")
    assert _ids(operator.erase("decoy")["matched"]) == ["decoy"]
    (other,) = _said(stage.preparing("carol"), "Carol's pin is 4410")
    stage.preparing("carol").remember("Carol's pin", id="bp", evidence=[{"source": other, "quote": "pin is 4410"}])
    assert texts_of(stage.preparing("carol").erase(other)["derived"]) == ["Carol's pin"]
    assert bob.get("bp")["evidence"][0]["quote"] == PIN
    found = operator.recall("Whose pin is it?", k=20)
    assert "Bob's pin is 9281" in [hit["memory"]["text"] for hit in found["hits"]]


@pytest.mark.promise("evidence.source_delete_reaches_derived")
def test_evidence_gained_by_a_duplicate_goes_with_its_source(stage: Stage) -> None:
    """What a memory gained when it was told again is withdrawn when that source is erased; its first source stays."""
    alice = stage.preparing("alice")
    first, second = _said(alice, "The boat is red", "Yes, the zephyr boat is red")
    alice.remember("The boat is red.", id="boat", evidence=[{"source": first, "quote": "The boat is red"}])
    told = alice.remember("The boat is red.", evidence=[{"source": second, "quote": "the zephyr boat is red"}])
    assert (told["outcome"], told["of"]) == ("duplicate", "boat")
    assert "zephyr" in str(alice.get("boat")["evidence"])
    taken = stage.caller("alice").erase(second)
    assert taken["derived"] == []
    assert [span["source"] for span in alice.get("boat")["evidence"]] == [first]
    for answer in (alice.get("boat"), alice.evidence("boat"), alice.history("boat"), alice.list(kinds=["source"])):
        assert "zephyr" not in str(answer)
    assert _ids(stage.caller("alice").erase(first)["derived"]) == ["boat"]


@pytest.mark.promise("evidence.source_delete_reaches_derived")
def test_evidence_gained_alone_goes_with_its_source(stage: Stage) -> None:
    """Where a memory had no source before, the one it gained is what it rests on."""
    alice = stage.preparing("alice")
    (source,) = _said(alice, "The zephyr boat is red")
    alice.remember("The boat is red", id="boat")
    alice.remember("The boat is red", evidence=[{"source": source, "quote": "The zephyr boat is red"}])
    taken = stage.caller("alice").erase(source)
    assert _ids(taken["derived"]) == ["boat"]
    assert "zephyr" not in str(alice.list(kinds=["source", "memory"]))


@pytest.mark.promise("scope.caller_cannot_widen")
@pytest.mark.doors("library", "rest")
def test_scope_of_equal_ids_is_told_apart_in_answers(stage: Stage) -> None:
    """Two people keep the same id: the operator recalls both, each with the evidence of its own."""
    for user, colour in (("alice", "red"), ("bob", "blue")):
        caller = stage.preparing(user)
        (source,) = _said(caller, f"Lighthouse paint is {colour}")
        quote = {"source": source, "quote": f"paint is {colour}"}
        caller.remember(f"The lighthouse paint is {colour}", id="paint", evidence=[quote])
    hits = stage.operator.recall("What colour is the lighthouse paint?")["hits"]
    assert {hit["memory"]["text"] for hit in hits} >= {"The lighthouse paint is red", "The lighthouse paint is blue"}
    assert known_ids({"hits": hits}).count("paint") == 2


@pytest.mark.promise("evidence.source_delete_reaches_derived")
def test_evidence_of_an_earlier_version_takes_that_version_alone(stage: Stage) -> None:
    """A version with its own source stays when the source of the one before it goes; the id of that one is free."""
    alice = stage.preparing("alice")
    old, new = _said(alice, "The zephyr boat is red", "They painted the boat blue")
    alice.remember("The boat is red", id="v1", evidence=[{"source": old, "quote": "zephyr boat is red"}])
    quote = {"source": new, "quote": "painted the boat blue"}
    v2 = alice.evolve("v1", "The boat is blue", evidence=[quote])["id"]
    taken = stage.caller("alice").erase(old)
    assert _ids(taken["derived"]) == ["v1"]
    kept = alice.get(v2)
    assert (kept["text"], kept["status"], kept["lineage"], kept["supersedes"]) == (
        "The boat is blue",
        "current",
        v2,
        None,
    )
    assert texts_of(alice.history(v2)) == ["The boat is blue"]
    assert [span["quote"] for span in kept["evidence"]] == ["painted the boat blue"]
    assert v2 in known_ids(alice.recall("Which colour is the boat?"))
    assert "zephyr" not in str(alice.list(kinds=["source", "memory"], include=["superseded"]))
    alice.remember("Nothing to do with boats", id="v1")
    assert texts_of(alice.history("v1")) == ["Nothing to do with boats"]
    assert texts_of(alice.history(v2)) == ["The boat is blue"]
    later = alice.evolve(v2, "The boat is green")["id"]
    assert texts_of(alice.history(later)) == ["The boat is blue", "The boat is green"]
    assert v2 in _ids(stage.caller("alice").erase(new)["derived"])
