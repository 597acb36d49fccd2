"""doors.parity: one table of operations, the same result through every door."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from tests.support.acceptance import PendingParts
from tests.support.callers import Caller, Door, Operation, Pending, Refused
from tests.support.callers.library import NO_METHOD
from tests.support.stage import Stage

Names = dict[str, str]
"""What the answers of earlier steps are called, by their ids."""


class Step(NamedTuple):
    """One call. `about` and strings that begin with `$` stand for ids of earlier steps; `names` name the new ones."""

    operation: Operation
    fields: Mapping[str, Any] = MappingProxyType({})
    about: str | None = None
    names: tuple[str, ...] = ()


NEAR = [1.0, *[0.0] * 63]
TALK = [
    {"role": "user", "content": "The ferry leaves from pier four", "at": "2026-02-01T09:00:00Z", "speaker": "Ana"},
    {"role": "assistant", "content": "Noted: pier four", "at": "2026-02-01T09:00:10Z"},
]

TABLE: tuple[Step, ...] = (
    Step("remember", {"text": "Dana owns the Henderson account", "valid_from": "2024"}, names=("dana",)),
    Step("remember", {"text": "dana owns  the Henderson account.", "valid_from": "2024"}),
    Step("remember", {"text": "Erik maintains the ferry timetable", "tags": ["ferry", "work"], "layer": "procedural",
                      "valid_to": "2027-06", "occurred_at": "2026-01-05"}, names=("erik",)),
    Step("remember", {"text": "The Larsen account is Priya's", "claim": ["Larsen account", "owner", "Priya"],
                      "metadata": {"stage": "open", "size": 3, "deep": {"a": [1, 2.5, None, True]}}},
         names=("larsen",)),
    Step("remember", {"text": "An id of one's own", "id": "my-own-id", "pinned": True, "session": "s-1"},
         names=("own",)),
    Step("remember", {"text": "Another text under it", "id": "my-own-id"}),
    Step("remember", {"text": "  "}),
    Step("remember", {"text": "Ends before it begins", "valid_from": "2025", "valid_to": "2024"}),
    Step("remember", {"text": "No date at all", "valid_from": "next blue moon"}),
    Step("get", {}, "$dana"),
    Step("get", {}, "$erik"),
    Step("get", {}, "$larsen"),
    Step("get", {}, "$own"),
    Step("get", {}, "never-given"),
    Step("list"),
    Step("list", {"limit": 2}),
    Step("list", {"filter": "tags CONTAINS 'ferry' AND layer = 'procedural'"}),
    Step("list", {"filter": "metadata.size >= 3"}),
    Step("list", {"filter": "tags CONTAINS ("}),
    Step("list", {"kinds": ["nothing"]}),
    Step("ingest", {"session": "pier", "messages": TALK}, names=("said", "noted")),
    Step("ingest", {"session": "pier", "messages": TALK}),
    Step("ingest", {"session": "pier", "messages": []}),
    Step("remember", {"text": "The ferry uses pier four", "evidence": [{"source": "$said", "quote": "from pier four"}]},
         names=("pier",)),
    Step("remember", {"text": "The ferry uses pier five", "evidence": [{"source": "$said", "quote": "pier five"}]}),
    Step("get", {}, "$pier"),
    Step("evidence", {}, "$pier"),
    Step("recall", {"query": "Who owns the Henderson account?", "k": 2}),
    Step("recall", {"query": "Dana Henderson ferry", "budget_tokens": 90}),
    Step("recall", {"query": "Who owns the Henderson account?", "as_of": "2023"}),
    Step("recall", {"query": "Erik ferry timetable", "tags": ["ferry"], "layers": ["procedural"]}),
    Step("recall", {"query": "qwxyz vbnml"}),
    Step("recall", {"query": "Henderson", "k": 0}),
    Step("recall", {"query": " "}),
    Step("recall", {"query": "Henderson", "include": ["everything"]}),
    Step("evolve", {"text": "Priya owns the Henderson account", "valid_from": "2026-03-01"}, "$dana", names=("priya",)),
    Step("evolve", {"text": "Nobody owns it"}, "$dana"),
    Step("get", {}, "$dana"),
    Step("get", {}, "$priya"),
    Step("history", {}, "$priya"),
    Step("recall", {"query": "Who owned the Henderson account before?"}),
    Step("correct", {"text": "Erik maintains the bus timetable", "reason": "misheard"}, "$erik", names=("bus",)),
    Step("get", {}, "$erik"),
    Step("remember", {"text": "Erik maintains the ferry timetable"}),
    Step("history", {}, "$erik"),
    Step("correct", {"text": "Erik maintains the bus timetable"}, "$bus"),
    Step("link", {"edges": [{"src": "$priya", "rel": "works_with", "dst": "$bus"}]}),
    Step("link", {"edges": [{"src": "$bus", "rel": "near", "dst": "$larsen", "weight": 0.25, "props": {"p": 1},
                             "valid_from": "2026-01-01"}]}),
    Step("link", {"edges": [{"src": "$priya", "rel": "near", "dst": "never-given"}]}),
    Step("link", {"edges": [{"src": "$priya", "rel": "supersedes", "dst": "$bus"}]}),
    Step("edges", {"rel": "works_with"}, "$bus"),
    Step("traverse", {"root": "$priya", "depth": 1, "rels": ["works_with"]}),
    Step("traverse", {"root": "$priya", "depth": 99}),
    Step("path", {"src": "$priya", "dst": "$bus"}),
    Step("unlink", {"src": "$priya", "rel": "works_with", "dst": "$bus"}),
    Step("unlink", {"src": "$priya", "rel": "works_with", "dst": "$bus"}),
    Step("update", {"tags": ["a", "b"], "metadata": {"n": 1}}, "$larsen"),
    Step("get", {}, "$larsen"),
    Step("pin", {}, "$larsen"),
    Step("unpin", {}, "$larsen"),
    Step("confirm", {"evidence": "$said"}, "$larsen"),
    Step("confirm", {"evidence": "never-given"}, "$larsen"),
    Step("reinforce", {}, "$larsen"),
    Step("archive", {}, "$larsen"),
    Step("archive", {}, "$larsen"),
    Step("get", {}, "$larsen"),
    Step("restore", {}, "$larsen"),
    Step("restore", {}, "$larsen"),
    Step("retract", {"reason": "never true"}, "$larsen"),
    Step("retract", {}, "$larsen"),
    Step("retract", {}, "$dana"),
    Step("get", {}, "$larsen"),
    Step("remember", {"text": "THE LARSEN account is priya's"}),
    Step("list", {"include": ["superseded", "rejected"]}),
    Step("upsert", {"nodes": [{"id": "v1", "vector": NEAR, "text": "alpha", "metadata": {"n": 1}, "tags": ["t"]}]}),
    Step("upsert", {"nodes": [{"id": "v1", "vector": [1.0]}]}),
    Step("upsert", {"nodes": [{"id": "my-own-id", "text": "in a memory's place"}]}),
    Step("node", {}, "v1"),
    Step("patch", {"metadata": {"m": 2}}, "v1"),
    Step("nodes", {}),
    Step("search", {"vector": NEAR, "k": 1, "with_memories": True}),
    Step("search", {"text": "alpha", "k": 1, "with_memories": True}),
    Step("search_batch", {"vectors": [NEAR], "k": 1}),
    Step("search", {"k": 1}),
    Step("evolve", {"text": "beta"}, "v1"),
    Step("delete", {}, "v1"),
    Step("delete", {}, "v1"),
    Step("forget", {"ids": ["$bus"], "mode": "erase", "dry_run": True}),
    Step("forget", {"ids": ["$bus"], "mode": "erase"}),
    Step("get", {}, "$bus"),
    Step("forget", {"ids": ["$bus"], "mode": "erase"}),
    Step("forget", {"ids": ["$pier", "never-given"], "mode": "erase"}),
    Step("remember", {"text": "Erik maintains the bus timetable"}),
    Step("stats"),
    Step("configure_index", {"policy": {"write": "frozen"}}),
    Step("remember", {"text": "Too late"}),
    Step("configure_index", {"policy": {"write": "open"}}),
)  # fmt: skip

OWN = {
    "recorded_at", "retired_at", "created_at", "confirmed_at", "lsn", "trace_id", "tokens", "actor", "index", "last",
    "access", "freshness", "name", "number", "vector", "text_stats", "dim", "bytes", "resident",
    "preview", "digest", "signature", "requested_at", "bytes_gone_at",
}  # fmt: skip
"""What differs from one database to another: times, positions, who calls, sizes, sealed tokens."""


@pytest.mark.doors("library", "rest", "mcp", "cli")
def test_doors_parity(stage: Stage, request: pytest.FixtureRequest) -> None:
    """Every line of the table ends the same way as through the embedded library."""
    told = _run(stage)
    if stage.door.name == "library":
        for operation in sorted({step.operation for step in TABLE} & NO_METHOD):
            stage.pending.lacks(Pending(f"no public method for {operation}"))
        assert {step.operation for step in TABLE} >= {"remember", "recall", "forget"}
        assert sum(answer[0] == "refused" for answer in told) >= 15
        return
    reference = _reference(request.getfixturevalue("doors")["library"], f"{stage.index}-reference")
    compared = 0
    for step, here, there in zip(TABLE, told, reference, strict=True):
        if here[0] == "pending":
            continue
        compared += 1
        assert _agree(here, there, whole=stage.door.name != "mcp"), f"{step}\n{here}\n{there}"
    assert compared >= 25


def _reference(library: Door, index: str) -> list[Any]:
    stage = Stage(library, index, PendingParts())
    stage.open()
    try:
        return _run(stage)
    finally:
        stage.close()


def _run(stage: Stage) -> list[Any]:
    """The answer of every step: ("ok", plain), ("refused", code, field) or ("pending", why)."""
    ids: Names = {}
    answers = []
    for step in TABLE:
        try:
            answers.append(_ask(step, stage.caller("alice"), ids, stage.operator))
        except Pending as missing:
            stage.pending.lacks(missing)
            answers.append(("pending", str(missing)))
            # What later steps build on is done where it can be, so that they are compared all the same.
            _ask(step, stage.preparing("alice"), ids, stage.operator)
    return answers


def _ask(step: Step, alice: Caller, ids: Names, operator: Caller) -> Any:
    fields = _filled(step.fields, ids)
    about = None if step.about is None else _filled(step.about, ids)
    # Settings and statistics are of the whole index, which no user's grant covers.
    whole = step.operation in ("stats", "configure_index")
    caller = Caller(alice.door, operator.who, alice.index) if whole else alice
    try:
        answer = caller.call(step.operation, about, **fields)
    except Refused as refused:
        return "refused", refused.code, refused.field
    new = answer.get("ids") or ([answer["id"]] if answer.get("id") else [])
    if "files" in answer:
        raise Pending("the command ingest tells how many of each outcome, and no ids")
    ids.update(zip(step.names, new, strict=False))
    return "ok", _plain(answer, {node_id: f"${name}" for name, node_id in ids.items()})


def _filled(value: Any, ids: Names) -> Any:
    """With the ids in the place of their names."""
    if isinstance(value, str) and value.startswith("$"):
        return ids[value[1:]]
    if isinstance(value, Mapping):
        return {key: _filled(inner, ids) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, ids) for inner in value]
    return value


def _plain(value: Any, names: Names) -> Any:
    """With names in the place of ids, without what no two databases share and without nulls."""
    if isinstance(value, dict):
        own = OWN | {"id"} if "signature" in value else OWN  # a receipt of an erasure names itself
        return {
            key: _plain(inner, names) for key, inner in value.items() if key not in own and inner not in (None, [], {})
        }
    if isinstance(value, list):
        return [_plain(inner, names) for inner in value]
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, str):
        for node_id, name in names.items():
            value = value.replace(node_id, name)
    return value


def _agree(here: Any, there: Any, *, whole: bool) -> bool:
    """Equal; or, where a door sends handles, equal in all that it does send."""
    if here[0] == there[0] == "refused":
        return here[1] == there[1] and _field(here) == _field(there)
    if whole or here[0] != "ok":
        return bool(here == there)
    return there[0] == "ok" and _within(here[1], there[1])


def _within(part: Any, whole: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and _within(part[key], whole[key]) for key in part)
    if isinstance(part, list):
        return (
            isinstance(whole, list)
            and len(part) == len(whole)
            and all(_within(one, other) for one, other in zip(part, whole, strict=True))
        )
    if isinstance(part, str) and isinstance(whole, str) and whole.startswith("<memories>"):
        return part.endswith(whole)  # a line about the answer may stand before it
    return bool(part == whole)


def _field(refusal: Any) -> str | None:
    """The field at fault, under one name: the library takes vectors as one array beside the ids, the command line
    messages as a file."""
    return {"nodes[0].vector": "vectors", "path": "messages"}.get(refusal[2], refusal[2])
