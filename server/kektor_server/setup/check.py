"""Does it work: the client's own entry is started as the client would, told something, and asked again by another."""

import json
import os
import secrets
import select
import subprocess
import time
from collections.abc import Sequence
from typing import Any

__all__ = ["CheckFailed", "round_trip"]

_SECONDS = 60.0
_WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "indigo", "juniper", "kelp", "lotus")
_KEPT = ("HOME", "PATH", "USER", "LOGNAME", "LANG", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME")
"""What a desktop application hands on: an entry that needs more would not work there."""


class CheckFailed(Exception):
    """The sentence says at which step."""


def round_trip(command: Sequence[str], environ: dict[str, str]) -> str:
    """Save something in one process, find it in the next, erase it; returns what was found."""
    word = f"{secrets.choice(_WORDS)}{secrets.randbelow(9000) + 1000}"
    said = f"The word that kektor setup chose for its check is {word}"
    env = {name: value for name, value in environ.items() if name in _KEPT or name.startswith("KEKTOR_")}
    with _Client(command, env) as first:
        saved = first.call("remember", text=said)
    with _Client(command, env) as second:
        found = second.call("recall", query="Which word did kektor setup choose for its check?")
        text = str(found["content"][0]["text"])
        second.call("forget", ids=[saved["structuredContent"]["id"]], mode="erase", confirm=True)
    if word not in text:
        raise CheckFailed(f"it saved a word and a new process did not find it: {text}")
    return word


class _Client:
    """One MCP client, for three calls."""

    def __init__(self, command: Sequence[str], env: dict[str, str]) -> None:
        try:
            self._process = subprocess.Popen(
                list(command), env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=os.path.expanduser("~")
            )
        except OSError as error:
            raise CheckFailed(f"{command[0]} cannot be started: {error.strerror}") from None
        self._next = 0
        self._read = b""

    def __enter__(self) -> "_Client":
        info = {"name": "kektor-setup", "version": "1"}
        self._ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info})
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        result: dict[str, Any] = self._ask("tools/call", {"name": name, "arguments": arguments})
        if result.get("isError"):
            raise CheckFailed(f"{name}: {result['content'][0]['text']}")
        return result

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise CheckFailed(f"it ended before it was asked ({method})") from None
        while (answer := json.loads(self._line(method))).get("id") != self._next:
            pass
        if "error" in answer:
            raise CheckFailed(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _line(self, method: str) -> bytes:
        assert self._process.stdout is not None
        deadline = time.monotonic() + _SECONDS
        while b"\n" not in self._read:
            ready = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]
            part = os.read(self._process.stdout.fileno(), 65_536) if ready else b""
            if not part:
                raise CheckFailed(f"no answer to {method}" + ("" if ready else f" within {_SECONDS:.0f} s"))
            self._read += part
        line, self._read = self._read.split(b"\n", 1)
        return line
