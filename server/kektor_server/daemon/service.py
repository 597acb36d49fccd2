"""Serving an owned data directory until told to stop."""

import logging
import socket
import threading
from collections.abc import Callable

import kektor
from kektor import models
from kektor.errors import KektorError
from kektor_server.daemon.app import DaemonApp
from kektor_server.daemon.ownership import Owned
from kektor_server.rest import build_server, create_app
from kektor_server.settings import Settings

__all__ = ["serve_owned"]

_LOG = logging.getLogger("kektor.server")

Started = Callable[[DaemonApp, str], None]
"""Called once, on the loop's thread, when requests are taken, with the address: empty without one over TCP."""


def serve_owned(
    owner: Owned,
    settings: Settings,
    *,
    tcp: socket.socket | None = None,
    on_demand: bool = False,
    stopping: Callable[[], bool] = lambda: False,
    starting: str | None = None,
    started: Started | None = None,
) -> None:
    """Serve on the directory's own socket, and on `tcp`, until SIGTERM or SIGINT; then what is under way may finish.

    `stopping` says whether the end was asked for before the server itself heard signals.
    `starting` is why `/readyz` is not ready until somebody sets the application's to None. With `on_demand` it also
    ends after `settings.idle_exit` seconds without clients, and when asked to make room.
    """
    rest = create_app(owner.database, settings)
    app = DaemonApp(rest, owner.database, body_bytes=settings.body_bytes)
    app.starting = starting
    warming = threading.Thread(target=_warm, args=(owner.database, settings), name="warm")

    def ready(addresses: list[str]) -> None:
        if stopping():
            server.should_exit = True
            return
        warming.start()
        if started is not None:
            started(app, next((address for address in addresses if address.startswith("http")), ""))

    server = build_server(
        app,
        settings,
        ready=ready,
        stopping=rest.state.service.stop,
        idle_exit=settings.idle_exit if on_demand else None,
    )
    app.stopping = rest.state.mcp.stopping = lambda: server.should_exit
    if on_demand:
        app.leave = lambda: setattr(server, "should_exit", True)
    try:
        server.run(sockets=[owner.listener.socket] if tcp is None else [owner.listener.socket, tcp])
    finally:
        app.close()
        if warming.ident is not None:
            warming.join()  # a process that ends while a model loads in native code aborts


def _warm(database: kektor.Database, settings: Settings) -> None:
    """Load the models that the first call will want, while nobody waits for them."""
    try:
        used = [database.operations.context.embedder(index) for index in database.indexes()]
        for embedder in used or [models.resolve(settings.embedder)]:
            if embedder is not None:
                embedder.warm()
    except KektorError as error:
        _LOG.warning("a model could not be loaded ahead of its use: %s", error)
