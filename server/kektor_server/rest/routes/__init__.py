"""The routes, one file a part of the interface. Each decodes, calls one operation and encodes; rules live below."""

from collections.abc import Iterator

from kektor_server.rest.route import Route
from kektor_server.rest.routes import (
    admin,
    audit,
    events,
    export,
    graph,
    indexes,
    kv,
    memories,
    nodes,
    recall,
    reviews,
    server,
    sessions,
    tokens,
    tombstones,
)

__all__ = ["all_routes"]

_PARTS = (
    server,
    indexes,
    nodes,
    graph,
    memories,
    recall,
    sessions,
    reviews,
    tombstones,
    kv,
    export,
    events,
    tokens,
    audit,
    admin,
)


def all_routes() -> Iterator[Route]:
    """Every route, in the order in which the documentation shows them."""
    for part in _PARTS:
        yield from part.routes
