"""The profile `reference`: the nine tools of the well-known knowledge-graph memory server, over our graph.

Names, arguments and results are that server's, so that its users can switch. What is deleted is archived: it can be
restored, and saying it again is no contradiction.
"""

import json
from typing import Any

from msgspec import Struct

from kektor.contract import convert
from kektor.memory import requests as rq
from kektor_server.mcp.known_graph import ABOUT, Entity, Graph, entity_fields, observation_fields
from kektor_server.mcp.pieces import INDEX
from kektor_server.mcp.registry import Tool, ToolCall, ToolResult
from kektor_server.mcp.schema import Schema, array, boolean, record, text

__all__ = ["REFERENCE"]


class EntityIn(Struct, forbid_unknown_fields=True, rename={"entity_type": "entityType"}):
    name: str
    entity_type: str
    observations: list[str] = []


class EntitiesIn(Struct, forbid_unknown_fields=True):
    entities: list[EntityIn]


class RelationIn(Struct, forbid_unknown_fields=True, rename={"src": "from", "dst": "to", "rel": "relationType"}):
    src: str
    rel: str
    dst: str


class RelationsIn(Struct, forbid_unknown_fields=True):
    relations: list[RelationIn]


class ObservationsIn(Struct, forbid_unknown_fields=True, rename={"entity_name": "entityName"}):
    entity_name: str
    contents: list[str]


class AddIn(Struct, forbid_unknown_fields=True):
    observations: list[ObservationsIn]


class DeletionIn(Struct, forbid_unknown_fields=True, rename={"entity_name": "entityName"}):
    entity_name: str
    observations: list[str]


class DeletionsIn(Struct, forbid_unknown_fields=True):
    deletions: list[DeletionIn]


class EntityNamesIn(Struct, forbid_unknown_fields=True, rename={"names": "entityNames"}):
    names: list[str]


class NamesIn(Struct, forbid_unknown_fields=True):
    names: list[str]


class QueryIn(Struct, forbid_unknown_fields=True):
    query: str


def _create_entities(call: ToolCall) -> ToolResult:
    graph, asked = Graph(call), convert(EntitiesIn, _given(call)).entities
    there = graph.entities(entity.name for entity in asked)
    created: list[Entity] = []
    for step, given in enumerate(asked):
        call.step(step, len(asked), given.name)
        known = there.get(given.name)
        if known is not None and known not in created:
            continue  # as that server has it: an entity that is there stays as it is
        if known is None:
            made = call.operations.remember(
                _remembered(call, graph, entity_fields(given.name, given.entity_type)), call.principal
            )
            known = there[given.name] = Entity(made.id or "", given.name, given.entity_type)
            created.append(known)
        _observe(call, graph, known, given.observations)
    return _told("entities", [entity.described() for entity in created])


def _create_relations(call: ToolCall) -> ToolResult:
    graph, asked = Graph(call), convert(RelationsIn, _given(call)).relations
    entities = {name: graph.one(name) for name in _distinct(asked)}
    standing = {(edge["from"], edge["relationType"], edge["to"]) for edge in graph.relations(entities)}
    new = [
        each
        for each in dict.fromkeys((relation.src, relation.rel, relation.dst) for relation in asked)
        if each not in standing
    ]
    if new:
        edges = [rq.EdgeIn(src=entities[src].id, rel=rel, dst=entities[dst].id) for src, rel, dst in new]
        request = rq.LinkRequest(edges=edges, idempotency_key=call.key)
        call.operations.link(graph.index, request, call.principal)
    return _told("relations", [_relation(*each) for each in new])


def _add_observations(call: ToolCall) -> ToolResult:
    graph, asked = Graph(call), convert(AddIn, _given(call)).observations
    entities = [graph.one(given.entity_name) for given in asked]
    results = []
    for step, (entity, given) in enumerate(zip(entities, asked, strict=True)):
        call.step(step, len(asked), entity.name)
        added = _observe(call, graph, entity, given.contents)
        results.append({"entityName": entity.name, "addedObservations": added})
    return _told("results", results)


