"""What callers ask for, as every door decodes it. Field names are the contract; unknown ones are errors."""

from typing import Any, Literal

from msgspec import Struct

from kektor.engine.records import Layer, Retention, TextSettings

__all__ = [
    "AnalyseRequest",
    "ClaimIn",
    "ConfigureIndexRequest",
    "ConfirmRequest",
    "CreateIndexRequest",
    "DismissRequest",
    "DropKvRequest",
    "EdgeIn",
    "EdgesRequest",
    "EndSessionRequest",
    "EvidenceIn",
    "EvolveRequest",
    "ForgetRequest",
    "GraphIn",
    "HistoryMode",
    "KeyIn",
    "LiftRequest",
    "LinkRequest",
    "ListRequest",
    "NodeIn",
    "PatchNodeRequest",
    "PathRequest",
    "PolicyChange",
    "PutKvRequest",
    "RecallRequest",
    "ReinforceRequest",
    "RememberRequest",
    "ReviewRequest",
    "ScopeIn",
    "SearchBatchRequest",
    "SearchRequest",
    "ShareRequest",
    "ShareTo",
    "StartSessionRequest",
    "SubgraphRequest",
    "TimeIn",
    "TraverseRequest",
    "UnlinkRequest",
    "UpdateRequest",
    "UpsertRequest",
    "VerbRequest",
]

TimeIn = str | int | float
"""RFC 3339, a partial date, or epoch seconds."""

HistoryMode = Literal["never", "auto", "always"]


class ScopeIn(Struct, forbid_unknown_fields=True, frozen=True):
    """Members left out: the caller's own on writes, any value on reads. `shared` stands alone: what is nobody's own."""

    user: str | None = None
    agent: str | None = None
    project: str | None = None
    shared: bool = False


class ClaimIn(Struct, forbid_unknown_fields=True, frozen=True):
    subject: str
    predicate: str
    object: str


class EvidenceIn(Struct, forbid_unknown_fields=True, frozen=True):
    """A span of a stored source: by offsets (code points), by its words, or both."""

    source: str
    quote: str | None = None
    start: int | None = None
    end: int | None = None


class _Write(Struct, forbid_unknown_fields=True, kw_only=True):
    index: str = "default"
    scope: ScopeIn | None = None
    idempotency_key: str | None = None
    reason: str = ""


