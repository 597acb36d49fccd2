"""The read gate: which nodes and edges a caller may see, and when.

`View.admits` is the definition, one node at a time. An engine is free to compile a View into something faster, and
is tested against this.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Any, Literal

from msgspec import Struct, structs

from kektor import times
from kektor.engine.filters import MISSING, Filter, fields, matches
from kektor.engine.freshness import Freshness, freshness
from kektor.engine.records import IndexSettings, Kind, Moment, Node, NodeKey, Scope, State, Status, Trust

__all__ = ["INCLUDABLE", "Around", "ScopeRule", "View", "depends_on_now", "ends_later", "lookup"]

INCLUDABLE = frozenset({"superseded", "archived", "proposed", "rejected"})
"""What `include` may name: what default reads withhold and a caller may ask for."""

_SEEN_TRUST = frozenset({Trust.ACCEPTED, Trust.CONTESTED})


class ScopeRule(Struct, frozen=True):
    """Which scopes are seen: None in a member means any value of it, "" only what is shared."""

    user: str | None = None
    agent: str | None = None
    project: str | None = None

    def exactly(self) -> Scope:
        """The scope of these members and no others."""
        return Scope(self.user or "", self.agent or "", self.project or "")

    def admits(self, scope: Scope) -> bool:
        """A record is seen when each member is shared, unrestricted or equal."""
        return all(
            have == "" or want is None or have == want
            for have, want in (
                (scope.user, self.user),
                (scope.agent, self.agent),
                (scope.project, self.project),
            )
        )


class Around(Struct, frozen=True):
    """A part of the graph: what walks from a root reach within some hops, the root included."""

    root: NodeKey
    rels: frozenset[str] | None = None
    direction: Literal["out", "in", "both"] = "both"
    depth: int = 2


class View(Struct, frozen=True):
    """What one caller may see of one index at one moment.

    `scopes` is a conjunction of disjunctions: the caller's grants are one entry, the request's own scope another.
    `now` is when the question is asked; `as_of` asks about the world then, `known_at` about what the database held
    then. `history` also admits statements that held once. `around` narrows it to a part of the graph, walked over all
    that the caller may see; `admits` leaves it to the engine, which has the edges.
    """

    index: str
    scopes: tuple[tuple[ScopeRule, ...], ...]
    now: int
    as_of: int | None = None
    known_at: int | None = None
    include: frozenset[str] = frozenset()
    kinds: frozenset[Kind] | None = None
    layers: frozenset[str] | None = None
    tags: frozenset[str] | None = None
    filter: Filter | None = None
    history: bool = False
    around: Around | None = None

    def whole(self) -> "View":
        """Without what narrows it to some of what the caller may see."""
        return structs.replace(self, kinds=None, layers=None, tags=None, filter=None, around=None)

    def admits_scope(self, scope: Scope) -> bool:
        return all(any(rule.admits(scope) for rule in rules) for rules in self.scopes)

    def admits_state(self, state: State) -> bool:
        """Life cycle, trust and validity of one row of a node's history."""
        return _admits_trust(state, self.include) and self._admits_time(state)

    def admits(self, node: Node, settings: IndexSettings) -> bool:
        """Whether the node may reach the caller."""
        state = node.state if self.known_at is None else node.state_at(self.known_at)
        return (
            state is not None
            and node.status is not Status.ERASED
            and self.admits_scope(node.scope)
            and (self.kinds is None or node.kind in self.kinds)
            and (self.layers is None or node.layer in self.layers)
            and (self.tags is None or bool(self.tags & set(node.tags)))
            and self.admits_state(state)
            and (self.filter is None or matches(self.filter, lookup(node, settings, state, self.now)) is True)
        )

    def _admits_time(self, state: State) -> bool:
        start, end = _at(state.valid_from), _at(state.valid_to)
        if state.status is Status.ARCHIVED and "archived" not in self.include:
            return False
        if self.as_of is not None:
            return (start is None or start <= self.as_of) and (end is None or self.as_of < end)
        reference = self.now if self.known_at is None else self.known_at
        if state.status is Status.SUPERSEDED:
            # What a later beginning replaces holds until then.
            return self.history or "superseded" in self.include or (ends_later(state) and reference < (end or 0))
        return self.history or end is None or reference < end


def depends_on_now(view: View) -> bool:
    """Whether the filter asks for something that changes by itself, so that its answer cannot be kept."""
    return view.filter is not None and any(
        field.path[0] == "freshness" or field.path == ("validity", "label") for field in fields(view.filter)
    )


