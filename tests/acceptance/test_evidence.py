"""Every claim leads to its source."""

import pytest

from tests.support.callers import Refused
from tests.support.stage import Stage, known_ids, texts_of

TALK = [
    {"role": "user", "content": "We moved the launch. It is on 14 May now, and Dana signs it off.", "at": "2026-04-01"},
    {"role": "assistant", "content": "Noted: the launch is on 14 May, after the review on 7 May.", "at": "2026-04-02"},
    {"role": "tool", "content": "calendar: launch 2026-05-14T09:00Z, room Fjord", "at": "2026-04-03"},
]


@pytest.mark.index(meaning=True)
def test_evidence_claim_resolves(stage: Stage) -> None:
    """A recalled memory names the span that it rests on, and its source says the quote there."""
    prepared = stage.preparing("alice")
    user, assistant, tool = prepared.ingest("planning", TALK)["ids"]
    for text, source, quote in (
        ("The launch is on 14 May", user, "It is on 14 May now"),
        ("Dana signs off the launch", user, "Dana signs it off"),
        ("The review is on 7 May", assistant, "the review on 7 May"),
        ("The launch happens in room Fjord", tool, "room Fjord"),
    ):
        prepared.remember(text, evidence=[{"source": source, "quote": quote}])
    stage.settle()
    stage.restart()

    alice = stage.caller("alice")
    recalled = known_ids(alice.recall("When and where is the launch, and who signs it off?", kinds=["memory"]))
    assert len(recalled) >= 3
    classes = {user: "user", assistant: "self", tool: "tool"}
    resting = 0
    for memory in map(alice.get, recalled):
        for span in memory["evidence"]:
            source = alice.get(span["source"])
            assert source["text"][span["start"] : span["end"]] == span["quote"] != ""
            assert (source["kind"], source["status"]) == ("source", "current")
            assert span["class"] == classes[span["source"]]
            resting += 1
        with stage.pending.part():
            assert alice.evidence(memory["id"]) == memory["evidence"]
    assert resting >= 3


@pytest.mark.index(meaning=True)
def test_evidence_claim_resolves_to_one_hit(stage: Stage) -> None:
    """A memory and the message it rests on are one hit, and the memory with another message stays beside it."""
    prepared = stage.preparing("alice")
    said, other = prepared.ingest(
        "lunch", [{"role": "user", "content": "The canteen serves zander on Friday"},
                  {"role": "user", "content": "The canteen closes on Monday"}])["ids"]  # fmt: skip
    quoted = {"source": said, "quote": "The canteen serves zander on Friday"}
    memory = prepared.remember("The canteen serves zander on Friday", evidence=[quoted])
    assert memory["outcome"] == "created"
    recall = stage.caller("alice").recall("What does the canteen serve on Friday?")
    assert memory["id"] in known_ids(recall)
    assert said not in known_ids(recall)
    assert other in known_ids(recall)
    assert recall["context"].count("zander") == 1


@pytest.mark.index(meaning=True)
def test_evidence_claim_resolves_beside_its_source(stage: Stage) -> None:
    """What a message says beyond the quote is recalled from the message, though a memory rests on it."""
    prepared = stage.preparing("alice")
    said = prepared.ingest("lunch", [{"role": "user", "content": "The canteen serves zander on Friday. "
                                      "Dana is on holiday until June."}])["ids"][0]  # fmt: skip
    quoted = {"source": said, "quote": "The canteen serves zander on Friday"}
    memory = prepared.remember("The canteen serves zander on Friday", evidence=[quoted])["id"]
    alice = stage.caller("alice")
    beyond = alice.recall("How long is Dana on holiday?")
    assert said in known_ids(beyond)
    assert "Dana is on holiday until June" in beyond["context"]
    assert known_ids(alice.recall("What does the canteen serve?"))[0] == memory


