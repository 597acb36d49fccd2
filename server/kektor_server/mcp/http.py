"""MCP over streamable HTTP at `/mcp`, on the server's own port: the route, who calls, and where clients learn how.

The official SDK answers, and is imported when the first client comes (it takes more than a second): this module
does not know it. The profile of tools is a part of the path: `/mcp` is `core`, `/mcp/agent` the next.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from msgspec import structs
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from kektor.api import Database
from kektor.engine.gateway import Principal
from kektor.engine.records import Actor, ActorKind
from kektor.errors import NotFound, Unauthenticated
from kektor_server.mcp.door import Changes
from kektor_server.mcp.profiles import REGISTRY
from kektor_server.rest.errors import MethodNotAllowed
from kektor_server.rest.principal import Headers
from kektor_server.rest.service import Service

if TYPE_CHECKING:
    from kektor_server.mcp.sdk import SdkServer

__all__ = ["McpRoute"]

_PATH = "/mcp"
_METADATA = "/.well-known/oauth-protected-resource"
_ADMIN_PROFILES = ("admin", "all")
_OF_AGENTS = frozenset({"read", "write", "review"})


class McpRoute(BaseRoute):
    """`stopping` says that the server is about to end, so that streams end with it."""

    def __init__(self, database: Database, service: Service) -> None:
        self.stopping: Callable[[], bool] = lambda: False
        self._service = service
        self._changes = Changes(database)
        self._server: SdkServer | None = None
        self._starting = asyncio.Lock()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http":
            return Match.NONE, {}
        path: str = scope["path"]
        ours = path in (_PATH, _METADATA) or path.startswith((f"{_PATH}/", f"{_METADATA}{_PATH}"))
        return (Match.FULL if ours else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if path.startswith(_METADATA):
            await self._describe(scope, send)
            return
        profile = path.removeprefix(_PATH).strip("/") or "core"
        if profile not in REGISTRY.profiles:
            raise NotFound(f"there is no profile {profile!r} of tools; there are {', '.join(REGISTRY.profiles)}")
        if scope["method"] != "POST":
            raise MethodNotAllowed(scope["method"], ["POST"])
        scope["kektor.principal"] = self._principal(scope, profile)
        server = await self._ready()
        await server.handle(profile, scope, receive, send)

    async def close(self) -> None:
        """End what the SDK has begun."""
        if self._server is not None:
            await self._server.close()

    def _principal(self, scope: Scope, profile: str) -> Principal:
        """Whoever the token names; through this door always an agent, and with no right that its profile has no use
        for."""
        try:
            principal = self._service.authenticate(scope["kektor.headers"])
        except Unauthenticated as error:
            error.details["resource_metadata"] = f"{_origin(scope)}{_METADATA}{scope['path']}"
            raise
        rights = _OF_AGENTS | {"admin"} if profile in _ADMIN_PROFILES else _OF_AGENTS
        actor = Actor(ActorKind.AGENT, principal.actor.id, "mcp")
        return structs.replace(principal, actor=actor, rights=principal.rights & rights)

    async def _ready(self) -> "SdkServer":
        async with self._starting:
            if self._server is None:
                build = await asyncio.get_running_loop().run_in_executor(None, _sdk)
                self._server = build(self._service, self._changes, lambda: self.stopping())
                await self._server.open()
            return self._server

    async def _describe(self, scope: Scope, send: Send) -> None:
        """What RFC 9728 has a client ask when it is told that it needs a token."""
        if scope["method"] not in ("GET", "HEAD"):
            raise MethodNotAllowed(scope["method"], ["GET", "HEAD"])
        path: str = scope["path"].removeprefix(_METADATA) or _PATH
        body = msgspec.json.encode(
            {
                "resource": f"{_origin(scope)}{path}",
                "resource_name": "Kektor memory",
                "bearer_methods_supported": ["header"],
                "scopes_supported": ["read", "write"],
            }
        )
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _sdk() -> "type[SdkServer]":
    from kektor_server.mcp.sdk import SdkServer

    return SdkServer


def _origin(scope: Scope) -> str:
    headers: Headers = scope["kektor.headers"]
    return f"{scope.get('scheme', 'http')}://{headers.get(b'host', b'localhost').decode('latin-1')}"
