"""What a target can do: one operation a line, with the route that does it over HTTP."""

from typing import NamedTuple

__all__ = ["OPERATIONS", "Operation"]


class Operation(NamedTuple):
    """A route; `{id}` stands in its path for what the operation is about, `{index}` for the field of that name.

    The other fields go into the query of a GET or DELETE, unless that has a body, and else into the body.
    """

    method: str
    path: str
    body: bool = False


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
    "sessions": Operation("GET", "/v1/sessions"),
    "start_session": Operation("POST", "/v1/sessions"),
    "end_session": Operation("POST", "/v1/sessions/{id}/end"),
    **{
        verb: Operation("POST", f"/v1/memories/{{id}}/{verb}")
        for verb in ("archive", "restore", "pin", "unpin", "confirm", "share")
    },
    "update": Operation("PATCH", "/v1/memories/{id}"),
    "evidence": Operation("GET", "/v1/memories/{id}/evidence"),
    "link": Operation("POST", "/v1/indexes/{index}/edges"),
    "unlink": Operation("DELETE", "/v1/indexes/{index}/edges", body=True),
    "edges": Operation("GET", "/v1/indexes/{index}/nodes/{id}/edges"),
    "path": Operation("POST", "/v1/indexes/{index}/graph/path"),
    "create_index": Operation("POST", "/v1/indexes"),
    "list_indexes": Operation("GET", "/v1/indexes"),
    "get_index": Operation("GET", "/v1/indexes/{id}"),
    "index_stats": Operation("GET", "/v1/indexes/{id}/stats"),
    "configure_index": Operation("PATCH", "/v1/indexes/{id}"),
    "drop_index": Operation("DELETE", "/v1/indexes/{id}"),
    "reviews": Operation("GET", "/v1/reviews"),
    "review": Operation("POST", "/v1/reviews/{id}"),
    "tombstones": Operation("GET", "/v1/tombstones"),
    "lift": Operation("DELETE", "/v1/tombstones/{id}"),
    "audit": Operation("GET", "/v1/audit"),
    "verify_audit": Operation("POST", "/v1/audit/verify"),
    "compact": Operation("POST", "/v1/admin/compact"),
    "ingest_messages": Operation("POST", "/v1/ingest/messages"),
    "token_create": Operation("POST", "/v1/tokens"),
    "token_list": Operation("GET", "/v1/tokens"),
    "token_revoke": Operation("DELETE", "/v1/tokens/{id}"),
    "keys_rotate": Operation("POST", "/v1/admin/keys/rotate"),
}
