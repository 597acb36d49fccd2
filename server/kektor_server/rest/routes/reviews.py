"""What waits for a decision, and deciding it."""

from kektor.engine.records import Receipt
from kektor.memory.objects import ReviewPage
from kektor.memory.requests import ReviewRequest
from kektor_server.rest.inputs import ReviewsQuery
from kektor_server.rest.route import Call, Routes

__all__ = ["routes"]

routes = Routes("reviews")


@routes.get("/v1/reviews", errors=("not_found",))
def list_reviews(call: Call, query: ReviewsQuery) -> ReviewPage:
    """What is contested, proposed, imported or asked about, oldest first; `status` is open, asked, decided or all."""
    return call.operations.reviews(
        query.index,
        call.principal,
        scope=query.scope(),
        status=query.status,
        limit=query.limit,
        cursor=query.cursor,
    )


@routes.post("/v1/reviews/{id}", errors=("not_found", "conflict", "blocked"))
def decide_review(call: Call, id: str, body: ReviewRequest) -> Receipt:
    """Decide: accept, reject, edit, merge, ask, or undo the last decision. For people, and services that review."""
    return call.operations.review(id, body, call.principal)