class KeyIn(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A short named concept, and what else it is called."""

    concept: str
    type: str = ""
    aliases: list[str] = []


class RememberRequest(_Write, forbid_unknown_fields=True, kw_only=True):
    text: str
    id: str | None = None
    tags: list[str] = []
    layer: str = "semantic"
    session: str | None = None
    metadata: dict[str, Any] = {}
    pinned: bool = False
    claim: tuple[str, str, str] | ClaimIn | None = None
    evidence: list[EvidenceIn] = []
    keys: list[str | KeyIn] = []
    """Names that lead to it."""
    occurred_at: TimeIn | None = None
    valid_from: TimeIn | None = None
    valid_to: TimeIn | None = None
    tz: str = "UTC"


class EvolveRequest(_Write, forbid_unknown_fields=True, kw_only=True):
    """For `evolve` (the world changed) and `correct` (it was never true)."""

    text: str
    valid_from: TimeIn | None = None
    claim: tuple[str, str, str] | ClaimIn | None = None
    evidence: list[EvidenceIn] = []
    expected_version: int | None = None
    if_match: str | None = None
    partial: bool = False
    """Only what the new text is about is replaced; what else the old one says stays current."""
    remainder: str | None = None
    """With `partial`: what stays, in the caller's words."""
    tz: str = "UTC"


class VerbRequest(_Write, forbid_unknown_fields=True, kw_only=True):
    """For the verbs that need no more than the id: retract, archive, restore, pin, unpin."""

    expected_version: int | None = None
    if_match: str | None = None


class UpdateRequest(_Write, forbid_unknown_fields=True, kw_only=True):
    """What belongs to today and makes no new version; a part left out stays as it is."""

    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None
    layer: str | None = None
    pinned: bool | None = None
    expected_version: int | None = None
    if_match: str | None = None


class ConfirmRequest(_Write, forbid_unknown_fields=True, kw_only=True):
    """`evidence` is the id of a source that the caller can see."""

    evidence: str | None = None


class ReinforceRequest(_Write, forbid_unknown_fields=True, kw_only=True):
    """Which memories were of use."""

    ids: list[str]


class StartSessionRequest(_Write, forbid_unknown_fields=True, kw_only=True):
    """Without an id the session is given one."""

    id: str | None = None
    title: str | None = None


class EndSessionRequest(_Write, forbid_unknown_fields=True, kw_only=True):
    """To end a session with a summary."""


class ShareTo(Struct, forbid_unknown_fields=True, frozen=True):
    """Where a copy goes: the same index when none is named, and shared where a member of the scope is left out."""

    index: str | None = None
    scope: ScopeIn | None = None


class ShareRequest(_Write, forbid_unknown_fields=True, kw_only=True):
    """`move` archives the original."""

    to: ShareTo
    move: bool = False


class LiftRequest(_Write, forbid_unknown_fields=True, kw_only=True):
    """To take a tombstone away."""


class DismissRequest(_Write, forbid_unknown_fields=True, kw_only=True):
    """A key led to a memory that it should not have; the memory stays as it is."""

    key: str


class ReviewRequest(_Write, forbid_unknown_fields=True, kw_only=True):
    """A decision. `text` is for edit and merge, `into` for merging what was proposed, `keep` and `how` for what
    contradicts something: whether both stay, and whether the older value has changed or was wrong. `propose` leaves
    it as a suggestion where the caller may not decide."""

    decision: Literal["accept", "reject", "edit", "merge", "ask", "undo"]
    note: str = ""
    text: str | None = None
    into: str | None = None
    keep: Literal["newer", "both"] = "newer"
    how: Literal["changed", "wrong"] = "changed"
    propose: bool = False


class ForgetRequest(_Write, forbid_unknown_fields=True, kw_only=True):
    """Exactly one of `ids`, `query`, `filter`, `preview` (a token) and `expired`; `mode` is retract when left out.

    `expired` chooses what is older than the policy `retention` of the index keeps it, of the layers with that mode
    (archive when left out).

    `dry_run` left out is false with `ids` and `preview`, and true with the others.
    """

    ids: list[str] | None = None
    query: str | None = None
    filter: str | dict[str, Any] | None = None
    preview: str | None = None
    expired: bool = False
    mode: Literal["archive", "retract", "erase"] | None = None
    dry_run: bool | None = None
    now: TimeIn | None = None
    tz: str = "UTC"


class ListRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    index: str = "default"
    scope: ScopeIn | None = None
    filter: str | dict[str, Any] | None = None
    include: list[str] = []
    kinds: list[str] | None = None
    limit: int = 100
    cursor: str | None = None
    as_of: TimeIn | None = None
    known_at: TimeIn | None = None
    tz: str = "UTC"


class RecallRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    query: str
    index: str = "default"
    scope: ScopeIn | None = None
    k: int = 8
    budget_tokens: int = 2000
    filter: str | dict[str, Any] | None = None
    layers: list[str] | None = None
    tags: list[str] | None = None
    kinds: list[str] | None = None
    as_of: TimeIn | None = None
    known_at: TimeIn | None = None
    include: list[str] = []
    history: HistoryMode = "auto"
    mode: Literal["fast", "hybrid", "plan"] = "hybrid"
    plan: dict[str, Any] | None = None
    explain: bool = False
    now: TimeIn | None = None
    tz: str = "UTC"


class PolicyChange(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    evidence: Literal["off", "record", "require"] | None = None
    agent_writes: Literal["accept", "propose"] | None = None
    write: Literal["open", "gated", "frozen"] | None = None
    single_valued: list[str] | None = None
    """Takes the place of the list there was; empty for none."""
    retention: dict[str, Retention | str | None] | None = None
    """By layer: `{"days", "mode"}`, or a time such as `90d`, `12w` or `2y` after which it is archived; null takes a
    layer's away."""


class CreateIndexRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """`dim` may be left out when an embedder tells it; an index without either is refused."""

    name: str
    dim: int | None = None
    metric: Literal["cosine", "l2", "dot"] = "cosine"
    precision: Literal["f32"] = "f32"
    m: int = 16
    ef_construction: int = 200
    embedder: str | None = None
    text: TextSettings = TextSettings()
    policy: PolicyChange = PolicyChange()
    layers: dict[str, Layer] = {}
    idempotency_key: str | None = None
    reason: str = ""


class ConfigureIndexRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    policy: PolicyChange = PolicyChange()
    layers: dict[str, Layer] = {}
    idempotency_key: str | None = None
    reason: str = ""


class NodeIn(Struct, forbid_unknown_fields=True, kw_only=True):
    id: str
    vector: list[float] | None = None
    text: str | None = None
    metadata: dict[str, Any] = {}
    tags: list[str] = []


class UpsertRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    nodes: list[NodeIn]
    scope: ScopeIn | None = None
    idempotency_key: str | None = None
    reason: str = ""


class PatchNodeRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """Metadata is merged key by key, null removes one; the other parts replace."""

    vector: list[float] | None = None
    text: str | None = None
    metadata: dict[str, Any] | None = None
    tags: list[str] | None = None
    scope: ScopeIn | None = None
    if_match: str | None = None
    idempotency_key: str | None = None
    reason: str = ""


class GraphIn(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Only what walks from a node reach, the node included; the walk is over all that the caller sees."""

    root: str
    rels: list[str] | None = None
    direction: Literal["out", "in", "both"] = "both"
    depth: int = 2


class SearchRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """By vector, by text, or by both; `alpha` is the share of the vector.

    `match` says what of the text must occur: any of its words, all of them, or the phrase as it stands. Of both sides,
    `convex` adds up the scores, each stretched to 0..1, and `rrf` the reciprocal ranks.
    """

    vector: list[float] | None = None
    text: str | None = None
    k: int = 10
    ef: int | None = None
    filter: str | dict[str, Any] | None = None
    alpha: float = 0.5
    match: Literal["any", "all", "phrase"] = "any"
    fusion: Literal["convex", "rrf"] = "convex"
    graph: GraphIn | None = None
    include: list[str] = []
    kinds: list[str] | None = None
    scope: ScopeIn | None = None
    as_of: TimeIn | None = None
    known_at: TimeIn | None = None
    with_memories: bool = False
    tz: str = "UTC"


class SearchBatchRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    vectors: list[list[float]]
    k: int = 10
    ef: int | None = None
    filter: str | dict[str, Any] | None = None
    scope: ScopeIn | None = None
    as_of: TimeIn | None = None
    known_at: TimeIn | None = None
    tz: str = "UTC"


class EdgeIn(Struct, forbid_unknown_fields=True, kw_only=True):
    src: str
    rel: str
    dst: str
    weight: float = 1.0
    props: dict[str, Any] = {}
    valid_from: TimeIn | None = None
    valid_to: TimeIn | None = None


class PutKvRequest(_Write, forbid_unknown_fields=True, kw_only=True):
    """`if_match` is the version that must be there, `only_new` that there must be none."""

    value: Any
    if_match: str | None = None
    only_new: bool = False


class DropKvRequest(_Write, forbid_unknown_fields=True, kw_only=True):
    if_match: str | None = None


class LinkRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    edges: list[EdgeIn]
    scope: ScopeIn | None = None
    idempotency_key: str | None = None
    reason: str = ""
    tz: str = "UTC"


class UnlinkRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    src: str
    rel: str
    dst: str
    scope: ScopeIn | None = None
    idempotency_key: str | None = None
    reason: str = ""


class _GraphRead(Struct, forbid_unknown_fields=True, kw_only=True):
    """`filter` is for the nodes met, `edge_filter` for the edges taken; docs/graph.md has their fields."""

    rels: list[str] | None = None
    direction: Literal["out", "in", "both"] = "both"
    filter: str | dict[str, Any] | None = None
    edge_filter: str | dict[str, Any] | None = None
    scope: ScopeIn | None = None
    as_of: TimeIn | None = None
    known_at: TimeIn | None = None
    tz: str = "UTC"


class EdgesRequest(_GraphRead, forbid_unknown_fields=True, kw_only=True):
    """`rel` is short for one relation in `rels`."""

    rel: str | None = None
    limit: int = 1000
    cursor: str | None = None


class TraverseRequest(_GraphRead, forbid_unknown_fields=True, kw_only=True):
    root: str
    depth: int = 2
    limit: int = 1000


class SubgraphRequest(_GraphRead, forbid_unknown_fields=True, kw_only=True):
    roots: list[str]
    depth: int = 1
    limit: int = 1000


class PathRequest(_GraphRead, forbid_unknown_fields=True, kw_only=True):
    """`limit` bounds how many nodes the search may look at."""

    src: str
    dst: str
    max_depth: int = 6
    cost: Literal["hops", "weight", "inverse"] = "hops"
    limit: int = 100_000


class AnalyseRequest(_GraphRead, forbid_unknown_fields=True, kw_only=True):
    """`sample` and `seed` are for betweenness and communities; `top` is how many scores, or groups, come back."""

    algorithm: Literal["components", "pagerank", "betweenness", "communities"]
    limit: int = 100_000
    top: int = 100
    sample: int | None = None
    seed: int = 0
