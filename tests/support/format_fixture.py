"""Data of this format version, small and whole: what every later version must open.

`python -m tests.support.format_fixture OUT.tar.gz` makes one; it is committed once for each format version, and never
made anew.
"""

import io
import json
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import kektor
from tests.support.embedders import HashingEmbedder

__all__ = ["told_by", "unpack"]


_PARTS = ("id", "kind", "text", "tags", "metadata", "status", "trust", "version", "lineage", "recorded_at", "session",
          "superseded_by")  # fmt: skip


def make(target: Path) -> None:
    """Two checkpoints and a log behind them, left as a killed process leaves it, and what it must answer."""
    with tempfile.TemporaryDirectory() as work:
        live, data = Path(work) / "live", Path(work) / "data"
        with kektor.open(live, embedder=HashingEmbedder()) as db:
            memory = db.memory(user="ann")
            for text in ("The mill stands by the weir", "The weir is closed in winter", "Dana owns the mill"):
                memory.remember(text, id=text.split()[-1], tags=["place"], metadata={"length": len(text)})
            memory.link("weir", "near", "mill", props={"metres": 30}, valid_from="2020")
            memory.evolve("mill", "Eve owns the mill", valid_from="2025-03")
            memory.remember("The moon is made of cheese", id="cheese")
            memory.retract("cheese")
            memory.ingest_messages([{"role": "user", "content": "I sold it to Eve", "at": "2025-03-01"}], session="s")
            raw = db.create_index("raw", dim=3, metric="l2")
            raw.upsert(["a", "b"], vectors=[[1, 2, 3], [4, 5, 6.5]], metadata=[{"x": 1}, {"x": [1, "two"]}])
            db.checkpoint()
            memory.remember("The bridge is new", id="bridge")
            memory.forget(ids=["winter"], mode="erase")
            db.checkpoint()
            with db.transaction() as tx:
                tx.memory(user="ann").update("bridge", tags=["place", "new"])
                tx.index("raw").delete(["a"])
            expected = told_by(db)
            shutil.copytree(live, data)
        (data / "LOCK").unlink()
        with tarfile.open(target, "w:gz") as archive:
            archive.add(data, "data", filter=_small)
            content = json.dumps(expected, indent=1).encode()
            member = tarfile.TarInfo("expected.json")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def _small(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def unpack(archive: Path, into: Path) -> dict[str, Any]:
    """The data directory in `into / "data"`; returns what it must tell."""
    with tarfile.open(archive) as packed:
        packed.extractall(into, filter="data")
    expected: dict[str, Any] = json.loads((into / "expected.json").read_text())
    return expected


def told_by(db: kektor.Database) -> dict[str, Any]:
    """All that was stored, as plain values."""
    memory, raw = db.memory(user="ann"), db.index("raw")
    every = memory.list(include=["superseded", "rejected", "archived"], kinds=["memory", "source", "session"]).items
    return {
        "memories": [
            {
                **{name: getattr(m, name) for name in _PARTS},
                "validity": [m.validity.from_, m.validity.to],
                "actor": m.actor.kind,
            }
            for m in every
        ],
        "edges": [[e.src, e.rel, e.dst, e.weight, e.props, e.valid_from] for e in memory.edges("weir")],
        "vectors": [None if v is None else [float(x) for x in v] for v in raw.vectors(["a", "b"])],
        "found": [hit.memory.id for hit in memory.recall("Who owns the mill?").hits][:1],
        "tombstones": sorted([t.class_, t.created_at] for t in memory.tombstones()),
        "events": [[e.lsn, e.operation, e.ids, e.time] for e in db.audit()],
    }


if __name__ == "__main__":
    make(Path(sys.argv[1]))
