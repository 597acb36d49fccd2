"""A server over HTTP: a daemon through its Unix socket, or any server by its address. Standard library only."""

import http.client
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from kektor_server.cli.faults import Fault
from kektor_server.cli.table import OPERATIONS
from kektor_server.daemon.client import Answer, UnixConnection, connection_to, request

__all__ = ["RemoteTarget"]

_TIMEOUT = 600.0


class RemoteTarget:
    """One connection, kept open for the length of a command."""

    def __init__(self, connection: http.client.HTTPConnection, where: str, headers: dict[str, str]) -> None:
        self._connection = connection
        self._where = where
        self._headers = headers

    @classmethod
    def through_socket(cls, path: str, *, human: bool) -> "RemoteTarget":
        """A daemon of this machine, which believes who is at the terminal."""
        return cls(UnixConnection(path, _TIMEOUT), path, {"Kektor-Cli": "human" if human else "service"})

    @classmethod
    def at(cls, url: str, token: str | None) -> "RemoteTarget":
        """A server by its address."""
        if token is not None and not (token.isascii() and token.isprintable()):
            raise Fault("the token is no token: it is printable ASCII in one line", field="token")
        try:
            return cls(connection_to(url, _TIMEOUT), url, {"Authorization": f"Bearer {token}"} if token else {})
        except ValueError as error:
            raise Fault(str(error), field="url") from error

    def call(self, operation: str, fields: Mapping[str, Any], about: str = "") -> Any:
        """Run one operation; returns plain JSON values, raises Fault."""
        method, path, has_body = OPERATIONS[operation]
        path = path.replace("{id}", quote(about, safe=""))
        if "{index}" in path:
            path = path.replace("{index}", quote(str(fields["index"]), safe=""))
            fields = {name: value for name, value in fields.items() if name != "index"}
        body = None
        if method in ("GET", "DELETE") and not has_body:
            path = f"{path}?{urlencode(_query(fields), doseq=True)}"
        else:
            body = json.dumps(fields).encode()
        return self._decoded(self._exchange(method, path, body))

    def doctor(self) -> dict[str, Any]:
        """A thorough look by the daemon itself."""
        self._only_through_socket("doctor")
        report: dict[str, Any] = self._decoded(self._exchange("GET", "/internal/doctor"))
        return report

    def repair(self) -> list[str]:
        """Repairing is for an owner that does nothing else."""
        raise Fault("stop the server first: repairing needs the data directory for itself", field="repair")

    def export(self, indexes: list[str] | None) -> Iterator[bytes]:
        """The lines of an export."""
        self._only_through_socket("export")
        path = f"/internal/export?{urlencode({'index': indexes or []}, doseq=True)}"
        try:
            self._connection.request("GET", path, headers=self._headers)
            response = self._connection.getresponse()
            if response.status != 200:
                self._decoded(Answer(response.status, response.read()))
            yield from response
        except (OSError, http.client.HTTPException) as error:
            raise self._lost(error) from error

    def close(self) -> None:
        self._connection.close()

    def _exchange(self, method: str, path: str, body: bytes | None = None) -> Answer:
        try:
            return request(self._connection, method, path, body, self._headers)
        except (OSError, http.client.HTTPException) as error:
            raise self._lost(error) from error

    def _decoded(self, answer: Answer) -> Any:
        try:
            found = answer.json()
        except ValueError:
            raise Fault(
                f"{self._where} answered {answer.status} and no JSON: is it a kektor server?", "unavailable"
            ) from None
        if answer.status < 300:
            return found
        if isinstance(found, dict) and isinstance(found.get("error"), dict):
            raise Fault.of(found["error"])
        raise Fault(f"{self._where} answered {answer.status}: is it a kektor server?", "unavailable")

    def _lost(self, error: Exception) -> Fault:
        return Fault(f"no answer from {self._where}: {error or type(error).__name__}", "unavailable")

    def _only_through_socket(self, command: str) -> None:
        if "Kektor-Cli" not in self._headers:
            raise Fault(
                f"{command} works on the data's own machine: run it there with --data, also while a server runs",
                field="url",
            )


def _query(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields as a query string has them: the scope's members by themselves."""
    flat = {name: value for name, value in fields.items() if name != "scope" and value is not None}
    return {**flat, **fields.get("scope", {})}
