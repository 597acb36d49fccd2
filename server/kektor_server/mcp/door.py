"""The daemon's side of the relays: calls with their progress, and changes of resources, over the Unix socket."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
from msgspec import Struct
from starlette.types import Receive, Send

from kektor.api import Database
from kektor.contract import decode_json
from kektor.engine.notices import Written
from kektor.errors import Conflict
from kektor_server.mcp.answer import CallIn, ClientIn, GrantIn, Stopped, answer_call, principal_of, read_call
from kektor_server.mcp.calls import PROTOCOL
from kektor_server.mcp.resources import stamp

__all__ = ["Changes", "McpDoor"]

_SETTLE = 0.1
"""Seconds after a write in which further ones are told together with it."""

_LOOK = 0.25
"""Seconds between two looks whether the daemon is about to end."""


class WatchIn(Struct, forbid_unknown_fields=True):
    """What a relay wants to hear of: resources, and what it has last seen of each."""

    protocol: int
    grant: GrantIn
    stamps: dict[str, str | None]
    profile: str = "core"


_watch_decoder = msgspec.json.Decoder(WatchIn)
_encode = msgspec.json.Encoder().encode


class Changes:
    """Wakes whoever waits for writes. Writers are on threads, who waits is on the loop."""

    def __init__(self, database: Database) -> None:
        self._waiting: set[Callable[[], None]] = set()
        self._lock = threading.Lock()
        database.gateway.subscribe(self._written)

    @contextmanager
    def heard(self) -> Iterator[asyncio.Event]:
        """An event that is set after every write."""
        event, loop = asyncio.Event(), asyncio.get_running_loop()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(event.set)

        with self._lock:
            self._waiting.add(wake)
        try:
            yield event
        finally:
            with self._lock:
                self._waiting.discard(wake)

    def _written(self, _: Written) -> None:
        with self._lock:
            waiting = list(self._waiting)
        for wake in waiting:
            wake()


class McpDoor:
    """What a relay may ask."""

    def __init__(self, database: Database, threads: Executor, stopping: Callable[[], bool]) -> None:
        self._operations = database.operations
        self._threads = threads
        self._stopping = stopping
        self.changes = Changes(database)

    async def call(self, body: bytes, receive: Receive, send: Send) -> None:
        """Answer a call in one line; when the relay wants to hear of progress, in lines of that before it."""
        call = read_call(body)
        cancelled = threading.Event()
        gone = asyncio.ensure_future(_disconnected(receive, cancelled))
        try:
            if call.progress:
                await self._with_progress(call, cancelled, send)
                return
            with suppress(Stopped):
                answer = await self._in_thread(lambda: answer_call(self._operations, call, cancelled=cancelled.is_set))
                await _whole(send, _encode(answer))
        finally:
            gone.cancel()

    async def watch(self, body: bytes, receive: Receive, send: Send) -> None:
        """A line for every resource that differs from what the relay has seen, now and after every write."""
        asked = decode_json(_watch_decoder, body)
        if asked.protocol != PROTOCOL:
            raise Conflict(f"this daemon speaks protocol {PROTOCOL} and the relay {asked.protocol}")
        gone = asyncio.ensure_future(_disconnected(receive, threading.Event()))
        await _begin(send)
        try:
            async for line in self._differing(asked, gone):
                await send({"type": "http.response.body", "body": line, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()

    async def _differing(self, asked: WatchIn, gone: "asyncio.Future[None]") -> AsyncIterator[bytes]:
        principal = principal_of(asked.grant, ClientIn(), asked.profile)
        seen = dict(asked.stamps)
        with self.changes.heard() as written:
            while not gone.done() and not self._stopping():
                written.clear()
                for uri, before in seen.items():
                    now = await self._in_thread(lambda uri=uri: stamp(self._operations, principal, uri))  # type: ignore[misc]
                    if now != before:
                        seen[uri] = now
                        yield _encode({"uri": uri, "stamp": now}) + b"\n"
                while not (written.is_set() or gone.done() or self._stopping()):
                    with suppress(TimeoutError):
                        await asyncio.wait_for(written.wait(), _LOOK)
                await asyncio.sleep(_SETTLE)

    async def _with_progress(self, call: CallIn, cancelled: threading.Event, send: Send) -> None:
        loop = asyncio.get_running_loop()
        steps: asyncio.Queue[bytes | None] = asyncio.Queue()

        def tell(done: int, total: int, what: str) -> None:
            line = _encode({"progress": done, "total": total, "message": what}) + b"\n"
            loop.call_soon_threadsafe(steps.put_nowait, line)

        def run() -> dict[str, Any]:
            try:
                return answer_call(self._operations, call, progress=tell, cancelled=cancelled.is_set)
            finally:
                loop.call_soon_threadsafe(steps.put_nowait, None)

        answer = loop.run_in_executor(self._threads, run)
        await _begin(send)
        while (line := await steps.get()) is not None:
            await send({"type": "http.response.body", "body": line, "more_body": True})
        with suppress(Stopped):
            await send({"type": "http.response.body", "body": _encode(await answer) + b"\n"})

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


async def _disconnected(receive: Receive, then: threading.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    then.set()


async def _begin(send: Send) -> None:
    headers = [(b"content-type", b"application/x-ndjson")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})


async def _whole(send: Send, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
