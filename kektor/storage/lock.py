"""One owner per data directory."""

import contextlib
import fcntl
import json
import os
import socket
from pathlib import Path

from kektor import clock, times
from kektor.errors import Locked

__all__ = ["DirectoryLock"]


class DirectoryLock:
    """An flock on `LOCK`: the kernel drops it when the holder dies, so there is no stale lock to clear.

    The file's text only names the holder for the message; it decides nothing.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "LOCK"
        # close-on-exec (Python's default) so that a child process never keeps a dead owner's lock.
        self._descriptor: int | None = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _read_holder(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None
            raise _locked(folder, holder) from None
        note = {"pid": os.getpid(), "host": socket.gethostname(), "since": times.format(clock.now())}
        # The note is a courtesy: a full disk must not keep anybody from what the directory holds.
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, json.dumps(note).encode() + b"\n", 0)

    def release(self) -> None:
        """Give the directory up; safe to call twice."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None


def _read_holder(descriptor: int) -> dict[str, object]:
    with contextlib.suppress(ValueError):
        note = json.loads(os.pread(descriptor, 4096, 0))
        if isinstance(note, dict):
            return note
    return {}


def _locked(folder: Path, holder: dict[str, object]) -> Locked:
    who = (
        f"process {holder['pid']} on {holder['host']} since {holder['since']}"
        if {"pid", "host", "since"} <= holder.keys()
        else "another process"
    )
    return Locked(
        f"{folder} is in use by {who}. Close it there, or share it with kektor.connect({str(folder)!r}).",
        details={"path": str(folder), **holder},
    )
