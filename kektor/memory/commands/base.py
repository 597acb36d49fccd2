"""What the commands share: who may change a node, and how one is found."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec

from kektor.engine.gateway import Principal
from kektor.engine.port import Engine, Transaction
from kektor.engine.records import IndexSettings, Node, NodeKey, Receipt, Scope
from kektor.engine.view import ScopeRule
from kektor.errors import Conflict, Forbidden, NotFound
from kektor.memory.context import MemoryContext
from kektor.memory.drafts import Draft
from kektor.memory.inputs import may_write

__all__ = ["MemoryCommand", "key_of", "one_of", "one_scope", "seen", "target"]


@dataclass(kw_only=True)
class MemoryCommand:
    """The common part; a subclass says what it stages."""

    operation: ClassVar[str]
    right: ClassVar[str] = "write"
    goes_on_without_blocked: ClassVar[bool] = False
    """Whether a blocked draft is left out (and said so) instead of refusing the whole command."""
    whole_index: ClassVar[bool] = False
    """Whether it changes what all scopes share, so that a grant for some of them is not enough."""
    of_one_scope: ClassVar[bool] = False
    """Whether all it is about is of `scope`, so that whoever sees that scope may hear of it."""
    withdraws: ClassVar[bool] = False
    """Whether it takes something out of what is believed."""

    context: MemoryContext
    index: str
    scope: Scope = Scope()
    reason: str = ""
    idempotency_key: str | None = None
    asked: Any = None
    """The caller's request as it came."""
    drafts: list[Draft] = field(default_factory=list)
    touched: list[str] = field(default_factory=list)
    """Ids of the nodes whose history it went on with."""
    revived: list[Node] = field(default_factory=list)
    """What comes back into sight: it must pass what new statements pass."""
    withheld: list[str] = field(default_factory=list)
    """Tombstones whose sentences were taken out of what is stored: noted as refusals."""

    def request(self) -> Any:
        return msgspec.to_builtins(self.asked)

    def prepare(self, engine: Engine, principal: Principal) -> None:
        """Embed the drafts that have no vector yet, all in one call."""
        settings = engine.index(self.index)
        if settings is None:
            raise NotFound(f"there is no index {self.index!r}", field="index")
        waiting = [draft for draft in self.drafts if draft.vector is None and draft.text and not draft.raw]
        vectors = self.context.embed(settings, [draft.text for draft in waiting], kind="document")
        if vectors is not None:
            for draft, vector in zip(waiting, vectors, strict=True):
                draft.vector = vector

    def resolve(self, tx: Transaction, principal: Principal) -> None:
        """Find what the command is about; most have all they need."""

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        raise NotImplementedError

    def settings(self, tx: Transaction) -> IndexSettings:
        """The index, which may have been dropped since the command was prepared."""
        settings = tx.index(self.index)
        if settings is None:
            raise NotFound(f"there is no index {self.index!r}", field="index")
        return settings


def seen(
    tx: Transaction, principal: Principal, index: str, node_id: str, rule: ScopeRule, *, field: str = "id"
) -> Node:
    """The node a caller means by an id.

    NotFound when none is visible to it (whether or not it exists elsewhere), Conflict when several scopes have it.
    """
    grants = principal.grants_for(index)
    found = [
        node
        for node in tx.nodes_of_id(index, node_id)
        if rule.admits(node.scope) and any(grant.admits(node.scope) for grant in grants)
    ]
    if not found:
        raise NotFound(f"there is no {node_id!r} in index {index!r}", field=field)
    return one_of(found, rule)


def target(
    tx: Transaction,
    principal: Principal,
    index: str,
    node_id: str,
    rule: ScopeRule,
    *,
    expected_version: int | None = None,
) -> Node:
    """`seen`, and the caller may change it (else Forbidden), and it is the version expected (else Conflict)."""
    node = seen(tx, principal, index, node_id, rule)
    if not may_write(principal, index, node.scope):
        raise Forbidden(f"{node_id!r} is shared; this caller may read it and not change it", field="id")
    if expected_version is not None and node.version != expected_version:
        raise Conflict(
            f"{node_id!r} is version {node.version}, not {expected_version}",
            field="expected_version",
            details={"version": node.version},
        )
    return node


def one_of(found: list[Node], rule: ScopeRule) -> Node:
    """Of some nodes of one id the one of exactly the scope asked for."""
    scope = one_scope(found[0].id, [node.scope for node in found], rule)
    return next(node for node in found if node.scope == scope)


def one_scope(name: str, scopes: list[Scope], rule: ScopeRule) -> Scope:
    """Of the scopes that have a name the one asked for exactly; Conflict lists those to choose from."""
    if len(scopes) == 1:
        return scopes[0]
    if rule != ScopeRule() and rule.exactly() in scopes:
        return rule.exactly()
    named = [{k: v for k, v in msgspec.structs.asdict(scope).items() if v} or {"shared": True} for scope in scopes]
    raise Conflict(
        f"{name!r} stands in {len(scopes)} scopes: pass scope to say which",
        field="scope",
        details={"scopes": named},
    )


def key_of(node: Node) -> NodeKey:
    return NodeKey(node.scope, node.id)
