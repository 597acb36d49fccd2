"""`kektor mcp`: MCP on standard input and output, standard library only.

Handshakes and lists are answered here; tool calls go on to the daemon of the data directory, which is started when
there is none and shared with every other relay.
"""

import argparse
import json
import os
import sys
import threading
from typing import IO, Any

from kektor_server.config import Config, ConfigError
from kektor_server.daemon.places import UnsafeFolder, find_places
from kektor_server.mcp import protocol as mcp
from kektor_server.mcp.calls import GRANTED, Call, DaemonCalls, RequestId

__all__ = ["Relay", "main"]

LONGEST_MESSAGE = 64 << 20
"""Bytes; a longer line is refused without being kept."""


def main(arguments: list[str]) -> int:
    """Serve until standard input ends; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        catalogue = mcp.Catalogue(options.tools)
        config = Config()
        places = find_places(config.data(options.data))
        names = {name: config.get(name, getattr(options, name)) for name in GRANTED}
    except (ConfigError, UnsafeFolder) as error:
        print(f"kektor mcp: {error}", file=sys.stderr)
        return 2
    for name, value in names.items():
        if value is not None and not value.strip():
            print(f"kektor mcp: --{name} is empty: leave it out, or name one", file=sys.stderr)
            return 2
    relay = Relay(catalogue, DaemonCalls(places, names), _private_output())
    try:
        relay.serve(sys.stdin.buffer)
    except KeyboardInterrupt:
        return 130
    return 0


class Relay:
    """One client on the other side."""

    def __init__(self, catalogue: mcp.Catalogue, calls: DaemonCalls, output: int) -> None:
        self._catalogue = catalogue
        self._calls = calls
        self._output = output
        self._writing = threading.Lock()
        self._client: dict[str, Any] = {}

    def serve(self, stream: IO[bytes]) -> None:
        """Answer message after message until the stream ends and what was begun is answered."""
        self._calls.start_daemon()
        while line := stream.readline(LONGEST_MESSAGE + 1):
            if len(line) > LONGEST_MESSAGE and not line.endswith(b"\n"):
                while (rest := stream.readline(LONGEST_MESSAGE)) and not rest.endswith(b"\n"):
                    pass
                self._fail(None, mcp.ProtocolError(mcp.PARSE_ERROR, f"a message has at most {LONGEST_MESSAGE} bytes"))
            elif line.strip():
                self._take(line)
        self._calls.drain()

    def _take(self, line: bytes) -> None:
        request_id = None
        try:
            message = _decode(line)
            request_id = _request_id(message)
            method = message.get("method")
            if method is None and ("result" in message or "error" in message):
                return  # an answer, and nothing was asked
            params = message.get("params")
            if not isinstance(method, str) or message.get("jsonrpc") != "2.0":
                raise mcp.ProtocolError(mcp.INVALID_REQUEST, 'a message needs "jsonrpc": "2.0" and a method')
            if params is not None and not isinstance(params, dict):
                raise mcp.ProtocolError(mcp.INVALID_PARAMS, "params must be an object")
            if request_id is None:
                self._notified(method, params or {})
            else:
                self._asked(request_id, method, params or {})
        except mcp.ProtocolError as error:
            self._fail(request_id, error)

    def _notified(self, method: str, params: dict[str, Any]) -> None:
        if method == "notifications/cancelled":
            self._calls.cancel(params.get("requestId"))

    def _asked(self, request_id: RequestId, method: str, params: dict[str, Any]) -> None:
        envelope = None if method == "initialize" else mcp.read_envelope(params)
        if method == "initialize" and isinstance(params.get("clientInfo"), dict):
            self._client = params["clientInfo"]
        if method != "tools/call":
            self._send({"jsonrpc": "2.0", "id": request_id, "result": self._catalogue.answer(method, params, envelope)})
            return
        name, arguments = params.get("name"), params.get("arguments")
        if name not in self._catalogue.tool_names:
            raise mcp.ProtocolError(mcp.INVALID_PARAMS, f"there is no tool {name!r}")
        if arguments is not None and not isinstance(arguments, dict):
            raise mcp.ProtocolError(mcp.INVALID_PARAMS, "arguments must be an object")

        def done(request_id: RequestId, result: dict[str, Any]) -> None:
            stamped = self._catalogue.stamp_call(result, envelope)
            self._send({"jsonrpc": "2.0", "id": request_id, "result": stamped})

        client = (None if envelope is None else envelope.client) or self._client
        if not self._calls.submit(Call(request_id, str(name), arguments or {}, client, done)):
            raise mcp.ProtocolError(mcp.INVALID_REQUEST, f"request {request_id!r} is still running")

    def _fail(self, request_id: RequestId | None, error: mcp.ProtocolError) -> None:
        self._send({"jsonrpc": "2.0", "id": request_id, "error": error.error})

    def _send(self, message: dict[str, Any]) -> None:
        # ASCII only: no half of a surrogate pair, line separator or locale can break the line.
        line = memoryview(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        with self._writing:
            try:
                while line:
                    line = line[os.write(self._output, line) :]
            except OSError:
                os._exit(0)  # nobody is left to answer; from a worker's thread nothing else ends the process


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kektor mcp",
        description="Serve memory to an agent over MCP on standard input and output. Any number of these share one "
        "daemon, which is started when there is none.",
        allow_abbrev=False,
    )
    profiles = mcp.Catalogue().profiles
    parser.add_argument("--data", metavar="DIR", help="the data directory (KEKTOR_DATA)")
    parser.add_argument("--tools", choices=profiles, default="core", help="which tools to offer (default: core)")
    parser.add_argument("--user", help="whose memories: all calls are confined to this user (KEKTOR_USER)")
    parser.add_argument("--agent", help="confine all calls to this agent's memories (KEKTOR_AGENT)")
    parser.add_argument("--project", help="confine all calls to this project (KEKTOR_PROJECT)")
    parser.add_argument("--index", help="confine all calls to this index (KEKTOR_INDEX)")
    return parser


def _private_output() -> int:
    """Standard output for messages alone: whatever prints by accident goes to standard error."""
    output = os.dup(1)
    os.dup2(2, 1)
    return output


def _decode(line: bytes) -> dict[str, Any]:
    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is no JSON")

    try:
        message = json.loads(line.decode(), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise mcp.ProtocolError(mcp.PARSE_ERROR, f"the message is not valid JSON: {error}") from error
    if not isinstance(message, dict):
        raise mcp.ProtocolError(mcp.INVALID_REQUEST, "a message is one object; batches are not part of this protocol")
    return message


def _request_id(message: dict[str, Any]) -> RequestId | None:
    if "id" not in message:
        return None
    request_id = message["id"]
    if isinstance(request_id, bool) or not isinstance(request_id, str | int):
        raise mcp.ProtocolError(mcp.INVALID_REQUEST, "id must be a text or a whole number")
    return request_id
