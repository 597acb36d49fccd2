"""Looking after the database."""

from kektor.operations.admin import Checkpoint
from kektor_server.rest.route import Call, Routes

__all__ = ["routes"]

routes = Routes("admin")


@routes.post("/v1/admin/checkpoint")
def checkpoint(call: Call) -> Checkpoint:
    """Write a checkpoint of everything committed, so that the next start reads little of the log."""
    return call.operations.checkpoint(call.principal)
