"""Finding the route of a request, and running it in its lane."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from functools import partial
from typing import Any

from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from kektor.engine.gateway import Principal
from kektor.errors import Unauthenticated
from kektor_server.rest.errors import MethodNotAllowed
from kektor_server.rest.principal import NOBODY, Headers
from kektor_server.rest.query import unquote
from kektor_server.rest.route import Lane, Reply, Route, Streamed
from kektor_server.rest.service import Service

__all__ = ["RouteTable"]

_ANY = None
_HERE = b""


class RouteTable(BaseRoute):
    """All routes behind one look-up by path segments, whatever their number.

    Segments are told apart before percent signs are decoded, so that an encoded slash is a character of an id and
    never a second segment. A method whose routes know the path wins over one whose routes do not: an id may be called
    as another route's last word.
    """

    def __init__(self, service: Service, routes: Iterable[Route]) -> None:
        self._service = service
        self._by_method: dict[str, dict[bytes | None, Any]] = {}
        for route in routes:
            self._add(route)
        self._lanes = {Lane.READ: service.reads, Lane.WRITE: service.writes}

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http":
            return Match.NONE, {}
        segments = scope["raw_path"].split(b"/")[1:]
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        found = self._find(method, segments)
        if found is not None:
            return Match.FULL, {"kektor.route": found}
        if any(self._find(other, segments) for other in self._by_method):
            return Match.FULL, {"kektor.route": None}
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["kektor.route"] is None:
            raise MethodNotAllowed(scope["method"], self._allowed(scope["raw_path"].split(b"/")[1:]))
        route, raw_values = scope["kektor.route"]
        headers = scope["kektor.headers"]
        service = self._service
        principal = NOBODY if route.public else self._caller(scope, headers)
        path = [unquote(raw, field=name) for name, raw in zip(route.placeholders, raw_values, strict=True)]
        query = route.query.read(scope["query_string"])
        parts = await service.intake.read(receive, headers)
        try:
            work = partial(route.reply, service, principal, headers, path, query, parts)
            lane = self._lanes.get(route.lane)
            reply = work() if lane is None else await lane.run(work)
        finally:
            service.intake.release(parts)
        if isinstance(reply, Streamed):
            assert route.media is not None
            await _stream(send, receive, route.media, reply.parts, head=scope["method"] == "HEAD")
        else:
            await _send(send, reply)

    def _caller(self, scope: Scope, headers: Headers) -> Principal:
        """Who calls, and not too often: by the token, else by the address, which also bounds guessing at tokens."""
        address = (scope.get("client") or ("",))[0]
        try:
            principal = self._service.authenticate(headers)
        except Unauthenticated:
            self._service.rates.take(f"address {address}")
            raise
        scope["kektor.principal"] = principal
        self._service.rates.take(f"token {principal.actor.id}" if principal.actor.id else f"address {address}")
        return principal

    def _add(self, route: Route) -> None:
        table = self._by_method.setdefault(route.method, {})
        for segment in route.path.split("/")[1:]:
            table = table.setdefault(_ANY if segment.startswith("{") else segment.encode(), {})
        if _HERE in table:
            raise TypeError(f"{route.method} {route.path} is declared twice")
        table[_HERE] = route

    def _find(self, method: str, segments: list[bytes]) -> tuple[Route, list[bytes]] | None:
        table = self._by_method.get(method)
        if table is None:
            return None
        values: list[bytes] = []
        for segment in segments:
            if not segment:
                return None
            following = table.get(segment)
            if following is None:
                following = table.get(_ANY)
                if following is None:
                    return None
                values.append(segment)
            table = following
        route = table.get(_HERE)
        return None if route is None else (route, values)

    def _allowed(self, segments: list[bytes]) -> list[str]:
        methods = [method for method in self._by_method if self._find(method, segments) is not None]
        return sorted([*methods, "HEAD"] if "GET" in methods else methods)


async def _send(send: Send, reply: Reply) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": reply.status,
            "headers": [
                (b"content-type", reply.content_type),
                (b"content-length", str(len(reply.body)).encode()),
                *reply.headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": reply.body})


async def _stream(send: Send, receive: Receive, media: str, parts: AsyncIterator[bytes], *, head: bool) -> None:
    """Send parts as they come, until they end or the caller goes."""
    headers = [(b"content-type", media.encode()), (b"x-accel-buffering", b"no")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if not head:
        sending = asyncio.ensure_future(_send_parts(send, parts))
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            if not sending.done():
                sending.cancel()
        if sending.done():
            sending.result()
    await send({"type": "http.response.body", "body": b""})


async def _send_parts(send: Send, parts: AsyncIterator[bytes]) -> None:
    async for part in parts:
        await send({"type": "http.response.body", "body": part, "more_body": True})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
