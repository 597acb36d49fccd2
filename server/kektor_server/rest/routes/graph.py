"""Edges between nodes, and walks along them."""

from kektor.engine.records import Receipt
from kektor.memory.objects import Analysis, EdgePage, NeighbourPage, Path, Subgraph
from kektor.memory.requests import (
    AnalyseRequest,
    EdgesRequest,
    LinkRequest,
    PathRequest,
    SubgraphRequest,
    TraverseRequest,
    UnlinkRequest,
)
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
    """Edges at a node whose other end the caller sees, oldest first."""
    return call.operations.edges(index, id, _asked(query), call.principal)


@routes.get("/v1/indexes/{index}/nodes/{id}/neighbours", errors=("not_found", "conflict"))
def neighbours(call: Call, index: str, id: str, query: EdgesQuery) -> NeighbourPage:
    """What is joined to a node, with the edges that join it."""
    return call.operations.neighbours(index, id, _asked(query), call.principal)


@routes.post("/v1/indexes/{index}/graph/traverse", lane=Lane.READ, errors=("not_found", "conflict"))
def traverse(call: Call, index: str, body: TraverseRequest) -> Subgraph:
    """What a walk from a node reaches, by distance."""
    return call.operations.traverse(index, body, call.principal)


@routes.post("/v1/indexes/{index}/graph/path", lane=Lane.READ, errors=("not_found", "conflict"))
def path(call: Call, index: str, body: PathRequest) -> Path:
    """A path with the fewest hops between two nodes, or of least cost; empty when there is none."""
    return call.operations.path(index, body, call.principal)


@routes.post("/v1/indexes/{index}/graph/subgraph", lane=Lane.READ, errors=("not_found", "conflict"))
def subgraph(call: Call, index: str, body: SubgraphRequest) -> Subgraph:
    """What walks from some nodes reach, with every edge between the nodes met."""
    return call.operations.subgraph(index, body, call.principal)


@routes.post("/v1/indexes/{index}/graph/analyse", lane=Lane.READ, errors=("not_found",))
def analyse(call: Call, index: str, body: AnalyseRequest) -> Analysis:
    """Components, PageRank, betweenness or communities of all that the caller sees."""
    return call.operations.analyse(index, body, call.principal)


def _asked(query: EdgesQuery) -> EdgesRequest:
    return EdgesRequest(
        direction=query.direction,
        rel=query.rel,
        rels=query.rels,
        filter=query.filter,
        edge_filter=query.edge_filter,
        limit=query.limit,
        cursor=query.cursor,
        scope=query.scope(),
        as_of=query.as_of,
        known_at=query.known_at,
        tz=query.tz,
    )
