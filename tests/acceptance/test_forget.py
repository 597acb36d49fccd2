"""What is erased is gone, and does not come back."""

import secrets
from typing import Any

import jwt
import pytest

from tests.support.callers import Caller, Refused
from tests.support.stage import Stage, known_ids, texts_of


@pytest.mark.index(meaning=True)
@pytest.mark.doors("library", "rest", "mcp", "cli")
def test_forget_thirteen_steps(stage: Stage) -> None:
    """A random fact is told, settled and recalled; erased, it is in no read; told again, it stays away."""
    token, twin_token = f"zq{secrets.token_hex(4)}", f"zq{secrets.token_hex(4)}"
    fact, twin_fact = f"The vault opens with the word {token}", f"The cellar opens with the word {twin_token}"
    talk = [{"role": "user", "content": fact, "at": "2026-01-01"},
            {"role": "user", "content": twin_fact, "at": "2026-01-02"},
            {"role": "user", "content": "The miller is called Piet", "at": "2026-01-03"}]  # fmt: skip
    alice, prepared = stage.caller("alice"), stage.preparing("alice")
    said, twin_said, _ = prepared.ingest("words", talk)["ids"]
    fact_id = prepared.remember(fact, evidence=[{"source": said, "quote": fact}], metadata={"key": token})["id"]
    twin = prepared.remember(twin_fact, evidence=[{"source": twin_said, "quote": twin_fact}])["id"]
    house = prepared.remember("The house stands on a hill")["id"]
    prepared.link(house, "has", fact_id, props={"word": token})
    prepared.link(house, "has", twin)
    newer = alice.evolve(fact_id, f"The vault no longer opens with the word {token}")["id"]
    stage.settle()
    question = f"Which word opens the vault, {token}, and which the cellar, {twin_token}?"
    found = alice.recall(question)
    assert {newer, twin} <= set(known_ids(found))
    assert token in found["context"]

    erased = alice.erase(fact_id)
    assert {node["id"] for node in erased["matched"]} == {fact_id, newer, said}
    assert prepared.get(said)["text"] == "\ufffc" * len(fact)
    source = alice.erase(said)
    assert [node["id"] for node in source["matched"]] == [said]
    quick = stage.door.name == "cli"
    for _ in range(1 if quick else 2):
        _is_gone(stage, alice, question, token, [fact_id, newer, said], house)
        _is_there(stage, alice, question, twin_token, [twin, twin_said], house, twin)
        stage.settle()
        stage.restart()

    again = prepared.ingest("words", talk)
    assert [item["outcome"] for item in again["items"]] == ["blocked", "duplicate", "duplicate"]
    elsewhere = prepared.ingest("told in another place", talk)
    assert [item["outcome"] for item in elsewhere["items"]] == ["blocked", "created", "created"]
    for text in (fact, f" {fact.upper()}.", f"The vault no longer opens with the word {token}")[: 1 if quick else None]:
        with pytest.raises(Refused) as refused:
            alice.remember(text)
        assert refused.value.code == "blocked"
        assert refused.value.details["class"] == "erasure"
        assert token not in refused.value.message
    _is_gone(stage, alice, question, token, [fact_id, newer, said], house)
    _is_there(stage, alice, question, twin_token, [twin, twin_said], house, twin)
    for part in ("sharing to a second scope", "exports and backups of the past", "summaries, profiles and artifacts",
                 "the bytes in log, heap and vectors", "the sentence inside other text"):  # fmt: skip
        stage.pending(f"nothing to look into yet: {part}")


def _is_gone(stage: Stage, alice: Caller, question: str, token: str, ids: list[str], house: str) -> None:
    """In no read that there is, nor in what it says about itself."""
    for asked in (question,) if stage.door.name == "cli" else (question, token, ids[0]):
        recall = alice.recall(asked, k=100)
        assert token not in recall["context"]
        assert not set(ids) & {*known_ids(recall), *recall["dropped"]}
    for node_id in ids:
        with pytest.raises(Refused) as refused:
            alice.get(node_id)
        assert refused.value.without(node_id) == _unknown(alice)
        with stage.pending.part():
            with pytest.raises(Refused) as refused:
                alice.history(node_id)
            assert refused.value.code == "not_found"
    with stage.pending.part():
        explained = alice.recall(question, explain=True, include=["superseded", "archived", "proposed", "rejected"])
        assert not any(node_id in str(explained) for node_id in ids)
    with stage.pending.part():
        everything = alice.list(
            include=["superseded", "archived", "proposed", "rejected"],
            kinds=["memory", "source", "session"],
            limit=1000,
        )
        assert token not in str(everything)
    with stage.pending.part():
        assert not set(ids) & {hit["id"] for hit in alice.search(text=token, kinds=["memory", "source"], k=100)}
    with stage.pending.part():
        assert token not in str(alice.edges(house))
    with stage.pending.part():
        assert token not in str(alice.traverse(house, depth=4))
        assert not any(node_id in str(alice.traverse(house, depth=4)) for node_id in ids)
    exported = str(stage.operator.call("export")["items"]) if stage.door.name == "library" else ""
    assert token not in exported
    assert token not in str(stage.events())


