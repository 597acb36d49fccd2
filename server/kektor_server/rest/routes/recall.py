"""Questions, forgetting, and raw conversations in."""

from kektor.engine.records import Receipt
from kektor.ingest import IngestMessagesRequest
from kektor.memory.objects import Forgotten, Recall
from kektor.memory.requests import ForgetRequest, RecallRequest
from kektor_server.rest.route import Call, Lane, Routes, is_new

__all__ = ["routes"]

routes = Routes("recall")


@routes.post("/v1/recall", lane=Lane.READ, errors=("not_found", "conflict"))
def recall(call: Call, body: RecallRequest) -> Recall:
    """Answer a question with at most `k` memories and `budget_tokens` tokens of context, ready for a prompt."""
    return call.operations.recall(body, call.principal)


@routes.post("/v1/forget", errors=("not_found", "conflict", "blocked"))
def forget(call: Call, body: ForgetRequest) -> Forgotten:
    """Retract (the default), archive or erase, all or nothing; `dry_run` shows what erasing would take."""
    return call.operations.forget(body, call.principal)


@routes.post("/v1/ingest/messages", creates=is_new, errors=("not_found", "conflict", "blocked"))
def ingest_messages(call: Call, body: IngestMessagesRequest) -> Receipt:
    """Keep a conversation verbatim, one source a message; sending it again changes nothing."""
    return call.operations.ingest_messages(body, call.principal)
