"""Owning a data directory: the lock in the runtime folder, the open database, the socket, and giving all three up."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import kektor
from kektor.errors import Locked
from kektor_server.daemon.client import UnixConnection, request
from kektor_server.daemon.launch import take_lock
from kektor_server.daemon.places import Places, find_places
from kektor_server.daemon.sockets import UnixListener
from kektor_server.settings import Settings

__all__ = ["Owned", "owned", "take_over"]

_PATIENCE = 60.0
_POLL = 0.05


class Owned(NamedTuple):
    """What a process that owns a data directory holds."""

    database: kektor.Database
    places: Places
    listener: UnixListener


@contextlib.contextmanager
def owned(settings: Settings) -> Iterator[Owned]:
    """Open the data directory of the settings and listen on its socket; at the end, checkpoint and let go.

    Raises Locked when a process that is no daemon owns it.
    """
    places = find_places(str(settings.data))
    database = kektor.open(Path(places.data), embedder=settings.embedder, sync=settings.sync)
    try:
        listener = UnixListener(places)
        try:
            yield Owned(database, places, listener)
        finally:
            listener.remove()
    finally:
        database.close()


@contextlib.contextmanager
def take_over(data: str) -> Iterator[None]:
    """Hold the daemon's lock of a data directory, asking a daemon that was started on demand to make room.

    Its relays find the new owner at their next call. Raises Locked when one that was started to stay has it.
    """
    places = find_places(data)
    deadline = time.monotonic() + _PATIENCE
    while (lock := take_lock(places.lock)) is None:
        _ask_to_leave(places)
        if time.monotonic() > deadline:
            raise Locked(f"the daemon of {places.data} does not make room; its log: {places.log}")
        time.sleep(_POLL)
    try:
        yield
    finally:
        os.close(lock)


def _ask_to_leave(places: Places) -> None:
    connection = UnixConnection(places.socket, timeout=5)
    try:
        answer = request(connection, "POST", "/internal/leave", b"{}")
    except OSError:
        return  # still starting, or gone already
    finally:
        connection.close()
    if answer.status == 409:
        raise Locked(f"{places.data} is served already: stop that server, or use it through {places.socket}")
