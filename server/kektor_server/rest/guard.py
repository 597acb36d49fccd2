"""What stands before every route: request ids, the Host and Origin checks, the bound on requests at once, errors."""

import logging
import os
import re
import time
from itertools import count
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kektor.errors import Forbidden, Internal, KektorError, Unauthenticated, Unavailable
from kektor_server.auth.denials import Denied
from kektor_server.rest.body import ClientGone
from kektor_server.rest.errors import encode_error, error_headers, status_of
from kektor_server.rest.hosts import HostRule, through_unix_socket
from kektor_server.rest.principal import CLI_HEADER, NOBODY, Headers
from kektor_server.rest.service import Service

__all__ = ["Guard"]

_LOG = logging.getLogger("kektor.server")
_ACCESS = logging.getLogger("kektor.access")
_SLOW = logging.getLogger("kektor.slow")
_ENDLESS = ("/v1/events", "/v1/export", "/mcp")
"""As slow as their callers."""


class Guard:
    """ASGI middleware around the whole application; what is raised below it becomes the error object here."""

    def __init__(self, app: ASGIApp, *, service: Service) -> None:
        settings = service.settings
        self._app = app
        self._service = service
        self._hosts = HostRule(settings)
        self._room = settings.requests
        self._logs_access = settings.access_log
        self._slow = settings.slow_seconds or float("inf")
        self._under_way = 0
        self._numbers = count(1)
        self._run = os.urandom(4).hex()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if not through_unix_socket(scope):
            headers.pop(CLI_HEADER, None)
        scope["kektor.headers"] = headers
        exchange = _Exchange(send, self._request_id(headers))
        self._under_way += 1
        try:
            self._check(scope, headers)
            await self._app(scope, receive, exchange.send)
        except ClientGone:
            return
        except Exception as error:  # noqa: BLE001 - nothing may leave without an answer
            if isinstance(error, Unauthenticated | Forbidden):
                self._note_denial(scope, error)
            await exchange.fail(error, scope)
        finally:
            self._under_way -= 1
            self._note(scope, exchange)

    def _note_denial(self, scope: Scope, error: KektorError) -> None:
        """By route, so that nothing of what was sent is kept."""
        method, route = _named(scope)
        why = ": ".join(filter(None, (error.code, error.details.get("reason") or error.field)))
        self._service.metrics.denied(why)
        if not error.audited:
            caller = scope.get("kektor.principal", NOBODY)
            self._service.denials.add(Denied(caller, f"{method} {route}", why))

    def _note(self, scope: Scope, exchange: "_Exchange") -> None:
        """Count it, and log it where that is asked for: without the query string, which may hold what somebody
        remembers."""
        seconds = time.monotonic() - exchange.begun
        method, route = _named(scope)
        slow = seconds > self._slow and route not in _ENDLESS
        self._service.metrics.answered(method, route, exchange.status, seconds, slow=slow)
        told = {
            "request_id": exchange.request_id.decode(),
            "method": method,
            "route": route,
            "status": exchange.status,
            "ms": round(seconds * 1000, 1),
        }
        if slow:
            _SLOW.warning("slow request", extra={"fields": told})
        if self._logs_access:
            _ACCESS.info("%s %s", scope["method"], _path(scope), extra={"fields": told})
        if self._service.spans is not None:
            attributes: dict[str, str | int] = {
                "http.request.method": method,
                "http.route": route,
                "http.response.status_code": exchange.status,
                "kektor.request_id": exchange.request_id.decode(),
            }
            ended = time.time_ns()
            begun = ended - int(seconds * 1e9)
            self._service.spans(f"{method} {route}", begun, ended, attributes, scope["kektor.headers"])

    def _check(self, scope: Scope, headers: Headers) -> None:
        if self._under_way > self._room:
            raise Unavailable(
                f"{self._room} requests are under way, as many as this server takes; come back in a second",
                details={"retry_after": 1},
            )
        self._hosts.check(scope, headers)

    def _request_id(self, headers: Headers) -> bytes:
        """The caller's own when it gave one that a log can hold, else a new one."""
        given = headers.get(b"x-request-id")
        if given is not None and _REQUEST_ID.fullmatch(given):
            return given
        return f"{self._run}-{next(self._numbers)}".encode()


class _Exchange:
    """One answer on its way out."""

    __slots__ = ("_send", "begun", "request_id", "status")

    def __init__(self, send: Send, request_id: bytes) -> None:
        self._send = send
        self.request_id = request_id
        self.begun = time.monotonic()
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), *_ALWAYS, (b"x-request-id", self.request_id)]
        await self._send(message)

    async def fail(self, error: Exception, scope: Scope) -> None:
        if not isinstance(error, KektorError) or isinstance(error, Internal):
            _LOG.error(
                "request %s: %s %s failed", self.request_id.decode(), scope["method"], _path(scope), exc_info=error
            )
        if self.status:  # half an answer is out: ending the connection is all that can tell the caller
            raise error
        known = error if isinstance(error, KektorError) else Internal("unexpected")
        body = encode_error(known, self.request_id.decode())
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await self.send(
            {"type": "http.response.start", "status": status_of(known), "headers": headers + error_headers(known)}
        )
        await self.send({"type": "http.response.body", "body": body})


def _named(scope: Scope) -> tuple[str, str]:
    """Method and path as declared: of what nobody declared, neither, so that no caller makes up labels."""
    found = scope.get("kektor.route")
    if found is not None:
        return found[0].method, found[0].path
    if scope["path"] == "/mcp" or scope["path"].startswith("/mcp/"):
        return "POST", "/mcp"
    return "other", "other"


def _path(scope: Scope) -> str:
    """As it came, percent signs and all, so that it cannot write lines of its own."""
    raw: bytes = scope["raw_path"]
    return raw.decode("ascii", "backslashreplace")


_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_ALWAYS: Final[list[tuple[bytes, bytes]]] = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
