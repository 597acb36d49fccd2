"""The REST application: every route over one database."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.types import Receive, Scope, Send

from kektor.api import Database
from kektor.errors import NotFound
from kektor.version import __version__
from kektor_server.mcp.http import McpRoute
from kektor_server.rest.guard import Guard
from kektor_server.rest.openapi import document
from kektor_server.rest.principal import Authenticate
from kektor_server.rest.route import Call, Route, Routes
from kektor_server.rest.routes import all_routes
from kektor_server.rest.service import Service
from kektor_server.rest.table import RouteTable
from kektor_server.settings import Settings

__all__ = ["create_app"]


def create_app(database: Database, settings: Settings, *, authenticate: Authenticate | None = None) -> Starlette:
    """The ASGI application. The database stays the caller's to close, after the application has shut down.

    `authenticate` tells the caller from the headers; without it callers need a token of the database where the
    settings ask for authentication, and have all rights where they do not, which is for loopback.
    """
    service = Service(database, settings, authenticate)

    mcp = McpRoute(database, service)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await mcp.close()
        service.close()

    app = Starlette(
        routes=[mcp, RouteTable(service, _with_contract(all_routes(), authenticated=service.authenticated))],
        middleware=[Middleware(Guard, service=service)],
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.router.default = _no_route
    app.state.service = service
    app.state.mcp = mcp
    return app


def _with_contract(declared: Iterable[Route], *, authenticated: bool) -> list[Route]:
    """All routes, and the one that describes them."""
    contract = Routes("server")
    routes = [*declared]

    @cache
    def described() -> dict[str, Any]:
        return document(routes, version=__version__, authenticated=authenticated)

    @contract.get("/openapi.json")
    def openapi(_: Call) -> dict[str, Any]:
        """This contract, as OpenAPI 3.1."""
        return described()

    routes += contract
    return routes


async def _no_route(scope: Scope, _: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1000})
        return
    raise NotFound(f"there is no route {scope['path']!r}; GET /openapi.json lists them")
