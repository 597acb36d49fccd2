"""Rounds on a disk that fails: run by `tests/faults/test_disk.py` in a process of its own."""

import errno
import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import kektor
from kektor.engine import local
from kektor.engine.local import LocalEngine
from tests.support.embedders import HashingEmbedder
from tests.support.failing_disk import Call, Disk

ERRORS = (errno.ENOSPC, errno.EIO)


def main(folder: Path, seconds: float) -> None:
    """Every n-th call of every kind fails, until the time is over; prints how many rounds and faults there were."""
    local.RETRY_AFTER = 0.0
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    disk = Disk(folder)
    before = folder / "before"
    with _open(before) as db:
        db.memory().remember("Said before", id="before")
        db.create_index("raw", dim=2)
        db.checkpoint()
        db.index("raw").upsert(["a", "b"], vectors=[[1, 2], [3, 4]])
    counts = {"rounds": 0, "met": 0, "acknowledged": 0}
    ends = time.monotonic() + seconds
    open_kinds = {(call, error) for call in Call if call is not Call.MARK for error in ERRORS}
    after, step = 0, 1
    while open_kinds and time.monotonic() < ends:
        for call, error in sorted(open_kinds):
            if time.monotonic() >= ends:
                break
            work = folder / "work"
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(before, work)
            try:
                met, acknowledged = _round(disk, work, call, error, after)
            except BaseException:
                print(f"at call {after} of {call.name}, error {errno.errorcode[error]}", file=sys.stderr)
                raise
            counts["rounds"] += 1
            counts["met"] += met
            counts["acknowledged"] += acknowledged
            if not met:
                open_kinds.discard((call, error))
        after += step
    print(json.dumps({**counts, "complete": not open_kinds}))


def _round(disk: Disk, folder: Path, call: Call, error: int, after: int) -> tuple[bool, int]:
    said: dict[str, bool] = {"Said before": True}
    db = _open(folder)
    disk.fail(call, after=after, error=error)
    calls = disk.calls(call)
    steps: list[Callable[[], object]] = [
        *(_saying(db, said, f"Said while it fails, {n}") for n in range(3)),
        db.checkpoint,
        _saying(db, said, "Said after a checkpoint"),
        lambda: db.index("raw").delete(["a"], missing_ok=True),
        db.compact,
        _saying(db, said, "Said after a compaction"),
    ]
    for do in steps:
        _tolerant(do)
        if call is Call.OPEN:
            # What cannot be opened cannot be read again, either.
            _tolerant(lambda: _check(db, said))
        else:
            _check(db, said)
    met = disk.calls(call) - calls > after
    disk.heal()
    db.memory().remember("Said when it works again")
    said["Said when it works again"] = True
    _check(db, said)
    report = db.verify_audit()
    assert report.ok, report.findings
    db.close()
    with _open(folder) as again:
        assert isinstance(again.engine, LocalEngine)
        _check(again, said)
        assert again.engine.findings() == [], again.engine.findings()
        assert again.engine.validate() == []
        assert again.verify_audit().ok
    return met, sum(said.values())


def _saying(db: kektor.Database, said: dict[str, bool], text: str) -> Callable[[], object]:
    def do() -> None:
        said[text] = False
        db.memory().remember(text)
        said[text] = True

    return do


def _tolerant(do: Callable[[], object]) -> None:
    """A failing disk may refuse a step, with an error of ours that names the cause."""
    try:
        do()
    except kektor.Unavailable as error:
        assert "cannot be" in error.message, error.message
        assert error.details["errno"] in ERRORS, error.details


def _check(db: kektor.Database, said: dict[str, bool]) -> None:
    """Everything acknowledged is read, and nothing that nobody said."""
    found = {memory.text for memory in db.memory().list(kinds=["memory"]).items}
    assert {text for text, acknowledged in said.items() if acknowledged} <= found <= said.keys(), (found, said)


def _open(folder: Path) -> kektor.Database:
    return kektor.open(folder, embedder=HashingEmbedder())


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
