"""A session keeps what was said, and its summary is made of nothing else."""

import pytest

from tests.support.callers import Refused
from tests.support.stage import Stage, known_ids

TALK = [
    {"role": "user", "content": "Hello! I moved to Oslo in May 2026 with my dog Rex.", "at": "2026-06-01"},
    {"role": "assistant", "content": "Nice to hear. How do you like it?", "at": "2026-06-01"},
    {
        "role": "user",
        "content": "I love the fjord. The rent of the flat on Harbour Road is 1450 euros.",
        "at": "2026-06-01",
    },
    {"role": "user", "content": "My doctor there is Ingrid Solberg.", "at": "2026-06-01"},
]


@pytest.mark.promise("evidence.claim_resolves")
@pytest.mark.doors("library", "rest", "mcp", "cli")
@pytest.mark.index(meaning=True)
def test_session(stage: Stage) -> None:
    """Started, spoken in and ended it has a summary that quotes its messages; they are recalled as before."""
    alice, prepared = stage.caller("alice"), stage.preparing("alice")
    assert alice.start_session("monday", title="Settling in")["outcome"] == "created"
    assert alice.start_session("monday")["outcome"] == "duplicate"
    ids = prepared.ingest("monday", TALK)["ids"]
    ended = alice.end_session("monday")
    assert (ended["outcome"], ended["id"]) == ("ended", "monday")
    summary = prepared.get(ended["of"])
    assert (summary["kind"], summary["session"]) == ("summary", "monday")
    assert summary["evidence"]
    texts = {source: prepared.get(source)["text"] for source in ids}
    for span in summary["evidence"]:
        assert texts[span["source"]][span["start"] : span["end"]] == span["quote"]
    assert summary["text"] == "\n".join(span["quote"] for span in summary["evidence"])
    assert "1450" in summary["text"]
    assert {edge["dst"] for edge in prepared.edges(summary["id"], rel="derived_from")} <= set(ids)
    assert alice.end_session("monday")["outcome"] == "duplicate"
    with stage.pending.part():
        (told,) = alice.sessions()
        assert (told["id"], told["title"], told["status"], told["messages"]) == ("monday", "Settling in", "ended", 4)
        assert told["summary"] == summary["id"]
        assert stage.caller("bob").sessions() == []
    stage.restart()
    asked = alice.recall("Who is the doctor of Alice in Oslo?", k=10)
    assert "Ingrid Solberg" in asked["context"]
    assert set(known_ids(asked)) & {*ids, summary["id"]}
    sources = alice.recall("How much is the rent on Harbour Road?", kinds=["source"], k=10)
    assert ids[2] in known_ids(sources)
    with pytest.raises(Refused) as refused:
        alice.end_session("never-begun")
    assert refused.value.code == "not_found"
    with pytest.raises(Refused) as refused:
        stage.caller("bob").end_session("monday")
    assert refused.value.code == "not_found"


@pytest.mark.promise("evidence.source_delete_reaches_derived", "forget.thirteen_steps")
@pytest.mark.doors("library", "rest")
def test_session_summary_is_made_anew_where_its_words_are_erased(stage: Stage) -> None:
    """An erased sentence leaves the summary, which keeps its other quotes; erased with its session all of it goes."""
    alice = stage.caller("alice")
    ids = alice.ingest("monday", TALK)["ids"]
    summary = alice.end_session("monday")["of"]
    assert "1450" in alice.get(summary)["text"]
    shown = alice.call("forget", query="the rent of the flat", mode="erase", dry_run=True)
    done = alice.call("forget", preview=shown["preview"])
    assert done["derived"] == shown["derived"]
    assert [(node["id"], node["why"]) for node in done["derived"]] == [(summary, "made anew without it")]
    after = alice.get(summary)
    assert "1450" not in str(after)
    assert after["text"] == "\n".join(span["quote"] for span in after["evidence"])
    assert "Ingrid Solberg" in after["text"]
    assert alice.get(ids[2])["text"].startswith("I love the fjord. \ufffc")
    assert {node["id"] for node in alice.call("sources", session="monday")["items"]} == set(ids)
    stage.settle()
    stage.restart()
    alice.erase(*ids)
    with pytest.raises(Refused):
        alice.get(summary)


