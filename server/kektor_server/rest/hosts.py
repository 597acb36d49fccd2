"""Which Host and Origin headers are answered.

A page that a browser shows may call any address its name resolves to, this machine's own included. Such a call names
the page's host, or its origin: neither is ours, and it is refused before anything else is looked at.
"""

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from starlette.types import Scope

from kektor.errors import Forbidden
from kektor_server.rest.principal import Headers
from kektor_server.settings import Settings

__all__ = ["HostRule", "through_unix_socket"]

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class HostRule:
    """On loopback its names, elsewhere any literal address, and what the settings allow besides."""

    def __init__(self, settings: Settings) -> None:
        self._names = _LOOPBACK | {name.lower() for name in settings.allowed_hosts}
        self._any_address = not settings.on_loopback
        self._origins = frozenset(origin.rstrip("/").lower() for origin in settings.allowed_origins)
        self._known: set[bytes] = set()

    def check(self, scope: Scope, headers: Headers) -> None:
        """Forbidden, unless the call came through a Unix socket, which no browser reaches."""
        if through_unix_socket(scope):
            return
        host = headers.get(b"host", b"")
        if host not in self._known:
            self._check_host(host)
        origin = headers.get(b"origin")
        if origin is not None:
            self._check_origin(origin, host)

    def _check_host(self, host: bytes) -> None:
        name = _name(host)
        if name not in self._names and not (self._any_address and _is_address(name)):
            raise Forbidden(
                f"this server does not answer as {host.decode('latin-1')!r}; add the name to allowed_hosts",
                field="Host",
            )
        if len(self._known) < 1000:
            self._known.add(host)

    def _check_origin(self, origin: bytes, host: bytes) -> None:
        """A page served from here calls its own host; any other must be allowed by name."""
        given = origin.decode("latin-1").lower()
        own = host.decode("latin-1").lower()
        if given in (f"http://{own}", f"https://{own}") or given in self._origins:
            return
        raise Forbidden(
            f"pages of {origin.decode('latin-1')!r} may not call this server; add the origin to allowed_origins",
            field="Origin",
        )


def through_unix_socket(scope: Scope) -> bool:
    """A server's address without a port is a path; it is the server's own, so that no caller can fake it."""
    server = scope.get("server")
    return server is not None and server[1] is None


def _name(host: bytes) -> str:
    """The host without its port; empty when it is malformed."""
    try:
        parts = urlsplit(f"//{host.decode('ascii')}")
        _ = parts.port
    except ValueError:
        return ""
    if parts.path or parts.query or parts.username is not None:
        return ""
    return (parts.hostname or "").lower()


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
