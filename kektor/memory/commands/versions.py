"""How a node's life goes on: a new row of its history, a successor in its place, a contradiction and its end."""

from collections.abc import Iterable

from msgspec import structs

from kektor.engine.gateway import Principal
from kektor.engine.port import Transaction
from kektor.engine.records import Edge, Evidence, Kind, Moment, Node, NodeKey, State, Status, Trust
from kektor.memory.commands.base import MemoryCommand, key_of
from kektor.memory.drafts import Draft

__all__ = [
    "PROVENANCE",
    "adopt",
    "close_reflections",
    "contradicting",
    "evolved",
    "head_of",
    "link_evidence",
    "place",
    "settle",
    "stands",
    "step",
    "supersede",
]

PROVENANCE = frozenset({"derived_from", "copied_from", "supersedes", "evidence_of", "contradicts", "would_replace"})
"""Edges that say where something comes from; they stay with the version they speak of."""

_STANDING = frozenset({Trust.ACCEPTED, Trust.CONTESTED})


def head_of(tx: Transaction, index: str, node: Node) -> Node:
    """The newest version of a lineage."""
    return tx.lineage(index, node.scope, node.lineage)[-1]


def place(tx: Transaction, draft: Draft, principal: Principal) -> Node:
    """Store a draft that is new, and link the sources it rests on."""
    node = draft.node(principal.actor, tx.time)
    tx.put_node(draft.index, node, draft.vector)
    link_evidence(tx, draft.index, node.evidence, key_of(node), principal)
    return node


def link_evidence(
    tx: Transaction, index: str, evidence: Iterable[Evidence], node: NodeKey, principal: Principal
) -> None:
    """Join the sources of some spans to what rests on them, each once."""
    for source in dict.fromkeys(span.key for span in evidence):
        edge = Edge(source.id, "evidence_of", node.id, created_at=tx.time, actor=principal.actor)
        tx.put_edge(index, source, node, edge)


def step(
    tx: Transaction,
    command: MemoryCommand,
    principal: Principal,
    node: Node,
    *,
    status: Status | None = None,
    trust: Trust | None = None,
    valid_from: Moment | None = None,
    valid_to: Moment | None = None,
    superseded_by: str = "",
) -> Node:
    """Begin a new row of the node's history: what is not given stays."""
    last = node.state
    state = State(
        recorded_from=tx.time,
        status=status or last.status,
        trust=trust or last.trust,
        valid_from=valid_from or last.valid_from,
        valid_to=valid_to or last.valid_to,
        reason=command.reason,
        actor=principal.actor,
    )
    command.touched.append(node.id)
    return tx.set_state(command.index, key_of(node), state, superseded_by=superseded_by)


def evolved(
    begin: Moment | None, finish: Moment | None, old: Node, now: int
) -> tuple[Moment, Moment | None, Moment | None]:
    """When a value holds that follows another, from and to, and where the other's interval ends.

    With a beginning at or before the old one's it takes the whole interval, and nothing is left of the other's.
    """
    begin = begin or Moment(now)
    start, end = old.state.valid_from, old.state.valid_to
    finish = finish or (end if end is not None and end.at > begin.at else None)
    if start is not None and begin.at <= start.at:
        return begin, finish, start if start.at <= now else Moment(now)
    return begin, finish, end if end is not None and end.at < begin.at else begin


def supersede(
    tx: Transaction,
    command: MemoryCommand,
    principal: Principal,
    draft: Draft,
    old: Node,
    *,
    ended: Moment | None = None,
    trust: Trust | None = None,
    inherits: bool = False,
) -> Node:
    """Put a draft in the place of the head of a lineage, with the links that stood there.

    `inherits` says that it still states what the old one did: what contradicted that contradicts it.
    """
    new = draft.node(
        principal.actor, tx.time, lineage=old.lineage, version=head_of(tx, command.index, old).version + 1,
        supersedes=old.id,
    )  # fmt: skip
    tx.put_node(command.index, new, draft.vector)
    link_evidence(tx, command.index, new.evidence, key_of(new), principal)
    step(
        tx, command, principal, old, status=Status.SUPERSEDED, trust=trust, valid_to=ended, superseded_by=new.id
    )  # fmt: skip
    _carry_edges(tx, command.index, old, new)
    edge = Edge(new.id, "supersedes", old.id, created_at=tx.time, actor=principal.actor)
    tx.put_edge(command.index, key_of(new), key_of(old), edge)
    if inherits:
        _carry_doubt(tx, command.index, old, new)
    else:
        settle(tx, command, principal, old)
    return new


