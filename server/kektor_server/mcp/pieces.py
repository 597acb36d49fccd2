"""What tools of every profile are made of: arguments, results, and the steps that several take."""

from typing import Any

from kektor.contract import convert
from kektor.engine.records import Receipt
from kektor.errors import Invalid
from kektor.memory import requests as rq
from kektor.memory.objects import Edge, Memory
from kektor_server.mcp import render
from kektor_server.mcp.registry import ToolCall, ToolResult
from kektor_server.mcp.schema import Schema, array, integer, number, record, text

__all__ = [
    "AS_OF",
    "EDGE",
    "HANDLE",
    "INDEX",
    "KNOWN_AT",
    "REASON",
    "RECEIPT",
    "RELS",
    "TIME",
    "about_one",
    "confirmed",
    "edge_handle",
    "memory_handle",
    "receipt_result",
    "text_of",
    "word_of",
]

_SHOWN = 200
"""Code points of a text in a list; read_memory has the rest."""

TIME = "a date or time such as 2026-03-01, 2026-03 or 2026-03-01T09:30:00Z"

INDEX = {"index": text("The index to use; leave it out for the usual one.")}
REASON = {"reason": text("Why, in a few words.")}
AS_OF = text(f"What held in the world at {TIME}.")
KNOWN_AT = text(f"What the memory held at {TIME}, before later corrections.")
RELS = array(text(), "Only these relations.")

RECEIPT: Schema = record(
    {
        "outcome": text("created, duplicate, superseded, retracted, … : what was done"),
        "id": text("The memory this is now about"),
        "ids": array(text(), "Every id concerned, when there are several"),
        "version": integer("Its version in its lineage"),
        "lsn": integer("Position in the log"),
        "of": text("The memory that was there already"),
        "conflicts": array(text(), "Memories that disagree with it"),
        "remainder": text("The memory of what a partial correction left"),
        "reflection": text("What awaits a person's decision"),
        "warnings": array(text(), "What to know about it"),
    },
    ("outcome",),
    closed=False,
)

HANDLE: Schema = record(
    {
        "id": text(),
        "kind": text(),
        "text": text(f"Its first {_SHOWN} characters"),
        "length": integer("Characters of the whole text, when more than are shown: read_memory gives it"),
        "version": integer(),
        "valid": text("When it holds, in words"),
        "status": text(),
        "trust": text(),
        "recorded_at": text(),
        "tags": array(text()),
    },
    ("id", "kind", "text", "status", "trust"),
    closed=False,
)

EDGE: Schema = record(
    {
        "src": text(),
        "rel": text(),
        "dst": text(),
        "weight": number(),
        "valid_from": text(),
        "valid_to": text(),
        "created_at": text(),
    },
    ("src", "rel", "dst"),
    closed=False,
)


def memory_handle(memory: Memory) -> dict[str, Any]:
    """A memory in a list: its beginning, and where it stands."""
    handle: dict[str, Any] = {
        "id": memory.id,
        "kind": memory.kind,
        "text": memory.text[:_SHOWN],
        "version": memory.version,
        "valid": memory.validity.label,
        "status": memory.status,
        "trust": memory.trust,
        "recorded_at": memory.recorded_at,
        "tags": memory.tags,
    }
    if len(memory.text) > _SHOWN:
        handle["length"] = len(memory.text)
    return handle


def edge_handle(edge: Edge) -> dict[str, Any]:
    """An edge without what is null."""
    parts = ("src", "rel", "dst", "weight", "props", "valid_from", "valid_to", "created_at")
    return {name: value for name in parts if (value := getattr(edge, name)) is not None}


def receipt_result(receipt: Receipt) -> ToolResult:
    """A write, told."""
    return ToolResult(render.receipt_text(receipt), render.plain(receipt))


def about_one(call: ToolCall) -> tuple[str, rq.VerbRequest]:
    """The id a tool is about, and the rest of its arguments."""
    fields = call.fields(idempotency_key=call.key)
    node_id = text_of(fields, "id")
    del fields["id"]
    return node_id, convert(rq.VerbRequest, fields)


def text_of(fields: dict[str, Any], name: str) -> str:
    """An argument that must be a text."""
    value = fields[name]
    if not isinstance(value, str):
        raise Invalid(f"{name} must be a text, not {value!r}", field=name)
    return value


def word_of(fields: dict[str, Any], name: str, choices: tuple[str, ...]) -> str:
    """Take an argument out that is one of a few words, the first when it is left out."""
    value = fields.pop(name, choices[0])
    if value not in choices:
        raise Invalid(f"{name} must be {' or '.join(map(repr, choices))}, not {value!r}", field=name)
    return str(value)


def confirmed(fields: dict[str, Any]) -> bool:
    """Take `confirm` out."""
    value = fields.pop("confirm", False)
    if not isinstance(value, bool):
        raise Invalid(f"confirm must be true or false, not {value!r}", field="confirm")
    return value
