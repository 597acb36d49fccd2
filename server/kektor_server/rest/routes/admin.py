"""Looking after the database."""

from kektor.memory.compaction import Compaction
from kektor.operations.admin import Checkpoint, CompactRequest
from kektor_server.rest.route import Call, Routes

__all__ = ["routes"]

routes = Routes("admin")


@routes.post("/v1/admin/checkpoint")
def checkpoint(call: Call) -> Checkpoint:
    """Write a checkpoint of everything committed, so that the next start reads little of the log."""
    return call.operations.checkpoint(call.principal)


@routes.post("/v1/admin/compact")
def compact(call: Call, body: CompactRequest) -> Compaction:
    """Rid every file of what was erased: within a minute, or with `wait` before this answers."""
    return call.operations.compact(body, call.principal)
