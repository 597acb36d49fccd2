"""forget.thirteen_steps, its storage part: after a compaction no file holds a byte of what was erased."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest

import kektor
from kektor.engine.local import LocalEngine
from kektor.memory.compaction import Compaction, Compactor
from tests.support.embedders import HashingEmbedder

ERASED, TWIN = "zephyrquartz", "marblefinch"
VECTOR = [0.12345678, 0.87654321, 0.5555555, 0.7777777]


def _holding(folder: Path, what: bytes) -> list[str]:
    """Every file that has these bytes, wherever it lies."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(str(path.relative_to(folder)) for path in files if what in path.read_bytes())


def _bits(vector: list[float]) -> bytes:
    return np.array(vector, np.float32).tobytes()


def _open(folder: Path) -> kektor.Database:
    return kektor.open(folder, embedder=HashingEmbedder())


def _filled(folder: Path) -> kektor.Database:
    """What is to go and what stays, in the log, in two checkpoints and in the audit, mapped after an opening."""
    with _open(folder) as db:
        memory = db.memory(user="ann")
        for word in (ERASED, TWIN):
            memory.remember(
                f"The {word} is under the stairs", id=f"id-{word[:2]}", tags=[word], metadata={"where": word}
            )
        memory.update("id-ze", tags=["x", ERASED], reason=f"about {ERASED}")
        memory.link("id-ze", "near", "id-ma", props={"of": ERASED})
        raw = db.create_index("raw", dim=4)
        raw.upsert(["id-ze", "twin"], vectors=[VECTOR, VECTOR[::-1]], texts=[ERASED, TWIN])
        db.checkpoint()
        memory.remember(f"Another {TWIN}")
        db.checkpoint()
        db.audit()
    return _open(folder)


@pytest.mark.parametrize("again", [False, True], ids=["at once", "after another opening"])
def test_after_compaction_no_file_holds_what_was_erased(tmp_path: Path, again: bool) -> None:
    folder = tmp_path / "data"
    db = _filled(folder)
    for what in (ERASED.encode(), TWIN.encode(), _bits(VECTOR), _bits(VECTOR[::-1])):
        assert _holding(folder, what), "the control: all of it is there"
    (folder / "quarantine").mkdir(exist_ok=True)
    (folder / "quarantine" / "bytes").write_bytes(ERASED.encode())
    (folder / "CURRENT.new").write_bytes(ERASED.encode())
    db.memory(user="ann").forget(ids=["id-ze"], mode="erase")
    db.index("raw").delete(["id-ze"])
    assert _holding(folder, ERASED.encode()), "erasing alone leaves bytes in files"
    if again:
        db.close()
        db = _open(folder)
    (receipt,) = db.engine.erasures()
    assert receipt.bytes_gone_at is None, "erasing alone is not enough"
    db.compact()
    assert _holding(folder, ERASED.encode()) == []
    assert _holding(folder, _bits(VECTOR)) == []
    in_audit = _holding(folder / "audit", b"id-ze")
    assert in_audit == [], "its id is gone from the audit, too"
    assert any(name.startswith("checkpoints/") for name in _holding(folder, TWIN.encode()))
    assert _holding(folder / "audit", b"id-ma")
    assert _holding(folder, _bits(VECTOR[::-1]))
    report = db.verify_audit()
    assert report.ok, report.findings
    (receipt,) = db.engine.erasures()
    assert receipt.bytes_gone_at is not None
    assert receipt.bytes_gone_at > receipt.requested_at
    told = db.audit()
    assert any(event.erased for event in told)
    assert ERASED not in str(told)
    assert "erase" in [event.operation for event in told], "that it happened is told"
    assert [m.text for m in db.memory(user="ann").list(kinds=["memory"]).items] == [
        f"The {TWIN} is under the stairs",
        f"Another {TWIN}",
    ]
    assert [hit.memory.id for hit in db.index("raw").search(vector=VECTOR[::-1], k=5)] == ["twin"]
    db.close()
    assert _holding(folder, ERASED.encode()) == []
    with _open(folder) as reopened:
        assert isinstance(reopened.engine, LocalEngine)
        assert reopened.engine.findings() == []
        assert reopened.engine.validate() == []
        assert reopened.memory(user="ann").count() == 2
        assert reopened.verify_audit().ok


def test_the_two_checkpoints_after_a_compaction_share_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with _filled(folder) as db:
        db.compact()
        inodes = [
            {path.stat().st_ino for path in checkpoint.rglob("*") if path.is_file()}
            for checkpoint in (folder / "checkpoints").iterdir()
        ]
        assert len(inodes) == 2
        assert not inodes[0] & inodes[1]
        for path in max((folder / "checkpoints").iterdir()).rglob("*.heap"):
            path.write_bytes(b"")
    with _open(folder) as db:
        assert len(db.memory(user="ann").list(kinds=["memory"]).items) == 3, "each of them is enough"


def test_writers_and_readers_go_on_during_a_compaction(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with _filled(folder) as db:
        stop = threading.Event()
        written: list[str] = []

        def write() -> None:
            while not stop.is_set():
                written.append(db.memory(user="bob").remember(f"Said while compacting: {len(written)}").id or "")
                assert db.memory(user="ann").get("id-ma").version == 1

        writer = threading.Thread(target=write)
        writer.start()
        db.memory(user="ann").forget(ids=["id-ze"], mode="erase")
        db.compact()
        stop.set()
        writer.join()
        assert _holding(folder, f"The {ERASED} is under".encode()) == []
    with _open(folder) as db:
        assert db.memory(user="bob").count() == len(written) > 0
        assert db.verify_audit().ok


def test_erasing_has_a_compaction_made_and_runs_are_shared(tmp_path: Path) -> None:
    """By itself after the delay, once for all that was erased meanwhile; waiting takes part in one not yet begun."""
    with _filled(tmp_path / "data") as db:
        runs: list[int] = []
        compactor = Compactor(db.engine, delay=0.3)
        compactor.when_gone.append(lambda done, at: runs.append(done.lsn))
        db.gateway.subscribe(compactor.noticed)
        db.index("raw").delete(["id-ze"])
        for node_id in ("id-ze", "id-ma"):
            db.memory(user="ann").forget(ids=[node_id], mode="erase")
        for _ in range(200):
            if runs:
                break
            time.sleep(0.05)
        compactor.close()
        assert len(runs) == 1
        assert _holding(tmp_path / "data", ERASED.encode()) == []
        done: list[Compaction] = []
        threads = [threading.Thread(target=lambda: done.append(compactor.run())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(done) == 4
        assert len(runs) <= 3, "the first, and one for those who came while it ran"
