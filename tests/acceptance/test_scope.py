"""What one user may see and change, however it is asked."""

from typing import Any

import pytest

from tests.support.callers import Caller, Refused
from tests.support.stage import Stage, known_ids, texts_of, tried

SECRET = "Alice keeps the spare key of the lighthouse under zephyrstone 4417"
QUESTION = "Where does Alice keep the spare key of the lighthouse?"


@pytest.mark.index(meaning=True)
@pytest.mark.doors("library", "rest", "mcp", "cli")
def test_scope_cross_tenant_absent(stage: Stage) -> None:
    """Alice's memory is what Bob's questions match best, and no read of his shows a trace of it."""
    alice, bob = stage.caller("alice"), stage.caller("bob")
    hers = alice.remember(SECRET)["id"]
    her_other = alice.remember("Alice repaints the lighthouse every spring")["id"]
    his = bob.remember("Bob keeps the ferry timetable in the harbour office")["id"]
    his_other = bob.remember("The harbour office opens at nine")["id"]
    with stage.pending.part():
        alice.link(hers, "near", her_other)
        bob.link(his, "near", his_other)
    # An edge into Alice's data that Bob's own node hangs on: only somebody who sees both can draw it.
    stage.operator.link(his, "leads_to", hers)
    stage.settle()

    for question in (QUESTION, SECRET, "zephyrstone 4417", hers):
        assert hers in known_ids(alice.recall(question)), question
        with stage.pending.part():
            _shows_nothing(bob.recall(question, k=100), hers, her_other)
            _shows_nothing(bob.recall(question, mode="fast"), hers, her_other)
    assert his in known_ids(bob.recall("Where does Bob keep the ferry timetable?"))

    with stage.pending.part():
        explained = bob.recall(QUESTION, explain=True)
        assert "zephyrstone" not in str(explained)
        assert hers not in str(explained)
        assert hers in str(alice.recall(QUESTION, explain=True)["trace"])
    with stage.pending.part():
        everything = ["superseded", "archived", "proposed", "rejected"]
        assert texts_of(bob.list(include=everything)) == texts_of([bob.get(his), bob.get(his_other)])
        assert SECRET in texts_of(alice.list())
        assert bob.list(filter=f"text = '{SECRET}'") == []
        assert len(alice.list(filter=f"text = '{SECRET}'")) == 1
    with stage.pending.part():
        assert hers in [hit["id"] for hit in alice.search(text="zephyrstone")]
        assert hers not in [hit["id"] for hit in bob.search(text="zephyrstone harbour")]
        assert his in [hit["id"] for hit in bob.search(text="zephyrstone harbour")]
    with stage.pending.part():
        assert _reached(bob.traverse(his, depth=5)) == {his, his_other}
        assert _reached(alice.traverse(hers, depth=5)) == {hers, her_other}
    with stage.pending.part():
        assert [edge["dst"] for edge in bob.edges(his, direction="out")] == [his_other]
        assert [edge["dst"] for edge in alice.edges(hers, direction="out")] == [her_other]
        assert bob.path(his, his_other)["nodes"]
    with stage.pending.part():
        exported = stage.preparing("bob").call("export")["items"]
        assert "zephyrstone" not in str(exported)
        assert "ferry timetable" in str(exported)


@pytest.mark.doors("library", "rest")
def test_scope_cross_tenant_absent_by_vector(stage: Stage) -> None:
    """The very vector of Alice's node finds Bob's far one, and never hers."""
    near, far = [1.0] + [0.0] * 63, [0.0] * 63 + [1.0]
    stage.preparing("alice").upsert({"id": "hers", "vector": near, "metadata": {"secret": 1}})
    stage.preparing("bob").upsert({"id": "his", "vector": far, "metadata": {"open": 1}})
    alice, bob = stage.caller("alice"), stage.caller("bob")
    assert [hit["id"] for hit in alice.search(vector=near, k=10)] == ["hers"]
    assert [hit["id"] for hit in bob.search(vector=near, k=10)] == ["his"]
    assert bob.call("search_batch", vectors=[near, far], k=10)["ids"] == [["his"], ["his"]]
    _same_as_unknown(bob, "node", "hers")
    assert bob.call("node", "his")["id"] == "his"
    assert "secret" not in str(bob.call("nodes"))


