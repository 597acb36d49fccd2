"""Live events: what was written, told to whoever listens, within what each may see.

An event says which ids changed and how, never what they say. Its id is the position in the log, so that a listener
that was cut off goes on where it was, as long as the server still has what came between; when it has not, it says so.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct

from kektor import clock, times
from kektor.engine.gateway import Gateway, Principal
from kektor.engine.notices import Written
from kektor.engine.view import ScopeRule
from kektor.errors import Unavailable

__all__ = ["EventHub"]

_KEPT: Final = 10_000
_WAITING: Final = 2 * _KEPT
"""Events that may wait for one listener; one that does not keep up is let go, and comes back with its last id."""

_BEAT: Final = 15.0


class Event(Struct, frozen=True):
    """As it goes out."""

    id: int
    at: str
    operation: str
    outcome: str
    index: str
    ids: list[str]
    scope: dict[str, str]
    actor: dict[str, str]


class _Kept(Struct, frozen=True):
    lsn: int
    written: Written
    text: bytes


class EventHub:
    """The events of one database; `listen` on the event loop, writers tell from their threads."""

    def __init__(self, gateway: Gateway, *, most: int, beat: float = _BEAT) -> None:
        self._lock = threading.Lock()
        self._kept: deque[_Kept] = deque(maxlen=_KEPT)
        self._since = gateway.last_lsn
        """Up to here nothing is kept."""
        self._most = most
        self._beat = beat
        self._listeners: set[_Listener] = set()
        """Changed on the loop's thread alone."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = False
        self._unsubscribe = gateway.subscribe(self._tell)

    @property
    def listening(self) -> int:
        return len(self._listeners)

    def stop(self) -> None:
        """End every stream; on the loop's thread, when the server is about to end."""
        self._stopped = True
        for listener in self._listeners:
            listener.wake()

    def close(self) -> None:
        self._unsubscribe()

    def listen(
        self,
        principal: Principal,
        indexes: frozenset[str] | None,
        after: int | None,
        *,
        welcome: Callable[[], bool] = lambda: True,
    ) -> AsyncIterator[bytes]:
        """Server-sent events until the listener goes, the server ends, or too many wait to be read.

        `welcome` is asked before anything is handed out: a token may be revoked or expire while its stream is open.
        Raises Unavailable at once when as many as may listen do so already.
        """
        if len(self._listeners) >= self._most:
            raise Unavailable(f"{self._most} callers listen already, as many as this server takes")
        return self._stream(_Listener(principal, indexes), after, welcome)

    async def _stream(
        self, listener: "_Listener", after: int | None, welcome: Callable[[], bool]
    ) -> AsyncIterator[bytes]:
        self._loop = asyncio.get_running_loop()
        with self._lock:
            self._listeners.add(listener)
            earlier = [] if after is None else [kept for kept in self._kept if kept.lsn > after]
            missed = after is not None and after < self._since
        try:
            yield b"retry: 1000\n\n"
            if missed:
                yield b'event: gap\ndata: {"message": "events were missed: read again what matters"}\n\n'
            listener.put(earlier)
            while not (self._stopped or listener.overrun):
                if not welcome():
                    return
                parts = listener.take()
                if parts:
                    yield b"".join(parts)
                elif not await listener.wait(self._beat):
                    yield b": beat\n\n"
        finally:
            self._listeners.discard(listener)

    def _tell(self, written: Written) -> None:
        """On a writer's thread, in the order of the log."""
        kept = _Kept(written.lsn, written, _encoded(written))
        with self._lock:
            if len(self._kept) == _KEPT:
                self._since = self._kept[0].lsn
            self._kept.append(kept)
            heard = bool(self._listeners)
        if heard and self._loop is not None:
            self._loop.call_soon_threadsafe(self._hand_out, kept)

    def _hand_out(self, kept: _Kept) -> None:
        for listener in self._listeners:
            listener.put([kept])


class _Listener:
    def __init__(self, principal: Principal, indexes: frozenset[str] | None) -> None:
        self._principal = principal
        self._indexes = indexes
        self._waiting: deque[bytes] = deque()
        self._last = 0
        self._something = asyncio.Event()
        self.overrun = False

    def put(self, events: Iterable[_Kept]) -> None:
        for kept in events:
            if kept.lsn <= self._last or not self._may_see(kept.written):
                continue
            self._last = kept.lsn
            self._waiting.append(kept.text)
        if len(self._waiting) > _WAITING:
            self.overrun = True
        self._something.set()

    def take(self) -> list[bytes]:
        taken = list(self._waiting)
        self._waiting.clear()
        self._something.clear()
        return taken

    def wake(self) -> None:
        self._something.set()

    async def wait(self, seconds: float) -> bool:
        """Whether there is something, before the time is over."""
        try:
            async with asyncio.timeout(seconds):
                await self._something.wait()
        except TimeoutError:
            return False
        return True

    def _may_see(self, written: Written) -> bool:
        """Whoever reaches the whole index hears of all of it; others of what is of a scope that they see."""
        if self._indexes is not None and written.index not in self._indexes:
            return False
        grants = self._principal.grants_for(written.index)
        if ScopeRule() in grants:
            return True
        return written.of_one_scope and any(grant.admits(written.scope) for grant in grants)


def _encoded(written: Written) -> bytes:
    receipt = written.receipt
    ids = [*(receipt.ids or ())] if receipt.id is None else [receipt.id, *(receipt.ids or ())]
    event = Event(
        id=written.lsn,
        at=times.format(clock.now()),
        operation=written.operation,
        outcome=receipt.outcome,
        index=written.index,
        ids=ids,
        scope={name: value for name, value in _members(written.scope) if value},
        actor={"kind": written.actor.kind.value, "channel": written.actor.channel},
    )
    return b"id: %d\nevent: write\ndata: %s\n\n" % (written.lsn, msgspec.json.encode(event))


def _members(scope: Any) -> Iterable[tuple[str, str]]:
    return ((name, getattr(scope, name)) for name in ("user", "agent", "project"))
