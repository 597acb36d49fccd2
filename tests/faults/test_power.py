"""durable: a power cut between any two calls to the disk, unsynced writes lost, torn or reordered, loses nothing."""

import os
import random
import shutil
import time
from pathlib import Path

import pytest

from kektor.engine.local import LocalEngine
from kektor.errors import KektorError
from tests.support.failing_disk import Call, build, run_with
from tests.support.noted_writer import open_small
from tests.support.power_cuts import Note, read_notes, what_is_left

SECONDS = float(os.environ.get("KEKTOR_FAULT_SECONDS", "15"))


@pytest.mark.faults
@pytest.mark.timeout(120 + 10 * SECONDS)
def test_durable_power_cut(tmp_path: Path) -> None:
    """Every acknowledged write is there, no transaction by half, nothing that was erased comes back."""
    root, notes_file = tmp_path / "data", tmp_path / "notes"
    run_with(build(tmp_path), "tests.support.noted_writer", str(root), str(notes_file), timeout=100)
    notes = read_notes(notes_file)
    assert sum(note.call is Call.SYNC for note in notes) > 50
    pick = random.Random(os.environ.get("KEKTOR_FAULT_SEED", "power"))
    whole = tmp_path / "whole"
    what_is_left(notes, root, whole, random.Random(0))
    _check(whole, notes)
    cuts, ends = 0, time.monotonic() + SECONDS
    while time.monotonic() < ends:
        # Half of them shortly behind a sync or a change of names, where order matters most.
        at = pick.randrange(len(notes))
        if pick.random() < 0.5:
            marks = [n for n, note in enumerate(notes) if note.call in (Call.SYNC, Call.RENAME, Call.REMOVE, Call.MARK)]
            at = pick.choice(marks) + pick.randint(0, 2)
        left = tmp_path / "left"
        shutil.rmtree(left, ignore_errors=True)
        what_is_left(notes[:at], root, left, pick)
        try:
            _check(left, notes[:at])
        except BaseException:
            print(f"cut {cuts} behind call {at} of {len(notes)}: {notes[max(0, at - 3) : at]}"[:2000])
            raise
        cuts += 1
    assert cuts >= 3
    _is_caught_without_syncs([note for note in notes if note.call is not Call.SYNC], root, tmp_path, pick)
    print(f"{cuts} power cuts in {len(notes)} calls, 0 acknowledged writes lost")


def _is_caught_without_syncs(notes: list[Note], root: Path, folder: Path, pick: random.Random) -> None:
    """The control: of a writer that never syncs, cuts do lose what it acknowledged."""
    for number in range(40):
        what_is_left(notes, root, folder / f"unsynced-{number}", pick)
        try:
            _check(folder / f"unsynced-{number}", notes)
        except (AssertionError, KektorError):
            return
    pytest.fail("losing whatever was not synced is never noticed")


def _check(folder: Path, notes: list[Note]) -> None:
    begun = [note.path.removeprefix("begin\t") for note in notes if note.path.startswith("begin\t")]
    done = [note.path.removeprefix("done\t") for note in notes if note.path.startswith("done\t")]
    kept = {text for text in done if text.startswith("Fact")} - {text[1:] for text in begun if text.startswith("-")}
    gone = {text[1:] for text in done if text.startswith("-")}
    with open_small(folder) as db:
        assert isinstance(db.engine, LocalEngine)
        assert [finding for finding in db.engine.findings() if finding.severity == "error"] == []
        assert db.engine.validate() == []
        found = {memory.text for memory in db.memory().list(kinds=["memory"], limit=1000).items}
        report = db.verify_audit()
    assert report.ok, report.findings
    assert kept <= found
    assert not gone & found
    assert {text for text in found if text.startswith("Fact")} <= set(begun)
    halves = sorted(text.rpartition(" ")[0] for text in found if text.startswith("Half"))
    assert all(halves.count(half) == 2 for half in halves)
    assert len(halves) >= 2 * done.count("transaction")