@pytest.mark.index(meaning=True)
def test_scope_caller_cannot_widen(stage: Stage) -> None:
    """Whatever a caller confined to Alice passes, it is refused or answered from what is hers."""
    alice = stage.caller("alice")
    hers = stage.caller("alice").remember("Alice grows tomatoes on the roof")["id"]
    his = stage.caller("bob").remember("Bob grows zephyrberries on the roof")["id"]

    def still_hers() -> None:
        found = known_ids(alice.recall("What grows on the roof?", k=100))
        assert found[0] == hers
        assert his not in found

    still_hers()
    for scope in ({"user": "bob"}, {"user": "*"}, {"user": "%"}, {"user": ""}, {"user": "  "}, {"user": None}, {},
                  None, {"user": "alice", "tenant": "bob"}, {"user": ["alice", "bob"]}, "bob", {"user": "ALICE"},
                  {"project": "other"}):  # fmt: skip
        with stage.pending.part():
            _refused_or_hers(alice, scope, his)
        still_hers()
    for condition in (
        "scope.user = 'bob'",
        "scope.user != 'alice'",
        "scope.user = 'bob' OR scope.user = 'alice'",
        "NOT scope.user = 'alice'",
        "scope.user LIKE '%'",
        "text CONTAINS 'zephyrberries'",
        {"eq": ["scope.user", "bob"]},
        {"or": [{"eq": ["scope.user", "bob"]}, {"ne": ["id", "x"]}]},
    ):
        with stage.pending.part():
            assert his not in known_ids(alice.recall("What grows on the roof?", filter=condition))
        with stage.pending.part():
            assert his not in [item["id"] for item in alice.list(filter=condition)]
    with stage.pending.part():
        listed = [item["id"] for item in alice.list(filter="scope.user = 'alice'")]
        assert hers in listed
        assert his not in listed
    still_hers()


def _refused_or_hers(alice: Caller, scope: Any, his: str) -> None:
    """A scope that is not hers is no way to his: neither in an answer nor in what a write does."""
    found = tried(lambda: alice.call("recall", query="What grows on the roof?", scope=scope))
    saved = tried(lambda: alice.call("remember", text=f"Planted under {scope!r}", scope=scope))
    for answer in (found, saved):
        assert not isinstance(answer, Refused) or answer.code in ("invalid", "forbidden"), answer
    if not isinstance(found, Refused):
        assert his not in known_ids(found)
    if not isinstance(saved, Refused):
        assert alice.get(saved["id"])["scope"]["user"] == "alice"


def test_scope_caller_cannot_widen_to_another_index(stage: Stage) -> None:
    """A grant for one index answers for another as for one that does not exist; its own index goes on answering."""
    other = f"{stage.index}-other"
    operator = stage.operator
    operator.index = other
    operator.call("create_index")
    secret = operator.remember("The other index holds the zephyrstone")["id"]
    confined = stage.caller("alice", index=stage.index)
    own = confined.remember("Alice has an index of her own")["id"]
    try:
        for reach in (
            lambda caller: caller.recall("Where is the zephyrstone?"),
            lambda caller: caller.get(secret),
            lambda caller: caller.list(),
            lambda caller: caller.search(text="zephyrstone"),
            lambda caller: caller.remember("Something of Alice's"),
            lambda caller: caller.evolve(secret, "The zephyrstone is gone"),
            lambda caller: caller.erase(secret),
            lambda caller: caller.upsert({"id": "mine", "text": "mine"}),
            lambda caller: caller.link(secret, "near", secret),
            lambda caller: caller.traverse(secret),
            lambda caller: caller.call("stats"),
        ):
            refusals = []
            for name in (other, "no-such-index"):
                confined.index = name
                with stage.pending.part():
                    with pytest.raises(Refused) as refused:
                        reach(confined)
                    assert refused.value.code in ("forbidden", "not_found")
                    refusals.append(refused.value.without(name))
            assert len(set(map(str, refusals))) <= 1, refusals
            confined.index = stage.index
            assert confined.get(own)["text"] == "Alice has an index of her own"
        assert operator.get(secret)["text"] == "The other index holds the zephyrstone"
        with stage.pending.part():
            listed = [index["name"] for index in confined.call("indexes")["items"]]
            assert listed == [stage.index]
    finally:
        operator.call("drop_index")


