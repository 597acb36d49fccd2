"""Sessions for agents, and handing a memory on."""

from kektor.contract import convert
from kektor.memory import requests as rq
from kektor_server.mcp import render
from kektor_server.mcp.pieces import INDEX, RECEIPT, receipt_result, text_of
from kektor_server.mcp.registry import Tool, ToolCall, ToolResult
from kektor_server.mcp.schema import array, boolean, integer, record, text

__all__ = ["LIST_SESSIONS", "SESSIONS", "TRANSFER"]


def _start(call: ToolCall) -> ToolResult:
    request = convert(rq.StartSessionRequest, call.fields(idempotency_key=call.key))
    return receipt_result(call.operations.start_session(request, call.principal))


def _end(call: ToolCall) -> ToolResult:
    fields = call.fields(idempotency_key=call.key)
    name = text_of(fields, "session")
    del fields["session"]
    return receipt_result(call.operations.end_session(name, convert(rq.EndSessionRequest, fields), call.principal))


def _list(call: ToolCall) -> ToolResult:
    fields = call.fields()
    index = text_of(fields, "index")
    request = convert(rq.ListRequest, {"limit": 20, **fields})
    page = call.operations.sessions(index, call.principal, limit=request.limit, cursor=request.cursor)
    lines = [
        f"{session.id} ({session.status}, {session.messages} messages)"
        + (f": {render.quoted(session.title)}" if session.title else "")
        for session in page.items
    ]
    if page.next_cursor is not None:
        lines.append(f"there are more: cursor={page.next_cursor}")
    told = {
        "sessions": [render.plain(session) for session in page.items],
        **({} if page.next_cursor is None else {"next_cursor": page.next_cursor}),
    }
    return ToolResult("\n".join(lines) or "no sessions", told)


def _transfer(call: ToolCall) -> ToolResult:
    fields = call.fields(idempotency_key=call.key)
    node_id = text_of(fields, "id")
    given = {name: fields[name] for name in ("index", "idempotency_key", "move") if fields.get(name) is not None}
    scope = {name: fields[f"to_{name}"] for name in ("user", "agent", "project") if f"to_{name}" in fields}
    to = {**({"index": fields["to_index"]} if "to_index" in fields else {}), **({"scope": scope} if scope else {})}
    request = convert(rq.ShareRequest, {**given, "to": to})
    return receipt_result(call.operations.share(node_id, request, call.principal))


SESSIONS = (
    Tool(
        name="start_session",
        title="Start a session",
        about="Begin a conversation that is to be remembered as one. Use it once, when work on something begins, and "
        "pass its id as session when you save what belongs to it.",
        arguments={
            "id": text("Its name; leave it out to be given one."),
            "title": text("What it is about, in a few words."),
            **INDEX,
        },
        required=(),
        output=RECEIPT,
        run=_start,
        repeatable=True,
    ),
    Tool(
        name="end_session",
        title="End a session",
        about="Close a session with a summary made of its own words. Use it when the work is done; what was said stays "
        "and is recalled as before.",
        arguments={"session": text("The session's id."), **INDEX},
        required=("session",),
        output=RECEIPT,
        run=_end,
        repeatable=True,
    ),
)

LIST_SESSIONS = Tool(
    name="list_sessions",
    title="List sessions",
    about="The sessions there are, in the order they began, with how many messages each has and its summary's id.",
    arguments={
        "limit": integer("At most this many (default 20).", minimum=1, maximum=1000),
        "cursor": text("Go on where a list ended."),
        **INDEX,
    },
    required=(),
    output=record(
        {
            "sessions": array(
                record({"id": text(), "status": text(), "messages": integer()}, ("id", "status"), closed=False)
            ),
            "next_cursor": text(),
        },
        ("sessions",),
        closed=False,
    ),
    run=_list,
    reads=True,
)

TRANSFER = Tool(
    name="transfer",
    title="Transfer a memory",
    about="Copy a memory to another scope or index, or move it there; the copy knows its original, so that erasing "
    "that reaches it.",
    arguments={
        "id": text("The memory's id."),
        "to_index": text("Another index; leave it out for the same."),
        "to_user": text("Whose it becomes; leave it out for what users share."),
        "to_agent": text("The agent it is for."),
        "to_project": text("The project it belongs to."),
        "move": boolean("Archive the original."),
        **INDEX,
    },
    required=("id",),
    output=RECEIPT,
    run=_transfer,
)
