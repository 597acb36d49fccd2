"""What waits for a decision, and what was decided: read from the states of memories and the reflections about them."""

from collections.abc import Iterator
from typing import Any

from msgspec import structs

from kektor.engine.edges import EdgeRule
from kektor.engine.port import Engine
from kektor.engine.records import IndexSettings, Kind, Node, NodeKey, Status, Trust
from kektor.engine.view import INCLUDABLE, View
from kektor.memory.objects import Decided, Review, Suggested
from kektor.memory.presenting import actor_of, memory_of, time_of
from kektor.query import parse_filter

__all__ = ["STATUSES", "queue"]

STATUSES = ("open", "asked", "decided", "all")
_PAGE = 1000
_NOT_BY_THEMSELVES = frozenset({Kind.REFLECTION, Kind.KEY})
"""A key is decided with the memory that it was told with."""


def queue(engine: Engine, view: View, settings: IndexSettings, status: str) -> list[Review]:
    """Reviews that a View reaches, oldest first. `open` also names those in which a question was asked."""
    everything = structs.replace(view, include=INCLUDABLE, history=True, kinds=None)
    reflections = list(_nodes(engine, structs.replace(everything, kinds=frozenset({Kind.REFLECTION}))))
    told = (_reflected(engine, everything, settings, node) for node in reflections)
    found = [review for review in told if review is not None]
    known = {memory.id for review in found if review.decided is None for memory in review.memories}
    waiting = structs.replace(everything, filter=parse_filter("trust IN ('proposed', 'contested')"))
    found += [
        _of_memory(engine, everything, settings, node)
        for node in _nodes(engine, waiting)
        if node.status is Status.CURRENT and node.kind not in _NOT_BY_THEMSELVES and node.id not in known
    ]
    return sorted((review for review in found if _wanted(review, status)), key=lambda r: (r.created_at, r.id))


def _wanted(review: Review, status: str) -> bool:
    return status == "all" or review.status == status or (status == "open" and review.status == "asked")


def _nodes(engine: Engine, view: View) -> Iterator[Node]:
    cursor: str | None = None
    while True:
        page = engine.page(view, limit=_PAGE, cursor=cursor)
        yield from page.nodes
        if (cursor := page.cursor) is None:
            return


def _reflected(engine: Engine, view: View, settings: IndexSettings, node: Node) -> Review | None:
    """The review of a reflection; None for one that was closed without a decision, or is about something else."""
    details = node.metadata
    if "review" not in details or (node.status is not Status.CURRENT and "decided" not in details):
        return None
    about = engine.fetch(view, _leading_to(engine, view, node, "derived_from"))
    memories = [memory for memory in about if memory is not None]
    if "decided" not in details:
        memories = [memory for memory in memories if memory.status is Status.CURRENT]
    return Review(
        id=node.id,
        kind=str(details["review"]),
        status="decided" if "decided" in details else "asked" if "asked" in details else "open",
        memories=[memory_of(memory, settings, now=view.now) for memory in memories],
        replaces=None if not memories else _replaces(engine, view, memories[0]),
        question=details.get("asked"),
        suggested=_suggested(details.get("suggested")),
        decided=_decided(details.get("decided")),
        created_at=time_of(node.recorded_at),
    )


def _of_memory(engine: Engine, view: View, settings: IndexSettings, node: Node) -> Review:
    kind = "contested" if node.trust is Trust.CONTESTED else "imported" if node.actor.kind == "import" else "proposed"
    return Review(
        id=node.id,
        kind=kind,
        status="open",
        memories=[memory_of(node, settings, now=view.now)],
        replaces=_replaces(engine, view, node),
        question=None,
        suggested=None,
        decided=None,
        created_at=time_of(node.recorded_at),
    )


def _replaces(engine: Engine, view: View, node: Node) -> str | None:
    ends = _leading_to(engine, view, node, "would_replace")
    return ends[0].id if ends else None


def _leading_to(engine: Engine, view: View, node: Node, rel: str) -> list[NodeKey]:
    rule = EdgeRule(frozenset([rel]), "out")
    return [found.dst for found in engine.edges(view, NodeKey(node.scope, node.id), rule, limit=_PAGE).edges]


def _suggested(said: dict[str, Any] | None) -> Suggested | None:
    if said is None:
        return None
    return Suggested(said["decision"], said["note"], said.get("text"), actor_of(said["by"]))


def _decided(said: dict[str, Any] | None) -> Decided | None:
    if said is None:
        return None
    return Decided(said["decision"], said["note"], time_of(said["at"]), actor_of(said["by"]))