def test_scope_caller_cannot_widen_by_an_id(stage: Stage) -> None:
    """An id of Bob's answers, through every operation, exactly as one that nobody ever had."""
    alice, bob = stage.caller("alice"), stage.caller("bob")
    hers = alice.remember("Alice grows tomatoes")["id"]
    her_other = alice.remember("Alice grows basil")["id"]
    spare = alice.remember("Alice grows chives")["id"]
    his = bob.remember("Bob grows zephyrberries")["id"]
    his_message = stage.preparing("bob").ingest("talk", [{"role": "user", "content": "Bob likes the sea"}])["ids"][0]
    her_message = stage.preparing("alice").ingest("talk", [{"role": "user", "content": "Alice likes the sea"}])["ids"][
        0
    ]
    stage.preparing("bob").upsert({"id": "his-raw", "text": "Bob's raw node", "metadata": {"m": 1}})
    for operation, own, fields in (
        ("get", hers, {}), ("history", hers, {}), ("evidence", hers, {}), ("edges", hers, {}),
        ("update", hers, {"tags": ["t"]}), ("pin", hers, {}), ("unpin", hers, {}),
        ("confirm", hers, {"evidence": her_message}),
        ("reinforce", hers, {}), ("archive", spare, {}), ("restore", spare, {}),
        ("evolve", her_other, {"text": "Alice grows mint"}),
    ):  # fmt: skip
        with stage.pending.part():
            _same_as_unknown(alice, operation, his, **fields)
            assert alice.call(operation, own, **fields) is not None
    for operation in ("correct", "retract"):
        with stage.pending.part():
            _same_as_unknown(alice, operation, his, **({"text": "No"} if operation == "correct" else {}))
    for mode in ("archive", "retract", "erase"):
        with stage.pending.part():
            _same_as_unknown(alice, "forget", None, "ids", his, mode=mode)
    with stage.pending.part():
        _same_as_unknown(alice, "traverse", None, "root", his)
        assert alice.traverse(hers)["nodes"]
    with stage.pending.part():
        for fields in ({"src": his, "dst": hers}, {"src": hers, "dst": his}):
            name = "src" if fields["src"] == his else "dst"
            _same_as_unknown(alice, "path", None, name, his, **{k: v for k, v in fields.items() if k != name})
    with stage.pending.part():
        for end in ("src", "dst"):
            refusals = []
            for asked in (his, "never-given"):
                edge = {"src": hers, "rel": "near", "dst": hers, end: asked}
                with pytest.raises(Refused) as refused:
                    alice.link(**edge)
                refusals.append(refused.value.without(asked))
            assert refusals[0] == refusals[1]
    with stage.pending.part():
        _same_as_unknown(alice, "remember", None, "evidence", his_message, text="Alice is at the sea")
        quoted = {"source": her_message, "quote": "Alice likes the sea"}
        assert alice.remember("Alice is fond of the sea", evidence=[quoted])["outcome"] == "created"
    with stage.pending.part():
        _same_as_unknown(alice, "confirm", hers, "evidence", his_message)
    with stage.pending.part():
        _same_as_unknown(alice, "node", "his-raw")
        _same_as_unknown(alice, "patch", "his-raw", metadata={"m": 2})
        _same_as_unknown(alice, "delete", "his-raw")
        assert stage.operator.call("node", "his-raw")["metadata"] == {"m": 1}
    # An id that is taken elsewhere is free here, and a session of the same name is another one.
    with stage.pending.part():
        assert alice.remember("Alice uses the same id", id=his)["outcome"] == "created"
        assert alice.get(his)["text"] == "Alice uses the same id"
    assert bob.get(his)["text"] == "Bob grows zephyrberries"
    assert bob.get(his)["trust"] == "accepted"
    assert bob.get(his)["tags"] == []


@pytest.mark.doors("library", "rest", "mcp")
@pytest.mark.parametrize("member", ["agent", "project"])
def test_scope_cross_tenant_absent_by_member(stage: Stage, member: str) -> None:
    """Agents and projects are kept apart as users are; what belongs to none of them is there for all."""
    first, second = stage.caller(**{member: "one"}), stage.caller(**{member: "two"})
    hers = first.remember("The first keeps zephyrstone in the shed")["id"]
    his = second.remember("The second keeps sandstone in the shed")["id"]
    shared = stage.operator.remember("The shed stands behind the mill")["id"]
    for caller, own, foreign in ((first, hers, his), (second, his, hers)):
        found = known_ids(caller.recall("keeps stone in the shed behind the mill", k=50, mode="fast"))
        assert {own, shared} <= set(found)
        assert foreign not in found
        _same_as_unknown(caller, "get", foreign)
        assert caller.get(own)["scope"][member] in ("one", "two")
    assert {hers, his, shared} <= set(known_ids(stage.operator.recall("keeps stone in the shed mill", mode="fast")))