@pytest.mark.index(meaning=True)
def test_evidence_source_delete_reaches_derived(stage: Stage) -> None:
    """Erasing a message takes what rests on it alone; what rests on another as well stays, without its words."""
    prepared = stage.preparing("alice")
    gone, kept = prepared.ingest(
        "pets", [{"role": "user", "content": "Our dog Zephyr sleeps under the stairs"},
                 {"role": "user", "content": "Our cat Mistral sleeps on the stairs"}])["ids"]  # fmt: skip
    whole = "Our dog Zephyr sleeps under the stairs"
    dog = prepared.remember("The dog is called Zephyr", evidence=[{"source": gone, "quote": "Our dog Zephyr"}])["id"]
    cat = prepared.remember("The cat is called Mistral", evidence=[{"source": kept, "quote": "Our cat Mistral"}])["id"]
    both = prepared.remember(
        "Two animals sleep around the stairs",
        evidence=[{"source": gone, "quote": "under the stairs"}, {"source": kept, "quote": "on the stairs"}],
    )["id"]
    later = prepared.evolve(dog, "The dog is called Zephyr the second")["id"]
    own = prepared.remember("We have had animals for ten years")["id"]
    borne_out = prepared.ingest("pets", [{"role": "user", "content": "Zephyr came to us ten years ago"}])["ids"][0]
    prepared.confirm(own, evidence=borne_out)
    prepared.link(dog, "lives_with", cat)
    prepared.link(later, "lives_with", cat)

    alice = stage.caller("alice")
    done = alice.erase(gone, borne_out)
    assert {node["id"] for node in done["derived"]} == {dog, later}
    for _ in range(2):
        for lost in (gone, borne_out, dog, later):
            with pytest.raises(Refused) as refused:
                alice.get(lost)
            assert refused.value.code == "not_found"
        recall = alice.recall("What are the animals called and where do they sleep?", k=100)
        assert not {gone, dog, later} & set(known_ids(recall))
        assert "Zephyr" not in recall["context"]
        assert {cat, both} <= set(known_ids(recall))
        with stage.pending.part():
            assert "Zephyr" not in str(texts_of(alice.list(kinds=["memory", "source"])))
            assert "The cat is called Mistral" in texts_of(alice.list())
        with stage.pending.part():
            assert [(edge["src"], edge["rel"]) for edge in alice.edges(cat)] == [(kept, "evidence_of")]
        assert {node["memory"]["id"] for node in alice.traverse(cat)["nodes"]} == {cat, kept, both}
        with stage.pending.part():
            hits = [hit["id"] for hit in alice.search(text="Zephyr Mistral", kinds=["memory", "source"])]
            assert cat in hits
            assert not {gone, dog, later} & set(hits)
        survivor = alice.get(both)
        assert [span["source"] for span in survivor["evidence"]] == [kept]
        assert "under the stairs" not in str(survivor)
        assert alice.get(cat)["evidence"][0]["quote"] == "Our cat Mistral"
        assert alice.get(own)["text"] == "We have had animals for ten years"  # it was borne out, not made of it
        stage.settle()
        stage.restart()
    assert whole not in str(
        stage.operator.ingest("pets", [{"role": "user", "content": whole}], scope={"user": "alice"})
    )


@pytest.mark.index(policy={"evidence": "require"})
def test_evidence_require(stage: Stage) -> None:
    """Only the words that were said are evidence; everything else is refused with its reason and stores nothing."""
    prepared = stage.preparing("alice")
    said, own, _ = prepared.ingest("planning", TALK)["ids"]
    foreign = stage.preparing("bob").ingest("planning", TALK)["ids"][0]
    memory = prepared.remember("a control to quote", evidence=[{"source": own, "quote": "the review"}])["id"]
    alice = stage.caller("alice")
    with pytest.raises(Refused) as refused:
        alice.remember("The launch is on 14 May")
    assert (refused.value.code, refused.value.details) == ("blocked", {"policy": "evidence"})
    with stage.pending.part():
        for evidence in (
            [{"source": said, "quote": "The launch moved to May"}],
            [{"source": said, "quote": "it is on 14 may now"}],
            [{"source": said, "quote": "It is on 14  May now"}],
            [{"source": said, "quote": "the review on 7 May"}],
            [{"source": said, "quote": "It is on 14 May now", "start": 0, "end": 19}],
            [{"source": said, "start": 4, "end": 4}],
            [{"source": said, "start": 0, "end": 10_000}],
            [{"source": said, "quote": ""}],
            [{"source": said}],
            [{"source": "never-said", "quote": "It is on 14 May now"}],
            [{"source": foreign, "quote": "It is on 14 May now"}],
            [{"source": memory, "quote": "a control"}],
            [{"source": said, "quote": "It is on 14 May now"}, {"source": said, "quote": "invented"}],
        ):
            with pytest.raises(Refused) as refused:
                alice.remember("The launch is on 14 May", evidence=evidence)
            assert refused.value.code in ("invalid", "blocked"), evidence
            assert str(refused.value.field).startswith("evidence")
        accepted = alice.remember(
            "The launch is on 14 May", evidence=[{"source": said, "quote": "It is on 14 May now"}]
        )
        assert accepted["outcome"] == "created"
        assert texts_of(alice.list()) == ["a control to quote", "The launch is on 14 May"]
        with pytest.raises(Refused) as refused:
            alice.evolve(accepted["id"], "The launch is on 15 May")
        assert (refused.value.code, refused.value.details) == ("blocked", {"policy": "evidence"})
        later = prepared.ingest("planning", [{"role": "user", "content": "No, it is on 15 May"}])["ids"][0]
        newer = alice.evolve(
            accepted["id"], "The launch is on 15 May", evidence=[{"source": later, "quote": "on 15 May"}]
        )
        assert [span["source"] for span in alice.get(newer["id"])["evidence"]] == [later]


