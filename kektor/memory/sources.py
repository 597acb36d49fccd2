"""Which source is meant by an id that a statement of some scope names."""

from kektor.engine.gateway import Principal
from kektor.engine.port import Transaction
from kektor.engine.records import Kind, Node, NodeKey, Scope

__all__ = ["source_for"]


def source_for(tx: Transaction, principal: Principal, index: str, source_id: str, scope: Scope) -> Node | None:
    """The source of exactly that scope, else the shared one; None when the caller sees neither.

    A statement never rests on what only others see, so no other scope is looked at.
    """
    grants = principal.grants_for(index)
    for owner in dict.fromkeys((scope, Scope())):
        node = tx.node(index, NodeKey(owner, source_id))
        if node is not None and node.kind is Kind.SOURCE and any(grant.admits(owner) for grant in grants):
            return node
    return None
