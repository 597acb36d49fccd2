"""MCP over stdio: the official client and one `kektor mcp` for everybody who calls."""

import json
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import mcp
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.client.client import Client

from tests.support.callers.door import FIELDS, Operation, Pending, Refused, Who
from tests.support.callers.rest import RestDoor
from tests.support.callers.server import ServerMachine

__all__ = ["COMPOSED", "TOOLS", "McpDoor"]

TOOLS: dict[Operation, tuple[str, dict[str, Any]]] = {
    "start_session": ("start_session", {}),
    "end_session": ("end_session", {}),
    "remember": ("remember", {}),
    "recall": ("recall", {}),
    "get": ("read_memory", {}),
    "evolve": ("correct", {"kind": "changed"}),
    "correct": ("correct", {"kind": "wrong"}),
    "retract": ("retract", {}),
    "archive": ("archive_memory", {}),
    "restore": ("restore_memory", {}),
    "pin": ("pin_memory", {"pinned": True}),
    "unpin": ("pin_memory", {"pinned": False}),
    "update": ("update_memory", {}),
    "unlink": ("unlink", {}),
    "edges": ("edges", {}),
    "evidence": ("evidence", {}),
    "forget": ("forget", {}),
    "confirm": ("confirm", {}),
    "review": ("review", {}),
    "reviews": ("review", {}),
    "link": ("link", {}),
    "traverse": ("explore", {}),
}
"""The tool of an operation, with what its arguments always are."""

COMPOSED: dict[str, Operation] = {
    "create_entities": "remember",
    "add_observations": "remember",
    "create_relations": "link",
    "delete_entities": "archive",
    "delete_observations": "archive",
    "delete_relations": "unlink",
    "transfer": "share",
    "create_index": "create_index",
    "configure_index": "configure_index",
    "delete_index": "drop_index",
}
"""Tools of other profiles by the operation they change something through; tests/e2e/mcp breaks policies with them."""


class McpDoor:
    """Relays of a machine's server, one for each grant, kept until the end."""

    name = "mcp"

    def __init__(self, machine: ServerMachine) -> None:
        self.machine = machine
        self._exits = ExitStack()
        self._portal: BlockingPortal = self._exits.enter_context(start_blocking_portal())
        self._clients: dict[Who, Client] = {}
        self._arguments: dict[str, frozenset[str]] = {}

    def operator(self) -> RestDoor:
        return RestDoor(self.machine)

    def restart(self) -> None:
        self.machine.restart()

    def settle(self) -> None:
        self.machine.settle()

    def log_folder(self) -> str:
        return str(self.machine.data / "log")

    def close(self) -> None:
        self._exits.close()

    def call(self, who: Who, operation: Operation, about: str | None, fields: dict[str, Any]) -> Any:
        if who.kind not in (None, "agent"):
            raise Pending(f"nobody of kind {who.kind}")
        if operation not in TOOLS:
            raise Pending(f"no tool: {operation}")
        tool, always = TOOLS[operation]
        client = self._client(who)
        arguments = _arguments(operation, about, {**fields, **always})
        unknown = (arguments.keys() & FIELDS) - self._arguments[tool] - {"scope"}
        if unknown:
            raise Pending(f"no argument: {tool} {', '.join(sorted(unknown))}")
        result = self._portal.call(client.call_tool, tool, arguments)
        if result.is_error:
            raise Refused((result.meta or {})["kektor/error"])
        return _answer(operation, result)

    def _client(self, who: Who) -> Client:
        # A model cannot raise its rights, so the relay knows of none.
        who = who._replace(kind=None, rights=())
        if who not in self._clients:
            flags = [part for name in ("user", "agent", "project", "index") for part in _flag(name, getattr(who, name))]
            command, *rest = [
                *self.machine.command,
                "mcp",
                "--tools",
                "agent",
                "--data",
                str(self.machine.data),
                *flags,
            ]
            parameters = mcp.StdioServerParameters(command=command, args=rest, env=self.machine.env)
            client = Client(parameters, client_info=mcp.Implementation(name="acceptance", version="1"))
            entered: AbstractContextManager[Client] = self._portal.wrap_async_context_manager(client)
            self._clients[who] = self._exits.enter_context(entered)
            if not self._arguments:
                listed = self._portal.call(self._clients[who].list_tools).tools
                self._arguments = {tool.name: frozenset(tool.input_schema["properties"]) for tool in listed}
        return self._clients[who]


def _flag(name: str, value: str | None) -> list[str]:
    return [] if value is None else [f"--{name}", value]


def _arguments(operation: Operation, about: str | None, fields: dict[str, Any]) -> dict[str, Any]:
    arguments = dict(fields)
    if about is not None:
        arguments["session" if operation == "end_session" else "id"] = about
    erases = arguments.get("mode") == "erase" or "preview" in arguments
    if operation == "forget" and erases and not arguments.get("dry_run"):
        arguments["confirm"] = True
    if operation == "traverse":
        arguments["id"] = arguments.pop("root")
    if operation == "link":
        (edge,) = arguments.pop("edges")
        arguments |= edge
    claim = arguments.get("claim")
    if isinstance(claim, list | tuple):
        arguments["claim"] = dict(zip(("subject", "predicate", "object"), claim, strict=True))
    return arguments


def _answer(operation: Operation, result: Any) -> Any:
    """The structured result in the shape of REST's, as far as it goes; a recall's text is its context."""
    structured = json.loads(json.dumps(result.structured_content))
    text = result.content[0].text
    if operation == "recall":
        hits = [
            {
                "memory": {
                    "id": hit["id"],
                    "kind": hit["kind"],
                    "status": hit["status"],
                    "trust": hit["trust"],
                    "validity": {"label": hit["valid"]},
                },
                "score": hit["score"],
                "via": hit["via"],
                "resolved_from": hit.get("resolved_from"),
            }
            for hit in structured["hits"]
        ]
        context = text if hits else ""
        return {**structured, "hits": hits, "context": context}
    if operation == "reviews":
        return {"items": structured["reviews"], "next_cursor": None}
    if operation == "traverse":
        nodes = [{"memory": {"id": n["id"], "kind": n["kind"]}, "depth": n["depth"]} for n in structured["nodes"]]
        return {"nodes": nodes, "edges": structured["edges"], "truncated": structured["truncated"]}
    return structured
