"""The ways that keys lead: made with a memory, and made less of when one was wrong."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from msgspec import structs

from kektor import clock
from kektor.engine.gateway import Principal
from kektor.engine.port import Transaction
from kektor.engine.records import Edge, Kind, Node, NodeKey, Receipt, State, Trust
from kektor.errors import NotFound
from kektor.memory.commands.base import MemoryCommand, key_of
from kektor.memory.commands.lifecycle import OnOne
from kektor.memory.keys import FLOOR, ROUTES, Key, known_key

__all__ = ["Dismiss", "lead_to"]

_LESS = 0.3


@dataclass(kw_only=True)
class Dismiss(OnOne):
    """A key led to a memory that it should not have."""

    operation: ClassVar[str] = "dismiss"

    key: str

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        own = key_of(self.node)
        ways = [(edge, src) for edge, src, _ in tx.edges(self.index, own, "in") if edge.rel == ROUTES]
        keys = [node for _, src in ways if (node := tx.node(self.index, src)) is not None]
        key = known_key(keys, self.key)
        if key is None:
            raise NotFound(f"no key {self.key!r} leads to {self.node.id!r}", field="key")
        edge = next(edge for edge, src in ways if src == key_of(key))
        weight = round(max(FLOOR, edge.weight - _LESS), 6)
        if weight == edge.weight:
            return Receipt("dismissed", id=self.node.id, warnings=[f"{key.text} leads here as weakly as it can"])
        tx.end_edge(self.index, key_of(key), ROUTES, own)
        lessened = structs.replace(edge, weight=weight, created_at=tx.time, actor=principal.actor)
        tx.put_edge(self.index, key_of(key), own, lessened)
        return Receipt("dismissed", id=self.node.id, version=self.node.version)


def lead_to(tx: Transaction, command: MemoryCommand, principal: Principal, memory: Node, keys: Sequence[Key]) -> None:
    """Make keys lead to a memory: those of its scope that have the name, or new ones."""
    led = {src for edge, src, _ in tx.edges(command.index, key_of(memory), "in") if edge.rel == ROUTES}
    for key in keys:
        node = _key(tx, command, principal, memory, key)
        if key_of(node) not in led:
            led.add(key_of(node))
            edge = Edge(node.id, ROUTES, memory.id, created_at=tx.time, actor=principal.actor)
            tx.put_edge(command.index, key_of(node), key_of(memory), edge)


def _key(tx: Transaction, command: MemoryCommand, principal: Principal, memory: Node, key: Key) -> Node:
    digester = command.context.digester
    for name in (key.concept, *key.aliases):
        held = known_key(tx.nodes_of_digest(command.index, memory.scope, digester.digest("key", name)), name)
        if held is not None:
            aliases = tuple(dict.fromkeys((*held.tags, *_others(held.text, key))))
            return held if aliases == held.tags else tx.amend(command.index, key_of(held), tags=aliases)
    node_id = clock.new_id()
    trust = Trust.PROPOSED if memory.trust is Trust.PROPOSED else Trust.ACCEPTED
    node = Node(
        id=node_id,
        kind=Kind.KEY,
        text=key.concept,
        scope=memory.scope,
        lineage=node_id,
        version=1,
        states=(State(tx.time, trust=trust, actor=principal.actor),),
        actor=principal.actor,
        metadata={"type": key.type} if key.type else {},
        tags=_others(key.concept, key),
        topic=digester.digest("key", key.concept),
    )
    tx.put_node(command.index, node)
    # Its name came with this memory, and goes with it.
    edge = Edge(node.id, "derived_from", memory.id, created_at=tx.time, actor=principal.actor)
    tx.put_edge(command.index, key_of(node), key_of(memory), edge)
    found = tx.node(command.index, NodeKey(node.scope, node.id))
    return node if found is None else found


def _others(concept: str, key: Key) -> tuple[str, ...]:
    return tuple(name for name in dict.fromkeys((key.concept, *key.aliases)) if name != concept)
