"""The profile `agent` adds what an agent needs now and then: lists, details, the graph step by step, search."""

from typing import Any

from kektor.contract import convert
from kektor.engine.records import Kind
from kektor.memory import requests as rq
from kektor.memory.objects import Memory
from kektor.memory.presenting import index_of
from kektor_server.mcp import render
from kektor_server.mcp.pieces import (
    AS_OF,
    EDGE,
    HANDLE,
    INDEX,
    KNOWN_AT,
    REASON,
    RECEIPT,
    RELS,
    about_one,
    edge_handle,
    memory_handle,
    receipt_result,
    text_of,
)
from kektor_server.mcp.registry import Tool, ToolCall, ToolResult
from kektor_server.mcp.schema import array, boolean, integer, number, obj, record, text

__all__ = ["AGENT"]

_LISTED = 20
_LIST_TOKENS = 4000
_WALKED = 200
_EDGES = 100

_FILTER = text("For example: tags CONTAINS 'crm' AND metadata.price > 10.")
_INCLUDE = array(text(enum=("superseded", "archived", "proposed", "rejected")), "Also memories in these states.")
_KINDS = array(text(enum=tuple(Kind)), "Only these kinds.")
_ID = text("The memory's id.")
_DIRECTION = text("out, in or both (the default).", enum=("both", "out", "in"))


def _list_memories(call: ToolCall) -> ToolResult:
    request = convert(rq.ListRequest, {"limit": _LISTED, **call.fields()})
    page = call.operations.list_memories(request, call.principal)
    listed = _listed(call, page.items)
    if page.next_cursor is None:
        return listed
    more = f"there are more: cursor={page.next_cursor}"
    return ToolResult(f"{listed.text}\n{more}", {**listed.structured, "next_cursor": page.next_cursor})


def _history(call: ToolCall) -> ToolResult:
    fields = call.fields()
    return _listed(call, call.operations.history(text_of(fields, "index"), text_of(fields, "id"), call.principal))


def _evidence(call: ToolCall) -> ToolResult:
    fields = call.fields()
    spans = call.operations.evidence(text_of(fields, "index"), text_of(fields, "id"), call.principal)
    lines = [f"{span.source} ({span.class_}): {render.quoted(span.quote)}" for span in spans]
    return ToolResult("\n".join(lines) or "it rests on no source", {"items": [render.plain(span) for span in spans]})


def _update_memory(call: ToolCall) -> ToolResult:
    fields = call.fields(idempotency_key=call.key)
    node_id = text_of(fields, "id")
    del fields["id"]
    return receipt_result(call.operations.update(node_id, convert(rq.UpdateRequest, fields), call.principal))


def _pin_memory(call: ToolCall) -> ToolResult:
    fields = call.fields(idempotency_key=call.key)
    node_id, pinned = text_of(fields, "id"), fields.pop("pinned", True)
    del fields["id"]
    request = convert(rq.UpdateRequest, {**fields, "pinned": pinned})
    return receipt_result(call.operations.update(node_id, request, call.principal))


def _archive_memory(call: ToolCall) -> ToolResult:
    node_id, request = about_one(call)
    return receipt_result(call.operations.change_state("archive", node_id, request, call.principal))


def _restore_memory(call: ToolCall) -> ToolResult:
    node_id, request = about_one(call)
    return receipt_result(call.operations.change_state("restore", node_id, request, call.principal))


def _unlink(call: ToolCall) -> ToolResult:
    fields = call.fields(idempotency_key=call.key)
    index = text_of(fields, "index")
    del fields["index"]
    request = convert(rq.UnlinkRequest, fields)
    receipt = call.operations.unlink(index, request, call.principal)
    return ToolResult(f"unlinked: {request.src} {request.rel} {request.dst}", render.plain(receipt))


