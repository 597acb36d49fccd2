"""The knowledge graph of the well-known memory server, as it lies in ours.

An entity is a memory tagged `entity`, an observation a memory tagged `observation` that is linked `about` it, and a
relation is an edge between two entities. So recall answers from them like from any other memory, and every one of
them keeps its history.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kektor.errors import NotFound
from kektor.memory import requests as rq
from kektor.memory.objects import Edge, Memory
from kektor_server.mcp.registry import ToolCall

__all__ = ["ABOUT", "Entity", "Graph", "entity_fields", "observation_fields"]

ABOUT = "about"
"""From an observation to its entity."""

MOST_NODES = 20_000
"""Entities and observations that are read at once; a larger graph says that it was cut."""

_PAGE = 1000
_NAMES = 200


@dataclass
class Entity:
    """One entity with its observations by their words, each the id of its memory."""

    id: str
    name: str
    type: str
    observations: dict[str, str] = field(default_factory=dict)

    def described(self) -> dict[str, Any]:
        """As the well-known server shows it."""
        return {"name": self.name, "entityType": self.type, "observations": list(self.observations)}


def entity_fields(name: str, kind: str) -> dict[str, Any]:
    """What is remembered of an entity."""
    return {"text": f"{name} ({kind})", "tags": ["entity"], "metadata": {"entity": name, "entity_type": kind}}


def observation_fields(name: str, content: str) -> dict[str, Any]:
    """What is remembered of an observation: with its entity's name, so that it is understood by itself."""
    return {
        "text": f"{name}: {content}",
        "tags": ["observation"],
        "metadata": {"entity": name, "observation": content},
    }


class Graph:
    """What a caller sees of it, in one index."""

    def __init__(self, call: ToolCall) -> None:
        self._call = call
        self.index = str(call.fields()["index"])
        self.truncated = False

    def entities(self, names: Iterable[str] | None = None) -> dict[str, Entity]:
        """Entities by name, all or some; those that are not there are left out."""
        found: dict[str, Entity] = {}
        said: list[Memory] = []
        for memory in self._memories(names):
            name = str(memory.metadata["entity"])
            if "observation" in memory.metadata:
                said.append(memory)
            else:
                found.setdefault(name, Entity(memory.id, name, str(memory.metadata.get("entity_type", ""))))
        for memory in said:
            entity = found.get(str(memory.metadata["entity"]))
            if entity is not None:
                entity.observations.setdefault(str(memory.metadata["observation"]), memory.id)
        return found

    def one(self, name: str) -> Entity:
        """An entity that must be there."""
        found = self.entities([name]).get(name)
        if found is None:
            raise NotFound(f"there is no entity {name!r}: create it with create_entities", field="entityName")
        return found

    def relations(self, entities: Mapping[str, Entity]) -> list[dict[str, str]]:
        """The relations between some entities."""
        names = {entity.id: entity.name for entity in entities.values()}
        return [
            {"from": names[edge.src], "to": names[edge.dst], "relationType": edge.rel}
            for entity in entities.values()
            for edge in self._edges(entity)
            if edge.src in names and edge.dst in names
        ]

    def matching(self, query: str) -> dict[str, Entity]:
        """Entities that have the words in their name, type or observations, or are found by them."""
        everything = self.entities()
        wanted = query.casefold()
        by_words = {str(memory.metadata["entity"]) for memory in self._found(query)}
        return {
            name: entity
            for name, entity in everything.items()
            if name in by_words or any(wanted in text.casefold() for text in (name, entity.type, *entity.observations))
        }

    def _edges(self, entity: Entity) -> Iterator[Edge]:
        cursor: str | None = None
        while True:
            request = rq.EdgesRequest(direction="out", limit=_PAGE, cursor=cursor)
            page = self._call.operations.edges(self.index, entity.id, request, self._call.principal)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def _found(self, query: str) -> Iterator[Memory]:
        if self._call.operations.engine.index(self.index) is None:
            return
        request = rq.SearchRequest(text=query, k=50, alpha=0.0, filter=_IN_GRAPH, with_memories=True)
        for hit in self._call.operations.search(self.index, request, self._call.principal):
            if hit.memory is not None:
                yield hit.memory

    def _memories(self, names: Iterable[str] | None) -> Iterator[Memory]:
        if names is None:
            yield from self._pages(_IN_GRAPH)
            return
        wanted = list(dict.fromkeys(names))
        for start in range(0, len(wanted), _NAMES):
            some = {"in": ["metadata.entity", wanted[start : start + _NAMES]]}
            yield from self._pages({"and": [_IN_GRAPH, some]})

    def _pages(self, filter: dict[str, Any]) -> Iterator[Memory]:
        cursor: str | None = None
        seen = 0
        while True:
            request = rq.ListRequest(index=self.index, filter=filter, limit=_PAGE, cursor=cursor)
            page = self._call.operations.list_memories(request, self._call.principal)
            yield from page.items
            seen += len(page.items)
            cursor = page.next_cursor
            if cursor is None:
                return
            if seen >= MOST_NODES:
                self.truncated = True
                return


_IN_GRAPH: dict[str, Any] = {
    "and": [
        {"exists": "metadata.entity"},
        {"or": [{"contains": ["tags", "entity"]}, {"contains": ["tags", "observation"]}]},
    ]
}
