"""Telling listeners of writes in the order of the log, although the writers' threads come back in any order."""

import threading
from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from msgspec import Struct

from kektor.engine.records import Actor, Receipt, Scope

__all__ = ["Notices", "Written"]


class Written(Struct, frozen=True):
    """One durable write. `of_one_scope` says that all it concerns is of `scope`."""

    lsn: int
    operation: str
    index: str
    scope: Scope
    of_one_scope: bool
    actor: Actor
    receipt: Receipt


class Notices:
    """`begin` every write under the commit lock, `end` it once; whoever listens must be quick."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: set[int] = set()
        self._ready: list[tuple[int, int, Written]] = []
        self._listeners: tuple[Callable[[Written], None], ...] = ()

    def subscribe(self, listener: Callable[[Written], None]) -> Callable[[], None]:
        """Be told of every write from now on; returns how to stop."""
        with self._lock:
            self._listeners = (*self._listeners, listener)

        def stop() -> None:
            with self._lock:
                self._listeners = tuple(each for each in self._listeners if each is not listener)

        return stop

    def begin(self, lsn: int) -> None:
        with self._lock:
            self._under_way.add(lsn)

    def end(self, lsn: int, written: Sequence[Written]) -> None:
        """It is durable, with all that it wrote, or nothing: it failed. What waited for it alone is told now."""
        with self._lock:
            self._under_way.discard(lsn)
            for place, each in enumerate(written):
                heappush(self._ready, (lsn, place, each))
            first = min(self._under_way, default=None)
            while self._ready and (first is None or self._ready[0][0] < first):
                told = heappop(self._ready)[2]
                for listener in self._listeners:
                    listener(told)