def _is_there(stage: Stage, alice: Caller, question: str, token: str, ids: list[str], house: str, linked: str) -> None:
    """The twin, in each of the same reads."""
    recall = alice.recall(question, k=100)
    assert token in recall["context"]
    assert linked in known_ids(recall)
    for node_id in ids:
        assert token in alice.get(node_id)["text"]
    with stage.pending.part():
        everything = texts_of(alice.list(kinds=["memory", "source"], limit=1000))
        assert sum(token in text for text in everything) >= 2
    with stage.pending.part():
        assert linked in {hit["id"] for hit in alice.search(text=token)}
    with stage.pending.part():
        assert linked in [edge["dst"] for edge in alice.edges(house, direction="out")]
    with stage.pending.part():
        assert linked in {node["memory"]["id"] for node in alice.traverse(house)["nodes"]}


def _unknown(alice: Caller) -> Any:
    with pytest.raises(Refused) as refused:
        alice.get("never-given")
    return refused.value.without("never-given")


@pytest.mark.doors("library", "rest")
def test_forget_thirteen_steps_by_vector(stage: Stage) -> None:
    """The erased node's very vector finds its twin and not it; the id is free again, with nothing of the old."""
    near, far = [1.0] + [0.0] * 63, [0.9] + [0.1] * 63
    prepared = stage.caller("alice")
    prepared.upsert({"id": "gone", "vector": near, "text": "zephyrstone", "metadata": {"a": 1}},
                    {"id": "kept", "vector": far, "text": "sandstone", "metadata": {"b": 1}})  # fmt: skip
    prepared.link("gone", "near", "kept")
    assert [hit["id"] for hit in prepared.search(vector=near, k=2)] == ["gone", "kept"]
    prepared.erase("gone")
    for _ in range(2):
        assert [hit["id"] for hit in prepared.search(vector=near, k=2)] == ["kept"]
        assert prepared.search(text="zephyrstone") == []
        assert [hit["id"] for hit in prepared.search(text="sandstone")] == ["kept"]
        assert prepared.edges("kept") == []
        stage.settle()
        stage.restart()
    prepared.upsert({"id": "gone", "text": "limestone"})
    renewed = prepared.call("node", "gone")
    assert (renewed["text"], renewed["metadata"], renewed["version"]) == ("limestone", {}, 1)
    assert prepared.edges("gone") == []


@pytest.mark.doors("library", "rest", "mcp")
def test_forget_thirteen_steps_all_or_nothing(stage: Stage) -> None:
    """One unknown id among many and nothing is erased; a dry run shows what goes and takes nothing."""
    alice = stage.caller("alice")
    ids = [alice.remember(f"Stone number {n} is grey")["id"] for n in range(3)]
    with pytest.raises(Refused) as refused:
        alice.erase(*ids, "never-given")
    assert refused.value.code == "not_found"
    preview = alice.erase(*ids[:2], dry_run=True)
    assert preview["dry_run"] is True
    assert preview.get("receipt") is None
    assert {node["id"] for node in preview["matched"]} == set(ids[:2])
    assert [alice.get(node_id)["status"] for node_id in ids] == ["current"] * 3
    done = alice.erase(*ids[:2])
    assert [node["id"] for node in done["matched"]] == [node["id"] for node in preview["matched"]]
    assert alice.get(ids[2])["status"] == "current"
    for node_id in ids[:2]:
        with pytest.raises(Refused):
            alice.get(node_id)


