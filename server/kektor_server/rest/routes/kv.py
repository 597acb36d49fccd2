"""Key-values beside the memories of an index."""

from typing import Any

from kektor.engine.records import Receipt
from kektor.memory.objects import KvEntry
from kektor.memory.requests import DropKvRequest, PutKvRequest
from kektor_server.rest.inputs import MemoryQuery
from kektor_server.rest.route import Call, Routes

__all__ = ["routes"]

routes = Routes("kv")


class DeleteKvQuery(MemoryQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    reason: str = ""


def _version(entry: Any) -> str:
    return str(entry.version)


@routes.get("/v1/kv/{key}", errors=("not_found", "conflict"), etag=_version)
def get_kv(call: Call, key: str, query: MemoryQuery) -> KvEntry:
    """The value under a key, with its version, which is the ETag as well."""
    return call.operations.kv_get(query.index, key, call.principal, scope=query.scope())


@routes.put("/v1/kv/{key}", errors=("not_found", "conflict", "blocked"), etag=_version)
def put_kv(call: Call, key: str, body: PutKvRequest) -> KvEntry:
    """Store any JSON under a key; If-Match with the version that was read, or `only_new`, makes it conditional."""
    return call.operations.kv_put(key, body, call.principal)


@routes.delete("/v1/kv/{key}", errors=("not_found", "conflict", "blocked"), keyed=True, conditional=True)
def delete_kv(call: Call, key: str, query: DeleteKvQuery) -> Receipt:
    """Take a value away."""
    request = DropKvRequest(
        index=query.index,
        scope=query.scope(),
        if_match=call.if_match,
        reason=query.reason,
        idempotency_key=call.idempotency_key,
    )
    return call.operations.kv_delete(key, request, call.principal)
