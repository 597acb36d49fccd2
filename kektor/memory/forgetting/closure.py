"""What erasing some nodes reaches: their versions, their copies in any scope and index, and what rests on them."""

from collections import deque
from dataclasses import dataclass, field

from kektor.engine.gateway import Principal
from kektor.engine.port import Transaction
from kektor.engine.records import Evidence, Kind, Node, NodeKey
from kektor.memory.commands.base import key_of
from kektor.memory.inputs import may_write
from kektor.text import Span, touched

__all__ = ["Closure", "Cut", "Gone", "Place", "Rebuilt", "reach"]


@dataclass(frozen=True)
class Place:
    """A node of some index."""

    index: str
    key: NodeKey


@dataclass(frozen=True)
class Gone:
    """A node that goes, and why."""

    index: str
    node: Node
    why: str


@dataclass
class Cut:
    """A node that stays without some of its sentences."""

    index: str
    node: Node
    spans: list[Span]
    why: str
    left: str = ""
    """What a statement says without them, where that is more than closing the gap."""


@dataclass(frozen=True)
class Rebuilt:
    """A derived text made anew from the quotes that are left."""

    index: str
    node: Node
    evidence: tuple[Evidence, ...]


@dataclass
class Closure:
    """All of it, before anything is done."""

    matched: dict[Place, Gone] = field(default_factory=dict)
    derived: dict[Place, Gone] = field(default_factory=dict)
    copies: dict[Place, Gone] = field(default_factory=dict)
    cuts: dict[Place, Cut] = field(default_factory=dict)
    rebuilt: dict[Place, Rebuilt] = field(default_factory=dict)
    resting: dict[Place, tuple[Evidence, ...]] = field(default_factory=dict)
    """What stays on other evidence, with the spans that are left to it."""
    uncut: dict[Place, Node] = field(default_factory=dict)
    """Sources that quote it and that the caller may not change."""

    def __contains__(self, place: Place) -> bool:
        return place in self.matched or place in self.derived or place in self.copies

    @property
    def reached(self) -> "list[Gone | Cut | Rebuilt]":
        """All that changes in any way."""
        return [*self.gone, *self.cuts.values(), *self.rebuilt.values()]

    @property
    def gone(self) -> list[Gone]:
        return [*self.matched.values(), *self.derived.values(), *self.copies.values()]


def reach(tx: Transaction, named: list[Gone], cuts: list[Cut], principal: Principal) -> Closure:
    """Follow `copied_from`, `derived_from` and evidence from what is named, and from sentences that are cut.

    A memory with other evidence left keeps standing on it; one whose every quote goes is derived and goes too, but for
    those of its versions that have sources of their own. What others wrote in scopes that the caller may not change
    stays without the quotes.
    """
    return _Walk(tx, principal).run(named, cuts)


