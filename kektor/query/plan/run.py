"""What a plan means: stage after stage over what a View shows.

A stage that finds nothing is relaxed: its soft parts are dropped in a fixed order, each told. Its hard parts (whose,
when, which filter, which ids, which walk) are never dropped for an answer; what only they kept out is a near miss.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from msgspec import Struct, structs

from kektor.engine.edges import EdgeRule
from kektor.engine.filters import And, Compare, Exists, Field, Filter, In, Not, Or, check_bare, conjunction
from kektor.engine.port import Engine, Vector
from kektor.engine.records import Node, NodeKey
from kektor.engine.ties import tie_order
from kektor.engine.view import View
from kektor.query.plan import words
from kektor.query.plan.pipe import Aggregate, Row, moment_of, run_pipe
from kektor.query.plan.program import Match, Plan, Reference, Span, Stage, Walk
from kektor.text import has_beginning, holds_phrase
from kektor.times import Extent

__all__ = ["Missed", "Outcome", "Relaxed", "Unresolved", "run_plan"]

Embed = Callable[[str], Vector | None]

_RANKED: Final = 1000
"""Candidates that words or a vector may bring into a stage."""

_SCANNED: Final = 20_000
"""Nodes a stage looks at one by one when neither words, ids nor edges lead to them."""

_WALKED: Final = 10_000
_MISSES: Final = 3
"""Near misses shown for each hard part."""

_SOFT: Final = ("phrase", "prefix", "all", "object", "predicate", "tags", "layers", "kinds", "match")
"""The order in which soft parts are given up: what says most about the words first, what is sought last."""

_HARD: Final = ("time", "who", "subject", "sessions", "filter", "traverse", "ids")


class Relaxed(Struct, frozen=True):
    """A soft part that was given up; `answered` says whether the stage found something without it."""

    stage: str
    dropped: str
    value: Any
    answered: bool


class Unresolved(Struct, frozen=True):
    """A name in a plan that nothing visible has."""

    stage: str
    field: str
    value: str


class Missed(Struct, frozen=True):
    """A node that one hard part of a stage kept out."""

    node: Node
    stage: str
    dropped: str


class StageTrace(Struct, frozen=True):
    """How one stage went; `skipped` says why it did not run, `truncated` that it did not look at everything."""

    stage: str
    rows: int
    truncated: bool
    skipped: str | None = None


class Outcome(Struct, frozen=True):
    """The rows of the answer, best first, and everything that was done to get them."""

    rows: list[Row]
    aggregates: list[Aggregate]
    relaxed: list[Relaxed]
    unresolved: list[Unresolved]
    near_misses: list[Missed]
    stages: list[StageTrace]


def run_plan(engine: Engine, view: View, plan: Plan, embed: Embed) -> Outcome:
    """Run a plan over what a View shows; Invalid when a filter names what nothing has."""
    run = _Run(engine, view, embed)
    for stage in plan.stages:
        run.stage(stage)
    seen: dict[NodeKey, Row] = {}
    for name in plan.answer:
        for row in run.rows.get(name, ()):
            seen.setdefault(row.key, row)
    wanted = set(plan.answer)
    missed = [miss for miss in run.missed if miss.stage in wanted] if not seen else []
    return Outcome(list(seen.values()), run.aggregates, run.relaxed, run.unresolved, missed, run.traces)


class _Selected(NamedTuple):
    rows: list[Row]
    truncated: bool


class _Run:
    def __init__(self, engine: Engine, view: View, embed: Embed) -> None:
        self._engine = engine
        self._view = view
        self._embed = embed
        self._keys: set[str] | None = None
        self.rows: dict[str, list[Row]] = {}
        self.aggregates: list[Aggregate] = []
        self.relaxed: list[Relaxed] = []
        self.unresolved: list[Unresolved] = []
        self.missed: list[Missed] = []
        self.traces: list[StageTrace] = []

    def stage(self, stage: Stage) -> None:
        resolved, missing = self._resolve(stage)
        if resolved is None:
            self.rows[stage.name] = []
            self.traces.append(StageTrace(stage.name, 0, False, f"stage {missing!r} found nothing to go on from"))
            return
        self._check_names(resolved)
        selected = self._relaxing(resolved)
        if not selected.rows:
            self.missed += self._near_misses(resolved)
        rows, aggregates = run_pipe(stage, selected.rows, truncated=selected.truncated)
        self.rows[stage.name] = rows
        self.aggregates += aggregates
        self.traces.append(StageTrace(stage.name, len(rows), selected.truncated))

    # References

    def _resolve(self, stage: Stage) -> tuple[Stage | None, str]:
        """The stage with what earlier ones found in the place of its references; None when one found nothing."""
        changes: dict[str, Any] = {}
        for name in ("ids", "sessions"):
            value = getattr(stage, name)
            if isinstance(value, Reference):
                changes[name] = self._values(value)
        if stage.time is not None:
            changes["time"] = structs.replace(
                stage.time, since=self._instant(stage.time.since), until=self._instant(stage.time.until)
            )
        if stage.traverse is not None and isinstance(stage.traverse.start, Reference):
            changes["traverse"] = structs.replace(stage.traverse, start=self._values(stage.traverse.start))
        for reference in _references(stage):
            if not self.rows.get(reference.stage):
                return None, reference.stage
        return structs.replace(stage, **changes), ""

    def _values(self, reference: Reference) -> tuple[str, ...]:
        rows = self.rows.get(reference.stage, [])
        if reference.part == "sessions":
            return tuple(dict.fromkeys(row.node.session for row in rows if row.node.session))
        return tuple(row.node.id for row in (rows if reference.part == "ids" else rows[:1]))

    def _instant(self, bound: Extent | Reference | None) -> Extent | None:
        if not isinstance(bound, Reference):
            return bound
        rows = self.rows.get(bound.stage, [])
        if not rows:
            return None
        # What comes after something does not include it, nor does what came before.
        at = moment_of(rows[0].node)
        return Extent(at + 1, at, "instant", "")

    # Names

    def _check_names(self, stage: Stage) -> None:
        if stage.filter is not None:
            if self._keys is None:
                self._keys = self._engine.metadata_keys(self._view)
            check_bare(stage.filter, self._keys)
        named = [("who", name) for name in stage.who]
        named += [("claim.subject", stage.claim.subject)] if stage.claim and stage.claim.subject else []
        anything = structs.replace(self._view.whole(), history=True, include=self._view.include | {"superseded"})
        for field, value in named:
            if not self._engine.match_text(anything, value, 1) and not self._is_caller(value):
                self.unresolved.append(Unresolved(stage.name, field, value))
        for field, value in (*(("tags", tag) for tag in stage.tags), *(("layers", layer) for layer in stage.layers)):
            narrow = In(Field(("tags",) if field == "tags" else ("layer",)), (value,))
            if self._engine.count(structs.replace(anything, filter=narrow)) == 0:
                self.unresolved.append(Unresolved(stage.name, field, value))

    def _is_caller(self, name: str) -> bool:
        return any(words.same(name, rule.user or "") for rules in self._view.scopes for rule in rules)

    # Relaxing

    def _relaxing(self, stage: Stage) -> _Selected:
        selected = self._select(stage)
        for dropped in _SOFT:
            if selected.rows:
                return selected
            weaker, value = _without(stage, dropped)
            if weaker == stage:
                continue
            if _has_content(stage) and not _has_content(weaker):
                # Whatever came now would be an answer to another question.
                self.relaxed.append(Relaxed(stage.name, dropped, value, answered=False))
                return selected
            stage = weaker
            selected = self._select(stage)
            self.relaxed.append(Relaxed(stage.name, dropped, value, answered=bool(selected.rows)))
        return selected

    def _near_misses(self, stage: Stage) -> list[Missed]:
        found: list[Missed] = []
        for dropped in _HARD:
            weaker, _ = _without(stage, dropped)
            if weaker == stage or not _has_content(weaker):
                continue
            found += [Missed(row.node, stage.name, dropped) for row in self._select(weaker).rows[:_MISSES]]
        return found

    # Selecting

    def _select(self, stage: Stage) -> _Selected:
        view = self._stage_view(stage)
        sought = _sought(stage.match)
        vector = self._embed(stage.near) if stage.near else None
        keys, truncated = self._candidates(stage, view, sought, vector)
        nodes = [node for node in self._engine.fetch(view, keys) if node is not None]
        nodes = [node for node in nodes if _fits(node, stage)]
        nodes = self._saying_all(view, stage, nodes)
        return _Selected(self._scored(view, stage, nodes, sought, vector), truncated)

    def _stage_view(self, stage: Stage) -> View:
        past = stage.status != "current" or (stage.time is not None and stage.time.axis == "valid")
        terms: list[Filter | None] = [self._view.filter, stage.filter, _during(stage.time)]
        for path, values in ((("kind",), stage.kinds), (("layer",), stage.layers), (("tags",), stage.tags)):
            terms.append(In(Field(path), values) if values else None)
        if stage.sessions is not None:
            assert not isinstance(stage.sessions, Reference), "references are resolved"
            terms.append(In(Field(("session",)), stage.sessions))
        if stage.status == "superseded":
            terms.append(Compare("=", Field(("status",)), "superseded"))
        return structs.replace(
            self._view,
            filter=conjunction(terms),
            history=self._view.history or past,
            include=self._view.include | ({"superseded"} if stage.status != "current" else set()),
        )

    def _candidates(self, stage: Stage, view: View, sought: str, vector: Vector | None) -> tuple[list[NodeKey], bool]:
        """Where to look, by what leads to the fewest; what else is asked for is checked on what was found."""
        if stage.ids is not None:
            assert not isinstance(stage.ids, Reference), "references are resolved"
            return [_key(node) for name in stage.ids for node in self._engine.find(view, name)], False
        if stage.traverse is not None:
            return self._walked(stage.traverse, view)
        if stage.who or sought:
            queries = [*stage.who] or [sought]
            found = [self._engine.match_text(view, query, _RANKED) for query in queries]
            keys = list(dict.fromkeys(scored.key for each in found for scored in each))
            if stage.who and sought:
                scores = self._engine.text_scores(view, sought, keys)
                keys = [key for key, score in zip(keys, scores, strict=True) if score > 0]
            return keys, any(len(each) == _RANKED for each in found)
        if vector is not None:
            near = self._engine.nearest(view, vector, _RANKED)
            return [scored.key for scored in near], len(near) == _RANKED
        page = self._engine.page(view, limit=_SCANNED)
        return [_key(node) for node in page.nodes], page.cursor is not None

    def _walked(self, walk: Walk, view: View) -> tuple[list[NodeKey], bool]:
        assert not isinstance(walk.start, Reference), "references are resolved"
        whole = self._view.whole()
        roots = [_key(node) for name in walk.start for node in self._engine.find(whole, name)]
        rels = None if walk.rels is None else frozenset(walk.rels)
        rule = EdgeRule(rels, walk.direction, walk.edge_filter)
        found = self._engine.traverse(whole, roots, rule, depth=walk.depth, limit=_WALKED)
        reached = [_key(node) for node, hops in found.nodes if hops > 0]
        return [key for key, seen in zip(reached, self._engine.admits(view, reached), strict=True) if seen], (
            found.truncated
        )

    def _saying_all(self, view: View, stage: Stage, nodes: list[Node]) -> list[Node]:
        """Those in which each word of `all` occurs, and at least one of `any`."""
        if stage.match is None:
            return nodes
        wanted = [*stage.match.all, *([stage.match.any] if stage.match.any else [])]
        for query in wanted:
            scores = self._engine.text_scores(view, query, [_key(node) for node in nodes])
            nodes = [node for node, score in zip(nodes, scores, strict=True) if score > 0]
        return nodes

    def _scored(self, view: View, stage: Stage, nodes: list[Node], sought: str, vector: Vector | None) -> list[Row]:
        """Best first by words and meaning; without either the latest first. Ties by content, then id."""
        keys = [_key(node) for node in nodes]
        said = self._engine.text_scores(view, sought, keys) if sought else [0.0] * len(keys)
        best = max(said, default=0.0)
        near = self._engine.vector_scores(view, vector, keys) if vector is not None else [None] * len(keys)
        rows = []
        for node, by_text, by_vector in zip(nodes, said, near, strict=True):
            parts = {"text": by_text / best} if best > 0 else {}
            if by_vector is not None:
                parts["vector"] = max(0.0, by_vector)
            rows.append(Row(node, sum(parts.values()), parts, stage.name))
        return sorted(rows, key=lambda row: (-row.score, -moment_of(row.node), *tie_order(row.node)))


def _references(stage: Stage) -> Iterable[Reference]:
    span = stage.time or Span()
    values = (stage.ids, stage.sessions, span.since, span.until, stage.traverse and stage.traverse.start)
    return [value for value in values if isinstance(value, Reference)]


def _sought(match: Match | None) -> str:
    """The words that rank."""
    return "" if match is None else " ".join(filter(None, (match.any, *match.all, match.phrase)))


def _fits(node: Node, stage: Stage) -> bool:
    """What the indexes do not answer: names, claims, phrases, beginnings of words."""
    match, claim = stage.match, stage.claim
    if stage.who and not any(words.mentions(node, name) for name in stage.who):
        return False
    if match is not None and not (
        (not match.phrase or holds_phrase(node.text, match.phrase))
        and all(has_beginning(node.text, prefix) for prefix in match.prefix)
    ):
        return False
    if claim is None:
        return True
    if node.claim is None:
        return False
    return all(
        not wanted or words.same(wanted, held)
        for wanted, held in zip(structs.astuple(claim), structs.astuple(node.claim), strict=True)
    )


def _during(span: Span | None) -> Filter | None:
    """A span as a filter over the times a memory has."""
    if span is None:
        return None
    assert not isinstance(span.since, Reference), "references are resolved"
    assert not isinstance(span.until, Reference), "references are resolved"
    if span.axis == "valid":
        begun = None if span.until is None else _or_missing(Compare("<", _FROM, _at(span.until.end)))
        lasting = None if span.since is None else _or_missing(Compare(">", _TO, _at(span.since.start)))
        return conjunction([begun, lasting])
    if span.axis == "recorded":
        return _within(_RECORDED, span)
    told = _within(_OCCURRED, span)
    since = _within(_FROM, span)
    recorded = _within(_RECORDED, span)
    return Or((told, And((Not(Exists(_OCCURRED)), Or((since, And((Not(Exists(_FROM)), recorded))))))))


def _within(field: Field, span: Span) -> Filter:
    assert not isinstance(span.since, Reference), "references are resolved"
    assert not isinstance(span.until, Reference), "references are resolved"
    found = conjunction(
        [
            None if span.since is None else Compare(">=", field, _at(span.since.start)),
            None if span.until is None else Compare("<", field, _at(span.until.end)),
        ]
    )
    assert found is not None, "a span has a bound"
    return found


def _at(instant: int) -> Extent:
    return Extent(instant, instant + 1, "instant", "")


def _or_missing(compare: Compare) -> Filter:
    return Or((compare, Not(Exists(compare.field))))


_FROM: Final = Field(("validity", "from"))
_TO: Final = Field(("validity", "to"))
_OCCURRED: Final = Field(("occurred_at",))
_RECORDED: Final = Field(("recorded_at",))


def _without(stage: Stage, part: str) -> tuple[Stage, Any]:
    """The stage without one of its parts, and what that part was."""
    if part in ("phrase", "prefix", "all"):
        if stage.match is None or not (value := getattr(stage.match, part)):
            return stage, None
        # Its words still rank, so that dropping the order of a phrase does not drop its words.
        said = value if isinstance(value, str) else " ".join(value)
        kept = {} if part == "prefix" else {"any": " ".join(filter(None, (stage.match.any, said)))}
        empty: Any = "" if isinstance(value, str) else ()
        weaker = structs.replace(stage.match, **{part: empty}, **kept)
        return structs.replace(stage, match=None if weaker == Match() else weaker), value
    if part in ("subject", "predicate", "object"):
        if stage.claim is None or not (value := getattr(stage.claim, part)):
            return stage, None
        claim = structs.replace(stage.claim, **{part: ""})
        return structs.replace(stage, claim=claim if any(structs.astuple(claim)) else None), value
    value = getattr(stage, part)
    empty = () if isinstance(value, tuple) and part not in ("ids", "sessions") else None
    return structs.replace(stage, **{part: empty}), _shown(value)


def _shown(value: Any) -> Any:
    if isinstance(value, Match):
        return value.any
    return list(value) if isinstance(value, tuple) else value


def _has_content(stage: Stage) -> bool:
    """Whether it still asks about something; whose and when alone is not something."""
    return any((stage.match, stage.claim, stage.tags, stage.filter, stage.ids, stage.sessions, stage.traverse)) or bool(
        stage.near
    )


def _key(node: Node) -> NodeKey:
    return NodeKey(node.scope, node.id)
