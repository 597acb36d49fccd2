"""Running the application: sockets, signals, a graceful end."""

import asyncio
import math
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from kektor.api import Database
from kektor.errors import Unavailable
from kektor_server.metrics.logs import configure_logging
from kektor_server.rest.app import create_app
from kektor_server.rest.principal import Authenticate
from kektor_server.settings import Settings

__all__ = ["Ready", "Server", "bind", "build_server", "serve"]

Ready = Callable[[list[str]], None]
"""Called once, when requests are taken, with the addresses: `http://127.0.0.1:9091`, `unix:/run/…`."""

_KEEP_ALIVE_SECONDS = 65


def serve(
    database: Database,
    settings: Settings,
    *,
    sockets: Sequence[socket.socket] | None = None,
    ready: Ready | None = None,
    authenticate: Authenticate | None = None,
    on_demand: bool = False,
) -> None:
    """Serve until SIGTERM or SIGINT, then let what is under way finish; returns when all is done.

    `sockets` are bound ones, of any family (default: one by `bind`); they are closed at the end. The database is
    the caller's to close. With `on_demand` the server also ends after `settings.idle_exit` seconds without clients.

    Raises Unavailable when the port is taken.
    """
    configure_logging(settings)
    # Threads that compute in Python give way to the event loop sooner than after the usual 5 ms.
    sys.setswitchinterval(0.001)
    listening = [bind(settings)] if sockets is None else list(sockets)
    app = create_app(database, settings, authenticate=authenticate)
    server = build_server(
        app, settings, ready=ready, stopping=app.state.service.stop, idle_exit=settings.idle_exit if on_demand else None
    )
    server.run(sockets=listening)


def bind(settings: Settings) -> socket.socket:
    """A listening TCP socket at the host and port of the settings."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise Unavailable(f"there is no address {settings.host!r} to listen on: {error}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise Unavailable(
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror}. Stop what listens there, or "
            "choose another port (--port, KEKTOR_PORT; 0 takes a free one)."
        ) from error
    return listener


def build_server(
    app: ASGIApp,
    settings: Settings,
    *,
    ready: Ready | None = None,
    stopping: Callable[[], None] | None = None,
    idle_exit: float | None = None,
) -> "Server":
    """The server of an application; `server.run(sockets=[…])` serves all of them in one loop.

    `stopping` is called when the end begins, for what would otherwise go on: an application's `state.service.stop`.
    `server.should_exit = True`, from the loop's thread or a signal handler, begins the graceful end.
    """
    config = uvicorn.Config(
        app,
        http=_protocol(settings),
        ws="none",
        lifespan="on",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=math.ceil(settings.drain_seconds),
        h11_max_incomplete_event_size=settings.header_bytes,
    )
    return Server(config, ready=ready, stopping=stopping, idle_exit=idle_exit)


class Server(uvicorn.Server):
    """uvicorn's, which says when it is ready, ends late requests, may leave when idle, and returns after a signal."""

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        ready: Ready | None,
        stopping: Callable[[], None] | None,
        idle_exit: float | None,
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._stopping = stopping
        self._idle_exit = idle_exit
        self._last_client = time.monotonic()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self._ready is not None:
            self._ready([_address(sock) for server in self.servers for sock in server.sockets])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._stopping is not None:
            self._stopping()
        await super().shutdown(sockets)

    async def on_tick(self, counter: int) -> bool:
        if self.server_state.connections:
            self._last_client = time.monotonic()
        if counter % 10 == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                expire = getattr(connection, "expire", None)
                if expire is not None:
                    expire(now)
        if self._idle_exit is not None and time.monotonic() - self._last_client > self._idle_exit:
            return True
        return await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A signal ends the serving and no more: the caller has a database to close."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


def _protocol(settings: Settings) -> Any:
    """With httptools our bounds are kept; without it (Windows) h11 keeps that of the head alone."""
    try:
        from kektor_server.rest.protocol import bounded
    except ModuleNotFoundError:
        return "h11"
    return bounded(head_bytes=settings.header_bytes, seconds=settings.request_seconds)


def _address(listener: Any) -> str:
    name = listener.getsockname()
    if not isinstance(name, tuple):
        return f"unix:{name}"
    host = f"[{name[0]}]" if ":" in name[0] else name[0]
    return f"http://{host}:{name[1]}"
