"""Resources that a client wants to hear of: one open request to the daemon, for all of them.

Standard library only, and nothing is begun before the first subscription.
"""

import contextlib
import json
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kektor_server.daemon.client import UnixConnection
    from kektor_server.mcp.calls import DaemonCalls, RequestId

__all__ = ["HANDSHAKE", "Watching"]

HANDSHAKE = None
"""Who holds the subscriptions of the handshake era, which have no request that stays open."""

_PAUSE = 0.5
"""Seconds before a daemon that has gone is looked for again."""

Changed = Callable[["RequestId | None", str], None]


class Watching:
    """Who wants to hear of which resource, and what was last seen of each."""

    def __init__(self, calls: "DaemonCalls", changed: Changed) -> None:
        self._calls = calls
        self._changed = changed
        self._lock = threading.Condition()
        self._holders: dict[str, list[RequestId | None]] = {}
        self._stamps: dict[str, str | None] = {}
        self._open: UnixConnection | None = None
        self._begun = False

    def add(self, holder: "RequestId | None", uri: str, stamp: str | None = None) -> None:
        """Tell a holder of changes of a resource from what it has seen of it on, or else from the next look on."""
        with self._lock:
            holders = self._holders.setdefault(uri, [])
            if holder not in holders:
                holders.append(holder)
            if self._stamps.get(uri) is None:
                self._stamps[uri] = stamp
            if not self._begun:
                self._begun = True
                threading.Thread(target=self._watch, name="watch", daemon=True).start()
        self._again()

    def remove(self, holder: "RequestId | None", uri: str) -> None:
        """Tell it no more."""
        with self._lock:
            holders = self._holders.get(uri, [])
            if holder in holders:
                holders.remove(holder)
            if not holders:
                self._holders.pop(uri, None)
                self._stamps.pop(uri, None)
        self._again()

    def drop(self, holder: object) -> None:
        """Tell a holder of nothing any more."""
        if not isinstance(holder, str | int):
            return
        with self._lock:
            held = [uri for uri, holders in self._holders.items() if holder in holders]
        for uri in held:
            self.remove(holder, uri)

    def wait(self, uris: "list[str]", timeout: float) -> None:
        """Return when all of some resources have been looked at, or after a time."""
        with self._lock:
            self._lock.wait_for(lambda: all(self._stamps.get(uri, "") is not None for uri in uris), timeout)

    def _again(self) -> None:
        """Have the request made anew, for what is wanted now."""
        with self._lock:
            self._lock.notify_all()
            if self._open is not None and self._open.sock is not None:
                with contextlib.suppress(OSError):
                    self._open.sock.shutdown(2)

    def _watch(self) -> None:
        from http.client import HTTPException

        from kektor_server.daemon.launch import StartFailed

        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._holders)
                wanted = dict(self._stamps)
            with contextlib.suppress(OSError, HTTPException, StartFailed, ValueError):
                self._listen(wanted)
            with self._lock:
                self._open = None
                same = wanted.keys() == self._stamps.keys()
            if same:  # the daemon has gone, and not the wish changed
                time.sleep(_PAUSE)

    def _listen(self, wanted: dict[str, str | None]) -> None:
        connection = self._calls.connect()
        with self._lock:
            self._open = connection
            if wanted.keys() != self._stamps.keys():
                return
        try:
            connection.request("POST", "/internal/watch", self._calls.watch_body(wanted))
            response = connection.getresponse()
            while response.status == 200 and (line := response.readline()):
                told = json.loads(line)
                self._seen(told["uri"], told["stamp"])
        finally:
            connection.close()

    def _seen(self, uri: str, stamp: str) -> None:
        with self._lock:
            before = self._stamps.get(uri)
            if uri not in self._stamps:
                return
            self._stamps[uri] = stamp
            self._lock.notify_all()
            holders = list(self._holders.get(uri, ()))
        if before is not None and before != stamp:
            for holder in holders:
                self._changed(holder, uri)
