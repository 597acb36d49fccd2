"""What was said, as it is seen today: without the sentences whose value was rejected, and with what came after it."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import structs

from kektor.engine.records import IndexSettings, Kind, Node, NodeKey, Scope, Status, Trust
from kektor.engine.view import INCLUDABLE, View
from kektor.memory.context import MemoryContext
from kektor.memory.objects import Hit, NearMiss
from kektor.memory.presenting import memory_of
from kektor.memory.recall.fuse import Fused
from kektor.memory.tombstones import REJECTED
from kektor.text import CUT, Span, blank, sentences, touched

__all__ = ["TakenBack", "as_read_today", "as_seen_today", "near_misses"]


class TakenBack:
    """Which sentences of sources were taken back, by the memories that quote them and by the values rejected."""

    def __init__(self, context: MemoryContext, view: View) -> None:
        self._context = context
        self._view = view
        self._anything = structs.replace(
            view, history=True, include=INCLUDABLE, kinds=None, layers=None, tags=None, filter=None
        )
        self._spans: dict[NodeKey, list[Span]] = {}
        self._left: dict[NodeKey, str] = {}

    def spans(self, source: NodeKey, text: str) -> list[Span]:
        """The sentences of a source that are left out."""
        if source not in self._spans:
            self._spans[source] = self._find(source, text)
        return self._spans[source]

    def left(self, source: NodeKey, text: str) -> str:
        """The text of a source without them, however often it is asked for; "" when nothing else was said."""
        if source not in self._left:
            if gone := self.spans(source, text):
                text = " ".join(part for part in blank(text, gone).replace(CUT, "").split(" ") if part).strip()
            self._left[source] = text if text.replace(CUT, "").strip() else ""
        return self._left[source]

    def _find(self, source: NodeKey, text: str) -> list[Span]:
        quoted = [
            Span(span.start, span.end)
            for node in self._resting(source)
            if self._is_rejected(node)
            for span in node.evidence
            if span.key == source
        ]
        gone = set(touched(text, quoted)) if quoted else set()
        engine, index = self._context.engine, self._view.index
        if engine.withholds(index, source.scope, REJECTED):
            digests = self._context.digester.digests
            gone |= {
                span
                for span in sentences(text)
                if engine.withheld(index, source.scope, REJECTED, digests(text[span.start : span.end]))
            }
        return sorted(gone)

    def later(self, source: NodeKey) -> str | None:
        """The newest version of what took the place of a memory that rests on a source; None when nothing did."""
        replaced = [
            node for node in self._resting(source) if node.status is Status.SUPERSEDED and not self._is_rejected(node)
        ]
        if not replaced:
            return None
        versions = self._context.engine.versions(self._anything, source.scope, replaced[-1].lineage)
        return versions[-1].id if versions else replaced[-1].superseded_by

    def source(self, key: NodeKey) -> Node | None:
        (node,) = self._context.engine.fetch(self._anything, [key])
        return node

    def _resting(self, source: NodeKey) -> Iterator[Node]:
        """The memories that quote a source, in the order in which they came to."""
        engine = self._context.engine
        keys = [key for edge, key in engine.edges_ever(self._anything, source) if edge.rel == "evidence_of"]
        yield from (node for node in engine.fetch(self._anything, list(dict.fromkeys(keys))) if node is not None)

    def _is_rejected(self, node: Node) -> bool:
        known_at = self._view.known_at
        state = node.state if known_at is None else node.state_at(known_at)
        return state is not None and state.trust is Trust.REJECTED


def as_read_today(
    taken: TakenBack, ranked: Sequence[Fused], answers: Callable[[str], bool], *, most: int
) -> list[Fused]:
    """Candidates in their order, of the first `most` the sources with the text that is left of them.

    One of which nothing is left that `answers` was found by what was taken back, and drops out.
    """
    read = []
    for found in ranked[:most]:
        node = found.candidate.node
        text = taken.left(found.candidate.key, node.text) if node.kind is Kind.SOURCE else node.text
        if text == node.text:
            read.append(found)
        elif answers(text):
            read.append(found._replace(candidate=found.candidate._replace(node=structs.replace(node, text=text))))
    return [*read, *ranked[most:]]


def as_seen_today(taken: TakenBack, hits: Sequence[Hit], *, whole: bool) -> list[Hit]:
    """Hits in their order; of sources, and of summaries made of them, only what was not taken back. One of which
    nothing is left is no hit.

    With `whole`, for who asked to `include` what was rejected, all that was said is shown.
    """
    seen = []
    for hit in hits:
        if hit.memory.kind == Kind.SOURCE:
            found = _source(taken, hit, whole=whole)
        elif hit.memory.kind == Kind.SUMMARY and not whole:
            found = _summary(taken, hit)
        else:
            found = hit
        if found is not None:
            seen.append(found)
    return seen


def near_misses(
    taken: TakenBack, settings: IndexSettings, view: View, misses: Sequence[tuple[Node, str]]
) -> list[NearMiss]:
    """What came close, in its order, with why it is no answer; nothing that was taken back comes close either."""
    hits = [
        Hit(memory_of(node, settings, now=view.now, known_at=view.known_at), 0.0, {}, [why]) for node, why in misses
    ]
    seen = as_seen_today(taken, hits, whole="rejected" in view.include)
    return [NearMiss(id=hit.memory.id, text=hit.memory.text, why=hit.via[0]) for hit in seen]


def _source(taken: TakenBack, hit: Hit, *, whole: bool) -> Hit | None:
    key = NodeKey(_scope(hit), hit.memory.id)
    text = hit.memory.text if whole else taken.left(key, hit.memory.text)
    if not text.replace(CUT, "").strip():
        return None
    return structs.replace(hit, memory=structs.replace(hit.memory, text=text), superseded_by=taken.later(key))


def _summary(taken: TakenBack, hit: Hit) -> Hit | None:
    """A summary made of quotes without those that were taken back."""
    quotes = hit.memory.evidence
    if hit.memory.text != "\n".join(span.quote for span in quotes):
        return hit
    kept = []
    for span in quotes:
        key = NodeKey(_scope(hit), span.source)
        source = taken.source(key)
        gone = [] if source is None else taken.spans(key, source.text)
        if not any(one.start < span.end and span.start < one.end for one in gone):
            kept.append(span)
    if not kept:
        return None
    text = "\n".join(span.quote for span in kept)
    return structs.replace(hit, memory=structs.replace(hit.memory, text=text, evidence=kept))


def _scope(hit: Hit) -> Scope:
    scope = hit.memory.scope
    return Scope(scope.user or "", scope.agent or "", scope.project or "")
