"""Every tool of every profile is listed and called by somebody else's client: the official SDK, and the inspector.

The inspector comes from the npm registry and takes seconds a call: KEKTOR_INSPECTOR names the package to run with npx,
such as @modelcontextprotocol/inspector@0.17.5 (make inspect).
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, Protocol

import mcp
import pytest
from anyio.from_thread import start_blocking_portal
from mcp.client.client import Client

from kektor_server.mcp.profiles import REGISTRY
from tests.support.doors import Machine

INSPECTOR = os.environ.get("KEKTOR_INSPECTOR")
Ids = dict[str, Any]


class Runner(Protocol):
    def tools(self) -> list[str]: ...
    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]: ...


class Sdk:
    """The official client, which holds every result against its schema."""

    def __init__(self, machine: Machine) -> None:
        self._exits = ExitStack()
        self._portal = self._exits.enter_context(start_blocking_portal())
        command, *rest = [*machine.command, "mcp", "--tools", "all", "--data", str(machine.data)]
        parameters = mcp.StdioServerParameters(command=command, args=rest, env=machine.env)
        entered: AbstractContextManager[Client] = self._portal.wrap_async_context_manager(Client(parameters))
        self._client = self._exits.enter_context(entered)

    def tools(self) -> list[str]:
        return [tool.name for tool in self._portal.call(self._client.list_tools).tools]

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        result = self._portal.call(self._client.call_tool, name, arguments)
        return {"isError": result.is_error, "structuredContent": result.structured_content, "content": result.content}

    def close(self) -> None:
        self._exits.close()


class Inspector:
    """The inspector's command line, a process a call."""

    def __init__(self, machine: Machine) -> None:
        self._env = {**machine.env, "HOME": os.environ["HOME"]}
        self._start = machine.root / "start"
        command = " ".join([*machine.command, "mcp", "--tools", "all", "--data", str(machine.data)])
        self._start.write_text(f"#!/bin/sh\nexec {command}\n")
        self._start.chmod(0o700)

    def tools(self) -> list[str]:
        return [tool["name"] for tool in self._run("--method", "tools/list")["tools"]]

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        given = [
            part
            for key, value in arguments.items()
            for part in ("--tool-arg", f"{key}={value if isinstance(value, str) else json.dumps(value)}")
        ]
        return self._run("--method", "tools/call", "--tool-name", name, *given)

    def close(self) -> None:
        return

    def _run(self, *arguments: str) -> dict[str, Any]:
        command = ["npx", "-y", str(INSPECTOR), "--cli", str(self._start), *arguments]
        done = subprocess.run(command, env=self._env, capture_output=True, text=True, timeout=180)
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
        return answer


@pytest.fixture(params=["sdk", *(["inspector"] if INSPECTOR else [])])
def runner(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Runner]:
    machine = Machine(tmp_path)
    runner = Sdk(machine) if request.param == "sdk" else Inspector(machine)
    yield runner
    runner.close()
    machine.halt()
    assert machine.processes() == []


GRAPH = {"name": "Pier 7", "entityType": "place", "observations": ["Has a crane"]}
QUAY = {"name": "Quay 2", "entityType": "place", "observations": []}
NEAR = {"from": "Pier 7", "to": "Quay 2", "relationType": "near"}

CALLS: list[tuple[str, Callable[[Ids], dict[str, Any]], str]] = [
    ("start_session", lambda i: {"id": "handover", "title": "The handover"}, ""),
    ("remember", lambda i: {"text": "Dana owns the Henderson account", "tags": ["crm"]}, "dana"),
    ("remember", lambda i: {"text": "Erik maintains the ferry timetable"}, "erik"),
    ("remember", lambda i: {"text": "The kiosk closes at six"}, "kiosk"),
    ("recall", lambda i: {"query": "Who owns the Henderson account?", "k": 3}, ""),
    ("read_memory", lambda i: {"id": i["dana"]}, ""),
    ("correct", lambda i: {"id": i["dana"], "text": "Priya owns the Henderson account"}, "priya"),
    ("link", lambda i: {"src": i["priya"], "rel": "works_with", "dst": i["erik"]}, ""),
    ("explore", lambda i: {"id": i["priya"]}, ""),
    ("subgraph", lambda i: {"roots": [i["priya"]]}, ""),
    ("edges", lambda i: {"id": i["priya"]}, ""),
    ("find_path", lambda i: {"src": i["priya"], "dst": i["erik"]}, ""),
    ("unlink", lambda i: {"src": i["priya"], "rel": "works_with", "dst": i["erik"]}, ""),
    ("history", lambda i: {"id": i["priya"]}, ""),
    ("evidence", lambda i: {"id": i["priya"]}, ""),
    ("update_memory", lambda i: {"id": i["erik"], "tags": ["ferry"]}, ""),
    ("pin_memory", lambda i: {"id": i["erik"]}, ""),
    ("archive_memory", lambda i: {"id": i["erik"], "reason": "closed"}, ""),
    ("restore_memory", lambda i: {"id": i["erik"]}, ""),
    ("list_memories", lambda i: {"limit": 2}, ""),
    ("search", lambda i: {"text": "ferry timetable"}, ""),
    ("review", lambda i: {}, ""),
    ("end_session", lambda i: {"session": "handover"}, ""),
    ("list_sessions", lambda i: {}, ""),
    ("retract", lambda i: {"id": i["kiosk"], "reason": "misheard"}, ""),
    ("forget", lambda i: {"ids": [i["erik"]], "mode": "archive"}, ""),
    ("transfer", lambda i: {"id": i["priya"], "to_project": "ferries"}, ""),
    ("stats", lambda i: {}, ""),
    ("list_indexes", lambda i: {}, ""),
    ("create_entities", lambda i: {"entities": [GRAPH, QUAY]}, ""),
    ("create_relations", lambda i: {"relations": [NEAR]}, ""),
    ("add_observations", lambda i: {"observations": [{"entityName": "Quay 2", "contents": ["Is short"]}]}, ""),
    ("read_graph", lambda i: {}, ""),
    ("search_nodes", lambda i: {"query": "crane"}, ""),
    ("open_nodes", lambda i: {"names": ["Quay 2"]}, ""),
    ("delete_relations", lambda i: {"relations": [NEAR]}, ""),
    ("delete_observations", lambda i: {"deletions": [{"entityName": "Quay 2", "observations": ["Is short"]}]}, ""),
    ("delete_entities", lambda i: {"entityNames": ["Quay 2"]}, ""),
    ("create_index", lambda i: {"name": "ledger", "dim": 3}, ""),
    ("configure_index", lambda i: {"name": "ledger", "policy": {"write": "open"}}, ""),
    ("checkpoint", lambda i: {}, ""),
    ("delete_index", lambda i: {"name": "ledger", "confirm": True}, ""),
]
FAILS = {"confirm": lambda i: {"id": i["priya"], "evidence": "nobody"}}
"""An agent confirms with a source said since, and there is none here."""


@pytest.mark.timeout(1200)
def test_doors_conformance_every_tool_is_listed_and_called(runner: Runner) -> None:
    assert runner.tools() == REGISTRY.profiles["all"]
    assert {name for name, _, _ in CALLS} | set(FAILS) == set(REGISTRY.tools)
    ids: Ids = {}
    for name, arguments, kept in CALLS:
        result = runner.call(name, arguments(ids))
        assert not result.get("isError"), (name, result)
        assert isinstance(result["structuredContent"], dict), name
        assert result["content"], name
        if kept:
            ids[kept] = result["structuredContent"]["id"]
    for name, arguments in FAILS.items():
        assert runner.call(name, arguments(ids))["isError"], name
