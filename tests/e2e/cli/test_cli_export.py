"""An export holds every version with both clocks, vectors to the last bit, and edges that were and are."""

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np

import kektor
from tests.support.doors import Machine


def filled(folder: Path) -> dict[str, Any]:
    """A directory with something of everything; returns what an export must hold of it."""
    with kektor.open(folder) as db:
        alice = db.memory(user="alice")
        first = alice.remember("Dana owns the account", id="owner", valid_from="2025", tags=["crm"], metadata={"n": 1})
        second = alice.evolve("owner", "Erik owns the account", valid_from="2026-03")
        db.memory(user="bob").remember("Ingrid is the contact", id="owner")  # the same id in another scope
        said = alice.ingest_messages([{"role": "user", "content": "Erik has it now"}], session="s")
        wrong = alice.remember("The account is closed")
        alice.retract(wrong.id)
        erased = alice.remember("Frank's number is 5550102233")
        alice.forget(ids=[erased.id], mode="erase")
        alice.link("owner", "mentions", said.ids[0])
        alice.unlink("owner", "mentions", said.ids[0])
        index = db.create_index("raw", dim=4)
        vector = np.array([[0.1, -0.2, 1e-7, 3.0]], np.float32)
        index.upsert(["v"], vectors=vector)
        return {"head": second.id, "wrong": wrong.id, "first": first.id, "vector": vector[0]}


def exported(machine: Machine, *arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in machine.run("export", "-", *arguments).stdout.splitlines()]


def test_everything_is_there_but_what_was_erased(machine: Machine) -> None:
    held = filled(machine.data)
    records = exported(machine)
    nodes = {(r["id"], r["scope"]["user"]): r for r in records if r["type"] == "node"}
    assert records[0]["type"] == "kektor"
    assert records[0]["format"] == 1
    assert records[-1] == {
        "type": "end",
        "indexes": 2,
        "nodes": len(nodes),
        "edges": sum(r["type"] == "edge" for r in records),
    }
    old, new = nodes["owner", "alice"], nodes[held["head"], "alice"]
    assert [state["status"] for state in old["states"]] == ["current", "superseded"]
    assert old["states"][0]["recorded_to"] == old["states"][1]["recorded_from"]
    assert old["states"][0]["valid_from"] == {"at": "2025-01-01T00:00:00Z", "words": "2025"}
    assert old["states"][1]["valid_to"]["words"] == "2026-03"
    assert (new["lineage"], new["version"]) == ("owner", 2)
    assert nodes["owner", "bob"]["text"] == "Ingrid is the contact"
    assert nodes[held["wrong"], "alice"]["states"][-1]["trust"] == "rejected"
    assert {r["kind"] for r in nodes.values()} == {"memory", "source", "session"}
    assert "5550102233" not in json.dumps(records)


def test_vectors_come_back_to_the_last_bit(machine: Machine) -> None:
    held = filled(machine.data)
    (raw,) = [r for r in exported(machine, "--index", "raw") if r["type"] == "node"]
    assert np.array_equal(np.frombuffer(base64.b64decode(raw["vector"]), "<f4"), held["vector"])
    assert raw["raw"]


def test_edges_that_ended_are_there_with_both_ends_and_clocks(machine: Machine) -> None:
    held = filled(machine.data)
    edges = [r for r in exported(machine, "--index", "default") if r["type"] == "edge"]
    (ended,) = [edge for edge in edges if edge["rel"] == "mentions"]
    assert ended["deleted_at"] > ended["created_at"]
    assert ended["src"] == {"id": "owner", "scope": {"user": "alice", "agent": "", "project": ""}}
    (replaced,) = [edge for edge in edges if edge["rel"] == "supersedes"]
    assert (replaced["src"]["id"], replaced["dst"]["id"], replaced["deleted_at"]) == (held["head"], "owner", None)


def test_a_file_is_there_whole_or_not_at_all(machine: Machine, tmp_path: Path) -> None:
    filled(machine.data)
    target = tmp_path / "all.jsonl"
    target.write_text("what was there before")
    machine.run("export", str(target), "--index", "nowhere", code=1)
    assert target.read_text() == "what was there before"
    machine.run("export", str(target))
    assert json.loads(target.read_text().splitlines()[-1])["type"] == "end"
    assert sorted(path.name for path in tmp_path.iterdir() if "jsonl" in path.name) == ["all.jsonl"]
    error = machine.json("export", str(tmp_path / "nowhere" / "all.jsonl"), code=2)["error"]
    assert "cannot be written" in error["message"]


def test_the_daemon_exports_what_the_directory_does(machine: Machine) -> None:
    filled(machine.data)
    alone = exported(machine)
    with machine.server("serve", "--port", "0"):
        assert exported(machine)[1:] == alone[1:]
