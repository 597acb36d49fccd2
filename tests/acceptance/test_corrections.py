"""Corrections that need more than a scenario tells: other doors, derived things, old sources."""

import pytest

from tests.support.callers import Caller, Refused, Who
from tests.support.stage import Stage, known_ids, texts_of, tried

OLD = "The staging server listens on port 8080"
NEW = "The staging server listens on port 8081"
QUESTION = "Which port does the staging server listen on?"


@pytest.mark.index(meaning=True)
@pytest.mark.doors("library", "rest", "mcp", "cli")
def test_correction_current(stage: Stage) -> None:
    """The new value is recalled, listed and searched; the old one only with its label."""
    alice = stage.caller("alice")
    old = alice.remember(OLD)["id"]
    other = alice.remember("The production server listens on port 9000")["id"]
    new = alice.evolve(old, NEW)["id"]
    recall = alice.recall(QUESTION)
    assert known_ids(recall)[0] == new
    assert "8081" in recall["context"]
    assert "8080" not in recall["context"]
    assert other in known_ids(recall)
    with stage.pending.part():
        assert texts_of(alice.list()) == ["The production server listens on port 9000", NEW]
    with stage.pending.part():
        assert {hit["id"] for hit in alice.search(text="port server")} == {new, other}
    with stage.pending.part():
        shown = alice.recall(QUESTION, include=["superseded"])
        assert {old, new} <= set(known_ids(shown))
        entry = next(part for part in shown["context"].split("<memory ") if "8080" in part)
        assert " superseded" in entry.split(">")[0]
        assert "until " in entry


@pytest.mark.index(meaning=True)
def test_correction_durable(stage: Stage) -> None:
    """The old source comes in again by another door, after a checkpoint and a kill: the correction stands."""
    said = [{"role": "user", "content": OLD, "at": "2026-01-01"},
            {"role": "user", "content": "The staging server is called fjord", "at": "2026-01-02"}]  # fmt: skip
    alice, prepared = stage.caller("alice"), stage.preparing("alice")
    source = prepared.ingest("servers", said)["ids"][0]
    old = prepared.remember(OLD, evidence=[{"source": source, "quote": OLD}])["id"]
    new = alice.correct(old, NEW)["id"]
    stage.settle()
    stage.restart()
    again = prepared.ingest("servers", said)
    assert [item["outcome"] for item in again["items"]] == ["blocked", "duplicate"]
    with pytest.raises(Refused) as refused:
        alice.remember(OLD)
    assert refused.value.code == "blocked"
    memories = alice.recall(QUESTION, kinds=["memory"])
    assert known_ids(memories) == [new]
    assert "8080" not in memories["context"]
    everything = alice.recall(QUESTION)
    assert new in known_ids(everything)
    assert "fjord" in alice.recall("What is the staging server called?")["context"]
    if "8080" in everything["context"]:
        stage.pending("a corrected sentence is still recalled from the message that it was said in")


@pytest.mark.index(meaning=True)
def test_correction_derived(stage: Stage) -> None:
    """Edges stand at the new version, with all that they carried; what they mean has no old value left."""
    alice, prepared = stage.caller("alice"), stage.preparing("alice")
    old = alice.remember(OLD)["id"]
    rack = alice.remember("Rack 7 stands in the cellar")["id"]
    prepared.link(old, "stands_in", rack, weight=0.5, props={"row": 3}, valid_from="2026-01-01")
    prepared.link(rack, "holds", old)
    new = alice.evolve(old, NEW)["id"]
    newest = alice.correct(new, "The staging server listens on port 8082")["id"]
    reached = alice.traverse(rack, depth=3)
    assert {node["memory"]["id"] for node in reached["nodes"]} == {rack, newest}
    with stage.pending.part():
        (out,) = alice.edges(newest, direction="out", rel="stands_in")
        assert (out["weight"], out["props"], out["dst"]) == (0.5, {"row": 3}, rack)
        assert out["valid_from"].startswith("2026-01-01")
        assert [edge["src"] for edge in alice.edges(newest, direction="in", rel="holds")] == [rack]
        assert "8080" not in str(alice.traverse(rack, depth=3))
    stage.pending("there are no summaries, profiles or artifacts to look into")


@pytest.mark.index(meaning=True)
def test_correction_resolves(stage: Stage) -> None:
    """The old version's exact words, a tiny budget and no hops give the successor, across many versions."""
    alice = stage.caller("alice")
    first = alice.remember("Dana lives in Berlin")["id"]
    alice.remember("Erik lives in Oslo")
    second = alice.evolve(first, "Dana lives in Lisbon")["id"]
    third = alice.correct(second, "Dana lives in Porto")["id"]
    fourth = alice.evolve(third, "Dana lives in Faro")["id"]
    for text, origin in (("Dana lives in Berlin", first), ("Dana lives in Porto", third), (first, first)):
        recall = alice.recall(text, k=1, budget_tokens=120)
        assert known_ids(recall) == [fourth]
        assert recall["hits"][0]["resolved_from"] == origin
        assert f"replaces {origin}" in recall["context"]
    # Of the rejected version the question's own words are all that is said; what it is resolved to is still the head.
    recall = alice.recall("Dana lives in Lisbon", k=1, budget_tokens=120)
    assert known_ids(recall) == [fourth]
    with stage.pending.part():
        assert alice.get(first, resolve="head")["id"] == fourth
    with pytest.raises(Refused) as refused:
        alice.evolve(first, "Dana lives in Beja")
    assert (refused.value.code, refused.value.details) == ("conflict", {"head": fourth})


