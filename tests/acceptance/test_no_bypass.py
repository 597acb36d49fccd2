"""gateway.no_bypass: every way to change something that the code has goes through the one gate."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.callers import Caller, Operation, Pending, Refused
from tests.support.callers.cli import COMMANDS
from tests.support.callers.mcp import COMPOSED, TOOLS
from tests.support.callers.rest import ROUTES
from tests.support.entry_points import EntryPoint, commands, entry_points, mutating_operations, transaction_openers
from tests.support.stage import Stage, tried

Ids = dict[str, Any]


class Write:
    """What a test does through an operation, and the name that its events have."""

    def __init__(self, event: str, do: Callable[[Caller, Ids], Any], *, needs: str = "write") -> None:
        self.event = event
        self.do = do
        self.needs = needs


WRITES: dict[Operation, Write] = {
    "remember": Write("remember", lambda c, i: c.remember("The mill is for sale")),
    "evolve": Write("evolve", lambda c, i: c.evolve(i["evolve"], "The mill has turned")),
    "correct": Write("correct", lambda c, i: c.correct(i["correct"], "The mill has stopped")),
    "retract": Write("retract", lambda c, i: c.retract(i["retract"])),
    "archive": Write("archive", lambda c, i: c.archive(i["archive"])),
    "restore": Write("restore", lambda c, i: c.restore(i["restore"])),
    "pin": Write("update", lambda c, i: c.call("pin", i["pin"])),
    "unpin": Write("update", lambda c, i: c.call("unpin", i["unpin"])),
    "update": Write("update", lambda c, i: c.update(i["update"], tags=["changed"])),
    "confirm": Write("confirm", lambda c, i: c.confirm(i["confirm"], evidence=i["message"])),
    "reinforce": Write("reinforce", lambda c, i: c.call("reinforce", i["reinforce"])),
    "forget": Write("forget", lambda c, i: c.forget(i["forget"], i["forget too"])),
    "delete_memory": Write("erase", lambda c, i: c.call("delete_memory", i["delete_memory"])),
    "ingest": Write("ingest_messages", lambda c, i: c.ingest("mill", [{"role": "user", "content": "It mills"}])),
    "share": Write("share", lambda c, i: c.share(i["share"], to={"scope": {"agent": "scribe"}})),
    "start_session": Write("start_session", lambda c, i: c.start_session("mill-new")),
    "end_session": Write("end_session", lambda c, i: c.end_session("talk")),
    "lift": Write("lift", lambda c, i: c.lift(i["lift"])),
    "dismiss": Write("dismiss", lambda c, i: c.call("dismiss", i["dismiss"], key="mill stream")),
    "review": Write("review", lambda c, i: c.review(i["review"], "reject")),
    "link": Write("link", lambda c, i: c.link(i["link"], "near", i["update"])),
    "unlink": Write("unlink", lambda c, i: c.unlink(i["unlink"], "near", i["update"])),
    "upsert": Write("upsert", lambda c, i: c.upsert({"id": "raw-new", "text": "a raw mill"})),
    "patch": Write("patch", lambda c, i: c.call("patch", "raw-patch", metadata={"patched": True})),
    "delete": Write("delete", lambda c, i: c.call("delete", "raw-delete")),
    "kv_put": Write("put_kv", lambda c, i: c.call("kv_put", "mill-new", value="turns")),
    "kv_delete": Write("delete_kv", lambda c, i: c.call("kv_delete", "mill-old")),
    "configure_index": Write("configure_index", lambda c, i: c.call("configure_index", policy={"write": "open"}),
                             needs="admin"),
    "create_index": Write("create_index", lambda c, i: c.call("create_index", dim=3)),
    "drop_index": Write("delete_index", lambda c, i: c.call("drop_index"), needs="admin"),
}  # fmt: skip
"""One for every operation that changes something. It may be done once an index."""

OF_AN_INDEX: tuple[Operation, ...] = ("configure_index", "create_index", "drop_index")
"""These change no memory; a frozen index must be configurable, or it would be frozen for good."""

LIBRARY = {
    **{f"MemoryHandle.{name}": name for name in ("remember", "evolve", "correct", "retract", "archive", "restore",
                                                 "pin", "unpin", "update", "confirm", "reinforce", "forget", "lift",
                                                 "share", "start_session", "end_session",
                                                 "review", "dismiss", "link", "unlink")},
    "MemoryHandle.ingest_messages": "ingest",
    "KvHandle.put": "kv_put",
    "KvHandle.delete": "kv_delete",
    "MemoryHandle.session": "start_session",
    "IndexHandle.upsert": "upsert",
    "IndexHandle.delete": "delete",
    "Database.create_index": "create_index",
    "Database.drop_index": "drop_index",
}  # fmt: skip

_NAMES_OF_COMMANDS = {"ingest_messages": "ingest", **{name: name for name in OF_AN_INDEX}}


def _operation_of(entry: EntryPoint) -> str | None:
    """What of the table below goes through an entry point."""
    if entry.door == "library":
        return LIBRARY.get(entry.name)
    if entry.door == "rest":
        return next((op for op, (method, path) in ROUTES.items() if f"{method} {path}" == entry.name), None)
    if entry.door == "mcp":
        return next((op for op, (tool, _) in TOOLS.items() if tool == entry.name), COMPOSED.get(entry.name))
    return _NAMES_OF_COMMANDS.get(entry.name, entry.name if entry.name in COMMANDS else None)


def test_gateway_no_bypass_knows_every_entry_point() -> None:
    """What follows breaks policies through every mutating entry point that is found in the code."""
    found = entry_points()
    assert {entry.door for entry in found} == {"library", "rest", "mcp", "cli"}
    unknown = sorted(entry for entry in found if _operation_of(entry) not in WRITES)
    assert unknown == [], "add what they do to WRITES, and to the door's own table"
    assert {write.event for write in WRITES.values()} == set(commands()), "every command has a write of its own"
    assert len(mutating_operations()) >= 18


def test_gateway_no_bypass_opens_no_transaction_elsewhere() -> None:
    """Nothing but the gateway begins a transaction that holds anything; the engine numbers a checkpoint with one of
    nothing."""
    assert transaction_openers() == {"kektor/engine/gateway.py", "kektor/engine/local.py"}


@pytest.mark.doors("library", "rest", "mcp", "cli")
def test_gateway_no_bypass(stage: Stage) -> None:
    """What the policy of the index or the caller's rights forbid is refused everywhere, with an event; then allowed."""
    ids = _prepare(stage)
    stage.settle()  # the log begins anew, so that reading it is quick
    alice = stage.caller("alice")
    names = {_operation_of(entry) for entry in entry_points() if entry.door == stage.door.name}
    own = [operation for operation in WRITES if operation in names]
    memories = [operation for operation in own if operation not in OF_AN_INDEX]
    assert memories
    for policy, caller, code, operations in (
        ({"write": "frozen"}, alice, "blocked", memories),
        ({"write": "gated"}, stage.caller("alice", kind="agent"), "blocked", memories),
        ({"write": "open"}, stage.caller("alice", rights=("read",)), "forbidden", own),
    ):
        stage.configure(**policy)
        if stage.door.name in ("mcp", "cli") and code == "forbidden":
            stage.pending.lacks(Pending("no caller without the right to write"))
        elif stage.door.name == "cli" and caller.who.kind == "agent":
            stage.pending.lacks(Pending("nobody of kind agent"))
        else:
            _are_refused(stage, caller, operations, ids, code)
    stage.configure(write="open")
    noted = len(stage.events())
    for operation in memories:
        before = _fingerprint(stage, ids)
        WRITES[operation].do(alice, ids)
        assert _fingerprint(stage, ids) != before, operation
    assert [event.operation for event in stage.events()[noted:]] == [WRITES[name].event for name in memories]