def _edges(call: ToolCall) -> ToolResult:
    fields = {"limit": _EDGES, **call.fields()}
    index, node_id = text_of(fields, "index"), text_of(fields, "id")
    del fields["index"], fields["id"]
    found = call.operations.edges(index, node_id, convert(rq.EdgesRequest, fields), call.principal)
    lines = [f"{edge.src} {edge.rel} {edge.dst}" for edge in found.items] or ["no edges"]
    handles: dict[str, Any] = {"items": [edge_handle(edge) for edge in found.items]}
    if found.next_cursor is not None:
        lines.append(f"there are more: cursor={found.next_cursor}")
        handles["next_cursor"] = found.next_cursor
    return ToolResult("\n".join(lines), handles)


def _find_path(call: ToolCall) -> ToolResult:
    fields = call.fields()
    index = text_of(fields, "index")
    del fields["index"]
    found = call.operations.path(index, convert(rq.PathRequest, fields), call.principal)
    if not found.nodes:
        why = "the search gave up" if found.truncated else "they are not connected within that many links"
        return ToolResult(f"no path: {why}", {"nodes": [], "edges": []})
    listed = _listed(call, found.nodes)
    lines = [f"{edge.src} {edge.rel} {edge.dst}" for edge in found.edges]
    handles = {"nodes": listed.structured["items"], "edges": [edge_handle(edge) for edge in found.edges]}
    return ToolResult("\n".join([*lines, listed.text]), handles)


def _subgraph(call: ToolCall) -> ToolResult:
    fields = call.fields()
    index = text_of(fields, "index")
    del fields["index"]
    request = convert(rq.SubgraphRequest, {"limit": _WALKED, **fields})
    found = call.operations.subgraph(index, request, call.principal)
    lines = [f"{edge.src} {edge.rel} {edge.dst}" for edge in found.edges] or ["no edges"]
    cut = [f"cut off at {request.limit} nodes"] if found.truncated else []
    return ToolResult(
        "\n".join([f"{len(found.nodes)} nodes", *lines, *cut]),
        {
            "nodes": [{**memory_handle(node.memory), "depth": node.depth} for node in found.nodes],
            "edges": [edge_handle(edge) for edge in found.edges],
            "truncated": found.truncated,
        },
    )


def _search(call: ToolCall) -> ToolResult:
    fields = call.fields()
    index = text_of(fields, "index")
    del fields["index"]
    request = convert(rq.SearchRequest, {**fields, "with_memories": True})
    hits = [(hit, hit.memory) for hit in call.operations.search(index, request, call.principal)]
    listed = _listed(call, [memory for _, memory in hits if memory is not None])
    found = [
        {"id": hit.id, "score": round(hit.score, 4), **({} if memory is None else memory_handle(memory))}
        for hit, memory in hits
    ]
    return ToolResult(listed.text if found else "nothing found", {"hits": found})


def _stats(call: ToolCall) -> ToolResult:
    index = text_of(call.fields(), "index")
    sizes = call.operations.index_stats(index, call.principal)
    names = ("nodes", "vectors", "texts", "edges")
    said = ", ".join(f"{getattr(sizes, name)} {name}" for name in names)
    return ToolResult(f"{index}: {said}", {"index": index, **{name: getattr(sizes, name) for name in (*names, "lsn")}})


def _list_indexes(call: ToolCall) -> ToolResult:
    indexes = [index_of(settings) for settings in call.operations.list_indexes(call.principal)]
    found = [
        {"name": index.name, "dim": index.dim, "metric": index.metric, "embedder": index.embedder or ""}
        for index in indexes
    ]
    return ToolResult("\n".join(index.name for index in indexes) or "there is no index yet", {"items": found})


def _listed(call: ToolCall, memories: list[Memory]) -> ToolResult:
    if not memories:
        return ToolResult("nothing found", {"items": []})
    counts = call.operations.context.tokenizer.counts
    shown, dropped = render.listed(memories, _LIST_TOKENS, counts)
    told = [shown, f"did not fit: {', '.join(dropped)}"] if dropped else [shown]
    return ToolResult("\n".join(told), {"items": [memory_handle(memory) for memory in memories]})


