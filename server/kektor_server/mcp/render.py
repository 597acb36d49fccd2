"""Results in words and in plain values. What somebody stored is only ever shown inside the fence of a context."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from kektor import clock
from kektor.engine.records import Receipt
from kektor.memory.objects import Forgotten, Hit, Memory, Recall, ReviewPage, Subgraph
from kektor.memory.recall.pack import pack

__all__ = [
    "fenced",
    "forgotten_text",
    "listed",
    "plain",
    "quoted",
    "recall_handles",
    "recall_text",
    "receipt_text",
    "reviews",
    "reviews_text",
    "subgraph_handles",
]

_LINE = 200
"""Code points of a text in a list."""


Counts = Callable[[Sequence[str]], Sequence[int]]
"""Tokens of each text."""


def plain(value: Any) -> Any:
    """Plain JSON values of an object, without what is null: the output schemas know no null."""
    return _without_nulls(msgspec.to_builtins(value))


_TO_OTHER = {"duplicate": "same as", "proposed": "would replace"}
"""What the memory of a receipt is to the one in `of`."""


def receipt_text(receipt: Receipt) -> str:
    """One line a write, its id first, and what to know about it."""
    named = receipt.id or ", ".join(receipt.ids or ()) or "nothing"
    lines = [f"{receipt.outcome}: {named}" + (f" (version {receipt.version})" if receipt.version else "")]
    if receipt.of and receipt.of != receipt.id:
        lines.append(f"{_TO_OTHER.get(receipt.outcome, 'replaces')}: {receipt.of}")
    if receipt.conflicts:
        lines.append(f"disagrees with: {', '.join(receipt.conflicts)}")
    if receipt.remainder:
        lines.append(f"what stays: {receipt.remainder}")
    if receipt.reflection:
        lines.append(f"awaits a decision: {receipt.reflection}")
    lines += [f"warning: {warning}" for warning in receipt.warnings]
    return "\n".join(lines)


def recall_text(recall: Recall, budget: int, counts: Counts) -> str:
    """The packed context, with what to know about it when that fits the budget too; or why there is none."""
    notes = _notes(recall)
    if not recall.context:
        return "\n".join(notes)
    if recall.status == "ok" and len(notes) == 1:
        return recall.context
    annotated = "\n".join([*notes, recall.context])
    return annotated if counts([annotated])[0] <= budget else recall.context


def recall_handles(recall: Recall) -> dict[str, Any]:
    """Everything but the texts, which the context has."""
    return {
        "status": recall.status,
        "hits": [_handle(hit) for hit in recall.hits],
        "tokens": recall.tokens,
        "dropped": recall.dropped,
        "nearest_keys": recall.nearest_keys,
        "near_misses": [{"id": miss.id, "why": miss.why} for miss in recall.near_misses],
        "premise": plain(recall.premise),
        "history_used": recall.history_used,
        "trace_id": recall.trace_id,
    }


def subgraph_handles(root: str, found: Subgraph) -> dict[str, Any]:
    """Nodes by distance and the edges between them, without texts."""
    return {
        "status": "ok",
        "root": root,
        "nodes": [
            {"id": node.memory.id, "kind": node.memory.kind, "depth": node.depth, "trust": node.memory.trust}
            for node in found.nodes
        ],
        "edges": [{"src": edge.src, "rel": edge.rel, "dst": edge.dst, "weight": edge.weight} for edge in found.edges],
        "truncated": found.truncated,
    }


def forgotten_text(done: Forgotten) -> str:
    """How much went, or would go, and which."""
    groups = (("matched", done.matched), ("derived", done.derived), ("copies", done.copies))
    counts = ", ".join(f"{len(nodes)} {name}" for name, nodes in groups)
    head = f"would forget {counts}" if done.dry_run else f"forgotten: {counts}"
    lines = [f"{name}: {node.id} ({node.kind}, {node.why})" for name, nodes in groups for node in nodes]
    if not lines and done.receipt is not None:  # the answer to a repeated call: the receipt is all that is left
        return f"forgotten before: {', '.join(done.receipt.ids or ())}"
    return "\n".join([head, *lines])


def reviews(page: ReviewPage) -> dict[str, Any]:
    """What waits, as handles."""
    return {
        "reviews": [
            {
                "id": review.id,
                "kind": review.kind,
                "status": review.status,
                "memories": [memory.id for memory in review.memories],
                **({} if review.replaces is None else {"replaces": review.replaces}),
                **({} if review.question is None else {"question": review.question}),
            }
            for review in page.items
        ],
        "more": page.next_cursor is not None,
    }


def reviews_text(page: ReviewPage, counts: Counts) -> str:
    """Each review by its id with the memories it is about, which are fenced as any."""
    if not page.items:
        return "nothing waits for a decision"
    parts = []
    for review in page.items:
        replaced = "" if review.replaces is None else f", would replace {review.replaces}"
        context, _ = fenced(review.memories, _REVIEWED_TOKENS, counts)
        parts.append(f"review {review.id}: {review.kind}, {review.status}{replaced}\n{context}")
    return "\n".join(parts)


_REVIEWED_TOKENS = 500


def fenced(memories: list[Memory], budget: int, counts: Counts) -> tuple[str, list[str]]:
    """Memories as a context within a budget, and the ids of those that did not fit."""
    packed = pack([Hit(memory, 0.0, {}, []) for memory in memories], budget, counts, clock.now())
    return packed.context, packed.dropped


def listed(memories: list[Memory], budget: int, counts: Counts) -> tuple[str, list[str]]:
    """Memories as a context of their beginnings."""
    return fenced([_beginning(memory) for memory in memories], budget, counts)


def quoted(text: str) -> str:
    """Words in one line that cannot close a fence or reach a terminal."""
    shown = "".join(char if char.isprintable() else " " for char in text)
    return '"' + shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") + '"'


def _beginning(memory: Memory) -> Memory:
    if len(memory.text) <= _LINE:
        return memory
    return msgspec.structs.replace(memory, text=f"{memory.text[:_LINE]}…")


def _notes(recall: Recall) -> list[str]:
    if recall.status == "empty":
        return ["empty: nothing is stored here yet"]
    notes = [recall.status if recall.hits or recall.dropped else f"{recall.status}: no memory answers this"]
    if recall.premise.unknown:
        # The name stays in the structured result: it is the caller's, and nothing that memory has ever held.
        notes.append("the question names what was never mentioned (premise.unknown)")
    if recall.premise.wrong_subject:
        notes.append(f"known of somebody else: {', '.join(recall.premise.wrong_subject)}")
    if recall.nearest_keys:
        notes.append(f"nearest: {', '.join(recall.nearest_keys)}")
    if recall.dropped:
        notes.append(f"did not fit the budget: {', '.join(recall.dropped)}")
    return notes


def _handle(hit: Hit) -> dict[str, Any]:
    memory = hit.memory
    handle = {
        "id": memory.id,
        "kind": memory.kind,
        "score": round(hit.score, 4),
        "valid": memory.validity.label,
        "trust": memory.trust,
        "status": memory.status,
        "via": hit.via,
    }
    return handle if hit.resolved_from is None else {**handle, "resolved_from": hit.resolved_from}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value
