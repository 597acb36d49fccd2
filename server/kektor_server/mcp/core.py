"""The profile `core`: what an agent needs every day."""

from typing import Any

from kektor.contract import convert
from kektor.engine.records import Kind
from kektor.errors import Invalid
from kektor.memory import requests as rq
from kektor.memory.objects import Subgraph
from kektor_server.mcp import render
from kektor_server.mcp.pieces import (
    AS_OF,
    EDGE,
    INDEX,
    KNOWN_AT,
    REASON,
    RECEIPT,
    RELS,
    TIME,
    about_one,
    confirmed,
    receipt_result,
    text_of,
    word_of,
)
from kektor_server.mcp.registry import Tool, ToolCall, ToolResult
from kektor_server.mcp.schema import array, boolean, integer, number, obj, record, text

__all__ = ["CORE"]

_EXPLORED_NODES = 50
_EXPLORED_TOKENS = 2000
_REVIEWS = 20


def _remember(call: ToolCall) -> ToolResult:
    request = convert(rq.RememberRequest, call.fields(idempotency_key=call.key))
    return receipt_result(call.operations.remember(request, call.principal))


def _recall(call: ToolCall) -> ToolResult:
    request = convert(rq.RecallRequest, call.fields())
    found = call.operations.recall(request, call.principal)
    counts = call.operations.context.tokenizer.counts
    return ToolResult(render.recall_text(found, request.budget_tokens, counts), render.recall_handles(found))


def _read_memory(call: ToolCall) -> ToolResult:
    fields = call.fields()
    memory = call.operations.get(text_of(fields, "index"), text_of(fields, "id"), call.principal)
    whole, _ = render.fenced([memory], 0, lambda texts: [0] * len(texts))
    return ToolResult(whole, render.plain(memory))


def _correct(call: ToolCall) -> ToolResult:
    fields = call.fields(idempotency_key=call.key)
    node_id, kind = text_of(fields, "id"), word_of(fields, "kind", ("changed", "wrong"))
    del fields["id"]
    request = convert(rq.EvolveRequest, fields)
    if kind == "changed":
        return receipt_result(call.operations.evolve(node_id, request, call.principal))
    return receipt_result(call.operations.correct(node_id, request, call.principal))


def _retract(call: ToolCall) -> ToolResult:
    node_id, request = about_one(call)
    return receipt_result(call.operations.change_state("retract", node_id, request, call.principal))


def _forget(call: ToolCall) -> ToolResult:
    fields = call.fields(idempotency_key=call.key)
    sure = confirmed(fields)
    request = convert(rq.ForgetRequest, fields)
    previews = request.dry_run if request.dry_run is not None else request.query or request.filter
    if (request.mode == "erase" or request.preview) and not previews and not sure:
        raise Invalid(
            "erasing cannot be undone: show the user what goes with dry_run=true, then pass confirm=true",
            field="confirm",
        )
    done = call.operations.forget(request, call.principal)
    handles = {
        **{
            name: [
                {"id": node.id, "kind": node.kind, "why": node.why, **({"text": node.text} if done.dry_run else {})}
                for node in getattr(done, name)
            ]
            for name in ("matched", "derived", "copies")
        },
        "dry_run": done.dry_run,
        **({} if done.preview is None else {"preview": done.preview}),
        **({} if done.receipt is None else {"receipt": render.plain(done.receipt)}),
    }
    return ToolResult(render.forgotten_text(done), handles)


def _confirm(call: ToolCall) -> ToolResult:
    fields = call.fields(idempotency_key=call.key)
    node_id = text_of(fields, "id")
    del fields["id"]
    return receipt_result(call.operations.confirm(node_id, convert(rq.ConfirmRequest, fields), call.principal))


def _review(call: ToolCall) -> ToolResult:
    fields = call.fields()
    index = text_of(fields, "index")
    if "id" not in fields:
        page = call.operations.reviews(index, call.principal, limit=_REVIEWS)
        return ToolResult(render.reviews_text(page, call.operations.context.tokenizer.counts), render.reviews(page))
    if "decision" not in fields:
        raise Invalid("say what you would decide: decision", field="decision")
    review = text_of(fields, "id")
    asked = {name: value for name, value in fields.items() if name != "id"}
    request = convert(rq.ReviewRequest, {**asked, "idempotency_key": call.key, "propose": True})
    return receipt_result(call.operations.review(review, request, call.principal))


