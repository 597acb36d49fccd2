"""A statement on its way through the write gate: what policies look at, amend or refuse."""

from dataclasses import dataclass, field
from typing import Any

from kektor.engine.port import Vector
from kektor.engine.records import (
    Actor,
    Claim,
    Evidence,
    Kind,
    Moment,
    Node,
    NodeKey,
    Origin,
    Scope,
    State,
    Status,
    Trust,
)
from kektor.errors import Blocked
from kektor.memory.claims import Statement
from kektor.memory.keys import Key

__all__ = ["Draft"]


@dataclass
class Draft:
    """A node that is about to be. `trust` and `duplicate_of` are set by policies, `node_id` by the command."""

    index: str
    scope: Scope
    text: str
    node_id: str
    kind: Kind = Kind.MEMORY
    metadata: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    layer: str = ""
    pinned: bool = False
    session: str = ""
    occurred: Moment | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    claim: Claim | None = None
    evidence: tuple[Evidence, ...] = ()
    digest: bytes = b""
    vector: Vector | None = None
    trust: Trust = Trust.ACCEPTED
    raw: bool = False
    given_id: bool = False
    checks_duplicates: bool = True
    """False for a new version of a memory the caller names: saying it again there is meant."""
    duplicate_of: Node | None = None
    statement: Statement | None = None
    """What the text claims, as far as the rules read it."""
    topic: bytes = b""
    refines: Node | None = None
    """What it says too, and more."""
    follows: Node | None = None
    """The head whose place it takes: a value that came back."""
    conflicts: list[Node] = field(default_factory=list)
    """What cannot hold beside it."""
    doubts: frozenset[str] = frozenset()
    """Ids among them whose trust it lowers."""
    keys: list[Key] = field(default_factory=list)
    """Names that are to lead to it."""
    blocked: Blocked | None = None
    """Why this part of a batch is left out."""
    warnings: list[str] = field(default_factory=list)

    @property
    def key(self) -> NodeKey:
        return NodeKey(self.scope, self.node_id)

    def node(
        self,
        actor: Actor,
        now: int,
        *,
        lineage: str = "",
        version: int = 1,
        supersedes: str = "",
        origin: Origin | None = None,
    ) -> Node:
        """The node this draft becomes at a moment."""
        state = State(
            now,
            Status.CURRENT,
            self.trust,
            self.valid_from,
            self.valid_to,
            actor=actor,
        )
        return Node(
            id=self.node_id,
            kind=self.kind,
            text=self.text,
            scope=self.scope,
            lineage=lineage or self.node_id,
            version=version,
            states=(state,),
            actor=actor,
            metadata=self.metadata,
            tags=self.tags,
            layer=self.layer,
            pinned=self.pinned,
            session=self.session,
            occurred=self.occurred,
            claim=self.claim,
            evidence=self.evidence,
            supersedes=supersedes,
            raw=self.raw,
            digest=self.digest,
            topic=self.topic,
            origin=origin,
        )
