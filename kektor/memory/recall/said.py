"""What was said, as it is seen today: without the sentences whose value was rejected, and with what came after it."""

from collections.abc import Iterator, Sequence

from msgspec import structs

from kektor.engine.records import Kind, Node, NodeKey, Scope, Status, Trust
from kektor.engine.view import INCLUDABLE, View
from kektor.memory.context import MemoryContext
from kektor.memory.objects import Hit
from kektor.memory.tombstones import REJECTED
from kektor.text import CUT, Span, blank, sentences, touched

__all__ = ["as_seen_today"]


def as_seen_today(context: MemoryContext, view: View, hits: Sequence[Hit]) -> list[Hit]:
    """Hits in their order; of a source only what was not taken back. One of which nothing is left is no hit.

    Asked with `include` rejected, all that was said is shown.
    """
    if not any(hit.memory.kind == Kind.SOURCE for hit in hits):
        return list(hits)
    engine = context.engine
    anything = structs.replace(view, history=True, include=INCLUDABLE, kinds=None, layers=None, tags=None, filter=None)
    rejected = {
        (stone.scope, digest)
        for stone in engine.tombstones(view.index)
        if stone.cls == REJECTED and stone.lifted_at is None
        for digest in stone.digests
    }
    seen = []
    for hit in hits:
        found = _seen(context, view, anything, hit, rejected) if hit.memory.kind == Kind.SOURCE else hit
        if found is not None:
            seen.append(found)
    return seen


def _seen(
    context: MemoryContext, view: View, anything: View, hit: Hit, rejected: set[tuple[Scope, bytes]]
) -> Hit | None:
    scope = Scope(hit.memory.scope.user or "", hit.memory.scope.agent or "", hit.memory.scope.project or "")
    source = NodeKey(scope, hit.memory.id)
    resting = list(_resting(context, anything, source))
    text = hit.memory.text
    if "rejected" not in view.include:
        quoted = [
            Span(span.start, span.end)
            for node in resting
            if _rejected(node, view)
            for span in node.evidence
            if span.key == source
        ]
        gone = set(touched(text, quoted)) if quoted else set()
        if rejected:
            gone |= {
                span
                for span in sentences(text)
                if any((scope, d) in rejected for d in context.digester.digests(text[span.start : span.end]))
            }
        if gone:
            text = " ".join(part for part in blank(text, sorted(gone)).replace(CUT, "").split(" ") if part).strip()
    if not text.replace(CUT, "").strip():
        return None
    later = [node.superseded_by for node in resting if node.status is Status.SUPERSEDED and not _rejected(node, view)]
    newest = _head(context, anything, scope, later[-1]) if later else None
    return structs.replace(hit, memory=structs.replace(hit.memory, text=text), superseded_by=newest)


def _resting(context: MemoryContext, view: View, source: NodeKey) -> Iterator[Node]:
    """The memories that quote a source, in the order in which they came to."""
    keys = [key for edge, key in context.engine.edges_ever(view, source) if edge.rel == "evidence_of"]
    yield from (node for node in context.engine.fetch(view, list(dict.fromkeys(keys))) if node is not None)


def _rejected(node: Node, view: View) -> bool:
    state = node.state if view.known_at is None else node.state_at(view.known_at)
    return state is not None and state.trust is Trust.REJECTED


def _head(context: MemoryContext, view: View, scope: Scope, node_id: str) -> str:
    """The newest version of what took the place of something."""
    (node,) = context.engine.fetch(view, [NodeKey(scope, node_id)])
    versions = [] if node is None else context.engine.versions(view, scope, node.lineage)
    return versions[-1].id if versions else node_id