def _link(call: ToolCall) -> ToolResult:
    fields = call.fields()
    index = text_of(fields, "index")
    edge = {name: fields[name] for name in ("src", "rel", "dst")}
    request = convert(rq.LinkRequest, {"edges": [edge], "idempotency_key": call.key})
    receipt = call.operations.link(index, request, call.principal)
    return ToolResult(f"linked: {edge['src']} {edge['rel']} {edge['dst']}", render.plain(receipt))


def _explore(call: ToolCall) -> ToolResult:
    fields = call.fields()
    index = text_of(fields, "index")
    if ("id" in fields) == ("query" in fields):
        raise Invalid("give either id or query: where the walk begins", field="id")
    root = text_of(fields, "id") if "id" in fields else _best(call, index, fields["query"])
    if root is None:
        nothing = {"status": "no_match", "nodes": [], "edges": [], "truncated": False, "dropped": []}
        return ToolResult("no_match: no memory answers this, so there is nothing to walk from", nothing)
    asked: dict[str, Any] = {name: fields[name] for name in ("depth", "rels") if name in fields}
    request = convert(rq.TraverseRequest, {"root": root, "limit": _EXPLORED_NODES, **asked})
    found = call.operations.traverse(index, request, call.principal)
    memories = [node.memory for node in found.nodes]
    context, dropped = render.fenced(memories, _EXPLORED_TOKENS, call.operations.context.tokenizer.counts)
    return ToolResult(
        "\n".join([context, *_edge_lines(found)]).strip(),
        {**render.subgraph_handles(root, found), "dropped": dropped},
    )


def _best(call: ToolCall, index: str, query: Any) -> str | None:
    found = call.operations.recall(convert(rq.RecallRequest, {"index": index, "query": query, "k": 1}), call.principal)
    return found.hits[0].memory.id if found.hits else next(iter(found.dropped), None)


def _edge_lines(found: Subgraph) -> list[str]:
    lines = [f"{edge.src} {edge.rel} {edge.dst}" for edge in found.edges] or ["no edges"]
    return [*lines, f"cut off at {_EXPLORED_NODES} nodes"] if found.truncated else lines


_FORGOTTEN_NODE = record({"id": text(), "kind": text(), "why": text()}, ("id", "kind", "why"), closed=False)

REMEMBER = Tool(
    name="remember",
    title="Remember",
    about="Save one fact, preference, decision or event that will matter later, as a self-contained sentence with "
    "names and absolute dates. Use it when the user tells you something lasting. If it replaces something known, "
    "recall that and use correct. Never save secrets.",
    arguments={
        "text": text("The statement: one sentence that is understood without this conversation."),
        "tags": array(text(), "A few words to file it under."),
        "keys": array(text(), "Names by which it will be asked for that the text does not say."),
        "layer": text("semantic (facts, the default), episodic (what happened) or procedural (how to do something)."),
        "valid_from": text(f"Since when it holds: {TIME}."),
        "valid_to": text(f"Until when it holds: {TIME}; 2024 holds through the end of 2024."),
        "occurred_at": text(f"For an event, when it happened: {TIME}."),
        "claim": record(
            {
                "subject": text("Who or what it is about"),
                "predicate": text("What is said of it, such as owner"),
                "object": text("The value"),
            },
            ("subject", "predicate", "object"),
            "The statement taken apart, so that contradictions are found.",
        ),
        "session": text("The session this belongs to."),
        "metadata": obj("Your own fields."),
        **INDEX,
    },
    required=("text",),
    output=RECEIPT,
    run=_remember,
    repeatable=True,
)

