"""The port of the engine: what everything above may ask of it.

Commands, Views, ids and records go in and out. Slots, bitmaps, paths and frames never cross, so that an engine can
live in one process, in plain dictionaries (`kektor.engine.plain`) or on another machine.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kektor.engine.audit import AuditEvent
from kektor.engine.edges import Cost, Direction, EdgeRule
from kektor.engine.filters import Filter
from kektor.engine.records import Edge, Erasure, Event, IndexSettings, Node, NodeKey, Scope, State, Tombstone
from kektor.engine.view import View

__all__ = [
    "Compacted",
    "Damage",
    "Direction",
    "EdgeAt",
    "EdgePage",
    "Engine",
    "EngineHealth",
    "EngineStats",
    "Graph",
    "Page",
    "Path",
    "Scored",
    "Subgraph",
    "Transaction",
    "Upkeep",
    "Vector",
]

Upkeep = Literal["vacuum", "refine"]
Vector = NDArray[np.float32]


class Scored(NamedTuple):
    """A visible node and how well it matched; larger is better."""

    key: NodeKey
    score: float


class Page(NamedTuple):
    """Nodes in the order they were recorded, and the cursor of the next page."""

    nodes: list[Node]
    cursor: str | None


class Subgraph(NamedTuple):
    """Visible nodes with their distance from the root, the edges walked, and whether a limit cut it short."""

    nodes: list[tuple[Node, int]]
    edges: list[Edge]
    truncated: bool


class Path(NamedTuple):
    """Nodes from the first to the last, the edges between them and what they cost; no nodes when there is none.

    `truncated` says that the search gave up at its limit before it could tell.
    """

    nodes: list[Node]
    edges: list[Edge]
    cost: float
    truncated: bool


class EdgeAt(NamedTuple):
    """An edge with the nodes at its ends."""

    edge: Edge
    src: NodeKey
    dst: NodeKey


class EdgePage(NamedTuple):
    """Edges in the order they were linked, and the cursor of the next page."""

    edges: list[EdgeAt]
    cursor: str | None


class Graph(NamedTuple):
    """Visible nodes by place, edges as (place of the source, place of the target, weight), whether a limit cut it."""

    nodes: list[NodeKey]
    edges: list[tuple[int, int, float]]
    truncated: bool


class EngineStats(NamedTuple):
    """Sizes and positions of one index."""

    nodes: int
    vectors: int
    texts: int
    edges: int
    lsn: int
    vector: dict[str, Any]
    text: dict[str, Any]


class Damage(NamedTuple):
    """Something that was found broken: where, what it is, what is lost by it, what to do."""

    severity: str
    where: str
    what: str
    lost: str
    action: str


class Compacted(NamedTuple):
    """The last transaction whose erasures have left every file, and its time."""

    lsn: int
    time: int


class EngineHealth(NamedTuple):
    """Why nothing can be read or written at the moment (None when all can), and the damage met so far."""

    closed: str | None
    read_only: str | None
    damage: list[Damage]


class Transaction(Protocol):
    """Checks against the current state and collects effects, under the commit lock; all or nothing.

    Reads see what this transaction has staged. Nothing is applied before the frame is queued.
    """

    @property
    def time(self) -> int:
        """When the database comes to know this: strictly greater than in any earlier transaction."""

    @property
    def next_lsn(self) -> int:
        """The LSN it will have when it commits."""

    @property
    def staged(self) -> int:
        """How many changes were staged so far."""

    def touched(self, index: str) -> dict[NodeKey, Node | None]:
        """The nodes that were staged, as they are now; None for one that goes."""

    def indexes(self) -> list[IndexSettings]: ...
    def index(self, name: str) -> IndexSettings | None: ...
    def put_index(self, settings: IndexSettings) -> IndexSettings:
        """Create or replace; a new index (number 0) is given its number."""

    def drop_index(self, name: str) -> None: ...

    def nodes_of_id(self, index: str, node_id: str) -> list[Node]:
        """Every node of that id, whatever its scope and state."""

    def node(self, index: str, key: NodeKey) -> Node | None: ...
    def nodes_of_digest(self, index: str, scope: Scope, digest: bytes) -> list[Node]:
        """Nodes of exactly that scope with that digest of their text or their topic, whatever their state."""

    def lineage(self, index: str, scope: Scope, lineage: str) -> list[Node]:
        """Every version, oldest first."""

    def vector(self, index: str, key: NodeKey) -> Vector | None: ...
    def put_node(self, index: str, node: Node, vector: Vector | None = None) -> None:
        """Add a node under an id that its scope does not hold; the vector has the index's dimension."""

    def set_state(self, index: str, key: NodeKey, state: State, *, superseded_by: str = "") -> Node: ...
    def amend(self, index: str, key: NodeKey, **changes: Any) -> Node:
        """Change metadata, tags, layer, pinned, evidence, confirmations, access, or the place in a lineage."""

    def drop_node(self, index: str, key: NodeKey, *, replaced: bool = False) -> None:
        """Out of every structure, with every edge at it; the id may be used again.

        Unless it is only `replaced`, the next checkpoints hold none of its words.
        """

    def redact(self, index: str, node: Node, vector: Vector | None = None) -> None:
        """Put a node in the place of the one of its key, with its edges as they are; what the old one said leaves
        every structure."""

    def copies(self, index: str, key: NodeKey) -> list[tuple[str, Node]]:
        """What names a node as its origin, in any index."""

    def put_erasure(self, erasure: Erasure) -> None:
        """Keep a receipt, or replace the one of its id."""

    def put_edge(self, index: str, src: NodeKey, dst: NodeKey, edge: Edge) -> None: ...
    def edges(self, index: str, key: NodeKey, direction: Direction = "both") -> list[tuple[Edge, NodeKey, NodeKey]]:
        """Edges at a node that are not unlinked, with both ends."""

    def end_edge(self, index: str, src: NodeKey, rel: str, dst: NodeKey) -> Edge | None:
        """Unlink; None when there is no such edge."""

    def tombstone(self, index: str, scope: Scope, digest: bytes) -> Tombstone | None:
        """The latest in force for a value in exactly that scope."""

    def tombstone_of_id(self, index: str, tombstone_id: str) -> Tombstone | None:
        """One that stands, by its id."""

    def guarded(self, index: str, scope: Scope) -> bool:
        """Whether anything was erased in exactly that scope, so that sentences need a look."""

    def guards(self, index: str, scope: Scope, tokens: frozenset[bytes]) -> list[Tombstone]:
        """Those in force in exactly that scope that stand against a sentence with these tokens, oldest first."""

    def put_tombstone(self, tombstone: Tombstone) -> None: ...
    def lift_tombstone(self, tombstone_id: str) -> Tombstone | None: ...
    def kv(self, index: str, scope: Scope, key: str) -> tuple[Any, int] | None: ...
    def put_kv(self, index: str, scope: Scope, key: str, value: Any) -> int: ...
    def drop_kv(self, index: str, scope: Scope, key: str) -> bool: ...
    def outcome(self, key: bytes) -> tuple[bytes, bytes] | None:
        """The (request digest, outcome) kept under an idempotency key."""

    def keep_outcome(self, key: bytes, request: bytes, outcome: bytes) -> None: ...
    def note(self, event: Event) -> None:
        """Say what was staged since the last event, for the audit."""

    def commit(self) -> int:
        """Queue the frame and apply it; returns its LSN. `Engine.wait` tells when it is durable.

        Whatever is staged has been noted.
        """


