"""Start the daemon of a data directory when nobody answers, exactly once however many ask. Standard library only."""

import contextlib
import fcntl
import json
import os
import select
import sys
import time
from typing import Any

from kektor_server.daemon.client import answers
from kektor_server.daemon.places import Places

__all__ = ["StartFailed", "ensure_running", "take_lock"]

START_TIMEOUT = 120.0
"""Seconds: opening a large directory replays its log first."""

_LOG_BYTES = 1 << 20
_POLL = 0.02


class StartFailed(Exception):
    """The daemon did not come up; carries the error object it ended with."""

    def __init__(self, message: str, code: str = "unavailable", details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.details = details or {}


def ensure_running(places: Places, *, timeout: float = START_TIMEOUT) -> None:
    """Return when somebody listens on the socket, having started a daemon if need be.

    The lock passes from whoever starts the daemon to the daemon itself, which keeps it until it ends: who does not get
    it has nothing to start and waits for the winner's socket.
    """
    deadline = time.monotonic() + timeout
    while not answers(places.socket):
        lock = take_lock(places.lock)
        if lock is not None:
            try:
                if not answers(places.socket):
                    _start(places, lock, deadline)
            finally:
                os.close(lock)
        elif time.monotonic() > deadline:
            raise StartFailed(f"the daemon of {places.data} holds its lock and does not answer; its log: {places.log}")
        else:
            time.sleep(_POLL)


def take_lock(path: str) -> int | None:
    """The descriptor of a lock file that is now ours, or None when it is somebody's."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _start(places: Places, lock: int, deadline: float) -> None:
    heard, told = os.pipe()
    try:
        try:
            child = _spawn(places, lock, told)
        finally:
            os.close(told)
        os.waitpid(child, 0)  # it forks at once, so that the daemon is nobody's child
        report = _read_all(heard, deadline)
    finally:
        os.close(heard)
    if report == b"ok":
        return
    with contextlib.suppress(ValueError, KeyError, TypeError):
        error = json.loads(report)["error"]
        raise StartFailed(error["message"], error["code"], error["details"])
    raise StartFailed(f"the daemon of {places.data} ended while it started; its log: {places.log}")


def _spawn(places: Places, lock: int, told: int) -> int:
    # -P: the folder this runs in is some project's, and a numpy.py in it must not be ours.
    argv = [sys.executable, "-P", "-m", "kektor_server.daemon", places.data, str(lock), str(told)]
    log = os.open(places.log, _log_flags(places.log), 0o600)
    try:
        for descriptor in (lock, told):
            os.set_inheritable(descriptor, True)
        return os.posix_spawn(
            sys.executable,
            argv,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, log, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
            ],
        )
    finally:
        os.close(log)


def _log_flags(path: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return flags | os.O_TRUNC if os.stat(path).st_size > _LOG_BYTES else flags
    except FileNotFoundError:
        return flags


def _read_all(descriptor: int, deadline: float) -> bytes:
    parts: list[bytes] = []
    while select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(descriptor, 65_536)
        if not part:
            return b"".join(parts)
        parts.append(part)
    raise StartFailed("the daemon is still opening its directory; ask again")
