"""Questions, forgetting, and raw conversations in."""

from kektor.engine.records import Receipt
from kektor.ingest import IngestMessagesRequest
from kektor.memory.objects import ErasurePage, ForgetReceipt, Forgotten, Recall
from kektor.memory.requests import ForgetRequest, RecallRequest
from kektor_server.rest.inputs import PageQuery
from kektor_server.rest.route import Call, Lane, Routes, is_new

__all__ = ["routes"]

routes = Routes("recall")


@routes.post("/v1/recall", lane=Lane.READ, errors=("not_found", "conflict"))
def recall(call: Call, body: RecallRequest) -> Recall:
    """Answer a question with at most `k` memories and `budget_tokens` tokens of context, ready for a prompt."""
    return call.operations.recall(body, call.principal)


@routes.post("/v1/forget", errors=("not_found", "conflict", "blocked"))
def forget(call: Call, body: ForgetRequest) -> Forgotten:
    """Retract (the default), archive or erase, all or nothing: by ids, by a query, by a filter, or as previewed.

    By query and filter it is a preview unless `dry_run` is false; its token, sent as `preview`, does exactly that.
    """
    return call.operations.forget(body, call.principal)


@routes.get("/v1/erasures")
def list_erasures(call: Call, query: PageQuery) -> ErasurePage:
    """The receipts of what was erased, oldest first; each proves itself with a key of the JWKS."""
    return call.operations.erasures(call.principal, limit=query.limit, cursor=query.cursor)


@routes.get("/v1/erasures/{id}", errors=("not_found",))
def get_erasure(call: Call, id: str) -> ForgetReceipt:
    """One receipt. `bytes_gone_at` is set once no file holds what was erased."""
    return call.operations.erasure(id, call.principal)


@routes.post("/v1/ingest/messages", creates=is_new, errors=("not_found", "conflict", "blocked"))
def ingest_messages(call: Call, body: IngestMessagesRequest) -> Receipt:
    """Keep a conversation verbatim, one source a message; sending it again changes nothing."""
    return call.operations.ingest_messages(body, call.principal)