@pytest.mark.doors("library", "rest")
def test_evidence_require_agents_cannot_speak_for_the_user(stage: Stage) -> None:
    """What an agent ingests as the user's words are its own; the same from a person are the user's."""
    talk = [{"role": "user", "content": "I agree to the new terms"}]
    for kind, cls in (("agent", "self"), ("human", "user"), ("service", "user")):
        caller = stage.caller(kind, kind=kind)
        source = caller.ingest("terms", talk)["ids"][0]
        quoted = {"source": source, "quote": "I agree to the new terms"}
        memory = caller.get(caller.remember(f"{kind}: they agreed", evidence=[quoted])["id"])
        assert [span["class"] for span in memory["evidence"]] == [cls]
        assert memory["actor"]["kind"] == kind


@pytest.mark.doors("library", "rest")
@pytest.mark.index(policy={"evidence": "require"})
def test_evidence_require_numbers_and_speakers(stage: Stage) -> None:
    """A number stands in a quote of a tool or of the user's own; what somebody is said to say is quoted from them."""
    alice = stage.caller("alice")
    tool, own, dana = alice.ingest("bench", [
        {"role": "tool", "content": "p95 latency: 45 ms over 1,200 requests"},
        {"role": "assistant", "content": "The p99 latency must be around 90 ms."},
        {"role": "user", "speaker": "Dana", "content": "We ship the release on Friday, I decided that."},
    ])["ids"]  # fmt: skip
    measured = [{"source": tool, "quote": "p95 latency: 45 ms over 1,200 requests"}]
    for text, evidence, word in (
        ("The p95 latency is 54 ms", measured, "54"),
        ("The p95 latency is -45 ms", measured, "45"),
        ("The p99 latency is 90 ms", [{"source": own, "quote": "The p99 latency must be around 90 ms"}], "90"),
        (
            "Erik decided to ship the release on Friday",
            [{"source": dana, "quote": "We ship the release on Friday"}],
            "Erik",
        ),
        ("The user approved the release", [{"source": tool, "quote": "p95 latency"}], "user"),
    ):
        with pytest.raises(Refused) as refused:
            alice.remember(text, evidence=evidence)
        assert (refused.value.code, refused.value.details["policy"]) == ("blocked", "evidence"), text
        assert word in refused.value.message, text
    for text, evidence in (
        ("The p95 latency is 45 ms over 1200 requests", measured),
        ("Dana decided to ship the release on Friday", [{"source": dana, "quote": "We ship the release on Friday"}]),
        ("On 2026-06-05 the p95 latency was 45 ms", measured),
    ):
        assert alice.remember(text, evidence=evidence)["outcome"] == "created", text


