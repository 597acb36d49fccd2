"""What is done with the rows of a stage: sorting, cutting, counting, grouping."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from kektor import times
from kektor.engine.records import Node, NodeKey
from kektor.engine.ties import tie_order
from kektor.query.plan.program import Operation, Stage

__all__ = ["Aggregate", "Group", "Row", "moment_of", "run_pipe"]

_MEMBERS = 40
"""Ids that an aggregate names, of those it counted."""


class Row(NamedTuple):
    """A node a stage found, with its score and the parts of it."""

    node: Node
    score: float
    parts: dict[str, float]
    stage: str

    @property
    def key(self) -> NodeKey:
        return NodeKey(self.node.scope, self.node.id)


class Group(Struct, frozen=True):
    """Rows that share a value: how many, and the first of their ids."""

    key: str | None
    count: int
    ids: list[str]


class Aggregate(Struct, frozen=True):
    """What a stage counted. `at_least` says that it did not look at everything, so there may be more."""

    stage: str
    of: str
    count: int
    ids: list[str]
    groups: list[Group]
    at_least: bool


def run_pipe(stage: Stage, rows: list[Row], *, truncated: bool) -> tuple[list[Row], list[Aggregate]]:
    """The rows that are left, and what was counted on the way."""
    aggregates: list[Aggregate] = []
    for step in stage.pipe:
        match step.kind:
            case "sort":
                rows = _sorted(rows, step)
            case "head":
                rows = rows[: step.n]
            case "tail":
                rows = rows[-step.n :]
            case "count":
                ids = [row.node.id for row in rows]
                aggregates.append(Aggregate(stage.name, "rows", len(ids), ids[:_MEMBERS], [], truncated))
            case "group":
                groups = _grouped(rows, step.by)
                aggregates.append(Aggregate(stage.name, step.by, len(groups), [], groups, truncated))
    return rows, aggregates


def moment_of(node: Node) -> int:
    """When it happened, else since when it holds, else when it was recorded."""
    start = node.state.valid_from
    if node.occurred is not None:
        return node.occurred.at
    return node.recorded_at if start is None else start.at


def _sorted(rows: Sequence[Row], step: Operation) -> list[Row]:
    """Rows without the value come last either way; ties by content, then id."""
    get = _SORTS.get(step.by) or _metadata(step.by)
    having = [(value, row) for row in rows if (value := _comparable(get(row))) is not None]
    without = [row for row in rows if _comparable(get(row)) is None]
    having.sort(key=lambda pair: tie_order(pair[1].node))
    # Stable, so that equal values stay in the order of content whichever way they are sorted.
    having.sort(key=lambda pair: pair[0], reverse=step.desc)
    return [row for _, row in having] + without


def _comparable(value: Any) -> tuple[int, Any] | None:
    """Values of several types have no order among themselves: numbers come before texts."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    return (1, value) if isinstance(value, str) else (0, value)


def _grouped(rows: Sequence[Row], by: str) -> list[Group]:
    """Largest first, then by key; rows without the value under null."""
    found: dict[str | None, list[str]] = {}
    for row in rows:
        for key in _keys(row.node, by):
            found.setdefault(key, []).append(row.node.id)
    groups = [Group(key, len(ids), ids[:_MEMBERS]) for key, ids in found.items()]
    return sorted(groups, key=lambda group: (-group.count, group.key is None, group.key or ""))


def _keys(node: Node, by: str) -> Sequence[str | None]:
    if by == "tag":
        return node.tags or (None,)
    if by in ("day", "month", "year"):
        return (times.format(moment_of(node))[: {"day": 10, "month": 7, "year": 4}[by]],)
    if by.startswith("metadata."):
        value = _metadata(by)(Row(node, 0.0, {}, ""))
        values = value if isinstance(value, list) else [value]
        return [each if isinstance(each, str) else None if each is None else str(each) for each in values]
    claim = node.claim
    speaker = node.metadata.get("speaker")
    known: dict[str, str | None] = {
        "session": node.session or None,
        "speaker": speaker if isinstance(speaker, str) else None,
        "kind": node.kind.value,
        "layer": node.layer or None,
        "subject": claim.subject if claim else None,
        "predicate": claim.predicate if claim else None,
        "object": claim.object if claim else None,
    }
    return (known[by],)


def _metadata(by: str) -> Callable[[Row], Any]:
    path = by.split(".")[1:]

    def get(row: Row) -> Any:
        value: Any = row.node.metadata
        for key in path:
            if not isinstance(value, dict) or key not in value:
                return None
            value = value[key]
        return value

    return get


_SORTS: dict[str, Callable[[Row], Any]] = {
    "time": lambda row: moment_of(row.node),
    "recorded": lambda row: row.node.recorded_at,
    "score": lambda row: row.score,
    "id": lambda row: row.node.id,
}
