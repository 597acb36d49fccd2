"""Putting denied calls down in the audit, without letting whoever is denied fill the disk."""

import logging
import threading
from collections import Counter
from typing import Final, NamedTuple

from kektor.engine.gateway import Gateway, Principal
from kektor.errors import KektorError

__all__ = ["Denials", "Denied"]

_LOG = logging.getLogger("kektor.auth")
_REST: Final = 1.0
"""Seconds after which equal denials are put down again, as one event with their number."""
_MOST_KINDS: Final = 200


class Denied(NamedTuple):
    """A kind of denial: by whom, what was asked (a route, never what was sent), and why not."""

    caller: Principal
    asked: str
    why: str


class Denials:
    """The first of a kind is put down at once; more of it within a second become one event."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._waiting: Counter[Denied] = Counter()
        self._changed = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None
        self._resting = threading.Event()

    def add(self, denied: Denied) -> None:
        """Returns at once."""
        with self._changed:
            if self._closing:
                return
            if denied not in self._waiting and len(self._waiting) >= _MOST_KINDS:
                denied = denied._replace(asked="other", why="many")
            self._waiting[denied] += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="denials", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """Return when all that was added is put down."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._resting.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                taken, self._waiting = self._waiting, Counter()
                closing = self._closing
            for denied, times in taken.items():
                self._put_down(denied, times)
            if closing and not self._waiting:
                return
            self._resting.wait(_REST)

    def _put_down(self, denied: Denied, times: int) -> None:
        reason = denied.why if times == 1 else f"{denied.why} ({times} times)"
        try:
            self._gateway.note(f"denied:{denied.asked}", denied.caller, reason=reason)
        except KektorError as error:
            _LOG.error("a denied call could not be put down in the audit: %s", error)
