"""What callers get: the same objects through every door. Times are RFC 3339 text."""

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from kektor.engine.records import (
    Layer,
    Policy,
    TextSettings,
)
from kektor.query.plan.pipe import Aggregate
from kektor.query.plan.run import Relaxed, StageTrace, Unresolved

__all__ = [
    "Access",
    "ActorOut",
    "Analysis",
    "BatchHits",
    "ClaimOut",
    "Decided",
    "Edge",
    "EdgePage",
    "ErasurePage",
    "Evidence",
    "ForgetReceipt",
    "Forgotten",
    "ForgottenNode",
    "Freshness",
    "Hit",
    "Index",
    "IndexStats",
    "KvEntry",
    "Memory",
    "MemoryPage",
    "NearMiss",
    "Neighbour",
    "NeighbourPage",
    "NodeOut",
    "NodeScore",
    "Path",
    "PlanRun",
    "Premise",
    "Recall",
    "Review",
    "ReviewPage",
    "ScopeOut",
    "SearchHit",
    "Session",
    "SessionPage",
    "Subgraph",
    "SubgraphNode",
    "Suggested",
    "Tombstone",
    "TombstonePage",
    "Validity",
]


class ScopeOut(Struct, frozen=True):
    """Whose it is; null means shared."""

    user: str | None
    agent: str | None
    project: str | None


class Validity(Struct, frozen=True, rename={"from_": "from"}):
    """When the statement holds in the world, and in words a model can read."""

    from_: str | None
    to: str | None
    label: str


class Freshness(Struct, frozen=True):
    """How recently it was confirmed: 2 ** -(age / half-life); a read never confirms."""

    state: str
    score: float
    profile: str
    confirmed_at: str
    confirmations: int


class ClaimOut(Struct, frozen=True):
    subject: str
    predicate: str
    object: str


class Evidence(Struct, frozen=True, rename={"class_": "class"}):
    """A span of a source, offsets in code points, end exclusive."""

    source: str
    start: int
    end: int
    quote: str
    class_: str


class ActorOut(Struct, frozen=True):
    kind: str
    id: str | None
    channel: str | None


class Access(Struct, frozen=True):
    count: int
    last: str | None


class Memory(Struct, frozen=True):
    """One version of any node."""

    id: str
    lineage: str
    version: int
    index: str
    kind: str
    text: str
    metadata: dict[str, Any]
    tags: list[str]
    layer: str | None
    pinned: bool
    scope: ScopeOut
    session: str | None
    status: str
    trust: str
    validity: Validity
    occurred_at: str | None
    occurred_label: str | None
    recorded_at: str
    retired_at: str | None
    freshness: Freshness
    claim: ClaimOut | None
    supersedes: str | None
    superseded_by: str | None
    evidence: list[Evidence]
    actor: ActorOut
    access: Access


class KvEntry(Struct, frozen=True):
    """A value under a key of one scope; the version counts how often it was put."""

    key: str
    value: Any
    version: int
    scope: ScopeOut


class MemoryPage(Struct, frozen=True):
    items: list[Memory]
    next_cursor: str | None


class NodeOut(Memory, frozen=True):
    """A node of the raw plane: the memory object, and its vector when that was asked for."""

    vector: list[float] | UnsetType | None = UNSET


class Hit(Struct, frozen=True):
    """A memory that answers, with how it was found."""

    memory: Memory
    score: float
    scores: dict[str, float]
    via: list[str]
    resolved_from: str | None = None
    connected_keys: list[str] = []
    told_earlier: bool = False
    """Another hit tells something later of the same subject and predicate."""
    superseded_by: str | None = None
    """Of a source: the memory that took the place of one that rests on it."""


class Premise(Struct, frozen=True):
    at_risk: bool = False
    unknown: list[str] = []
    wrong_subject: list[str] = []


class NearMiss(Struct, frozen=True):
    """Something close that is no answer, and why."""

    id: str
    text: str
    why: str


class Recall(Struct, frozen=True):
    """The answer of a recall; `str()` is the packed context, iterating gives the hits."""

    status: str
    hits: list[Hit]
    context: str
    tokens: int
    dropped: list[str]
    nearest_keys: list[str]
    near_misses: list[NearMiss]
    premise: Premise
    history_used: bool
    trace_id: str
    trace: dict[str, Any] | None = None
    plan: "PlanRun | None" = None

    def __str__(self) -> str:
        return self.context

    def __iter__(self) -> Any:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)


class PlanRun(Struct, frozen=True):
    """How a plan went.

    `program` is the plan as it was given or made of the question; `relaxed` the soft parts that were given up, in
    their order; `unresolved` the names that nothing visible has; `aggregates` what was counted.
    """

    program: dict[str, Any]
    stages: list[StageTrace]
    relaxed: list[Relaxed]
    unresolved: list[Unresolved]
    aggregates: list[Aggregate]


class ForgottenNode(Struct, frozen=True):
    """A node that forgetting reaches, and why."""

    id: str
    kind: str
    text: str
    why: str