@pytest.mark.doors("library", "rest", "mcp", "cli")
def test_forget_receipt(stage: Stage) -> None:
    """A receipt is signed, counts what went, and neither it nor what was noted contains what was erased."""
    alice, prepared = stage.caller("alice"), stage.preparing("alice")
    words = "The receipt must not say zephyrstone"
    said = prepared.ingest("talk", [{"role": "user", "content": f"{words}. It may say sandstone."}])["ids"][0]
    gone = prepared.remember(words, evidence=[{"source": said, "quote": words}])["id"]
    kept = alice.remember("The receipt may say sandstone")["id"]
    done = alice.erase(gone)
    receipt = done["receipt"]
    assert (receipt["outcome"], receipt["ids"]) == ("erased", [gone])
    assert receipt["lsn"] > 0
    assert {name: receipt["counts"][name] for name in ("matched", "cut", "derived", "copies")} == {
        "matched": 1, "cut": 1, "derived": 0, "copies": 0,
    }  # fmt: skip
    assert len(receipt["digest"]) >= 32
    assert receipt.get("bytes_gone_at") is None
    payload = verified(receipt["signature"], stage.operator.call("jwks")["keys"])
    told = ("id", "digest", "counts", "requested_at")
    assert {name: payload[name] for name in told} == {name: receipt[name] for name in told}
    with pytest.raises(jwt.InvalidTokenError):
        verified(f"{receipt['signature'][:-8]}AAAAAAAA", stage.operator.call("jwks")["keys"])
    with stage.pending.part():
        listed = alice.call("erasures")["items"]
        mine = next(each for each in listed if each["id"] == receipt["id"])
        assert mine["signature"] == receipt["signature"]
        assert alice.call("erasure", receipt["id"])["digest"] == receipt["digest"]
    with stage.pending.part():
        assert receipt["id"] not in str(stage.caller("bob").call("erasures"))
    events = stage.events()
    assert [event.operation for event in events][-1] == "erase"
    assert gone in events[-1].ids
    assert "zephyrstone" not in str([events, receipt, payload])
    assert prepared.get(said)["text"] == "\ufffc" * (len(words) + 1) + " It may say sandstone."
    assert alice.get(kept)["text"] == "The receipt may say sandstone"
    stage.settle()
    stage.restart()
    after = stage.operator.call("jwks")["keys"]
    assert verified(receipt["signature"], after) == payload


def verified(signature: str, keys: list[dict[str, Any]]) -> dict[str, Any]:
    """What a compact JWS says, checked with a public key as anybody could who has the receipt and the key set."""
    kid = jwt.get_unverified_header(signature)["kid"]
    (key,) = [key for key in keys if key["kid"] == kid]
    decoded: dict[str, Any] = jwt.decode(signature, jwt.PyJWK(key).key, algorithms=["ES256"])
    return decoded


@pytest.mark.promise("forget.thirteen_steps")
def test_forget_modes(stage: Stage) -> None:
    """The milder modes do what their names say, and a second time changes nothing."""
    alice = stage.caller("alice")
    archived, retracted, kept = (alice.remember(f"The {name} stone")["id"] for name in ("first", "second", "third"))
    alice.forget(archived, mode="archive")
    alice.forget(retracted)
    assert alice.get(archived)["status"] == "archived"
    assert (alice.get(retracted)["status"], alice.get(retracted)["trust"]) == ("current", "rejected")
    assert alice.forget(archived, mode="archive")["receipt"]["outcome"] == "duplicate"
    assert alice.forget(retracted)["receipt"]["outcome"] == "duplicate"
    assert alice.get(kept)["status"] == "current"
    with pytest.raises(Refused) as refused:
        alice.remember("the SECOND stone")
    assert refused.value.code == "blocked"
    with stage.pending.part():
        assert texts_of(alice.list()) == ["The third stone"]
        assert {item["id"] for item in alice.list(include=["archived", "rejected"])} == {archived, retracted, kept}


