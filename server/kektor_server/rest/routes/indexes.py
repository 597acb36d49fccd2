"""Indexes as a whole."""

from kektor.engine.records import Receipt
from kektor.memory.objects import Index, IndexStats
from kektor.memory.presenting import index_of
from kektor.memory.requests import ConfigureIndexRequest, CreateIndexRequest
from kektor_server.rest.answers import IndexPage
from kektor_server.rest.inputs import DropIndexQuery, StatsQuery
from kektor_server.rest.route import Call, Routes

__all__ = ["routes"]

routes = Routes("indexes")


@routes.get("/v1/indexes")
def list_indexes(call: Call) -> IndexPage:
    """The indexes that a grant of the caller reaches."""
    return IndexPage([index_of(settings) for settings in call.operations.list_indexes(call.principal)], None)


@routes.post("/v1/indexes", creates=True, errors=("conflict",))
def create_index(call: Call, body: CreateIndexRequest) -> Index:
    """Make an index, with its own dimension or an embedder that tells it (without both, the default embedder)."""
    return index_of(call.operations.create_index(body, call.principal))


@routes.get("/v1/indexes/{index}", errors=("not_found",))
def get_index(call: Call, index: str) -> Index:
    """The settings of an index."""
    return index_of(call.operations.get_index(index, call.principal))


@routes.patch("/v1/indexes/{index}", errors=("not_found",))
def configure_index(call: Call, index: str, body: ConfigureIndexRequest) -> Index:
    """Merge a policy and layers into the settings."""
    return index_of(call.operations.configure_index(index, body, call.principal))


@routes.delete("/v1/indexes/{index}", errors=("not_found", "blocked"), keyed=True)
def delete_index(call: Call, index: str, query: DropIndexQuery) -> Receipt:
    """Drop an index with all it holds."""
    return call.operations.drop_index(index, call.principal, reason=query.reason, idempotency_key=call.idempotency_key)


@routes.get("/v1/indexes/{index}/stats", errors=("not_found",))
def index_stats(call: Call, index: str, query: StatsQuery) -> IndexStats:
    """Sizes of an index, whatever its scopes; needs a grant for all of them. `shown` counts what a read would show."""
    return call.operations.index_stats(index, call.principal, as_of=query.as_of, known_at=query.known_at, tz=query.tz)