RECALL = Tool(
    name="recall",
    title="Recall",
    about="Ask the memory a question. Use it before you start a task, and whenever earlier work, people, preferences "
    "or decisions come up. Ask a full question that names who and what. no_match means it is not known: do not guess.",
    arguments={
        "query": text("The question, in full and with names."),
        "k": integer("At most this many memories (default 8).", minimum=1, maximum=1000),
        "budget_tokens": integer("At most this many tokens of text (default 2000).", minimum=1, maximum=1_000_000),
        "tags": array(text(), "Only memories with one of these tags."),
        "layers": array(text(), "Only these layers: semantic, episodic, procedural."),
        "kinds": array(text(enum=tuple(Kind)), "Only these kinds; source is what was said, word for word."),
        "as_of": AS_OF,
        "known_at": KNOWN_AT,
        "include": array(
            text(enum=("superseded", "archived", "proposed", "rejected")), "Also memories in these states."
        ),
        "history": text(
            "Whether past statements count: auto (the default) reads it from the question.",
            enum=("never", "auto", "always"),
        ),
        "mode": text("hybrid (the default) goes by meaning and words, fast by words alone.", enum=("fast", "hybrid")),
        **INDEX,
    },
    required=("query",),
    output=record(
        {
            "status": text("How far to trust it", enum=("ok", "weak", "no_match", "empty")),
            "hits": array(
                record(
                    {
                        "id": text(),
                        "kind": text(),
                        "score": number(),
                        "valid": text("When it holds, in words"),
                        "trust": text(),
                        "status": text(),
                        "via": array(text()),
                        "resolved_from": text("The older version that matched"),
                    },
                    ("id", "score"),
                    closed=False,
                ),
                "Best first; the texts are in the text result",
            ),
            "tokens": integer("Of the text result"),
            "dropped": array(text(), "Ids that did not fit the budget"),
            "nearest_keys": array(text()),
            "near_misses": array(record({"id": text(), "why": text()}, ("id", "why"), closed=False)),
            "premise": record(
                {"at_risk": boolean(), "unknown": array(text()), "wrong_subject": array(text())}, closed=False
            ),
            "history_used": boolean(),
            "trace_id": text(),
        },
        ("status", "hits", "tokens"),
        closed=False,
    ),
    run=_recall,
    reads=True,
)

READ_MEMORY = Tool(
    name="read_memory",
    title="Read a memory",
    about="Read one memory in full by its id: text, when it holds, evidence, versions before and after. Use it when "
    "recall named an id that did not fit, or before you correct or erase something.",
    arguments={"id": text("The id, as recall gives it."), **INDEX},
    required=("id",),
    output=record(
        {
            "id": text(),
            "lineage": text("The id of its first version"),
            "version": integer(),
            "kind": text(),
            "text": text(),
            "status": text(enum=("current", "superseded", "archived", "erased")),
            "trust": text(enum=("accepted", "contested", "proposed", "rejected")),
            "validity": obj("from, to and label"),
            "recorded_at": text(),
            "superseded_by": text("The version that replaced it"),
        },
        ("id", "lineage", "version", "kind", "text", "status", "trust"),
        closed=False,
    ),
    run=_read_memory,
    reads=True,
)

CORRECT = Tool(
    name="correct",
    title="Correct a memory",
    about="Replace a memory whose content is no longer or never was right. kind=changed: the world changed, the old "
    "holds until valid_from. kind=wrong: it was never true, and cannot come back. Give the whole new statement. Use it "
    "instead of saving a second version.",
    arguments={
        "id": text("The memory to replace: its current version."),
        "text": text("The new statement, whole."),
        "kind": text("changed (the default) or wrong.", enum=("changed", "wrong")),
        "partial": boolean("Replace only what text is about; what else the old memory says stays."),
        "remainder": text("With partial, when the old text cannot be split: what stays."),
        **REASON,
        "valid_from": text(f"Since when the new statement holds (default now): {TIME}."),
        **INDEX,
    },
    required=("id", "text"),
    output=RECEIPT,
    run=_correct,
    destroys=True,
)

RETRACT = Tool(
    name="retract",
    title="Retract a memory",
    about="Take back a memory that was never true and that nothing replaces ('I misspoke'). It is rejected by value: "
    "saying it again is refused until a person lifts that. For what changed, use correct.",
    arguments={"id": text("The memory to take back."), **REASON, **INDEX},
    required=("id",),
    output=RECEIPT,
    run=_retract,
    destroys=True,
)