REJECTED = "The weir is owned by zephyrstone"


@pytest.mark.doors("library", "rest", "mcp", "cli")
def test_gateway_no_bypass_for_a_rejected_value(stage: Stage) -> None:
    """A value that was rejected is refused through everything that takes a text, and its twin is not."""
    alice = stage.caller("alice")
    prepared = stage.preparing("alice")
    ids: Ids = {name: prepared.remember(f"A stone for {name}")["id"] for name in ("evolve", "correct")}
    prepared.upsert({"id": "raw", "text": "something else"})
    prepared.retract(prepared.remember(REJECTED)["id"])
    writes: dict[str, tuple[str, Callable[[str], Any]]] = {
        "remember": ("remember", lambda text: alice.remember(text)),
        "evolve": ("evolve", lambda text: alice.evolve(ids["evolve"], text)),
        "correct": ("correct", lambda text: alice.correct(ids["correct"], text)),
        "ingest": ("ingest_messages", lambda text: alice.ingest("weir", [{"role": "user", "content": text}])),
        "upsert": ("upsert", lambda text: alice.upsert({"id": "raw-new", "text": text})),
        "patch": ("patch", lambda text: alice.call("patch", "raw", text=text)),
    }
    for operation, (event, write) in writes.items():
        with stage.pending.part():
            events = len(stage.events())
            stored = _texts(stage)
            answer = tried(lambda: write(REJECTED.upper()))  # noqa: B023
            if isinstance(answer, Refused):
                assert answer.code == "blocked", operation
                assert answer.details["tombstone"]
            else:
                assert operation == "ingest"
                assert "blocked" in str(answer)
            assert _texts(stage) == stored, operation
            assert f"refused:{event}" in [each.operation for each in stage.events()[events:]], operation
            twin = f"The weir is owned by {operation}"
            write(twin)
            assert twin in _texts(stage), operation


