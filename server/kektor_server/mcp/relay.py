"""`kektor mcp`: MCP on standard input and output, standard library only.

Handshakes and lists are answered here; tool calls go on to the daemon of the data directory, which is started when
there is none and shared with every other relay.
"""

import argparse
import json
import os
import sys
import threading
from collections.abc import Callable
from typing import IO, Any

from kektor_server.config import Config, ConfigError
from kektor_server.daemon.places import UnsafeFolder, find_places
from kektor_server.mcp import protocol as mcp
from kektor_server.mcp.calls import GRANTED, Call, DaemonCalls, Progress, RequestId
from kektor_server.mcp.watching import HANDSHAKE, Watching

__all__ = ["Relay", "main"]

LONGEST_MESSAGE = 64 << 20
"""Bytes; a longer line is refused without being kept."""

_FIRST_LOOK = 30.0
"""Seconds that a subscription is acknowledged after at most, should the daemon not come up."""


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
    if options.data is None and config.get("url") is not None:
        print(f"kektor mcp: {config.find('url').origin} is not used: agents share {places.data}", file=sys.stderr)
    for name, value in names.items():
        if value is not None and not value.strip():
            print(f"kektor mcp: --{name} is empty: leave it out, or name one", file=sys.stderr)
            return 2
    relay = Relay(catalogue, DaemonCalls(places, names, options.tools), _private_output())
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
        self._watching = Watching(calls, self._changed)

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
            self._watching.drop(params.get("requestId"))

    def _asked(self, request_id: RequestId, method: str, params: dict[str, Any]) -> None:
        envelope = None if method == "initialize" else mcp.read_envelope(params)
        if method == "initialize" and isinstance(params.get("clientInfo"), dict):
            self._client = params["clientInfo"]
        if method == "tools/call":
            self._call(request_id, params, envelope)
        elif method == "resources/read":
            self._read(request_id, params, envelope, lambda result: self._catalogue.stamp_call(result, envelope))
        elif method == "resources/subscribe":
            self._read(request_id, params, envelope, lambda result: self._subscribe(str(params.get("uri")), result))
        elif method == "resources/unsubscribe":
            self._watching.remove(HANDSHAKE, str(params.get("uri")))
            self._answer(request_id, {})
        elif method == "subscriptions/listen":
            self._listen(request_id, params)
        else:
            self._answer(request_id, self._catalogue.answer(method, params, envelope))

    def _call(self, request_id: RequestId, params: dict[str, Any], envelope: mcp.Envelope | None) -> None:
        name, arguments = params.get("name"), params.get("arguments")
        if name not in self._catalogue.tool_names:
            raise mcp.ProtocolError(mcp.INVALID_PARAMS, f"there is no tool {name!r}")
        if arguments is not None and not isinstance(arguments, dict):
            raise mcp.ProtocolError(mcp.INVALID_PARAMS, "arguments must be an object")

        def done(request_id: RequestId, result: dict[str, Any]) -> None:
            self._answer(request_id, self._catalogue.stamp_call(result, envelope))

        call = Call(request_id, str(name), arguments or {}, self._caller(envelope), done)
        self._submit(call._replace(progress=self._progress(params)))

    def _read(
        self,
        request_id: RequestId,
        params: dict[str, Any],
        envelope: mcp.Envelope | None,
        then: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> None:
        """Read a resource; what is answered is what `then` makes of it."""
        uri = params.get("uri")
        if not isinstance(uri, str):
            raise mcp.ProtocolError(mcp.INVALID_PARAMS, "uri must be a text")

        def done(request_id: RequestId, result: dict[str, Any]) -> None:
            if (error := mcp.error_of(result, envelope)) is not None:
                self._fail(request_id, error)
            else:
                self._answer(request_id, then(result))

        caller = self._caller(envelope)
        self._submit(Call(request_id, "resource", {"uri": uri}, caller, done, "resources/read"))

    def _listen(self, request_id: RequestId, params: dict[str, Any]) -> None:
        """Hold a subscription open until the client cancels it; it has been heard when the acknowledgement comes."""
        wanted = params.get("notifications")
        uris = wanted.get("resourceSubscriptions") if isinstance(wanted, dict) else None
        if not isinstance(wanted, dict) or not all(isinstance(uri, str) for uri in uris or ()):
            raise mcp.ProtocolError(mcp.INVALID_PARAMS, "notifications.resourceSubscriptions must be a list of texts")
        honoured = {"resourceSubscriptions": list(uris)} if uris else {}
        told = {"notifications": honoured, "_meta": {mcp.SUBSCRIPTION_ID: request_id}}
        for uri in uris or ():
            self._watching.add(request_id, uri)

        def acknowledge() -> None:
            self._watching.wait(list(uris or ()), _FIRST_LOOK)
            self._tell("notifications/subscriptions/acknowledged", told)

        threading.Thread(target=acknowledge, name="acknowledge", daemon=True).start()

    def _subscribe(self, uri: str, read: dict[str, Any]) -> dict[str, Any]:
        self._watching.add(HANDSHAKE, uri, read["_meta"]["kektor/stamp"])
        return {}

    def _changed(self, holder: RequestId | None, uri: str) -> None:
        meta = {} if holder is HANDSHAKE else {"_meta": {mcp.SUBSCRIPTION_ID: holder}}
        self._tell("notifications/resources/updated", {"uri": uri, **meta})

    def _progress(self, params: dict[str, Any]) -> Progress | None:
        meta = params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        if token is None:
            return None
        return lambda told: self._tell("notifications/progress", {"progressToken": token, **told})

    def _caller(self, envelope: mcp.Envelope | None) -> dict[str, Any]:
        return (None if envelope is None else envelope.client) or self._client

    def _submit(self, call: Call) -> None:
        if not self._calls.submit(call):
            raise mcp.ProtocolError(mcp.INVALID_REQUEST, f"request {call.id!r} is still running")

    def _answer(self, request_id: RequestId, result: dict[str, Any]) -> None:
        self._send({"jsonrpc": "2.0", "id": request_id, "result": result})

    def _tell(self, method: str, params: dict[str, Any]) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

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
    parser.add_argument("--json", action="store_true", help="accepted as by every command; all it prints is JSON")
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