def ends_later(state: State) -> bool:
    """Whether what was replaced goes on to hold for a while: its successor begins after it was told."""
    return state.valid_to is not None and state.valid_to.at > state.recorded_from


def lookup(node: Node, settings: IndexSettings, state: State, now: int) -> Callable[[tuple[str, ...]], Any]:
    """The values a filter may ask a node for, by path; some depend on the present moment."""

    def value(path: tuple[str, ...]) -> Any:
        if path[0] == "metadata" and len(path) > 1:
            return _walk(node.metadata, path[1:])
        if path[0] == "freshness":
            return _FRESHNESS[path[1]](node, freshness(node, settings.layers.get(node.layer), now))
        if path == ("validity", "label"):
            return _label(state, now)
        return _present(_FIELDS[path](node, settings.name, state))

    return value


def _admits_trust(state: State, include: Collection[str]) -> bool:
    return state.trust in _SEEN_TRUST or state.trust.value in include


def _at(moment: Moment | None) -> int | None:
    return None if moment is None else moment.at


def _walk(value: Any, keys: Iterable[str]) -> Any:
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            return MISSING
        value = value[key]
    return value


def _present(value: Any) -> Any:
    return MISSING if value is None or value == "" else value


def _spans(part: str) -> Callable[[Node, str, State], Any]:
    return lambda node, index, state: [getattr(span, part) for span in node.evidence]


def _label(state: State, now: int) -> str:
    start, end = state.valid_from, state.valid_to
    return times.validity_label(
        _at(start),
        _at(end),
        now,
        start_words=None if start is None else start.words,
        end_words=None if end is None else end.words,
        superseded=state.status is Status.SUPERSEDED,
    )


_FRESHNESS: dict[str, Callable[[Node, Freshness], Any]] = {
    "state": lambda n, f: f.state,
    "score": lambda n, f: f.score,
    "profile": lambda n, f: f.profile,
    "confirmed_at": lambda n, f: f.confirmed_at,
    "confirmations": lambda n, f: n.confirmations,
}

_FIELDS: dict[tuple[str, ...], Callable[[Node, str, State], Any]] = {
    ("id",): lambda n, i, s: n.id,
    ("lineage",): lambda n, i, s: n.lineage,
    ("version",): lambda n, i, s: n.version,
    ("index",): lambda n, i, s: i,
    ("kind",): lambda n, i, s: n.kind.value,
    ("text",): lambda n, i, s: n.text,
    ("tags",): lambda n, i, s: list(n.tags),
    ("layer",): lambda n, i, s: n.layer,
    ("pinned",): lambda n, i, s: n.pinned,
    ("scope", "user"): lambda n, i, s: n.scope.user,
    ("scope", "agent"): lambda n, i, s: n.scope.agent,
    ("scope", "project"): lambda n, i, s: n.scope.project,
    ("session",): lambda n, i, s: n.session,
    ("status",): lambda n, i, s: s.status.value,
    ("trust",): lambda n, i, s: s.trust.value,
    ("validity", "from"): lambda n, i, s: _at(s.valid_from),
    ("validity", "to"): lambda n, i, s: _at(s.valid_to),
    ("occurred_at",): lambda n, i, s: _at(n.occurred),
    ("recorded_at",): lambda n, i, s: n.recorded_at,
    ("retired_at",): lambda n, i, s: n.retired_at,
    ("claim", "subject"): lambda n, i, s: n.claim and n.claim.subject,
    ("claim", "predicate"): lambda n, i, s: n.claim and n.claim.predicate,
    ("claim", "object"): lambda n, i, s: n.claim and n.claim.object,
    ("metadata",): lambda n, i, s: n.metadata,
    ("claim",): lambda n, i, s: n.claim and {"subject": n.claim.subject},
    ("evidence",): lambda n, i, s: list(n.evidence),
    ("evidence", "source"): _spans("source"),
    ("evidence", "start"): _spans("start"),
    ("evidence", "end"): _spans("end"),
    ("evidence", "quote"): _spans("quote"),
    ("evidence", "class"): _spans("cls"),
    ("supersedes",): lambda n, i, s: n.supersedes,
    ("superseded_by",): lambda n, i, s: n.superseded_by,
    ("actor", "kind"): lambda n, i, s: n.actor.kind.value,
    ("actor", "id"): lambda n, i, s: n.actor.id,
    ("actor", "channel"): lambda n, i, s: n.actor.channel,
    ("access", "count"): lambda n, i, s: n.access_count,
    ("access", "last"): lambda n, i, s: n.access_last,
}