FORGET = Tool(
    name="forget",
    title="Forget",
    about="Only when the user asks to forget. mode retract (default) rejects it, archive hides it and can be undone, "
    "erase removes it with everything made from it, for good: preview first, show the user, then pass confirm=true.",
    arguments={
        "ids": array(text(), "The memories to forget, by their ids;"),
        "query": text("or what they are about, such as everything about Frank: then it is a preview;"),
        "filter": text("or a filter, such as tags CONTAINS 'crm': then it is a preview;"),
        "preview": text("or the token of a preview, to do exactly what it showed."),
        "mode": text("retract (the default), archive or erase.", enum=("retract", "archive", "erase")),
        "dry_run": boolean("Only show what would go. Left out: true with query and filter."),
        "confirm": boolean("Must be true to erase."),
        **INDEX,
    },
    required=(),
    output=record(
        {
            "matched": array(_FORGOTTEN_NODE, "What was named"),
            "derived": array(_FORGOTTEN_NODE, "What rested on it alone"),
            "copies": array(_FORGOTTEN_NODE, "What was copied from it"),
            "dry_run": boolean(),
            "preview": text("The token that does exactly this"),
            "receipt": RECEIPT,
        },
        ("matched", "derived", "copies", "dry_run"),
        closed=False,
    ),
    run=_forget,
    destroys=True,
)

CONFIRM = Tool(
    name="confirm",
    title="Confirm a memory",
    about="Say that an older memory was seen to hold still, so that it stays fresh. Use it when something said since "
    "bears it out: name that source. Reading alone never confirms.",
    arguments={
        "id": text("The memory that holds."),
        "evidence": text("The id of the source, said since, that shows it."),
        **INDEX,
    },
    required=("id", "evidence"),
    output=RECEIPT,
    run=_confirm,
)

LINK = Tool(
    name="link",
    title="Link two memories",
    about="Join two memories with a named relation, such as works_with, part_of or caused_by, so that explore finds "
    "one from the other. Linking the same again changes nothing but its details.",
    arguments={
        "src": text("The id it goes from."),
        "rel": text("The relation, in snake_case."),
        "dst": text("The id it goes to."),
        **INDEX,
    },
    required=("src", "rel", "dst"),
    output=RECEIPT,
    run=_link,
    repeatable=True,
)

EXPLORE = Tool(
    name="explore",
    title="Explore connections",
    about="Walk the links around a memory, given by id or found by a question. Use it when the answer lies in how "
    "things are connected: who works with whom, what led to what.",
    arguments={
        "id": text("Where to begin; or give query."),
        "query": text("A question whose best answer is where to begin; or give id."),
        "depth": integer("How many links away (default 2).", minimum=1, maximum=32),
        "rels": RELS,
        **INDEX,
    },
    required=(),
    output=record(
        {
            "status": text(enum=("ok", "no_match")),
            "root": text("Where it began"),
            "nodes": array(
                record(
                    {"id": text(), "kind": text(), "depth": integer(), "trust": text()}, ("id", "depth"), closed=False
                )
            ),
            "edges": array(EDGE),
            "truncated": boolean("Whether there is more than was walked"),
            "dropped": array(text(), "Ids whose texts did not fit"),
        },
        ("status", "nodes", "edges"),
        closed=False,
    ),
    run=_explore,
    reads=True,
)

REVIEW = Tool(
    name="review",
    title="Review what waits",
    about="Without an id, list what waits for a decision: contradictions, proposals, open questions. With an id and a "
    "decision, say what you would decide and why; a person decides. Use it to bring contradictions up with the user.",
    arguments={
        "id": text("The review, as the list gives it."),
        "decision": text(
            "What you would decide; ask puts the note to the user as a question.",
            enum=("accept", "reject", "edit", "merge", "ask"),
        ),
        "note": text("Why, or the question."),
        "text": text("With edit or merge: what it should say."),
        **INDEX,
    },
    required=(),
    output=record(
        {
            "reviews": array(
                record(
                    {
                        "id": text(),
                        "kind": text(enum=("contested", "proposed", "imported", "clarification")),
                        "status": text(enum=("open", "asked")),
                        "memories": array(text(), "Ids; the texts are in the text result"),
                        "replaces": text("What a proposal would take the place of"),
                        "question": text(),
                    },
                    ("id", "kind", "status", "memories"),
                    closed=False,
                ),
                "What waits, oldest first",
            ),
            "more": boolean("Whether more waits than is listed"),
            "outcome": text("With a decision: proposed, when a person has to decide"),
            "reflection": text("Where it is kept"),
        },
        closed=False,
    ),
    run=_review,
)

CORE = (REMEMBER, RECALL, READ_MEMORY, CORRECT, RETRACT, FORGET, CONFIRM, LINK, EXPLORE, REVIEW)
