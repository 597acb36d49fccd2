"""The daemon's ASGI application: internal routes for the Unix socket, REST for everything else.

REST is loaded when it is first asked for, because a daemon that only serves relays never needs it; liveness is
answered before.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from kektor_server.daemon.clients import Clients

__all__ = ["ACTOR_HEADER", "DaemonApp", "Handler"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Handler = Callable[[Scope, Receive, Send], Awaitable[None]]

ACTOR_HEADER = b"kektor-actor"
"""Says who acts when the command line calls, `human` or `service`; believed of the Unix socket only."""


class DaemonApp:
    """Routes by path and by the socket a request came through."""

    def __init__(self, internal: dict[tuple[str, str], Handler], load_rest: Callable[[], App]) -> None:
        self.clients = Clients()
        self._internal = internal
        self._load_rest = load_rest
        self._rest: App | None = None
        self._loading = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return
        with self.clients.one_more():
            local = _through_unix_socket(scope)
            handler = self._internal.get((scope.get("method", ""), scope["path"])) if local else None
            if handler is not None:
                await handler(scope, receive, send)
            elif scope["path"] == "/healthz" and self._rest is None:
                await answer_json(send, 200, {"status": "ok"})
            else:
                if not local:
                    scope["headers"] = [pair for pair in scope["headers"] if pair[0] != ACTOR_HEADER]
                rest = self._rest or await self.rest()
                await rest(scope, receive, send)

    async def rest(self) -> App:
        """The REST application, loaded by the first who asks."""
        async with self._loading:
            if self._rest is None:
                self._rest = await asyncio.to_thread(self._load_rest)
        return self._rest


async def answer_json(send: Send, status: int, value: Any) -> None:
    """A whole JSON answer."""
    await answer_bytes(send, status, json.dumps(value).encode())


async def answer_bytes(send: Send, status: int, body: bytes, kind: bytes = b"application/json") -> None:
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _through_unix_socket(scope: Scope) -> bool:
    """A server address without a port is a path; the address is the server's own, so no caller can fake it."""
    server = scope.get("server")
    return server is not None and server[1] is None