@pytest.mark.promise("correction.derived")
@pytest.mark.doors("library", "rest")
@pytest.mark.index(meaning=True)
def test_session_summary_asserts_nothing_that_was_taken_back(stage: Stage) -> None:
    """A quote whose memory was retracted is left out of the summary in recall, and of one that is made later."""
    alice = stage.caller("alice")
    ids = alice.ingest("monday", TALK)["ids"]
    wrong = alice.remember("The rent is 1450", evidence=[{"source": ids[2], "quote": "The rent of the flat"}])["id"]
    summary = alice.end_session("monday")["of"]
    asked = {"query": "What is said of the rent of the flat on Harbour Road, and of the doctor?", "k": 20}
    assert "1450" in alice.recall(**asked, kinds=["summary"])["context"]
    alice.retract(wrong)
    after = alice.recall(**asked, kinds=["summary", "source"])
    assert "1450" not in after["context"]
    assert "Ingrid Solberg" in after["context"]
    assert "1450" in alice.recall(**asked, kinds=["summary"], include=["rejected"])["context"]
    alice.ingest("monday", [{"role": "user", "content": "The tram to Harbour Road is line 12."}])
    newer = alice.end_session("monday")["of"]
    assert newer != summary
    assert "1450" not in alice.get(newer)["text"]
    assert "Ingrid Solberg" in alice.get(newer)["text"]


@pytest.mark.promise("scope.cross_tenant_absent", "forget.thirteen_steps")
@pytest.mark.doors("library", "rest")
def test_session_and_scope_of_a_shared_copy(stage: Stage) -> None:
    """A copy has its own id and leads back; a confined caller shares nothing into another's scope; erasing the
    original takes the copy, in another scope and in another index, and neither comes back."""
    operator, alice, bob = stage.operator, stage.preparing("alice"), stage.preparing("bob")
    words, twin = "The vault opens with zephyr-7741", "The cellar opens with zephyr-7742"
    original, other = (alice.remember(text)["id"] for text in (words, twin))
    with pytest.raises(Refused) as refused:
        alice.share(original, to={"scope": {"user": "bob"}})
    assert refused.value.code == "forbidden"
    with pytest.raises(Refused) as refused:
        bob.share(original, to={"scope": {"user": "bob"}})
    assert refused.value.code == "not_found"
    copy = operator.share(original, to={"scope": {"user": "bob"}})["id"]
    kept = operator.share(other, to={"scope": {"user": "bob"}})["id"]
    assert copy != original
    assert bob.get(copy)["text"] == words
    assert operator.edges(copy, rel="copied_from")[0]["dst"] == original
    assert bob.edges(copy, rel="copied_from") == []
    second = f"{stage.index}-second"
    operator.door.call(operator.who, "create_index", None, {"index": second, "dim": 64})
    far = operator.share(original, to={"index": second, "scope": {"user": "carol"}})["id"]
    read = {"index": second}
    assert operator.door.call(operator.who, "get", far, read)["text"] == words
    done = operator.erase(original)
    assert {node["id"] for node in done["copies"]} == {copy, far}
    for index, node_id in ((stage.index, copy), (second, far)):
        with pytest.raises(Refused) as refused:
            operator.door.call(operator.who, "get", node_id, {"index": index})
        assert refused.value.code == "not_found"
    for who in (alice, bob):
        with pytest.raises(Refused) as refused:
            who.remember(words)
        assert refused.value.details["class"] == "erasure"
    assert bob.get(kept)["text"] == alice.get(other)["text"] == twin
    operator.door.call(operator.who, "drop_index", None, {"index": second})


@pytest.mark.promise("forget.retention")
@pytest.mark.doors("library", "rest")
def test_forget_retention(stage: Stage) -> None:
    """What is older than its layer is kept goes the same way as anything forgotten; what is pinned or younger stays."""
    alice, operator = stage.caller("alice"), stage.operator
    operator.call(
        "configure_index", policy={"retention": {"episodic": {"days": 90, "mode": "erase"}, "semantic": "90d"}}
    )
    old = alice.remember("It rained on the ferry with zephyr-7741", layer="episodic")["id"]
    pinned = alice.remember("The bell was cast in 1802", layer="episodic", pinned=True)["id"]
    kept = alice.remember("Knots are tied from the left", layer="procedural")["id"]
    faded = alice.remember("The ferry is blue", layer="semantic")["id"]
    later = "2999-01-01"
    assert alice.call("forget", expired=True, mode="erase")["matched"] == []
    shown = alice.call("forget", expired=True, mode="erase", now=later)
    assert [node["id"] for node in shown["matched"]] == [old]
    done = alice.call("forget", expired=True, mode="erase", now=later, dry_run=False)
    assert done["receipt"]["signature"]
    with pytest.raises(Refused):
        alice.get(old)
    with pytest.raises(Refused) as refused:
        alice.remember("It rained on the ferry with zephyr-7741")
    assert refused.value.details["class"] == "erasure"
    alice.call("forget", expired=True, now=later, dry_run=False)
    assert alice.get(faded)["status"] == "archived"
    for node_id in (pinned, kept):
        assert alice.get(node_id)["status"] == "current"