@pytest.mark.promise("evidence.require")
@pytest.mark.doors("library", "rest")
def test_evidence_require_pasted_words_are_not_the_users(stage: Stage) -> None:
    """What a tool said first is the tool's when the user pastes it; what the user adds is the user's."""
    alice = stage.caller("alice")
    _, pasted = alice.ingest("logs", [
        {"role": "tool", "content": "ERROR disk sda1 is full. 3 retries."},
        {"role": "user", "content": "Look: ERROR disk sda1 is full. I want it cleaned up tonight."},
    ])["ids"]  # fmt: skip
    alone = alice.ingest("elsewhere", [{"role": "user", "content": "ERROR disk sda1 is full."}])["ids"][0]
    for source, quote, cls in (
        (alone, "disk sda1 is full", "user"),
        (pasted, "I want it cleaned up tonight", "user"),
    ):
        saved = alice.remember(f"about {quote} by {cls} {source}", evidence=[{"source": source, "quote": quote}])
        assert [span["class"] for span in alice.evidence(saved["id"])] == [cls]
    whole = alice.ingest("logs", [{"role": "user", "content": "ERROR disk sda1 is full."}])["ids"][0]
    saved = alice.remember("The disk is full", evidence=[{"source": whole, "quote": "disk sda1 is full"}])
    assert [span["class"] for span in alice.evidence(saved["id"])] == ["tool"]


@pytest.mark.doors("library", "rest")
@pytest.mark.index(meaning=True)
def test_evidence_echo(stage: Stage) -> None:
    """What recall gave out and a transcript repeats bears nothing out; the user saying it again does."""
    alice = stage.caller("alice")
    fact = "Dana owns the Henderson account"
    known = alice.remember(fact)["id"]
    given = alice.recall("Who owns the Henderson account?")["context"]
    assert fact in given
    repeated, pasted, again = alice.ingest("later", [
        {"role": "assistant", "content": f"I remember this. {fact}."},
        {"role": "user", "content": given},
        {"role": "user", "content": f"Yes. As I told you, {fact.lower()} now."},
    ])["ids"]  # fmt: skip
    for source in (repeated, pasted):
        saved = alice.remember(f"Said in {source}", evidence=[{"source": source, "quote": fact}])
        assert "no new evidence" in str(saved["warnings"])
        assert alice.evidence(saved["id"]) == []
    echo = alice.ingest("still later", [{"role": "assistant", "content": f"{fact}."}])["ids"][0]
    with pytest.raises(Refused) as refused:
        alice.confirm(known, evidence=echo)
    assert refused.value.code == "invalid"
    saved = alice.remember("Dana has the account still", evidence=[{"source": again, "quote": fact.lower()}])
    assert [span["class"] for span in alice.evidence(saved["id"])] == ["user"]
    alice.confirm(known, evidence=again)
    assert alice.get(known)["freshness"]["confirmations"] == 1


@pytest.mark.promise("evidence.claim_resolves", "correction.current")
@pytest.mark.doors("library", "rest", "mcp")
@pytest.mark.index(meaning=True)
def test_evidence_claim_resolves_to_what_was_not_taken_back(stage: Stage) -> None:
    """The sentence of a rejected memory is left out of its source in recall; asked for, it is shown. What changed since
    is labelled with what came after it, and nothing said beside it is lost."""
    prepared, alice = stage.preparing("alice"), stage.caller("alice")
    said = prepared.ingest("talk", [
        {"role": "user", "content": "My sister Zelda lives in Turin. The harbour office has a new crane."},
        {"role": "user", "content": "The crane is operated by Mistral Ltd."},
    ])["ids"]  # fmt: skip
    wrong = prepared.remember(
        "Alice has a sister in Turin", evidence=[{"source": said[0], "quote": "My sister Zelda lives in Turin"}]
    )["id"]
    crane = prepared.remember(
        "The crane is run by Mistral", evidence=[{"source": said[1], "quote": "operated by Mistral Ltd"}]
    )["id"]
    question = "What is there about the sister Zelda, and about the crane of the harbour office?"
    assert "Zelda" in alice.recall(question, kinds=["source"], k=20)["context"]
    alice.retract(wrong)
    newer = alice.evolve(crane, "The crane is run by Sirocco")["id"]
    for _ in range(2):
        recall = alice.recall(question, kinds=["source"], k=20)
        assert "Zelda" not in recall["context"]
        assert "The harbour office has a new crane." in recall["context"]
        assert f"superseded by {newer}" in recall["context"]
        shown = alice.recall(question, kinds=["source"], include=["rejected"], k=20)
        assert "Zelda" in shown["context"]
        stage.settle()
        stage.restart()
    assert "Zelda" in prepared.get(said[0])["text"]
