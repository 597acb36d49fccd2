"""Taking sentences out of a text that stays, in place: the record is new, its id and its links are the same."""

from collections.abc import Sequence
from typing import Any

from msgspec import structs

from kektor.engine.port import Transaction
from kektor.engine.records import Kind, Node
from kektor.errors import KektorError
from kektor.memory.commands.base import key_of
from kektor.memory.context import MemoryContext
from kektor.memory.forgetting.closure import Gone
from kektor.text import CUT, Span, blank

__all__ = ["keep_lineages", "put_in_place", "without"]


def without(node: Node, spans: Sequence[Span], left: str = "") -> str:
    """The text that stays. Of what was said every other code point keeps its place; a statement closes its gap."""
    if node.kind is Kind.SOURCE:
        return blank(node.text, list(spans))
    if left:
        return left
    parts = blank(node.text, list(spans)).replace(CUT, "").split(" ")
    return " ".join(part for part in parts if part).strip()


def put_in_place(tx: Transaction, context: MemoryContext, index: str, node: Node, text: str, **changes: Any) -> Node:
    """Replace the text of a node everywhere, its vector too; what it claimed is no longer known.

    A model that cannot be reached does not keep words from being erased: the rest is then found by its words alone.
    """
    said = text.replace(CUT, "").strip()
    settings, vector = tx.index(index), None
    if said and settings is not None and tx.vector(index, key_of(node)) is not None and not node.raw:
        try:
            vector = context.embed_one(settings, said)
        except KektorError:
            vector = None
    if node.kind is Kind.SESSION:
        changes["metadata"] = {name: value for name, value in node.metadata.items() if name != "title"}
    new = structs.replace(
        node,
        text=text,
        digest=context.digester.digest(text) if said else b"",
        claim=node.claim if node.kind is Kind.SOURCE else None,
        **changes,
    )
    tx.redact(index, new, vector)
    return new


def keep_lineages(tx: Transaction, gone: Sequence[Gone]) -> None:
    """Versions that stay when others of their lineage went are a lineage of their own: the ids that went are free."""
    for index, scope, lineage in dict.fromkeys((one.index, one.node.scope, one.node.lineage) for one in gone):
        left = tx.lineage(index, scope, lineage)
        there = {node.id for node in left}
        for node in left:
            kept = structs.replace(
                node,
                lineage=lineage if lineage in there else left[0].id,
                supersedes=node.supersedes if node.supersedes in there else "",
                superseded_by=node.superseded_by if node.superseded_by in there else "",
            )
            if kept != node:
                tx.redact(index, kept, tx.vector(index, key_of(node)))
