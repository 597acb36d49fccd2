"""The command line: one process a call."""

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.support.callers.door import FIELDS, Operation, Pending, Refused, Who
from tests.support.callers.rest import RestDoor
from tests.support.callers.server import ServerMachine

__all__ = ["COMMANDS", "CliDoor"]

COMMANDS: dict[Operation, tuple[list[str], dict[str, str]]] = {
    "remember": (
        ["remember"],
        {
            "tags": "--tag", "layer": "--layer", "occurred_at": "--occurred-at", "valid_from": "--valid-from",
            "valid_to": "--valid-to", "id": "--id", "session": "--session",
        },
    ),
    "recall": (
        ["recall"],
        {
            "k": "--k", "budget_tokens": "--budget-tokens", "filter": "--filter", "tags": "--tag", "layers": "--layer",
            "kinds": "--kind", "include": "--include", "as_of": "--as-of", "known_at": "--known-at",
            "history": "--history", "mode": "--mode", "explain": "--explain",
        },
    ),
    "get": (["get"], {}),
    "list": (
        ["list"],
        {
            "filter": "--filter", "include": "--include", "kinds": "--kind", "limit": "--limit", "cursor": "--cursor",
            "as_of": "--as-of", "known_at": "--known-at",
        },
    ),
    "history": (["history"], {}),
    "evolve": (
        ["evolve"],
        {"valid_from": "--valid-from", "partial": "--partial", "remainder": "--remainder", "reason": "--reason"},
    ),
    "correct": (
        ["correct"],
        {"valid_from": "--valid-from", "partial": "--partial", "remainder": "--remainder", "reason": "--reason"},
    ),
    "retract": (["retract"], {"reason": "--reason"}),
    "archive": (["archive"], {"reason": "--reason"}),
    "restore": (["restore-memory"], {"reason": "--reason"}),
    "pin": (["pin"], {"reason": "--reason"}),
    "unpin": (["unpin"], {"reason": "--reason"}),
    "confirm": (["confirm"], {"evidence": "--evidence", "reason": "--reason"}),
    "update": (["update"], {"tags": "--tag", "layer": "--layer", "metadata": "--metadata", "reason": "--reason"}),
    "evidence": (["evidence"], {}),
    "share": (
        ["share"],
        {"index": "--to-index", "user": "--to-user", "agent": "--to-agent", "project": "--to-project", "move": "--move",
         "reason": "--reason"},
    ),
    "link": (["link"], {"weight": "--weight", "valid_from": "--valid-from", "valid_to": "--valid-to"}),
    "unlink": (["unlink"], {"reason": "--reason"}),
    "edges": (
        ["edges"],
        {
            "direction": "--direction", "rel": "--rel", "rels": "--rel", "limit": "--limit", "cursor": "--cursor",
            "as_of": "--as-of", "known_at": "--known-at",
        },
    ),
    "path": (
        ["path"],
        {"rels": "--rel", "max_depth": "--max-depth", "as_of": "--as-of", "known_at": "--known-at"},
    ),
    "forget": (
        ["forget", "--yes"],
        {
            "mode": "--mode", "reason": "--reason", "query": "--query", "filter": "--filter", "preview": "--preview",
            "dry_run": "--dry-run",
        },
    ),
    "sessions": (["sessions"], {"limit": "--limit", "cursor": "--cursor"}),
    "start_session": (["sessions"], {"id": "--start", "title": "--title"}),
    "end_session": (["sessions"], {"end": "--end"}),
    "reviews": (["review"], {"status": "--status", "limit": "--limit", "cursor": "--cursor"}),
    "review": (
        ["review"],
        {
            "decision": "--decision", "note": "--note", "text": "--text", "into": "--into", "keep": "--keep",
            "how": "--how",
        },
    ),
    "tombstones": (["tombstones"], {"limit": "--limit", "cursor": "--cursor"}),
    "lift": (["tombstones"], {"reason": "--reason"}),
    "ingest": (["ingest"], {"session": "--session", "title": "--title"}),
}  # fmt: skip
"""The command of an operation and the flags that its fields are."""


class CliDoor:
    """`kektor … --json`, which finds the machine's server by the data directory."""

    name = "cli"

    def __init__(self, machine: ServerMachine) -> None:
        self.machine = machine

    def operator(self) -> RestDoor:
        return RestDoor(self.machine)

    def restart(self) -> None:
        self.machine.restart()

    def settle(self) -> None:
        self.machine.settle()

    def log_folder(self) -> str:
        return str(self.machine.data / "log")

    def call(self, who: Who, operation: Operation, about: str | None, fields: dict[str, Any]) -> Any:
        if who.kind not in (None, "service"):
            raise Pending(f"nobody of kind {who.kind}")
        if operation not in COMMANDS:
            raise Pending(f"no command: {operation}")
        given = dict(fields)
        command, flags = COMMANDS[operation]
        arguments = [*command, "--data", str(self.machine.data), "--json", "--index", given.pop("index")]
        for name in ("user", "agent", "project"):
            if (value := getattr(who, name)) is not None:
                arguments += [f"--{name}", value]
        with tempfile.TemporaryDirectory() as folder:
            positional = _positional(operation, about, given, Path(folder))
            for name, value in given.items():
                if name not in flags and name in FIELDS:
                    raise Pending(f"no flag: {command[0]} {name}")
                arguments += _flagged(flags.get(name, f"--{name.replace('_', '-')}"), value)
            done = self.machine.run(*arguments, "--", *positional)
        if done.returncode == 0 or (done.stdout and not done.stderr):
            return json.loads(done.stdout)
        raise Refused(json.loads(done.stderr)["error"])


def _positional(operation: Operation, about: str | None, given: dict[str, Any], folder: Path) -> list[str]:
    if operation == "ingest":
        path = folder / "messages.jsonl"
        path.write_text("".join(f"{json.dumps(message)}\n" for message in given.pop("messages")))
        return [str(path)]
    if operation == "forget":
        return list(given.pop("ids", []))
    if operation in ("lift", "end_session"):
        given[operation.removesuffix("_session")] = about
        return []
    if operation == "share":
        to = given.pop("to")
        given |= {**to.get("scope", {}), **({"index": to["index"]} if "index" in to else {})}
    if operation == "link":
        (edge,) = given.pop("edges")
        given |= edge
    if operation in ("link", "unlink"):
        return [given.pop("src"), given.pop("rel"), given.pop("dst")]
    if operation == "path":
        return [given.pop("src"), given.pop("dst")]
    if operation in ("archive", "review"):
        return [str(about)]
    return [*([] if about is None else [about]), *(given.pop(name) for name in ("text", "query") if name in given)]


def _flagged(flag: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [flag] if value else []
    if isinstance(value, list | tuple):
        return [part for each in value for part in (flag, str(each))]
    return [flag, json.dumps(value) if isinstance(value, dict) else str(value)]
