"""A client of the relay that says exactly what a test wants said."""

import json
import subprocess
import threading
from contextlib import suppress
from typing import Any

from tests.support.doors import Machine

__all__ = ["MODERN", "RawClient"]

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "tester", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class RawClient:
    """One relay and its pipes. `request` waits for the answer with its id, whatever comes before."""

    def __init__(self, machine: Machine, *flags: str) -> None:
        self.process = subprocess.Popen(
            [*machine.command, "mcp", "--data", str(machine.data), *flags],
            env=machine.env,
            cwd=machine.root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._answers: dict[Any, dict[str, Any]] = {}
        self._unnamed: list[dict[str, Any]] = []
        self._arrived = threading.Condition()
        self._ended = False
        self._next = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        machine.at_end.append(self.end)

    def send(self, message: Any) -> None:
        """One line; bytes go as they are."""
        assert self.process.stdin is not None
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def begin(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request; returns its id."""
        self._next += 1
        self.send({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params or {}})
        return self._next

    def answer(self, request_id: Any, timeout: float = 60.0) -> dict[str, Any]:
        """The whole message that answers a request."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: request_id in self._answers or self._ended, timeout)
            assert request_id in self._answers, self._errors()
            return self._answers[request_id]

    def unnamed(self, timeout: float = 60.0) -> dict[str, Any]:
        """The next message with a null id."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: self._unnamed or self._ended, timeout)
            return self._unnamed.pop(0)

    def answered(self) -> set[Any]:
        with self._arrived:
            return set(self._answers)

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        return self.answer(self.begin(method, params))

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The result of a tool."""
        return self.answer(self.begin("tools/call", {"name": name, "arguments": arguments}))["result"]

    def initialize(self, version: str = "2025-11-25", client: str = "tester") -> dict[str, Any]:
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": client, "version": "1"}}
        answer = self.request("initialize", params)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer["result"]

    def close(self) -> tuple[int, bytes]:
        """End of input; returns the exit code and what was written to standard error."""
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        self.process.stdin.close()
        errors = self.process.stderr.read()
        return self.process.wait(60), errors

    def end(self) -> None:
        """Kill the relay if it still runs, and let its pipes go."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def _errors(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            with self._arrived:
                if message.get("id") is None:
                    self._unnamed.append(message)
                else:
                    self._answers[message["id"]] = message
                self._arrived.notify_all()
        with self._arrived:
            self._ended = True
            self._arrived.notify_all()
