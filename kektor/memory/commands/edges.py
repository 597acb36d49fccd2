"""Linking and unlinking."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from kektor.engine.gateway import Principal
from kektor.engine.port import Transaction
from kektor.engine.records import Edge, Item, Moment, Receipt
from kektor.engine.view import ScopeRule
from kektor.errors import Forbidden, Invalid, NotFound
from kektor.memory.commands.base import MemoryCommand, key_of, seen
from kektor.memory.commands.versions import PROVENANCE
from kektor.memory.inputs import may_write

__all__ = ["EdgeDraft", "Link", "Unlink"]


class EdgeDraft(NamedTuple):
    src: str
    rel: str
    dst: str
    weight: float = 1.0
    props: Mapping[str, Any] = MappingProxyType({})
    valid_from: Moment | None = None
    valid_to: Moment | None = None


@dataclass(kw_only=True)
class Link(MemoryCommand):
    """Add some edges; one that stands already is replaced, so that linking twice is linking once."""

    operation: ClassVar[str] = "link"

    edges: Sequence[EdgeDraft] = field(default_factory=list)
    rule: ScopeRule = ScopeRule()

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        self.settings(tx)
        items = [self._link(edge, tx, principal) for edge in self.edges]
        return Receipt("created", ids=[edge.src for edge in self.edges], items=items)

    def _link(self, draft: EdgeDraft, tx: Transaction, principal: Principal) -> Item:
        if draft.rel in PROVENANCE:
            raise Invalid(f"{draft.rel!r} says where something comes from; only the database writes it", field="rel")
        src = seen(tx, principal, self.index, draft.src, self.rule, field="src")
        dst = seen(tx, principal, self.index, draft.dst, self.rule, field="dst")
        _refuse_foreign(principal, self.index, src.scope, dst.scope)
        replaced = tx.end_edge(self.index, key_of(src), draft.rel, key_of(dst))
        edge = Edge(
            draft.src,
            draft.rel,
            draft.dst,
            draft.weight,
            dict(draft.props),
            draft.valid_from,
            draft.valid_to,
            created_at=tx.time,
            actor=principal.actor,
        )
        tx.put_edge(self.index, key_of(src), key_of(dst), edge)
        return Item(draft.src, "created" if replaced is None else "updated")


@dataclass(kw_only=True)
class Unlink(MemoryCommand):
    """End one edge; its past stays readable."""

    operation: ClassVar[str] = "unlink"

    src: str
    rel: str
    dst: str
    rule: ScopeRule = ScopeRule()

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        self.settings(tx)
        if self.rel in PROVENANCE:
            raise Invalid(f"{self.rel!r} says where something comes from and stays", field="rel")
        src = seen(tx, principal, self.index, self.src, self.rule, field="src")
        dst = seen(tx, principal, self.index, self.dst, self.rule, field="dst")
        _refuse_foreign(principal, self.index, src.scope, dst.scope)
        if tx.end_edge(self.index, key_of(src), self.rel, key_of(dst)) is None:
            raise NotFound(f"there is no edge {self.src!r} -{self.rel}-> {self.dst!r}", field="rel")
        return Receipt("deleted", id=self.src)


def _refuse_foreign(principal: Principal, index: str, *scopes: Any) -> None:
    """An edge belongs to its ends: the caller must be able to change at least one of them."""
    if not any(may_write(principal, index, scope) for scope in scopes):
        raise Forbidden("this caller may read both ends and change neither", field="src")
