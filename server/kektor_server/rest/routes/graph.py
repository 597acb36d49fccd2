"""Edges between nodes, and walks along them."""

from kektor.engine.records import Receipt
from kektor.memory.objects import Path, Subgraph
from kektor.memory.requests import EdgesRequest, LinkRequest, PathRequest, TraverseRequest, UnlinkRequest
from kektor_server.rest.answers import EdgePage
from kektor_server.rest.inputs import EdgesQuery
from kektor_server.rest.route import Call, Lane, Routes

__all__ = ["routes"]

routes = Routes("graph")


@routes.post("/v1/indexes/{index}/edges", creates=True, errors=("not_found", "conflict", "blocked"))
def link(call: Call, index: str, body: LinkRequest) -> Receipt:
    """Join nodes, all edges or none; an edge that stands already is replaced."""
    return call.operations.link(index, body, call.principal)


@routes.delete("/v1/indexes/{index}/edges", errors=("not_found", "conflict", "blocked"))
def unlink(call: Call, index: str, body: UnlinkRequest) -> Receipt:
    """End an edge; `known_at` still shows it."""
    return call.operations.unlink(index, body, call.principal)


@routes.get("/v1/indexes/{index}/nodes/{id}/edges", errors=("not_found", "conflict"))
def node_edges(call: Call, index: str, id: str, query: EdgesQuery) -> EdgePage:
    """Edges at a node whose other end the caller sees."""
    request = EdgesRequest(
        direction=query.direction,
        rel=query.rel,
        scope=query.scope(),
        as_of=query.as_of,
        known_at=query.known_at,
        tz=query.tz,
    )
    return EdgePage(call.operations.edges(index, id, request, call.principal), None)


@routes.post("/v1/indexes/{index}/graph/traverse", lane=Lane.READ, errors=("not_found", "conflict"))
def traverse(call: Call, index: str, body: TraverseRequest) -> Subgraph:
    """What a walk from a node reaches, by distance."""
    return call.operations.traverse(index, body, call.principal)


@routes.post("/v1/indexes/{index}/graph/path", lane=Lane.READ, errors=("not_found", "conflict"))
def path(call: Call, index: str, body: PathRequest) -> Path:
    """A path with the fewest hops between two nodes; empty when there is none."""
    return call.operations.path(index, body, call.principal)