class ForgetReceipt(Struct, frozen=True):
    """What forgetting did. Of an erasure also what proves it: `signature` is a compact JWS over id, digest, counts and
    times, and none of it holds what was erased. `bytes_gone_at` is set when the files hold none of it any more."""

    id: str | None
    outcome: str
    ids: list[str] = []
    lsn: int = 0
    of: str | None = None
    version: int | None = None
    warnings: list[str] = []
    digest: str | None = None
    signature: str | None = None
    counts: dict[str, int] | None = None
    requested_at: str | None = None
    bytes_gone_at: str | None = None


class Forgotten(Struct, frozen=True):
    """What forgetting did, or in a dry run would do; `preview` is a token that does exactly that."""

    matched: list[ForgottenNode]
    derived: list[ForgottenNode]
    copies: list[ForgottenNode]
    dry_run: bool
    preview: str | None
    receipt: ForgetReceipt | None


class ErasurePage(Struct, frozen=True):
    items: list[ForgetReceipt]
    next_cursor: str | None


class Tombstone(Struct, frozen=True, rename={"class_": "class"}):
    """A value that must not come back: `value` was rejected, `erasure` was erased. It never says what it was."""

    id: str
    index: str
    class_: str
    scope: ScopeOut
    node: str | None
    created_at: str
    actor: ActorOut
    reason: str


class TombstonePage(Struct, frozen=True):
    items: list[Tombstone]
    next_cursor: str | None


class Session(Struct, frozen=True):
    """A conversation: `open`, or `ended` with a summary. Its messages are sources."""

    id: str
    index: str
    title: str | None
    scope: ScopeOut
    status: str
    messages: int
    started_at: str
    ended_at: str | None
    summary: str | None


class SessionPage(Struct, frozen=True):
    items: list[Session]
    next_cursor: str | None


class Decided(Struct, frozen=True):
    """What was decided, and by whom."""

    decision: str
    note: str
    at: str
    actor: ActorOut


class Suggested(Struct, frozen=True):
    """What somebody who may not decide would decide."""

    decision: str
    note: str
    text: str | None
    actor: ActorOut


class Review(Struct, frozen=True):
    """Something that waits for a decision, or about which one was made.

    `kind` is contested, proposed, imported or clarification. `memories` are what it is about, the newest statement
    first; `replaces` is what a proposed one would take the place of.
    """

    id: str
    kind: str
    status: str
    memories: list[Memory]
    replaces: str | None
    question: str | None
    suggested: Suggested | None
    decided: Decided | None
    created_at: str


class ReviewPage(Struct, frozen=True):
    items: list[Review]
    next_cursor: str | None


class SearchHit(Struct, frozen=True):
    """A raw search result: a score and its parts, the memory when asked for."""

    id: str
    score: float
    scores: dict[str, float]
    memory: Memory | None = None


class BatchHits(Struct, frozen=True):
    """One row a query, best first; a row is shorter than k where fewer exist."""

    ids: list[list[str]]
    scores: list[list[float]]


class Edge(Struct, frozen=True):
    src: str
    rel: str
    dst: str
    weight: float
    props: dict[str, Any]
    valid_from: str | None
    valid_to: str | None
    created_at: str
    deleted_at: str | None
    actor: ActorOut


class SubgraphNode(Struct, frozen=True):
    memory: Memory
    depth: int


class Subgraph(Struct, frozen=True):
    """Nodes by distance, the edges between them, and whether a limit cut it short."""

    nodes: list[SubgraphNode]
    edges: list[Edge]
    truncated: bool


class Path(Struct, frozen=True):
    """Nodes from the first to the last, the edges between them and what they cost; no nodes when there is no path.

    `truncated` says that the search gave up at its limit before it could tell.
    """

    nodes: list[Memory]
    edges: list[Edge]
    cost: float | None
    truncated: bool


class EdgePage(Struct, frozen=True):
    """Edges in the order they were linked."""

    items: list[Edge]
    next_cursor: str | None


class Neighbour(Struct, frozen=True):
    """A node beside another, and the edge that joins them."""

    edge: Edge
    memory: Memory


class NeighbourPage(Struct, frozen=True):
    """Neighbours in the order their edges were linked."""

    items: list[Neighbour]
    next_cursor: str | None


class NodeScore(Struct, frozen=True):
    """What an algorithm gives a node."""

    id: str
    scope: ScopeOut
    score: float


class Analysis(Struct, frozen=True):
    """What an algorithm made of the visible graph.

    `scores` are for PageRank and betweenness, best first; `groups` for components and communities, largest first;
    `total` is how many there are in all. `truncated` says that only `nodes` of the visible nodes were looked at.
    """

    algorithm: str
    nodes: int
    edges: int
    scores: list[NodeScore]
    groups: list[list[str]]
    total: int
    truncated: bool


class Index(Struct, frozen=True):
    """An index with all that was settled when it was made."""

    name: str
    dim: int
    metric: str
    precision: str
    m: int
    ef_construction: int
    embedder: str | None
    fingerprint: str | None
    text: TextSettings
    policy: Policy
    layers: dict[str, Layer]
    created_at: str


class IndexStats(Struct, frozen=True):
    """Sizes of an index; `vector` and `text` are the counters of those two structures.

    `shown` is how many nodes of each kind a read shows, now or at the times that were asked for.
    """

    index: str
    nodes: int
    vectors: int
    texts: int
    edges: int
    lsn: int
    vector: dict[str, Any]
    text: dict[str, Any]
    shown: dict[str, int]
