"""What a caller means to forget: some ids, what a filter finds, what a question is about, or what is past its time."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from msgspec import structs

from kektor.engine.gateway import Principal
from kektor.engine.port import Engine, Transaction
from kektor.engine.records import Kind, Node, Status, Trust
from kektor.engine.view import ScopeRule, View
from kektor.memory.commands.base import target
from kektor.memory.forgetting.closure import Cut, Gone
from kektor.memory.forgetting.matching import Topic, read_topic
from kektor.memory.inputs import may_write
from kektor.text import Span

__all__ = ["ByFilter", "ByIds", "ByQuery", "Chooser", "Chosen", "Expired", "standing"]

_PAGE = 500
_MADE = frozenset({Kind.SUMMARY, Kind.PROFILE, Kind.THEME, Kind.ARTIFACT, Kind.REFLECTION})
"""Made from other nodes, and reached through them."""


class Chosen(NamedTuple):
    """What goes whole and what loses some sentences; `kept` are ids that match and are not the caller's to change."""

    named: list[Gone]
    cuts: list[Cut]
    kept: list[str]


class Chooser(Protocol):
    """One way to say what."""

    def choose(self, index: str, tx: Transaction, engine: Engine, principal: Principal) -> Chosen:
        """Under the commit lock, so that what is found is what is there."""


@dataclass
class ByIds:
    """These; NotFound when the caller does not see one of them."""

    ids: list[str]
    rule: ScopeRule

    def choose(self, index: str, tx: Transaction, engine: Engine, principal: Principal) -> Chosen:
        nodes = [target(tx, principal, index, node_id, self.rule) for node_id in dict.fromkeys(self.ids)]
        return Chosen([Gone(index, node, "named") for node in nodes], [], [])


@dataclass
class ByFilter:
    """What a View admits."""

    view: View
    why: str = "the filter finds it"

    def choose(self, index: str, tx: Transaction, engine: Engine, principal: Principal) -> Chosen:
        named, kept = [], []
        for node in _all(engine, self.view):
            if not may_write(principal, index, node.scope):
                kept.append(node.id)
            else:
                named.append(Gone(index, node, self.why))
        return Chosen(named, [], kept)


@dataclass
class ByQuery:
    """What a question is about, sentence by sentence."""

    view: View
    query: str

    def choose(self, index: str, tx: Transaction, engine: Engine, principal: Principal) -> Chosen:
        settings = tx.index(index)
        topic = read_topic(self.query, "english" if settings is None else settings.text.language)
        chosen = Chosen([], [], [])
        for node in _all(engine, self.view):
            if node.kind in _MADE and node.evidence:
                continue  # made of quotes: it is made anew where they go
            self._look(index, node, topic, principal, chosen)
        return chosen

    def _look(self, index: str, node: Node, topic: Topic, principal: Principal, chosen: Chosen) -> None:
        told = topic.told_in(node.text, user=node.scope.user)
        beside = topic.named_in([*node.tags, *_words(node.metadata), *_claimed(node)])
        if not told.spans and not beside:
            return
        if not may_write(principal, index, node.scope):
            chosen.kept.append(node.id)
        elif node.kind is Kind.SESSION:
            chosen.cuts.append(Cut(index, node, [Span(0, len(node.text))], "its title is about it"))
        elif told.left and not beside:
            chosen.cuts.append(Cut(index, node, told.spans, "part of it is about it", told.left))
        else:
            chosen.named.append(Gone(index, node, "it is about it"))


@dataclass
class Expired:
    """What is older than its layer is kept and not confirmed since, unless it is pinned."""

    view: View
    mode: str

    def choose(self, index: str, tx: Transaction, engine: Engine, principal: Principal) -> Chosen:
        chosen = Chosen([], [], [])
        settings = tx.index(index)
        for layer, retention in () if settings is None else settings.policy.retention.items():
            if retention.mode != self.mode:
                continue
            view = structs.replace(self.view, layers=frozenset({layer}))
            past = view.now - round(retention.days * 24 * 3600 * 1_000_000)
            for node in _all(engine, view):
                if node.pinned or max(node.confirmed_at, node.recorded_at) > past or node.kind is Kind.SESSION:
                    continue
                if not may_write(principal, index, node.scope):
                    chosen.kept.append(node.id)
                else:
                    chosen.named.append(Gone(index, node, f"{layer} is kept for {retention.days:g} days"))
        return chosen


def standing(node: Node) -> bool:
    """Whether there is anything left to withdraw of it."""
    return node.status is Status.CURRENT and node.trust is not Trust.REJECTED


def _all(engine: Engine, view: View) -> Iterator[Node]:
    cursor: str | None = None
    while True:
        page = engine.page(view, limit=_PAGE, cursor=cursor)
        yield from page.nodes
        if (cursor := page.cursor) is None:
            return


def _words(value: object) -> Iterator[str]:
    """Every text inside plain JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _words(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _words(inner)


def _claimed(node: Node) -> tuple[str, ...]:
    return () if node.claim is None else (f"{node.claim.subject} {node.claim.predicate} {node.claim.object}",)