class _Walk:
    def __init__(self, tx: Transaction, principal: Principal) -> None:
        self._tx = tx
        self._principal = principal
        self._found = Closure()
        self._queue: deque[tuple[Place, bool]] = deque()
        """What goes, and whether what it quotes goes with it."""

    def run(self, named: list[Gone], cuts: list[Cut]) -> Closure:
        for gone in named:
            self._take(self._found.matched, gone, quotes=True)
        for cut in cuts:
            self._cut(cut.index, cut.node, cut.spans, cut.why, cut.left)
        while self._queue:
            place, quotes = self._queue.popleft()
            self._follow(place, quotes)
        for place in [*self._found.cuts, *self._found.rebuilt, *self._found.resting]:
            if place in self._found:
                self._found.cuts.pop(place, None)
                self._found.rebuilt.pop(place, None)
                self._found.resting.pop(place, None)
        return self._found

    def _take(self, table: dict[Place, Gone], gone: Gone, *, quotes: bool) -> None:
        node = gone.node
        for version in self._tx.lineage(gone.index, node.scope, node.lineage) or [node]:
            place = Place(gone.index, key_of(version))
            if place in self._found or (table is self._found.derived and self._rests_elsewhere(gone.index, version)):
                continue
            why = gone.why if version.id == node.id else "another version of it"
            table[place] = Gone(gone.index, version, why)
            self._queue.append((place, quotes))

    def _follow(self, place: Place, quotes: bool) -> None:
        index, own = place.index, place.key
        node = self._tx.node(index, own)
        if node is None:
            return
        if quotes:
            for span in node.evidence:
                self._cut_quoted(index, span)
        for edge, src, dst in self._tx.edges(index, own):
            if edge.rel == "copied_from" and dst == own:
                self._take_at(self._found.copies, Place(index, src), "copied from it", quotes=True)
            elif edge.rel == "derived_from" and dst == own:
                self._rests(Place(index, src), made=True)
            elif edge.rel == "evidence_of" and src == own:
                self._rests(Place(index, dst), made=False)
        for other, copy in self._tx.copies(index, own):
            self._take_at(self._found.copies, Place(other, key_of(copy)), "copied from it", quotes=True)

    def _take_at(self, table: dict[Place, Gone], place: Place, why: str, *, quotes: bool) -> None:
        node = self._tx.node(place.index, place.key)
        if node is not None and place not in self._found:
            self._take(table, Gone(place.index, node, why), quotes=quotes)

    def _cut_quoted(self, index: str, span: Evidence) -> None:
        source = self._tx.node(index, span.key)
        if source is None or source.kind is not Kind.SOURCE:
            return
        if not may_write(self._principal, index, source.scope):
            self._found.uncut[Place(index, span.key)] = source
            return
        self._cut(index, source, touched(source.text, [Span(span.start, span.end)]), "it was said here")

    def _cut(self, index: str, node: Node, spans: list[Span], why: str, left: str = "") -> None:
        place = Place(index, key_of(node))
        held = self._found.cuts.setdefault(place, Cut(index, node, [], why, left))
        new = [span for span in spans if span not in held.spans]
        if not new or place in self._found:
            return
        held.spans = sorted([*held.spans, *new])
        for edge, src, dst in self._tx.edges(index, place.key):
            if edge.rel == "evidence_of" and src == place.key:
                self._rests(Place(index, dst), made=False)
            elif edge.rel == "derived_from" and dst == place.key:
                self._rests(Place(index, src), made=True)

    def _rests(self, place: Place, *, made: bool) -> None:
        """What rests on something that goes: it stays on other quotes, is made anew from them, or goes as well."""
        node = self._tx.node(place.index, place.key)
        if node is None or place in self._found:
            return
        left = tuple(span for span in node.evidence if not self._lost(place.index, span))
        if left == node.evidence and (node.evidence or not made):
            return
        if node.kind is Kind.MEMORY and not may_write(self._principal, place.index, node.scope):
            self._found.resting[place] = left
        elif not left:
            self._take(self._found.derived, Gone(place.index, node, "rests on it alone"), quotes=False)
        elif node.kind is Kind.MEMORY:
            self._found.resting[place] = left
        elif _extracted(node):
            self._found.rebuilt[place] = Rebuilt(place.index, node, left)
        else:
            self._take(self._found.derived, Gone(place.index, node, "was made from it"), quotes=False)

    def _rests_elsewhere(self, index: str, node: Node) -> bool:
        return any(not self._lost(index, span) for span in node.evidence)

    def _lost(self, index: str, span: Evidence) -> bool:
        place = Place(index, span.key)
        if place in self._found:
            return True
        cut = self._found.cuts.get(place)
        return cut is not None and any(gap.start < span.end and span.start < gap.end for gap in cut.spans)


def _extracted(node: Node) -> bool:
    """Whether its text is nothing but what it quotes."""
    return node.kind is Kind.SUMMARY and node.text == "\n".join(span.quote for span in node.evidence)