def _items(about: str) -> dict[str, Any]:
    return {"items": array(HANDLE, about)}


AGENT = (
    Tool(
        name="list_memories",
        title="List memories",
        about="Go through memories in the order they were recorded, a page at a time, by filter. Use it to review or "
        "tidy up; to answer a question use recall.",
        arguments={
            "filter": _FILTER,
            "include": _INCLUDE,
            "kinds": _KINDS,
            "limit": integer(f"At most this many (default {_LISTED}).", minimum=1, maximum=1000),
            "cursor": text("Where the last page ended."),
            "as_of": AS_OF,
            "known_at": KNOWN_AT,
            **INDEX,
        },
        required=(),
        output=record(
            {**_items("Oldest first"), "next_cursor": text("Pass it as cursor to go on")}, ("items",), closed=False
        ),
        run=_list_memories,
        reads=True,
    ),
    Tool(
        name="update_memory",
        title="Update a memory's details",
        about="Replace tags, metadata, layer or pin of a memory. The statement stays: to change what it says use "
        "correct.",
        arguments={
            "id": _ID,
            "tags": array(text(), "All its tags from now on."),
            "metadata": obj("All its own fields from now on."),
            "layer": text("semantic, episodic or procedural."),
            "pinned": boolean("Whether it never ages out of sight."),
            **REASON,
            **INDEX,
        },
        required=("id",),
        output=RECEIPT,
        run=_update_memory,
        repeatable=True,
    ),
    Tool(
        name="pin_memory",
        title="Pin a memory",
        about="Keep a memory from ageing out of sight, or let it age again with pinned=false. For what must always be "
        "at hand.",
        arguments={"id": _ID, "pinned": boolean("false takes the pin off (default true)."), **REASON, **INDEX},
        required=("id",),
        output=RECEIPT,
        run=_pin_memory,
        repeatable=True,
    ),
    Tool(
        name="history",
        title="History of a memory",
        about="Every version of a memory, oldest first, with when each held and why it was replaced. Use it when the "
        "user asks what used to be so, or how something came about.",
        arguments={"id": text("The id of any version."), **INDEX},
        required=("id",),
        output=record(_items("Oldest first"), ("items",), closed=False),
        run=_history,
        reads=True,
    ),
    Tool(
        name="evidence",
        title="Evidence of a memory",
        about="The exact words a memory rests on, with the source and who said them. Use it when the user asks how you "
        "know.",
        arguments={"id": _ID, **INDEX},
        required=("id",),
        output=record(
            {
                "items": array(
                    record(
                        {"source": text(), "start": integer(), "end": integer(), "quote": text(), "class": text()},
                        ("source", "quote"),
                        closed=False,
                    ),
                    "Offsets are in code points, end exclusive",
                )
            },
            ("items",),
            closed=False,
        ),
        run=_evidence,
        reads=True,
    ),
    Tool(
        name="archive_memory",
        title="Archive a memory",
        about="Put a memory out of sight without saying that it was wrong; restore_memory brings it back. For what is "
        "no longer of use.",
        arguments={"id": _ID, **REASON, **INDEX},
        required=("id",),
        output=RECEIPT,
        run=_archive_memory,
        destroys=True,
    ),
    Tool(
        name="restore_memory",
        title="Restore a memory",
        about="Bring an archived memory back into sight.",
        arguments={"id": _ID, **REASON, **INDEX},
        required=("id",),
        output=RECEIPT,
        run=_restore_memory,
    ),
    Tool(
        name="unlink",
        title="Unlink two memories",
        about="End a named relation between two memories; what it was stays readable with known_at.",
        arguments={
            "src": text("The id it goes from."),
            "rel": text("The relation."),
            "dst": text("The id it goes to."),
            **REASON,
            **INDEX,
        },
        required=("src", "rel", "dst"),
        output=RECEIPT,
        run=_unlink,
        destroys=True,
    ),
    Tool(
        name="find_path",
        title="Find a path",
        about="The shortest way along links from one memory to another. Use it when the question is how two things are "
        "connected.",
        arguments={
            "src": text("The id it begins at."),
            "dst": text("The id it ends at."),
            "rels": RELS,
            "max_depth": integer("At most this many links (default 6).", minimum=1, maximum=32),
            "as_of": AS_OF,
            "known_at": KNOWN_AT,
            **INDEX,
        },
        required=("src", "dst"),
        output=record({"nodes": array(HANDLE), "edges": array(EDGE)}, ("nodes", "edges"), closed=False),
        run=_find_path,
        reads=True,
    ),
    Tool(
        name="subgraph",
        title="Subgraph around memories",
        about="All that is linked around some memories, as nodes and every edge between them, with filters and a "
        "limit. For an overview in words use explore.",
        arguments={
            "roots": array(text(), "The ids to begin at."),
            "depth": integer("How many links away (default 1).", minimum=0, maximum=32),
            "rels": RELS,
            "direction": _DIRECTION,
            "filter": _FILTER,
            "limit": integer(f"At most this many nodes (default {_WALKED}).", minimum=1, maximum=2000),
            "as_of": AS_OF,
            "known_at": KNOWN_AT,
            **INDEX,
        },
        required=("roots",),
        output=record(
            {
                "nodes": array(HANDLE, "Each with its depth"),
                "edges": array(EDGE),
                "truncated": boolean("Whether there is more"),
            },
            ("nodes", "edges", "truncated"),
            closed=False,
        ),
        run=_subgraph,
        reads=True,
    ),
    Tool(
        name="edges",
        title="Edges of a memory",
        about="The links that begin or end at one memory.",
        arguments={
            "id": _ID,
            "direction": _DIRECTION,
            "rel": text("Only this relation."),
            "limit": integer(f"At most this many (default {_EDGES}).", minimum=1, maximum=10_000),
            "cursor": text("Where the last page ended."),
            "as_of": AS_OF,
            "known_at": KNOWN_AT,
            **INDEX,
        },
        required=("id",),
        output=record(
            {"items": array(EDGE), "next_cursor": text("Pass it as cursor to go on")}, ("items",), closed=False
        ),
        run=_edges,
        reads=True,
    ),
    Tool(
        name="search",
        title="Search",
        about="The nodes nearest to a text, with scores and without judging whether they answer. For questions use "
        "recall; use this for a filter, another kind, or when recall found nothing.",
        arguments={
            "text": text("What to look for, by meaning and words."),
            "k": integer("At most this many (default 10).", minimum=1, maximum=1000),
            "filter": _FILTER,
            "kinds": _KINDS,
            "include": _INCLUDE,
            "alpha": number("The share of meaning against words, 0 to 1 (default 0.5)."),
            **INDEX,
        },
        required=("text",),
        output=record(
            {
                "hits": array(
                    record(
                        {"id": text(), "score": number(), "kind": text(), "text": text()},
                        ("id", "score"),
                        closed=False,
                    ),
                    "Best first",
                )
            },
            ("hits",),
            closed=False,
        ),
        run=_search,
        reads=True,
    ),
    Tool(
        name="stats",
        title="Statistics of an index",
        about="How many nodes, vectors, texts and edges an index holds. Needs a launch that is not confined to one "
        "user, agent or project.",
        arguments=INDEX,
        required=(),
        output=record(
            {"index": text(), "nodes": integer(), "vectors": integer(), "texts": integer(), "edges": integer()},
            ("index", "nodes", "edges"),
            closed=False,
        ),
        run=_stats,
        reads=True,
    ),
    Tool(
        name="list_indexes",
        title="List indexes",
        about="The indexes there are: memories are kept apart by index.",
        arguments=INDEX,
        required=(),
        output=record(
            {
                "items": array(
                    record(
                        {"name": text(), "dim": integer(), "metric": text(), "embedder": text()},
                        ("name",),
                        closed=False,
                    )
                )
            },
            ("items",),
            closed=False,
        ),
        run=_list_indexes,
        reads=True,
    ),
)