class Engine(Protocol):
    """One database. Reads take a View; the only way to write is a transaction, which only the Gateway opens."""

    def indexes(self) -> list[IndexSettings]: ...
    def index(self, name: str) -> IndexSettings | None: ...
    def metadata_keys(self, view: View) -> set[str]:
        """Top-level metadata keys that some visible node has."""

    def holds(self, index: str, key: NodeKey) -> bool:
        """Whether a node of exactly this key exists, whatever its state: for writers, which say nothing of it."""

    def find(self, view: View, node_id: str) -> list[Node]:
        """Visible nodes of that id: one per scope that has it."""

    def fetch(self, view: View, keys: Sequence[NodeKey]) -> list[Node | None]: ...
    def admits(self, view: View, keys: Sequence[NodeKey]) -> list[bool]:
        """Which of some nodes the View shows, without reading them."""

    def page(self, view: View, *, limit: int, cursor: str | None = None) -> Page: ...
    def count(self, view: View) -> int: ...
    def versions(self, view: View, scope: Scope, lineage: str) -> list[Node]: ...
    def session(self, view: View, scope: Scope, session: str) -> list[Node]:
        """Visible nodes of one session, in the order they were recorded."""

    def in_session(self, view: View, session: str) -> list[Node]:
        """Visible nodes of the sessions of a name, of every scope."""

    def neighbours(self, view: View, keys: Sequence[NodeKey], *, reach: int) -> list[tuple[tuple[NodeKey, ...], ...]]:
        """For each source of a session the visible sources around it there, as recorded: entry d holds those d + 1
        places before and after it. Empty for what is no source of a session."""

    def vectors(self, view: View, keys: Sequence[NodeKey]) -> list[Vector | None]: ...
    def nearest(self, view: View, vector: Vector, k: int, *, ef: int | None = None) -> list[Scored]: ...
    def nearest_batch(
        self, view: View, vectors: Vector, k: int, *, ef: int | None = None, threads: int | None = None
    ) -> tuple[list[list[str]], NDArray[np.float32]]:
        """Ids and scores (n, k) for (n, dim) queries; missing places have no id and score NaN."""

    def match_text(self, view: View, query: str, k: int) -> list[Scored]: ...
    def text_scores(self, view: View, query: str, keys: Sequence[NodeKey]) -> list[float]: ...
    def vector_scores(self, view: View, vector: Vector, keys: Sequence[NodeKey]) -> list[float | None]: ...
    def edges(
        self,
        view: View,
        key: NodeKey,
        rule: EdgeRule,
        *,
        limit: int,
        cursor: str | None = None,
        through: Filter | None = None,
    ) -> EdgePage:
        """Edges at a node to visible nodes that match `through`, oldest first."""

    def edges_ever(self, view: View, key: NodeKey) -> list[tuple[Edge, NodeKey]]:
        """Every edge that ever left a node for a visible one, unlinked ones too, oldest first, with where it leads."""

    def traverse(
        self,
        view: View,
        roots: Sequence[NodeKey],
        rule: EdgeRule,
        *,
        depth: int,
        limit: int,
        through: Filter | None = None,
        induced: bool = False,
    ) -> Subgraph:
        """What walks from some roots reach over nodes that match `through` (the roots need not).

        `induced` adds the edges between the nodes of the last hop.
        """

    def path(
        self,
        view: View,
        src: NodeKey,
        dst: NodeKey,
        rule: EdgeRule,
        *,
        max_depth: int,
        limit: int,
        cost: Cost = "hops",
        through: Filter | None = None,
    ) -> Path:
        """A path of least cost over nodes that match `through` (its ends need not)."""

    def graph(self, view: View, rule: EdgeRule, *, limit: int) -> Graph:
        """At most `limit` visible nodes, and every edge between them."""

    def tombstones(self, index: str) -> list[Tombstone]: ...
    def withholds(self, index: str, scope: Scope, cls: str) -> bool:
        """Whether any tombstone of a class is in force in exactly that scope: else no value needs a look."""

    def withheld(self, index: str, scope: Scope, cls: str, digests: Iterable[bytes]) -> bool:
        """Whether one of a class is in force there for a value of any of these digests."""

    def erasures(self) -> list[Erasure]:
        """Every receipt, in the order of the erasures."""

    def kv(self, index: str, scope: Scope, key: str) -> tuple[Any, int] | None: ...
    def kv_scopes(self, index: str, key: str) -> list[Scope]:
        """Every scope that has a value under the key."""

    def stats(self, index: str) -> EngineStats: ...
    def upkeep(self, index: str, action: Upkeep) -> tuple[int, int]:
        """One short step of background work on an index: how far it is, and how far it goes."""

    def health(self) -> EngineHealth:
        """Without waiting for any lock: this is asked while everything else hangs."""

    def audit(self) -> Iterator[AuditEvent]:
        """Every event there was, oldest first."""

    def verify_audit(self) -> list[str]:
        """Whether every event is as it was noted, in its place; what does not hold, in words."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Take the commit lock until the block ends; a block that does not commit changes nothing."""

    def wait(self, lsn: int) -> None:
        """Return when the transaction is durable."""

    def checkpoint(self) -> int:
        """Write a checkpoint of everything committed; returns its LSN."""

    def compact(self) -> Compacted:
        """Rid the files of everything erased."""

    def close(self) -> None: ...