def adopt(
    tx: Transaction,
    command: MemoryCommand,
    principal: Principal,
    node: Node,
    old: Node,
    *,
    begin: Moment | None,
    end: Moment | None,
    ended: Moment | None,
    trust: Trust | None,
) -> Node:
    """A memory that stood for itself becomes the next version of another, and is believed; `trust` is the old one's."""
    index = command.index
    version = head_of(tx, index, old).version + 1
    tx.amend(index, key_of(node), lineage=old.lineage, version=version, supersedes=old.id)
    new = step(tx, command, principal, node, trust=Trust.ACCEPTED, valid_from=begin, valid_to=end)
    step(tx, command, principal, old, status=Status.SUPERSEDED, trust=trust, valid_to=ended, superseded_by=node.id)
    _carry_edges(tx, index, old, new)
    edge = Edge(new.id, "supersedes", old.id, created_at=tx.time, actor=principal.actor)
    tx.put_edge(index, key_of(new), key_of(old), edge)
    settle(tx, command, principal, old)
    return new


def contradicting(tx: Transaction, index: str, node: Node) -> list[Node]:
    """What stands and contradicts a node."""
    own = key_of(node)
    ends = [(dst if src == own else src) for edge, src, dst in tx.edges(index, own) if edge.rel == "contradicts"]
    nodes = (tx.node(index, key) for key in dict.fromkeys(ends))
    return [other for other in nodes if other is not None and stands(other)]


def stands(node: Node) -> bool:
    """Whether it is current and believed, perhaps in doubt."""
    return node.status is Status.CURRENT and node.trust in _STANDING


def close_reflections(
    tx: Transaction,
    command: MemoryCommand,
    principal: Principal,
    node: Node,
    *,
    besides: str = "",
    gone: bool = False,
) -> None:
    """What waits about a node alone, or about too few that still stand, waits no more; a node that is `gone` does not
    stand whatever its state."""
    for edge, src, _ in tx.edges(command.index, key_of(node), "in"):
        reflection = tx.node(command.index, src) if edge.rel == "derived_from" and src.id != besides else None
        if reflection is None or reflection.kind is not Kind.REFLECTION or reflection.status is not Status.CURRENT:
            continue
        ends = [end for rel, _, end in tx.edges(command.index, src, "out") if rel.rel == "derived_from"]
        about = [tx.node(command.index, end) for end in ends]
        standing = [
            other for other in about if other is not None and stands(other) and not (gone and other.id == node.id)
        ]
        if len(standing) < 2:
            step(tx, command, principal, reflection, status=Status.ARCHIVED)


def settle(tx: Transaction, command: MemoryCommand, principal: Principal, gone: Node) -> None:
    """A node no longer stands: what it alone put in doubt is believed again, and a reflection about it is closed."""
    index = command.index
    for other in contradicting(tx, index, gone):
        rivals = [rival for rival in contradicting(tx, index, other) if rival.id != gone.id]
        if other.trust is Trust.CONTESTED and not rivals:
            step(tx, command, principal, other, trust=Trust.ACCEPTED)
    close_reflections(tx, command, principal, gone, gone=True)


def _carry_doubt(tx: Transaction, index: str, old: Node, new: Node) -> None:
    before, after = key_of(old), key_of(new)
    for edge, src, dst in tx.edges(index, before):
        reflected = edge.rel == "derived_from" and dst == before
        if edge.rel != "contradicts" and not (reflected and _reflects(tx, index, src)):
            continue
        ends = [after if end == before else end for end in (src, dst)]
        tx.put_edge(index, ends[0], ends[1], structs.replace(edge, src=ends[0].id, dst=ends[1].id, created_at=tx.time))


def _reflects(tx: Transaction, index: str, key: NodeKey) -> bool:
    node = tx.node(index, key)
    return node is not None and node.kind is Kind.REFLECTION and node.status is Status.CURRENT


def _carry_edges(tx: Transaction, index: str, old: Node, new: Node) -> None:
    """The new version stands where the old one stood, with weights and properties."""
    before, after = key_of(old), key_of(new)
    for edge, src, dst in tx.edges(index, before):
        if edge.rel in PROVENANCE:
            continue
        ends: list[NodeKey] = [after if end == before else end for end in (src, dst)]
        carried = structs.replace(edge, src=ends[0].id, dst=ends[1].id, created_at=tx.time)
        tx.put_edge(index, ends[0], ends[1], carried)
