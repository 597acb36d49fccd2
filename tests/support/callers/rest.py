"""REST over a socket."""

import json
from typing import Any

import httpx

from tests.support.callers.door import Operation, Pending, Refused, Who
from tests.support.callers.server import ServerMachine

__all__ = ["ROUTES", "RestDoor"]

ROUTES: dict[Operation, tuple[str, str]] = {
    "remember": ("POST", "/v1/memories"),
    "recall": ("POST", "/v1/recall"),
    "get": ("GET", "/v1/memories/{id}"),
    "list": ("GET", "/v1/memories"),
    "history": ("GET", "/v1/memories/{id}/history"),
    "evidence": ("GET", "/v1/memories/{id}/evidence"),
    "evolve": ("POST", "/v1/memories/{id}/evolve"),
    "correct": ("POST", "/v1/memories/{id}/correct"),
    "retract": ("POST", "/v1/memories/{id}/retract"),
    "archive": ("POST", "/v1/memories/{id}/archive"),
    "restore": ("POST", "/v1/memories/{id}/restore"),
    "pin": ("POST", "/v1/memories/{id}/pin"),
    "unpin": ("POST", "/v1/memories/{id}/unpin"),
    "update": ("PATCH", "/v1/memories/{id}"),
    "delete_memory": ("DELETE", "/v1/memories/{id}"),
    "dismiss": ("POST", "/v1/memories/{id}/dismiss"),
    "confirm": ("POST", "/v1/memories/{id}/confirm"),
    "reinforce": ("POST", "/v1/memories/{id}/reinforce"),
    "forget": ("POST", "/v1/forget"),
    "ingest": ("POST", "/v1/ingest/messages"),
    "link": ("POST", "/v1/indexes/{index}/edges"),
    "unlink": ("DELETE", "/v1/indexes/{index}/edges"),
    "edges": ("GET", "/v1/indexes/{index}/nodes/{id}/edges"),
    "traverse": ("POST", "/v1/indexes/{index}/graph/traverse"),
    "path": ("POST", "/v1/indexes/{index}/graph/path"),
    "subgraph": ("POST", "/v1/indexes/{index}/graph/subgraph"),
    "neighbours": ("GET", "/v1/indexes/{index}/nodes/{id}/neighbours"),
    "analyse": ("POST", "/v1/indexes/{index}/graph/analyse"),
    "upsert": ("POST", "/v1/indexes/{index}/nodes"),
    "node": ("GET", "/v1/indexes/{index}/nodes/{id}"),
    "nodes": ("POST", "/v1/indexes/{index}/nodes/query"),
    "patch": ("PATCH", "/v1/indexes/{index}/nodes/{id}"),
    "delete": ("DELETE", "/v1/indexes/{index}/nodes/{id}"),
    "search": ("POST", "/v1/indexes/{index}/search"),
    "search_batch": ("POST", "/v1/indexes/{index}/search/batch"),
    "indexes": ("GET", "/v1/indexes"),
    "create_index": ("POST", "/v1/indexes"),
    "configure_index": ("PATCH", "/v1/indexes/{index}"),
    "drop_index": ("DELETE", "/v1/indexes/{index}"),
    "kv_get": ("GET", "/v1/kv/{key}"),
    "kv_put": ("PUT", "/v1/kv/{key}"),
    "kv_delete": ("DELETE", "/v1/kv/{key}"),
    "share": ("POST", "/v1/memories/{id}/share"),
    "start_session": ("POST", "/v1/sessions"),
    "end_session": ("POST", "/v1/sessions/{id}/end"),
    "sessions": ("GET", "/v1/sessions"),
    "sources": ("GET", "/v1/sources"),
    "reviews": ("GET", "/v1/reviews"),
    "review": ("POST", "/v1/reviews/{id}"),
    "tombstones": ("GET", "/v1/tombstones"),
    "lift": ("DELETE", "/v1/tombstones/{id}"),
    "erasures": ("GET", "/v1/erasures"),
    "erasure": ("GET", "/v1/erasures/{id}"),
    "jwks": ("GET", "/.well-known/jwks.json"),
    "stats": ("GET", "/v1/indexes/{index}/stats"),
}

_STATUS = {
    "invalid": 400, "unauthenticated": 401, "forbidden": 403, "not_found": 404, "conflict": 409, "blocked": 409,
    "too_large": 413, "unavailable": 503, "corrupt": 500, "internal": 500,
}  # fmt: skip

_WITH_BODY = ("POST", "PATCH", "PUT")


class RestDoor:
    """The server of a machine over TCP. Every refusal must have the status of its code."""

    name = "rest"

    def __init__(self, machine: ServerMachine) -> None:
        self.machine = machine

    def operator(self) -> "RestDoor":
        return self

    def restart(self) -> None:
        self.machine.restart()

    def settle(self) -> None:
        self.machine.settle()

    def log_folder(self) -> str:
        return str(self.machine.data / "log")

    def call(self, who: Who, operation: Operation, about: str | None, fields: dict[str, Any]) -> Any:
        if operation not in ROUTES:
            raise Pending(f"no route: {operation}")
        answer = self._send(self.machine.headers(who), operation, about, dict(fields))
        body = answer.json() if answer.content else {}
        if answer.status_code < 400:
            return body
        assert answer.status_code == _STATUS[body["error"]["code"]], answer.text
        raise Refused(body["error"])

    def _send(
        self, headers: dict[str, str], operation: Operation, about: str | None, fields: dict[str, Any]
    ) -> httpx.Response:
        method, path = ROUTES[operation]
        if "{index}" in path:
            path = path.replace("{index}", fields.pop("index"))
        elif operation == "create_index":
            fields["name"] = fields.pop("index")
        elif operation in ("indexes", "erasures", "erasure", "jwks"):
            fields.pop("index")
        if about is not None:
            encoded = httpx.URL(path="/" + about).raw_path.decode()[1:]
            path = path.replace("{id}", encoded).replace("{key}", encoded)
        content, query = None, {}
        if method in _WITH_BODY or operation == "unlink":
            # Not through httpx: texts may hold what its own encoder would refuse before the server sees it.
            content = json.dumps(fields).encode()
            headers = {**headers, "content-type": "application/json"}
        else:
            if key := fields.pop("idempotency_key", None):
                headers = {**headers, "idempotency-key": key}
            query = _query(fields)
        return self.machine.http.request(method, path, content=content, params=query, headers=headers)


def _query(fields: dict[str, Any]) -> dict[str, Any]:
    """A query string: scopes flat, the JSON form of a filter as text."""
    flat = {**fields, **(fields.pop("scope", None) or {})}
    flat.pop("scope", None)
    if isinstance(flat.get("filter"), dict):
        flat["filter"] = json.dumps(flat["filter"])
    return {name: value for name, value in flat.items() if value is not None}
