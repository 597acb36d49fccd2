"""HTTP to a daemon over its Unix socket, or to a server over TCP. Standard library only."""

import http.client
import json
import select
import socket
from typing import Any
from urllib.parse import urlsplit

__all__ = ["Answer", "UnixConnection", "answers", "connection_to", "is_stale", "request"]


class Answer:
    """A status and the body; JSON bodies are decoded on demand."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.body = body

    def json(self) -> Any:
        """The decoded body; ValueError when the peer did not answer JSON."""
        return json.loads(self.body)


class UnixConnection(http.client.HTTPConnection):
    """An HTTP connection to a socket in the file system."""

    def __init__(self, path: str, timeout: float | None = None) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.sock.settimeout(self.timeout)
            self.sock.connect(self._path)
        except BaseException:
            self.close()
            raise


def connection_to(url: str, timeout: float | None = None) -> http.client.HTTPConnection:
    """A connection to `http://host:port` or `https://…`; ValueError for any other address."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise ValueError(f"{url!r} is no server address: give http://host:port")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(parts.hostname, parts.port, timeout=timeout)


def request(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> Answer:
    """One exchange; the connection stays open for the next."""
    sent = dict(headers or {})
    if body is not None:
        sent.setdefault("Content-Type", "application/json")
    connection.request(method, path, body, sent)
    response = connection.getresponse()
    return Answer(response.status, response.read())


def answers(path: str) -> bool:
    """Whether somebody listens on a socket of the file system."""
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        probe.settimeout(5)
        probe.connect(path)
    except OSError:
        return False
    finally:
        probe.close()
    return True


def is_stale(connection: http.client.HTTPConnection) -> bool:
    """Whether the other side has hung up on an idle connection: then it is readable, and has nothing to say."""
    sock = connection.sock
    return sock is None or bool(select.select([sock], [], [], 0)[0])
