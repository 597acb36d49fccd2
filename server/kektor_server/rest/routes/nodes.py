"""The raw plane of an index: nodes under the caller's own ids, and search over them."""

from kektor.engine.records import Receipt
from kektor.memory.objects import BatchHits, MemoryPage, NodeOut
from kektor.memory.requests import ListRequest, PatchNodeRequest, SearchBatchRequest, SearchRequest, UpsertRequest
from kektor.memory.revision import revision
from kektor_server.rest.answers import SearchAnswer
from kektor_server.rest.body import JSON, MSGPACK
from kektor_server.rest.inputs import DeleteNodeQuery, NodeQuery, NodesQueryBody
from kektor_server.rest.route import Call, Lane, Routes, is_new

__all__ = ["routes"]

routes = Routes("nodes")


@routes.post("/v1/indexes/{index}/nodes", creates=is_new, errors=("not_found", "conflict", "blocked"))
def upsert_nodes(call: Call, index: str, body: UpsertRequest) -> Receipt:
    """Store nodes, each new or in the place of the one of its id, all or nothing."""
    return call.operations.upsert(index, body, call.principal)


@routes.get("/v1/indexes/{index}/nodes/{id}", errors=("not_found", "conflict"), etag=revision)
def get_node(call: Call, index: str, id: str, query: NodeQuery) -> NodeOut:
    """A node, with its vector when `with_vector` is true."""
    return call.operations.get_node(index, id, call.principal, scope=query.scope(), vector=query.with_vector)


@routes.patch("/v1/indexes/{index}/nodes/{id}", errors=("not_found", "conflict", "blocked"))
def patch_node(call: Call, index: str, id: str, body: PatchNodeRequest) -> Receipt:
    """Merge metadata key by key (null removes one), replace the other parts that are given."""
    return call.operations.patch_node(index, id, body, call.principal)


@routes.delete("/v1/indexes/{index}/nodes/{id}", errors=("not_found", "conflict", "blocked"), keyed=True)
def delete_node(call: Call, index: str, id: str, query: DeleteNodeQuery) -> Receipt:
    """Remove a node; its id is free again."""
    return call.operations.delete_nodes(
        index,
        [id],
        call.principal,
        scope=query.scope(),
        reason=query.reason,
        idempotency_key=call.idempotency_key,
    )


@routes.post("/v1/indexes/{index}/nodes/query", lane=Lane.READ, errors=("not_found",))
def query_nodes(call: Call, index: str, body: NodesQueryBody) -> MemoryPage:
    """The nodes that a filter holds for, a page at a time."""
    request = ListRequest(
        index=index,
        scope=body.scope,
        filter=body.filter,
        include=body.include,
        kinds=body.kinds,
        limit=body.limit,
        cursor=body.cursor,
        as_of=body.as_of,
        known_at=body.known_at,
        tz=body.tz,
    )
    return call.operations.list_memories(request, call.principal)


@routes.post("/v1/indexes/{index}/search", lane=Lane.READ, errors=("not_found",))
def search(call: Call, index: str, body: SearchRequest) -> SearchAnswer:
    """The k best nodes by vector, by text, or by both."""
    return SearchAnswer(call.operations.search(index, body, call.principal))


@routes.post("/v1/indexes/{index}/search/batch", lane=Lane.READ, formats=(JSON, MSGPACK), errors=("not_found",))
def search_batch(call: Call, index: str, body: SearchBatchRequest) -> BatchHits:
    """The k best nodes for each of many vectors, on all cores; also in MessagePack."""
    return call.operations.search_rows(index, body, call.principal)
