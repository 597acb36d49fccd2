"""Tool calls on their way to the daemon and back: concurrent, cancellable, repeated when the daemon dies.

Standard library only; what a first `tools/list` does not need is imported by the first call.
"""

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from http.client import HTTPResponse

    from kektor_server.daemon.client import UnixConnection
    from kektor_server.daemon.places import Places

__all__ = ["GRANTED", "PROTOCOL", "Call", "DaemonCalls", "RequestId"]

PROTOCOL = 2
"""Of the internal route; a daemon of another one says so instead of guessing."""

_WORKERS = 16
_TIMEOUT = 600.0
_TRIES = 5
"""Of one call. Clients that end together may take several daemons with them; one that never lives is a fault."""

GRANTED = ("index", "user", "agent", "project")
"""What the launch flags confine calls to. A model cannot name any of it but the index."""

RequestId = str | int
Grant = dict[str, str | None]
"""By these names; None is any."""

Reply = Callable[[RequestId, dict[str, Any]], None]
Progress = Callable[[dict[str, Any]], None]


class Call(NamedTuple):
    """One request for a tool, or with another method for a resource."""

    id: RequestId
    name: str
    arguments: dict[str, Any]
    client: dict[str, Any]
    done: Reply
    """Told the id and the result, from a worker's thread; never when the call was cancelled."""
    method: str = "tools/call"
    progress: Progress | None = None
    """Told {progress, total, message} now and then, when the client wants that."""


class DaemonCalls:
    """The calls of one relay, over one connection each: a Unix socket connects in microseconds."""

    def __init__(self, places: "Places", grant: Grant, profile: str = "core") -> None:
        self._places = places
        self._profile = profile
        self._grant = grant
        self._waiting: SimpleQueue[_Flight] = SimpleQueue()
        self._flights: dict[RequestId, _Flight] = {}
        self._changed = threading.Condition()
        self._workers = 0
        self._attached = False

    def start_daemon(self) -> None:
        """Have the daemon up, or coming up, and let it know that somebody is here. Returns at once."""
        with self._changed:
            if self._attached:
                return
            self._attached = True
        threading.Thread(target=self._attach, name="attach", daemon=True).start()

    def submit(self, call: Call) -> bool:
        """Take a call on; False when its id is that of one still running."""
        flight = _Flight(call)
        with self._changed:
            if call.id in self._flights:
                return False
            self._flights[call.id] = flight
            if self._workers < min(len(self._flights), _WORKERS):
                self._workers += 1
                threading.Thread(target=self._work, name=f"call-{self._workers}", daemon=True).start()
        self._waiting.put(flight)
        return True

    def cancel(self, request_id: Any) -> None:
        """Stop waiting for a call and say nothing of it; what the daemon has begun it ends."""
        with self._changed:
            flight = self._flights.get(request_id) if isinstance(request_id, str | int) else None
        if flight is not None:
            flight.cancel()

    def drain(self) -> None:
        """Return when every call that was taken on has been answered."""
        with self._changed:
            self._changed.wait_for(lambda: not self._flights)

    def connect(self) -> "UnixConnection":
        """A connection of its own to the daemon, which is started when there is none."""
        from kektor_server.daemon.client import UnixConnection
        from kektor_server.daemon.launch import ensure_running

        ensure_running(self._places)
        return UnixConnection(self._places.socket)

    def watch_body(self, stamps: dict[str, str | None]) -> bytes:
        """The request to be told of resources that differ from what was last seen of them."""
        asked = {"protocol": PROTOCOL, "grant": self._grant, "profile": self._profile, "stamps": stamps}
        return json.dumps(asked).encode()

    def _work(self) -> None:
        while True:
            flight = self._waiting.get()
            try:
                result = self._result(flight)
                if not flight.cancelled:
                    flight.call.done(flight.call.id, result)
            finally:
                with self._changed:
                    del self._flights[flight.call.id]
                    self._changed.notify_all()

    def _result(self, flight: "_Flight") -> dict[str, Any]:
        from http.client import HTTPException

        from kektor_server.daemon.launch import StartFailed, ensure_running

        body = self._body(flight.call)
        for tried in range(1, _TRIES + 1):
            if flight.cancelled:
                break
            try:
                ensure_running(self._places)
                self.start_daemon()
                return flight.exchange(self._places.socket, body)
            except StartFailed as error:
                return _failure(error.code, error.message, error.details)
            except TimeoutError:
                return _failure("unavailable", f"no answer within {_TIMEOUT:.0f} s; it may still be carried out")
            except (OSError, HTTPException, ValueError) as error:
                # The key in the body makes the repetition harmless: a write that was done is told again, not redone.
                if tried == _TRIES:
                    return _failure(
                        "unavailable",
                        f"the memory daemon ended {tried} times during this call ({error!r}); see {self._places.log}",
                    )
        return {}

    def _body(self, call: Call) -> bytes:
        asked = {
            "protocol": PROTOCOL,
            "name": call.name,
            "arguments": call.arguments,
            "client": {key: str(call.client.get(key, "")) for key in ("name", "version")},
            "key": f"mcp-{os.urandom(16).hex()}",
            "grant": self._grant,
            "profile": self._profile,
            "method": call.method,
            "progress": call.progress is not None,
        }
        return json.dumps(asked).encode()

    def _attach(self) -> None:
        """Hold a request open as long as both live: a daemon on demand leaves when nobody does."""
        from http.client import HTTPException

        from kektor_server.daemon.client import UnixConnection
        from kektor_server.daemon.launch import StartFailed, ensure_running

        try:
            with contextlib.suppress(OSError, HTTPException, StartFailed):  # the next call meets it and says so
                ensure_running(self._places)
                connection = UnixConnection(self._places.socket)
                connection.request("GET", "/internal/attach")
                connection.getresponse().read()
        finally:
            with self._changed:
                self._attached = False


class _Flight:
    """A call under way."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.cancelled = False
        self._lock = threading.Lock()
        self._connection: UnixConnection | None = None

    def exchange(self, path: str, body: bytes) -> dict[str, Any]:
        from kektor_server.daemon.client import UnixConnection

        connection = UnixConnection(path, timeout=_TIMEOUT)
        try:
            connection.connect()
            with self._lock:
                self._connection = connection
                if self.cancelled:
                    return {}
            connection.request("POST", "/internal/mcp", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            found = self._result(response)
        finally:
            with self._lock:
                self._connection = None
            connection.close()
        if response.status == 200:
            return found
        error = found["error"]
        return _failure(error["code"], error["message"], error["details"])

    def _result(self, response: "HTTPResponse") -> dict[str, Any]:
        """The last line; the ones before it say how far the call is."""
        while line := response.readline():
            told: dict[str, Any] = json.loads(line)
            if "progress" not in told:
                return told
            if self.call.progress is not None and not self.cancelled:
                self.call.progress(told)
        raise ConnectionError("the daemon ended without an answer")

    def cancel(self) -> None:
        with self._lock:
            self.cancelled = True
            if self._connection is not None and self._connection.sock is not None:
                with contextlib.suppress(OSError):
                    self._connection.sock.shutdown(socket.SHUT_RDWR)


def _failure(code: str, message: str, details: dict[str, Any] | None = None) -> dict[str, Any]:
    error = {"code": code, "message": message, "field": None, "details": details or {}}
    return {
        "content": [{"type": "text", "text": f"{code}: {message}"}],
        "isError": True,
        "_meta": {"kektor/error": error},
    }
