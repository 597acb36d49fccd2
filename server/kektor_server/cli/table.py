"""What a target can do: one operation a line, with the route that does it over HTTP."""

from typing import NamedTuple

__all__ = ["OPERATIONS", "Operation"]


class Operation(NamedTuple):
    """A route; `{id}` stands in its path for what the operation is about. Fields go into the body, or the query."""

    method: str
    path: str


OPERATIONS = {
    "remember": Operation("POST", "/v1/memories"),
    "recall": Operation("POST", "/v1/recall"),
    "get": Operation("GET", "/v1/memories/{id}"),
    "list": Operation("GET", "/v1/memories"),
    "history": Operation("GET", "/v1/memories/{id}/history"),
    "evolve": Operation("POST", "/v1/memories/{id}/evolve"),
    "correct": Operation("POST", "/v1/memories/{id}/correct"),
    "retract": Operation("POST", "/v1/memories/{id}/retract"),
    "forget": Operation("POST", "/v1/forget"),
    "reviews": Operation("GET", "/v1/reviews"),
    "review": Operation("POST", "/v1/reviews/{id}"),
    "tombstones": Operation("GET", "/v1/tombstones"),
    "lift": Operation("DELETE", "/v1/tombstones/{id}"),
    "audit": Operation("GET", "/v1/audit"),
    "verify_audit": Operation("POST", "/v1/audit/verify"),
    "compact": Operation("POST", "/v1/admin/compact"),
    "ingest_messages": Operation("POST", "/v1/ingest/messages"),
}
