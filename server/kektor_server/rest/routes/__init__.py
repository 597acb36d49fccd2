"""The routes, one file a part of the interface. Each decodes, calls one operation and encodes; rules live below."""

from collections.abc import Iterator

from kektor_server.rest.route import Route
from kektor_server.rest.routes import (
    admin,
    audit,
    graph,
    indexes,
    memories,
    nodes,
    recall,
    reviews,
    server,
    sessions,
    tombstones,
)

__all__ = ["all_routes"]


def all_routes() -> Iterator[Route]:
    """Every route, in the order in which the documentation shows them."""
    for part in (server, indexes, nodes, graph, memories, recall, sessions, reviews, tombstones, audit, admin):
        yield from part.routes