def _prepare(stage: Stage) -> Ids:
    """Something for each write to be done to."""
    prepared = stage.preparing("alice")
    ids: Ids = {name: prepared.remember(f"The mill, as a thing to {name}")["id"] for name in WRITES}
    ids["forget too"] = prepared.remember("The mill, as another thing to forget")["id"]
    prepared.archive(ids["restore"])
    prepared.call("pin", ids["unpin"])
    prepared.link(ids["unlink"], "near", ids["update"])
    prepared.retract(prepared.remember("The mill burnt down")["id"])
    ids["lift"] = prepared.tombstones()[0]["id"]
    prepared.remember("The owner of the mill is Jens")
    ids["review"] = prepared.remember("The owner of the mill is Ada")["reflection"]
    ids["dismiss"] = prepared.remember("The mill stands by a stream", keys=["mill stream"])["id"]
    ids["message"] = prepared.ingest("talk", [{"role": "user", "content": "The mill still stands"}])["ids"][0]
    for name in ("raw-patch", "raw-delete"):
        prepared.upsert({"id": name, "text": name})
    prepared.call("kv_put", "mill-old", value="stands")
    return ids


def _are_refused(stage: Stage, caller: Caller, operations: list[Operation], ids: Ids, code: str) -> None:
    before, noted = _fingerprint(stage, ids), len(stage.events())
    refused = []
    for operation in operations:
        with stage.pending.part():
            with pytest.raises(Refused) as refusal:
                WRITES[operation].do(caller, ids)
            assert refusal.value.code == code, operation
            refused.append(operation)
    assert refused
    assert _fingerprint(stage, ids) == before
    events = stage.events()[noted:]
    assert [event.operation for event in events] == [f"refused:{WRITES[name].event}" for name in refused]
    assert {event.actor.kind.value for event in events} == {
        caller.who.kind or ("agent" if stage.door.name == "mcp" else "service")
    }
    assert "mill" not in str(events)


def _fingerprint(stage: Stage, ids: Ids) -> Any:
    """Everything there is in the index, as the operator sees it."""
    operator = stage.operator
    kinds = ["memory", "source", "session", "summary", "reflection", "key"]
    listed = operator.list(include=["superseded", "archived", "rejected"], kinds=kinds, limit=1000)
    parts = ("id", "text", "status", "trust", "tags", "metadata", "pinned", "access", "freshness")
    told = [[item[part] for part in parts[:-1]] + [item["freshness"]["confirmations"]] for item in listed]
    ends = [*operator.edges(ids["update"]), *operator.edges(ids["dismiss"])]
    edges = [(edge["src"], edge["dst"], edge["weight"]) for edge in ends]
    stones = [stone["id"] for stone in operator.tombstones()]
    values = [isinstance(tried(lambda k=key: operator.call("kv_get", k)), Refused) for key in ("mill-old", "mill-new")]
    return told, edges, stones, values, len(operator.call("indexes")["items"])


def _texts(stage: Stage) -> list[str]:
    """Every text that is held in any state."""
    held = stage.operator.list(include=["superseded", "archived"], kinds=["memory", "source"], limit=1000)
    return [item["text"] for item in held]
