"""What the database holds: nodes, edges and indexes, as frozen structs.

Times are microseconds since the epoch, UTC (`kektor.clock`). Structs that reach the log or a checkpoint are encoded
as arrays: new fields go to the end and have a default, so that older data still opens.
"""

from enum import StrEnum
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, structs

__all__ = [
    "Actor",
    "ActorKind",
    "Claim",
    "Edge",
    "Erasure",
    "Event",
    "Evidence",
    "IndexSettings",
    "Item",
    "Kind",
    "Layer",
    "Moment",
    "Node",
    "NodeKey",
    "Origin",
    "Policy",
    "Receipt",
    "Retention",
    "Scope",
    "State",
    "Status",
    "TextSettings",
    "Tombstone",
    "Trust",
]


class Kind(StrEnum):
    """What a node is; every kind obeys the same gates."""

    MEMORY = "memory"
    SOURCE = "source"
    ENTITY = "entity"
    KEY = "key"
    SUMMARY = "summary"
    THEME = "theme"
    REFLECTION = "reflection"
    PROFILE = "profile"
    ARTIFACT = "artifact"
    SESSION = "session"


class Status(StrEnum):
    """Where a node is in its life."""

    CURRENT = "current"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"
    ERASED = "erased"


class Trust(StrEnum):
    """Whether a node may be acted on: `proposed` and `rejected` are withheld from default reads."""

    ACCEPTED = "accepted"
    CONTESTED = "contested"
    PROPOSED = "proposed"
    REJECTED = "rejected"


class ActorKind(StrEnum):
    """Who acts, as the channel tells it, never the payload."""

    HUMAN = "human"
    SERVICE = "service"
    IMPORT = "import"
    AGENT = "agent"
    GARDENER = "gardener"


class Scope(Struct, frozen=True, array_like=True, order=True):
    """Whose a record is; an empty member means shared within the index."""

    user: str = ""
    agent: str = ""
    project: str = ""


class Actor(Struct, frozen=True, array_like=True):
    """Who did it and through which door."""

    kind: ActorKind = ActorKind.SERVICE
    id: str = ""
    channel: str = ""


class Claim(Struct, frozen=True, array_like=True):
    """A statement taken apart."""

    subject: str
    predicate: str
    object: str


class Evidence(Struct, frozen=True, array_like=True):
    """A span of a source that a memory rests on; offsets are code points, end exclusive."""

    source: str
    start: int
    end: int
    quote: str
    cls: str = "self"
    scope: Scope = Scope()
    """Of the source: the memory's own, or shared."""

    @property
    def key(self) -> "NodeKey":
        """What names the source; its id alone may stand in other scopes as well."""
        return NodeKey(self.scope, self.source)


class Moment(Struct, frozen=True, array_like=True):
    """A point or day or year as it was given: the instant it starts at, and the words."""

    at: int
    words: str = ""


class Origin(Struct, frozen=True, array_like=True):
    """What a node is a copy of: in another scope or index, where no edge leads."""

    index: int
    scope: Scope
    id: str


class State(Struct, frozen=True, array_like=True):
    """One row of a node's history: what the database held about it from `recorded_from` on."""

    recorded_from: int
    status: Status = Status.CURRENT
    trust: Trust = Trust.ACCEPTED
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    recorded_to: int | None = None
    reason: str = ""
    actor: Actor | None = None


class Node(Struct, frozen=True, array_like=True):
    """One version of anything the database remembers; `states` holds its life, newest last."""

    id: str
    kind: Kind
    text: str
    scope: Scope
    lineage: str
    version: int
    states: tuple[State, ...]
    actor: Actor = Actor()
    metadata: dict[str, Any] = {}
    tags: tuple[str, ...] = ()
    layer: str = ""
    pinned: bool = False
    session: str = ""
    occurred: Moment | None = None
    claim: Claim | None = None
    evidence: tuple[Evidence, ...] = ()
    supersedes: str = ""
    superseded_by: str = ""
    confirmed_at: int = 0
    confirmations: int = 0
    access_count: int = 0
    access_last: int | None = None
    raw: bool = False
    digest: bytes = b""
    """Of the normalised text; equal digests in one scope are candidates for a duplicate."""
    topic: bytes = b""
    """Of the subject and predicate of what it states; found by `nodes_of_digest` as the digest is."""
    origin: Origin | None = None
    place: int = 0
    """Where it stands among what was recorded with it, when its record had to move; 0 where it lies."""

    @property
    def state(self) -> State:
        return self.states[-1]

    @property
    def status(self) -> Status:
        return self.states[-1].status

    @property
    def trust(self) -> Trust:
        return self.states[-1].trust

    @property
    def recorded_at(self) -> int:
        return self.states[0].recorded_from

    @property
    def retired_at(self) -> int | None:
        """Since when it is no longer current and to be acted on; None while it is."""
        retired: int | None = None
        for state in self.states:
            if state.status is Status.CURRENT and state.trust is not Trust.REJECTED:
                retired = None
            elif retired is None:
                retired = state.recorded_from
        return retired

    def known_at(self, known_at: int) -> "Node | None":
        """The node as the database held it at that time: without the states that came later, and without the name of
        a successor that nobody knew; None before it knew the node. Tags, metadata and the like are today's."""
        states = tuple(state for state in self.states if state.recorded_from <= known_at)
        if not states:
            return None
        if len(states) == len(self.states):
            return self
        replaced = any(state.status is Status.SUPERSEDED for state in states)
        last = structs.replace(states[-1], recorded_to=None)
        return structs.replace(self, states=(*states[:-1], last), superseded_by=self.superseded_by if replaced else "")

    def state_at(self, known_at: int) -> State | None:
        """What the database held at that time; None before it knew the node."""
        for state in reversed(self.states):
            if state.recorded_from <= known_at:
                return state
        return None


