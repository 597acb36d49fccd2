"""The daemon's ASGI application: REST for everyone, and internal routes for whoever comes through the Unix socket."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import TypeVar
from urllib.parse import parse_qs

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from kektor.api import Database
from kektor.errors import Conflict, KektorError, TooLarge, Unavailable
from kektor_server.daemon.doctor import examine
from kektor_server.daemon.exporting import export_lines
from kektor_server.mcp.door import McpDoor
from kektor_server.rest.errors import status_of
from kektor_server.rest.hosts import through_unix_socket

__all__ = ["DaemonApp"]

T = TypeVar("T")

_THREADS = 32
"""Most of them wait for the disk, many writers in one sync."""

_LOOK = 0.25
"""Seconds between two looks whether the daemon is about to end."""

_EXPORT_LINES = 200


class DaemonApp:
    """Routes by path and by the socket a request came through.

    `starting`, while it says something, is why `/readyz` is not ready. `leave` is what a daemon that was started on
    demand does when another wants its place; None for one that was started to stay.
    """

    def __init__(self, rest: ASGIApp, database: Database, *, body_bytes: int) -> None:
        self.starting: str | None = None
        self.stopping: Callable[[], bool] = lambda: False
        self.leave: Callable[[], None] | None = None
        self._rest = rest
        self._database = database
        self._body_bytes = body_bytes
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="kektor-internal")
        self._mcp = McpDoor(database, self._threads, lambda: self.stopping())
        self._internal: dict[tuple[str, str], Callable[[Scope, Receive, Send], Awaitable[None]]] = {
            ("POST", "/internal/mcp"): self._call_tool,
            ("POST", "/internal/watch"): self._watch,
            ("GET", "/internal/attach"): self._attach,
            ("POST", "/internal/leave"): self._make_room,
            ("GET", "/internal/doctor"): self._examine,
            ("GET", "/internal/export"): self._export,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            if self.starting is not None and scope["path"] == "/readyz":
                await _fail(send, Unavailable(self.starting))
                return
            handler = self._internal.get((scope["method"], scope["path"]))
            if handler is not None and through_unix_socket(scope):
                try:
                    await handler(scope, receive, send)
                except KektorError as error:
                    await _fail(send, error)
                return
        await self._rest(scope, receive, send)

    def close(self) -> None:
        """Wait for the calls that run."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    async def _call_tool(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._mcp.call(await self._body(receive), receive, send)

    async def _watch(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._mcp.watch(await self._body(receive), receive, send)

    async def _attach(self, scope: Scope, receive: Receive, send: Send) -> None:
        """An answer that lasts as long as both sides: the open connection is what counts as a client."""
        headers = [(b"content-type", b"text/plain")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"\n", "more_body": True})
        gone = asyncio.ensure_future(_disconnected(receive))
        while not gone.done() and not self.stopping():
            await asyncio.wait({gone}, timeout=_LOOK)
        gone.cancel()
        await send({"type": "http.response.body", "body": b""})

    async def _make_room(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.leave is None:
            raise Conflict("this server was started to stay: stop it first")
        await _answer(send, 200, b'{"leaving":true}')
        self.leave()

    async def _examine(self, scope: Scope, receive: Receive, send: Send) -> None:
        report = await self._in_thread(partial(examine, self._database.engine))
        await _answer(send, 200, msgspec.json.encode(report))

    async def _export(self, scope: Scope, receive: Receive, send: Send) -> None:
        indexes = parse_qs(scope["query_string"].decode()).get("index")
        lines = await self._in_thread(partial(export_lines, self._database, indexes))
        headers = [(b"content-type", b"application/x-ndjson")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async for part in self._parts(lines):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _parts(self, lines: Iterator[bytes]) -> AsyncIterator[bytes]:
        while part := await self._in_thread(lambda: b"".join(islice(lines, _EXPORT_LINES))):
            yield part

    async def _body(self, receive: Receive) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._body_bytes:
                raise TooLarge(f"the call is larger than {self._body_bytes:,} bytes")
            if not message.get("more_body", False):
                return b"".join(parts)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _fail(send: Send, error: KektorError) -> None:
    await _answer(send, status_of(error), msgspec.json.encode(error.as_dict()))


async def _answer(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