@pytest.mark.index(meaning=True)
@pytest.mark.doors("library", "rest", "mcp", "cli")
def test_correction_partial(stage: Stage) -> None:
    """Superseding one claim of a sentence keeps the other; what cannot be split is refused and nothing is stored."""
    alice = stage.caller("alice")
    other = alice.remember("Erik is an engineer")["id"]
    old = alice.remember("Priya is an engineer, and she works at Acme")["id"]
    changed = alice.evolve(old, "Priya is a manager", partial=True)
    kept = alice.get(changed["remainder"])
    assert (kept["text"], kept["status"], kept["trust"]) == ("Priya works at Acme", "current", "accepted")
    assert alice.get(old)["status"] == "superseded"
    assert alice.recall("What is Priya's job?")["context"].count("engineer") <= 1  # Erik's
    assert "Priya works at Acme" in alice.recall("Where does Priya work?")["context"]
    assert "Priya is a manager" in alice.recall("Is Priya a manager?")["context"]
    assert alice.get(other)["status"] == "current"
    with stage.pending.part():
        gone = alice.call("forget", ids=[old], mode="erase", dry_run=True)
        assert kept["id"] in {node["id"] for node in gone["copies"]}
    # Never true, in the caller's own words for what stays.
    wrong = alice.remember("Wei was promoted to lead at Globex")["id"]
    refused = tried(lambda: alice.correct(wrong, "Wei manages the depot", partial=True))
    assert isinstance(refused, Refused)
    assert (refused.code, refused.field) == ("invalid", "partial")
    assert "remainder" in refused.message
    assert alice.get(wrong)["status"] == "current"
    done = alice.correct(wrong, "Wei manages the depot", partial=True, remainder="Wei works at Globex")
    assert alice.get(done["remainder"])["text"] == "Wei works at Globex"
    assert alice.get(wrong)["trust"] == "rejected"
    for nothing in ("Priya is a manager", "Priya rides a bicycle"):
        refused = tried(lambda: alice.evolve(changed["id"], nothing, partial=True))  # noqa: B023
        assert isinstance(refused, Refused)
        assert (refused.code, refused.field) == ("invalid", "partial")


@pytest.mark.index(meaning=True)
@pytest.mark.doors("library", "rest", "mcp", "cli")
def test_correction_known_at(stage: Stage) -> None:
    """Two axes, four answers: what held then and now, as believed before and after."""
    alice = stage.caller("alice")
    early = alice.remember("The head office is in Berlin", valid_from="2020", valid_to="2023")["id"]
    late = alice.remember("The head office is in Lisbon", valid_from="2024")["id"]
    before = stage.now()
    alice.correct(early, "The head office is in Bonn")
    alice.correct(late, "The head office is in Porto")

    def answer(**fields: str) -> set[str]:
        context = alice.recall("Where is the head office?", **fields)["context"]
        return {city for city in ("Berlin", "Lisbon", "Bonn", "Porto") if city in context}

    for _ in range(1 if stage.door.name == "cli" else 2):
        assert answer(as_of="2022", known_at=before) == {"Berlin"}
        assert answer(as_of="2025", known_at=before) == {"Lisbon"}
        assert answer(as_of="2022") == {"Bonn"}
        assert answer(as_of="2025") == {"Porto"}
        stage.settle()
        stage.restart()


def test_correction_history(stage: Stage) -> None:
    """Every version is there, oldest first, with who changed it and when; from whichever of them one asks."""
    alice = stage.caller("alice")
    first = alice.remember("The kettle is red")["id"]
    second = alice.evolve(first, "The kettle is blue", reason="repainted")["id"]
    third = alice.correct(second, "The kettle is green", reason="misread")["id"]
    alice.remember("The teapot is white")
    read: Caller = alice
    with stage.pending.part():
        for asked in (first, second, third):
            versions = read.history(asked)
            assert [version["id"] for version in versions] == [first, second, third]
            assert [version["version"] for version in versions] == [1, 2, 3]
            assert {version["lineage"] for version in versions} == {first}
            assert [version["status"] for version in versions] == ["superseded", "superseded", "current"]
            assert [version["trust"] for version in versions] == ["accepted", "rejected", "accepted"]
            assert [version["recorded_at"] for version in versions] == sorted(v["recorded_at"] for v in versions)
    chain = [alice.get(node_id) for node_id in (first, second, third)]
    assert [memory.get("supersedes") for memory in chain] == [None, first, second]
    assert [memory.get("superseded_by") for memory in chain] == [second, third, None]
    assert Who(user="alice") == alice.who
