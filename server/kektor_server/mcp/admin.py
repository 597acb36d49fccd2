"""The profile `admin` adds what concerns whole indexes and the database; its launcher gives the caller that right."""

from kektor.contract import convert
from kektor.errors import Invalid
from kektor.memory import requests as rq
from kektor.memory.presenting import index_of
from kektor_server.mcp import render
from kektor_server.mcp.pieces import REASON, RECEIPT, confirmed, receipt_result, text_of
from kektor_server.mcp.registry import Tool, ToolCall, ToolResult
from kektor_server.mcp.schema import boolean, integer, obj, record, text

__all__ = ["ADMIN"]

_NAME = text("The index's name.")
_POLICY = obj("evidence (off, record, require), agent_writes (accept, propose), write (open, gated, frozen).")
_LAYERS = obj("By name, each an object such as {half_life_days: 30}.")
_SETTINGS = record(
    {"name": text(), "dim": integer(), "metric": text(), "embedder": text(), "policy": obj(), "layers": obj()},
    ("name", "dim"),
    closed=False,
)


def _create_index(call: ToolCall) -> ToolResult:
    fields = {**call.arguments, "idempotency_key": call.key}
    made = call.operations.create_index(convert(rq.CreateIndexRequest, fields), call.principal)
    return ToolResult(f"created: {made.name}", render.plain(index_of(made)))


def _configure_index(call: ToolCall) -> ToolResult:
    fields = {**call.arguments, "idempotency_key": call.key}
    name = text_of(fields, "name")
    del fields["name"]
    request = convert(rq.ConfigureIndexRequest, fields)
    settings = call.operations.configure_index(name, request, call.principal)
    return ToolResult(f"configured: {name}", render.plain(index_of(settings)))


def _delete_index(call: ToolCall) -> ToolResult:
    fields = {"reason": "", **call.arguments}
    sure, name, reason = confirmed(fields), text_of(fields, "name"), text_of(fields, "reason")
    if not sure:
        held = call.operations.index_stats(name, call.principal)
        raise Invalid(
            f"deleting {name!r} takes its {held.nodes} nodes and {held.edges} edges for good: tell the user, then "
            "pass confirm=true",
            field="confirm",
        )
    return receipt_result(
        call.operations.drop_index(name, call.principal, reason=reason, idempotency_key=call.key),
    )


def _checkpoint(call: ToolCall) -> ToolResult:
    lsn = call.operations.checkpoint(call.principal).lsn
    return ToolResult(f"checkpoint at {lsn}", {"lsn": lsn})


ADMIN = (
    Tool(
        name="create_index",
        title="Create an index",
        about="Make an index: memories in it are kept apart from all others. Without dim and embedder it gets the "
        "default embedder.",
        arguments={
            "name": _NAME,
            "dim": integer("Numbers of a vector, when you bring your own.", minimum=1, maximum=65_536),
            "metric": text("cosine (the default), l2 or dot.", enum=("cosine", "l2", "dot")),
            "embedder": text("What turns texts into vectors."),
            "policy": _POLICY,
            "layers": _LAYERS,
            **REASON,
        },
        required=("name",),
        output=_SETTINGS,
        run=_create_index,
    ),
    Tool(
        name="configure_index",
        title="Configure an index",
        about="Merge a policy and layers into the settings of an index.",
        arguments={"name": _NAME, "policy": _POLICY, "layers": _LAYERS, **REASON},
        required=("name",),
        output=_SETTINGS,
        run=_configure_index,
        repeatable=True,
    ),
    Tool(
        name="delete_index",
        title="Delete an index",
        about="Delete an index with all it holds, for good. Only when the user asks for it; needs confirm=true.",
        arguments={"name": _NAME, "confirm": boolean("Must be true."), **REASON},
        required=("name",),
        output=RECEIPT,
        run=_delete_index,
        destroys=True,
    ),
    Tool(
        name="checkpoint",
        title="Write a checkpoint",
        about="Bring everything committed into checkpoint files, so that opening is quick and the log can be trimmed.",
        arguments={},
        required=(),
        output=record({"lsn": integer("Up to which position of the log")}, ("lsn",), closed=False),
        run=_checkpoint,
        repeatable=True,
    ),
)
