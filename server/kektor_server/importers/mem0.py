"""mem0: its SQLite history, in which every memory has its versions, and an export of the payloads in Qdrant."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from kektor_server.importers.items import Change, Item, Left, Statement, Unreadable
from kektor_server.importers.sources import instant, json_lines, json_of, objects, read_text, text_of

__all__ = ["read_mem0"]

_SQLITE = b"SQLite format 3\x00"
_OURS = ("data", "memory", "hash", "created_at", "updated_at", "user_id", "agent_id", "run_id", "text_lemmatized")


def read_mem0(path: Path) -> Iterator[Item]:
    """Whichever of the two the file is."""
    try:
        with path.open("rb") as stream:
            begins = stream.read(len(_SQLITE))
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}") from None
    yield from _history(path) if begins == _SQLITE else _payloads(path)


def _history(path: Path) -> Iterator[Item]:
    """ADD, UPDATE and DELETE of each memory in the order they happened."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            rows = database.execute("SELECT * FROM history ORDER BY created_at, updated_at, rowid").fetchall()
    except sqlite3.DatabaseError as error:
        raise Unreadable(f"{path} is no history of mem0: {error}") from None
    begun: set[str] = set()
    for row in rows:
        memory, event = str(row["memory_id"]), str(row["event"]).upper()
        at = instant(row["updated_at"]) or instant(row["created_at"])
        text = text_of(row["new_memory"])
        where = f"history {row['id']} of memory {memory}"
        if event == "DELETE":
            if memory in begun:
                yield Change(f"event:{row['id']}", memory, None, at)
        elif not text.strip():
            yield Left(where, "it has no text")
        elif memory not in begun:  # an UPDATE without its ADD begins there
            begun.add(memory)
            yield Statement(memory, text, _since(instant(row["created_at"]) or at))
        elif event == "UPDATE":
            yield Change(f"event:{row['id']}", memory, text, at)
        else:
            yield Left(where, f"a second {event} of the same memory")


def _payloads(path: Path) -> Iterator[Item]:
    for place, point in _points(path):
        payload = point.get("payload")
        text = text_of(payload.get("data") or payload.get("memory")) if isinstance(payload, dict) else ""
        if not isinstance(payload, dict) or "id" not in point:
            raise Unreadable(f"{place}: a point has an id and a payload")
        if not text.strip():
            yield Left(place, "it has no text (payload.data)")
            continue
        metadata = {name: value for name, value in payload.items() if name not in _OURS and value is not None}
        if payload.get("run_id"):
            metadata["run_id"] = payload["run_id"]
        members = {"user": payload.get("user_id"), "agent": payload.get("agent_id")}
        scope = {name: str(value) for name, value in members.items() if value}
        yield Statement(
            str(point["id"]), text, {**_since(instant(payload.get("created_at"))), "metadata": metadata}, scope
        )


def _points(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """A list of points, an answer of Qdrant's scroll, or a point a line."""
    text = read_text(path)
    if text.lstrip().startswith("{") and "\n{" in text.strip():
        return list(json_lines(text, str(path)))
    value = json_of(text, str(path))
    if isinstance(value, dict):
        value = value.get("result", value)
        value = value.get("points", [value]) if isinstance(value, dict) else value
    return [(f"{path}, point {number}", point) for number, point in enumerate(objects(value, str(path)), 1)]


def _since(at: str | None) -> dict[str, Any]:
    return {} if at is None else {"valid_from": at}
