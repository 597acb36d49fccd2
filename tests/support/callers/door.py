"""What a door is, and what can be asked through one."""

import json
from typing import Any, Literal, NamedTuple, Protocol

from kektor.ingest import IngestMessagesRequest
from kektor.memory import requests

__all__ = ["FIELDS", "Caller", "Door", "Operation", "Pending", "Refused", "Who"]

FIELDS = frozenset({"resolve"}) | frozenset(
    name
    for request in (*(getattr(requests, name) for name in requests.__all__), IngestMessagesRequest)
    for name in getattr(request, "__struct_fields__", ())
)
"""Every field that some request has. One that none has is sent through any door, for the door to refuse."""

Operation = Literal[
    "remember", "recall", "get", "list", "history", "evidence", "evolve", "correct", "retract", "archive", "restore",
    "pin", "unpin", "update", "confirm", "reinforce", "forget", "ingest", "link", "unlink", "edges", "traverse",
    "path", "upsert", "node", "nodes", "patch", "delete", "search", "search_batch", "indexes", "create_index",
    "configure_index", "drop_index", "stats", "export", "delete_memory", "tombstones", "lift", "erasures",
    "erasure", "jwks", "share", "start_session", "end_session", "sessions", "sources",
    "reviews", "review", "dismiss", "kv_get", "kv_put", "kv_delete",
]  # fmt: skip


class Who(NamedTuple):
    """Somebody as a door would establish it: their scope is their grant. A `kind` of None is the door's own."""

    user: str | None = None
    agent: str | None = None
    project: str | None = None
    index: str | None = None
    """The only index the grant reaches; None is any."""
    kind: str | None = None
    """human, agent or service."""
    rights: tuple[str, ...] = ("read", "write", "review", "admin")


class Refused(Exception):
    """The error object that a door answered with."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code: str = error["code"]
        self.message: str = error["message"]
        self.field: str | None = error.get("field")
        self.details: dict[str, Any] = error.get("details") or {}

    def without(self, *words: str) -> tuple[str, str, str | None, dict[str, Any]]:
        """All of it with some words taken out, for telling whether two refusals say the same."""
        told = json.dumps([self.code, self.message, self.field, self.details])
        for number, word in enumerate(words):
            told = told.replace(word, f"<{number}>")
        code, message, field, details = json.loads(told)
        return code, message, field, details


class Pending(Exception):
    """A door does not have this yet."""


class Door(Protocol):
    """A way in, over a database of its own or one it shares with other doors."""

    name: str

    def call(self, who: Who, operation: Operation, about: str | None, fields: dict[str, Any]) -> Any:
        """Run one operation, `about` an id where it is about one; raises Refused, or Pending."""

    def operator(self) -> "Door":
        """The door to prepare a test through what this one cannot do: of the same database."""

    def restart(self) -> None:
        """End the process that owns the database as a power cut would, and start it again."""

    def settle(self) -> None:
        """Let everything reach its resting place: a checkpoint."""

    def log_folder(self) -> str:
        """Where the log lies, for reading what was noted of a refusal."""


class Caller:
    """Somebody at a door, with an index in mind. Every method answers plain JSON."""

    def __init__(self, door: Door, who: Who, index: str) -> None:
        self.door = door
        self.who = who
        self.index = index

    def call(self, operation: Operation, about: str | None = None, **fields: Any) -> Any:
        return self.door.call(self.who, operation, about, {"index": self.index, **fields})

    def remember(self, text: str, **fields: Any) -> Any:
        return self.call("remember", text=text, **fields)

    def recall(self, query: str, **fields: Any) -> Any:
        return self.call("recall", query=query, **fields)

    def get(self, id: str, **fields: Any) -> Any:
        return self.call("get", id, **fields)

    def list(self, **fields: Any) -> Any:
        return self.call("list", **fields)["items"]

    def history(self, id: str, **fields: Any) -> Any:
        return self.call("history", id, **fields)["items"]

    def evidence(self, id: str, **fields: Any) -> Any:
        return self.call("evidence", id, **fields)["items"]

    def evolve(self, id: str, text: str, **fields: Any) -> Any:
        return self.call("evolve", id, text=text, **fields)

    def correct(self, id: str, text: str, **fields: Any) -> Any:
        return self.call("correct", id, text=text, **fields)

    def retract(self, id: str, **fields: Any) -> Any:
        return self.call("retract", id, **fields)

    def archive(self, id: str, **fields: Any) -> Any:
        return self.call("archive", id, **fields)

    def restore(self, id: str, **fields: Any) -> Any:
        return self.call("restore", id, **fields)

    def update(self, id: str, **fields: Any) -> Any:
        return self.call("update", id, **fields)

    def confirm(self, id: str, **fields: Any) -> Any:
        return self.call("confirm", id, **fields)

    def erase(self, *ids: str, **fields: Any) -> Any:
        return self.call("forget", ids=[*ids], mode="erase", **fields)

    def forget(self, *ids: str, **fields: Any) -> Any:
        return self.call("forget", ids=[*ids], **fields)

    def ingest(self, session: str, messages: Any, **fields: Any) -> Any:
        return self.call("ingest", session=session, messages=messages, **fields)

    def tombstones(self, **fields: Any) -> Any:
        return self.call("tombstones", **fields)["items"]

    def share(self, id: str, **fields: Any) -> Any:
        return self.call("share", id, **fields)

    def start_session(self, id: str | None = None, **fields: Any) -> Any:
        return self.call("start_session", **({} if id is None else {"id": id}), **fields)

    def end_session(self, id: str, **fields: Any) -> Any:
        return self.call("end_session", id, **fields)

    def sessions(self, **fields: Any) -> Any:
        return self.call("sessions", **fields)["items"]

    def reviews(self, **fields: Any) -> Any:
        return self.call("reviews", **fields)["items"]

    def review(self, id: str, decision: str, **fields: Any) -> Any:
        return self.call("review", id, decision=decision, **fields)

    def lift(self, id: str, **fields: Any) -> Any:
        return self.call("lift", id, **fields)

    def link(self, src: str, rel: str, dst: str, **fields: Any) -> Any:
        return self.call("link", edges=[{"src": src, "rel": rel, "dst": dst, **fields}])

    def unlink(self, src: str, rel: str, dst: str, **fields: Any) -> Any:
        return self.call("unlink", src=src, rel=rel, dst=dst, **fields)

    def edges(self, id: str, **fields: Any) -> Any:
        return self.call("edges", id, **fields)["items"]

    def traverse(self, root: str, **fields: Any) -> Any:
        return self.call("traverse", root=root, **fields)

    def path(self, src: str, dst: str, **fields: Any) -> Any:
        return self.call("path", src=src, dst=dst, **fields)

    def upsert(self, *nodes: dict[str, Any], **fields: Any) -> Any:
        return self.call("upsert", nodes=[*nodes], **fields)

    def search(self, **fields: Any) -> Any:
        return self.call("search", **fields)["hits"]