def test_scope_caller_cannot_widen_into_what_is_shared(stage: Stage) -> None:
    """A confined caller reads what all share and changes none of it; her own she may."""
    shared = stage.operator.remember("The mill opens at nine")["id"]
    said = stage.operator.ingest("news", [{"role": "user", "content": "The mill still opens at nine"}])["ids"][0]
    alice = stage.caller("alice")
    own = alice.remember("Alice has a key to the mill")["id"]
    assert alice.get(shared)["text"] == "The mill opens at nine"
    for operation, fields in (
        ("evolve", {"text": "The mill is shut"}), ("correct", {"text": "The mill is shut"}), ("retract", {}),
        ("archive", {}), ("update", {"tags": ["t"]}), ("pin", {}), ("confirm", {"evidence": said}), ("reinforce", {}),
    ):  # fmt: skip
        with stage.pending.part():
            with pytest.raises(Refused) as refused:
                alice.call(operation, shared, **fields)
            assert refused.value.code == "forbidden", operation
    with pytest.raises(Refused) as refused:
        alice.erase(shared)
    assert refused.value.code == "forbidden"
    with stage.pending.part():
        with pytest.raises(Refused) as refused:
            alice.call("end_session", "news")
        assert refused.value.code == "forbidden"
        assert stage.operator.call("end_session", "news")["outcome"] == "ended"
    kept = stage.operator.get(shared)
    assert (kept["status"], kept["trust"], kept["tags"], kept["pinned"]) == ("current", "accepted", [], False)
    assert alice.evolve(own, "Alice gave the key back")["outcome"] == "superseded"


@pytest.mark.doors("library", "rest")
def test_scope_caller_cannot_widen_to_the_whole_index(stage: Stage) -> None:
    """With every right but a grant for herself alone, nobody changes or drops what all have, or counts it."""
    alice = stage.caller("alice")
    hers = alice.remember("Alice has a boat")["id"]
    for operation, fields in (("configure_index", {"policy": {"write": "frozen"}}), ("drop_index", {}), ("stats", {})):
        with stage.pending.part():
            with pytest.raises(Refused) as refused:
                alice.call(operation, **fields)
            assert refused.value.code == "forbidden", operation
    assert alice.get(hers)["text"] == "Alice has a boat"
    assert stage.caller("bob").remember("Bob has one too")["outcome"] == "created"
    # A name that only others' metadata knows is as wrong as one that nobody's does.
    stage.caller("bob").remember("Bob's boat is long", metadata={"zephyrlength": 12})
    alice.update(hers, metadata={"length": 9})
    refusals = []
    for name in ("zephyrlength", "neverlength"):
        with pytest.raises(Refused) as refused:
            alice.list(filter=f"{name} > 3")
        refusals.append(refused.value.without(name))
    assert refusals[0] == refusals[1]
    assert [item["id"] for item in alice.list(filter="length > 3")] == [hers]


def _shows_nothing(recall: Any, *ids: str) -> None:
    assert not set(ids) & set(known_ids(recall))
    assert "zephyrstone" not in str(recall)
    assert not set(ids) & {*recall["dropped"], *(miss["id"] for miss in recall["near_misses"])}


def _reached(graph: Any) -> set[str]:
    return {node["memory"]["id"] for node in graph["nodes"]}


def _same_as_unknown(caller: Caller, operation: Any, about: str | None, *named: Any, **fields: Any) -> None:
    """Refused in the words that an id which nobody ever had is refused in."""
    refusals = []
    name, foreign = named if named else (None, about)
    for asked in (foreign, "never-given"):
        given = dict(fields)
        if name == "ids":
            given["ids"] = [asked]
        elif name == "evidence" and operation == "remember":
            given["evidence"] = [{"source": asked, "quote": "sea"}]
        elif name is not None:
            given[name] = asked
        with pytest.raises(Refused) as refused:
            caller.call(operation, about if name is not None else asked, **given)
        refusals.append(refused.value.without(str(asked)))
    assert refusals[0] == refusals[1], operation
    assert refusals[0][0] in ("not_found", "invalid"), refusals[0]