@pytest.mark.promise("forget.thirteen_steps")
@pytest.mark.index(meaning=True)
def test_forget_reaches_a_sentence_inside_other_text(stage: Stage) -> None:
    """What was erased comes back in no other text either: the sentence is withheld, what stands beside it is kept."""
    alice, prepared = stage.caller("alice"), stage.preparing("alice")
    secret, twin = "The vault opens with zephyr-7741", "The cellar opens with zephyr-7742"
    alice.erase(alice.remember(secret)["id"])
    refusals = len(stage.events())
    saved = alice.remember(f"Good to know. And the VAULT still opens with Zephyr\u20117741! {twin}.")
    assert saved["outcome"] == "created"
    assert "withheld" in str(saved["warnings"])
    assert alice.get(saved["id"])["text"] == f"Good to know. {twin}."
    assert [event.operation for event in stage.events()[refusals:]] == ["remember", "refused:remember"]
    assert "7741" not in str(stage.events())
    again = prepared.ingest("later", [{"role": "user", "content": f"{secret}. {twin}."}])
    assert again["items"][0]["outcome"] == "created"
    assert prepared.get(again["ids"][0])["text"] == "\ufffc" * (len(secret) + 1) + f" {twin}."
    stage.settle()
    stage.restart()
    assert "7741" not in alice.recall("What opens the vault?", k=50)["context"]
    assert "7742" in alice.recall("What opens the cellar?", k=50)["context"]
    assert stage.preparing("bob").remember(secret)["outcome"] == "created"  # a guard is of one scope


@pytest.mark.promise("forget.by_query")
@pytest.mark.doors("library", "rest", "mcp", "cli")
def test_forget_by_query_previews_what_it_does(stage: Stage) -> None:
    """A query is a preview first; its token does exactly that, and refuses when something has changed since."""
    alice = stage.caller("alice")
    names = {name: alice.remember(f"{name} lives in Riga")["id"] for name in ("Frank", "Grace")}
    talk = alice.remember("We had a frank discussion")["id"]
    shown = alice.call("forget", query="everything about Frank", mode="erase", dry_run=True)
    assert [node["id"] for node in shown["matched"]] == [names["Frank"]]
    assert (shown["dry_run"], shown.get("receipt")) == (True, None)
    assert alice.get(names["Frank"])["status"] == "current"
    other = alice.remember("Frank plays the oboe")["id"]
    with pytest.raises(Refused) as refused:
        alice.call("forget", preview=shown["preview"], dry_run=False)
    assert refused.value.code == "conflict"
    assert refused.value.details["added"] == [other]
    shown = alice.call("forget", query="everything about Frank", mode="erase", dry_run=True)
    done = alice.call("forget", preview=shown["preview"], dry_run=False)
    assert [node["id"] for node in done["matched"]] == [node["id"] for node in shown["matched"]]
    assert done["receipt"]["outcome"] == "erased"
    for gone in (names["Frank"], other):
        with pytest.raises(Refused):
            alice.get(gone)
    assert alice.get(talk)["status"] == alice.get(names["Grace"])["status"] == "current"


@pytest.mark.promise("forget.by_query")
def test_forget_by_query_in_the_milder_modes(stage: Stage) -> None:
    """Retracted by query, a memory that says more keeps the rest; archived it can come back; a filter chooses, too."""
    alice = stage.caller("alice")
    both = alice.remember("Dana owns the Henderson account and Erik owns the Miller account")["id"]
    kept = alice.remember("Dana keeps bees", tags=["bees"])["id"]
    done = alice.call("forget", query="everything about Erik", dry_run=False)
    assert [node["id"] for node in done["matched"]] == [both]
    head = alice.get(both)["superseded_by"]
    assert alice.get(head)["text"] == "Dana owns the Henderson account."
    with pytest.raises(Refused) as refused:
        alice.remember("Dana owns the Henderson account and Erik owns the Miller account")
    assert refused.value.code == "blocked"
    done = alice.call("forget", filter="tags CONTAINS 'bees'", mode="archive", dry_run=False)
    assert [node["id"] for node in done["matched"]] == [kept]
    assert alice.get(kept)["status"] == "archived"
    with stage.pending.part():
        alice.restore(kept)
        assert alice.get(kept)["status"] == "current"


@pytest.mark.promise("forget.by_query")
def test_forget_by_query_takes_one_way_to_choose(stage: Stage) -> None:
    """Exactly one of ids, query, filter and preview, not empty; nothing is guessed from two or from none."""
    alice = stage.caller("alice")
    kept = alice.remember("Dana keeps bees")["id"]
    for fields in ({}, {"ids": []}, {"query": ""}, {"filter": ""}, {"query": "bees", "filter": "layer = 'semantic'"},
                   {"ids": [kept], "query": "bees"}, {"preview": "no token"}, {"ids": [""]}):  # fmt: skip
        with pytest.raises(Refused) as refused:
            alice.call("forget", **{"mode": "erase", "dry_run": False, **fields})
        assert refused.value.code == "invalid", fields
    assert alice.get(kept)["status"] == "current"