class NodeKey(NamedTuple):
    """What names a node within its index: ids that callers give are unique within a scope only."""

    scope: Scope
    id: str


class Edge(Struct, frozen=True, array_like=True):
    """A typed, weighted link with its own two clocks; unlinking sets `deleted_at`."""

    src: str
    rel: str
    dst: str
    weight: float = 1.0
    props: dict[str, Any] = {}
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    created_at: int = 0
    deleted_at: int | None = None
    actor: Actor = Actor()


class TextSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How an index analyses and weighs text."""

    language: str = "english"
    k1: float = 1.2
    b: float = 0.75


class Retention(Struct, frozen=True, forbid_unknown_fields=True):
    """What happens to memories of a layer that are older than some days."""

    days: float
    mode: str = "archive"


class Policy(Struct, frozen=True, forbid_unknown_fields=True):
    """What an index demands of writes, and how long it keeps what it was given."""

    evidence: str = "record"
    agent_writes: str = "accept"
    write: str = "open"
    single_valued: tuple[str, ...] | None = None
    """Predicates of which a subject has one value at a time; None is the list that ships."""
    retention: dict[str, Retention] = {}
    """By layer."""


class Layer(Struct, frozen=True, forbid_unknown_fields=True):
    """How memories of a layer age and weigh."""

    half_life_days: float | None = None
    decay: str = "exponential"
    weight: float = 1.0


DEFAULT_LAYERS: dict[str, Layer] = {
    "episodic": Layer(half_life_days=90.0),
    "semantic": Layer(half_life_days=365.0),
    "procedural": Layer(half_life_days=None),
}


class IndexSettings(Struct, frozen=True):
    """A namespace with one embedder, one set of settings and one owner."""

    name: str
    number: int
    dim: int
    metric: str = "cosine"
    precision: str = "f32"
    m: int = 16
    ef_construction: int = 200
    embedder: str | None = None
    fingerprint: str = ""
    text: TextSettings = TextSettings()
    policy: Policy = Policy()
    layers: dict[str, Layer] = msgspec.field(default_factory=lambda: dict(DEFAULT_LAYERS))
    created_at: int = 0


class Tombstone(Struct, frozen=True, array_like=True):
    """A value that must not come back: digests only, never the text.

    `also` are digests of the same value in other readings and of its claim. With `tokens`, digests of the words that
    tell an erased sentence, it also stands against every sentence that holds all of them.
    """

    id: str
    index: int
    scope: Scope
    digest: bytes
    cls: str
    created_at: int
    actor: Actor
    reason: str = ""
    node: str = ""
    lifted_at: int | None = None
    also: tuple[bytes, ...] = ()
    tokens: tuple[bytes, ...] = ()

    @property
    def digests(self) -> tuple[bytes, ...]:
        """All it is recognised by as a whole."""
        return (self.digest, *self.also)


class Event(Struct, frozen=True, array_like=True):
    """Who did what to which ids: what the audit notes of a change."""

    operation: str
    actor: Actor
    index: str = ""
    scope: Scope = Scope()
    ids: tuple[str, ...] = ()
    reason: str = ""


class Erasure(Struct, frozen=True, array_like=True):
    """The receipt of an erasure: how much went, by digest, signed; nothing of what it said."""

    id: str
    index: str
    scopes: tuple[Scope, ...]
    """Of what went; who sees all of them sees the receipt."""
    requested_at: int
    digest: str
    counts: dict[str, int]
    signature: str
    bytes_gone_at: int | None = None


class Item(Struct, frozen=True):
    """What a batch did with one of its parts, in the order sent."""

    id: str | None
    outcome: str
    of: str | None = None
    error: str | None = None


class Receipt(Struct, frozen=True):
    """What a write did, and to whom."""

    outcome: str
    id: str | None = None
    ids: list[str] | None = None
    version: int | None = None
    lsn: int = 0
    of: str | None = None
    conflicts: list[str] = []
    reflection: str | None = None
    warnings: list[str] = []
    items: list[Item] | None = None
    remainder: str | None = None
    """The memory of what a partial replacement left as it was."""