def _observe(call: ToolCall, graph: Graph, entity: Entity, contents: list[str]) -> list[str]:
    """Save what is not yet known of an entity; returns that."""
    added = [content for content in dict.fromkeys(contents) if content not in entity.observations]
    for content in added:
        fields = observation_fields(entity.name, content)
        made = call.operations.remember(_remembered(call, graph, fields), call.principal)
        entity.observations[content] = made.id or ""
    if added:
        edges = [rq.EdgeIn(src=entity.observations[content], rel=ABOUT, dst=entity.id) for content in added]
        call.operations.link(graph.index, rq.LinkRequest(edges=edges), call.principal)
    return added


def _delete_entities(call: ToolCall) -> ToolResult:
    graph, names = Graph(call), convert(EntityNamesIn, _given(call)).names
    found = graph.entities(names)
    for step, entity in enumerate(found.values()):
        call.step(step, len(found), entity.name)
        for node_id in (*entity.observations.values(), entity.id):
            call.operations.change_state("archive", node_id, _archiving(graph), call.principal)
    return _done(f"archived {len(found)} entities with their observations", len(found))


def _delete_observations(call: ToolCall) -> ToolResult:
    graph, asked = Graph(call), convert(DeletionsIn, _given(call)).deletions
    found = graph.entities(deletion.entity_name for deletion in asked)
    gone = 0
    for deletion in asked:
        entity = found.get(deletion.entity_name)
        for content in deletion.observations:
            node_id = None if entity is None else entity.observations.pop(content, None)
            if node_id is not None:
                call.operations.change_state("archive", node_id, _archiving(graph), call.principal)
                gone += 1
    return _done(f"archived {gone} observations", gone)


def _delete_relations(call: ToolCall) -> ToolResult:
    graph, asked = Graph(call), convert(RelationsIn, _given(call)).relations
    entities = graph.entities(_distinct(asked))
    standing = {(edge["from"], edge["relationType"], edge["to"]) for edge in graph.relations(entities)}
    ended = [
        each
        for each in dict.fromkeys((relation.src, relation.rel, relation.dst) for relation in asked)
        if each in standing
    ]
    for src, rel, dst in ended:
        request = rq.UnlinkRequest(src=entities[src].id, rel=rel, dst=entities[dst].id)
        call.operations.unlink(graph.index, request, call.principal)
    return _done(f"ended {len(ended)} relations", len(ended))


def _read_graph(call: ToolCall) -> ToolResult:
    graph = Graph(call)
    return _graph(graph, graph.entities())


def _search_nodes(call: ToolCall) -> ToolResult:
    graph = Graph(call)
    return _graph(graph, graph.matching(convert(QueryIn, _given(call)).query))


def _open_nodes(call: ToolCall) -> ToolResult:
    graph = Graph(call)
    return _graph(graph, graph.entities(convert(NamesIn, _given(call)).names))


def _graph(graph: Graph, entities: dict[str, Entity]) -> ToolResult:
    found = {
        "entities": [entity.described() for entity in entities.values()],
        "relations": graph.relations(entities),
        **({"truncated": True} if graph.truncated else {}),
    }
    return ToolResult(json.dumps(found, ensure_ascii=False, indent=2), found)


def _told(name: str, items: list[dict[str, Any]]) -> ToolResult:
    return ToolResult(json.dumps(items, ensure_ascii=False, indent=2), {name: items})


def _done(message: str, count: int) -> ToolResult:
    return ToolResult(message, {"success": True, "message": message, "count": count})


def _given(call: ToolCall) -> dict[str, Any]:
    return {name: value for name, value in call.arguments.items() if name != "index"}


def _remembered(call: ToolCall, graph: Graph, fields: dict[str, Any]) -> rq.RememberRequest:
    return convert(rq.RememberRequest, {"index": graph.index, "idempotency_key": call.next_key(), **fields})


def _archiving(graph: Graph) -> rq.VerbRequest:
    return rq.VerbRequest(index=graph.index, reason="deleted from the knowledge graph")


def _relation(src: str, rel: str, dst: str) -> dict[str, str]:
    return {"from": src, "to": dst, "relationType": rel}


def _distinct(relations: list[RelationIn]) -> list[str]:
    return list(dict.fromkeys(name for each in relations for name in (each.src, each.dst)))


