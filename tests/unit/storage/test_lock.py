"""durable.one_owner, as far as one directory knows it."""

import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from kektor.errors import Locked
from kektor.storage.lock import DirectoryLock


def _hold(folder: str, ready: "multiprocessing.synchronize.Event") -> None:
    DirectoryLock(Path(folder))
    ready.set()
    signal.pause()


def test_a_second_opener_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    with pytest.raises(Locked, match=rf"process {os.getpid()} on .* since .*kektor\.connect"):
        DirectoryLock(tmp_path)
    lock.release()
    DirectoryLock(tmp_path).release()


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    holder = context.Process(target=_hold, args=(str(tmp_path), ready))
    holder.start()
    assert ready.wait(30)
    with pytest.raises(Locked, match=f"process {holder.pid}"):
        DirectoryLock(tmp_path)
    holder.kill()
    holder.join()
    DirectoryLock(tmp_path).release()


def test_text_in_the_lock_file_decides_nothing(tmp_path: Path) -> None:
    (tmp_path / "LOCK").write_text("\x00 not json")
    DirectoryLock(tmp_path).release()


def test_releasing_twice_is_harmless(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    lock.release()
    lock.release()