_ENTITY = record(
    {
        "name": text("The entity's name"),
        "entityType": text("What it is, such as person or project"),
        "observations": array(text(), "What is known of it, a fact each"),
    },
    ("name", "entityType", "observations"),
)
_RELATION = record(
    {"from": text("The entity it begins at"), "to": text("The entity it ends at"), "relationType": text("In words")},
    ("from", "to", "relationType"),
)
_GRAPH: Schema = record(
    {
        "entities": array(_ENTITY),
        "relations": array(_RELATION),
        "truncated": boolean("Whether the graph is larger than what is shown"),
    },
    ("entities", "relations"),
    closed=False,
)
_DONE: Schema = record({"success": boolean(), "message": text()}, ("success", "message"), closed=False)

REFERENCE = (
    Tool(
        name="create_entities",
        title="Create entities",
        about="Create new entities in the knowledge graph, each with a name, a type and what is known of it. One that "
        "is there already stays as it is.",
        arguments={"entities": array(_ENTITY, "The entities to create."), **INDEX},
        required=("entities",),
        output=record({"entities": array(_ENTITY, "Those that are new")}, ("entities",)),
        run=_create_entities,
        repeatable=True,
    ),
    Tool(
        name="create_relations",
        title="Create relations",
        about="Create relations between entities of the knowledge graph, in active voice: from works_at to.",
        arguments={"relations": array(_RELATION, "The relations to create."), **INDEX},
        required=("relations",),
        output=record({"relations": array(_RELATION, "Those that are new")}, ("relations",)),
        run=_create_relations,
        repeatable=True,
    ),
    Tool(
        name="add_observations",
        title="Add observations",
        about="Add what is newly known of entities that exist in the knowledge graph.",
        arguments={
            "observations": array(
                record(
                    {"entityName": text("The entity"), "contents": array(text(), "A fact each")},
                    ("entityName", "contents"),
                ),
                "What to add, by entity.",
            ),
            **INDEX,
        },
        required=("observations",),
        output=record(
            {
                "results": array(
                    record(
                        {"entityName": text(), "addedObservations": array(text())}, ("entityName", "addedObservations")
                    )
                )
            },
            ("results",),
        ),
        run=_add_observations,
        repeatable=True,
    ),
    Tool(
        name="delete_entities",
        title="Delete entities",
        about="Take entities with their observations and relations out of the knowledge graph. They are archived, and "
        "a person can restore them.",
        arguments={"entityNames": array(text(), "The entities to delete."), **INDEX},
        required=("entityNames",),
        output=_DONE,
        run=_delete_entities,
        destroys=True,
    ),
    Tool(
        name="delete_observations",
        title="Delete observations",
        about="Take observations of entities out of the knowledge graph, each named by its exact words.",
        arguments={
            "deletions": array(
                record(
                    {"entityName": text("The entity"), "observations": array(text(), "In the exact words")},
                    ("entityName", "observations"),
                ),
                "What to delete, by entity.",
            ),
            **INDEX,
        },
        required=("deletions",),
        output=_DONE,
        run=_delete_observations,
        destroys=True,
    ),
    Tool(
        name="delete_relations",
        title="Delete relations",
        about="End relations between entities of the knowledge graph.",
        arguments={"relations": array(_RELATION, "The relations to end."), **INDEX},
        required=("relations",),
        output=_DONE,
        run=_delete_relations,
        destroys=True,
    ),
    Tool(
        name="read_graph",
        title="Read the graph",
        about="The whole knowledge graph: every entity with its observations, and every relation.",
        arguments=INDEX,
        required=(),
        output=_GRAPH,
        run=_read_graph,
        reads=True,
    ),
    Tool(
        name="search_nodes",
        title="Search nodes",
        about="Entities whose name, type or observations match the words, and the relations between them.",
        arguments={"query": text("The words to look for."), **INDEX},
        required=("query",),
        output=_GRAPH,
        run=_search_nodes,
        reads=True,
    ),
    Tool(
        name="open_nodes",
        title="Open nodes",
        about="Entities by their names, and the relations between them.",
        arguments={"names": array(text(), "The entities to show."), **INDEX},
        required=("names",),
        output=_GRAPH,
        run=_open_nodes,
        reads=True,
    ),
)
