"""The contract as an OpenAPI 3.1 document, made of the declared routes and their structs."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import fields

from kektor_server.rest.errors import STATUS, ErrorAnswer
from kektor_server.rest.route import Route

__all__ = ["document"]

_REF: Final = "#/components/schemas/{name}"


def document(routes: Iterable[Route], *, version: str, authenticated: bool = False) -> dict[str, Any]:
    """All routes with their parameters, bodies, answers and errors.

    `authenticated` adds the bearer scheme and 401.
    """
    listed = list(routes)
    schemas = _Schemas(listed)
    paths: dict[str, dict[str, Any]] = {}
    for route in listed:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas, authenticated)
    described: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Kektor",
            "version": version,
            "description": "A vector-plus-graph memory database for AI agents.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "tags": [{"name": tag} for tag in dict.fromkeys(route.tag for route in listed)],
        "paths": paths,
        "components": {"schemas": schemas.components},
    }
    if authenticated:
        described["components"]["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
        }
        described["security"] = [{"bearer": []}]
    return described


class _Schemas:
    """JSON schemas of every struct of every route, each once."""

    def __init__(self, routes: list[Route]) -> None:
        kinds: list[Any] = [ErrorAnswer]
        for route in routes:
            kinds += [*([] if route.media else [route.answer]), *([] if route.body is None else [route.body.kind])]
        found, self.components = msgspec.json.schema_components(kinds, ref_template=_REF)
        self._of = dict(zip(kinds, found, strict=True))

    def of(self, kind: Any) -> Any:
        return self._of[kind]


def _operation(route: Route, schemas: _Schemas, authenticated: bool) -> dict[str, Any]:
    summary, _, rest = route.about.partition("\n")
    operation: dict[str, Any] = {
        "operationId": route.name,
        "tags": [route.tag],
        "summary": summary.strip(),
        "parameters": [*_path_parameters(route), *_query_parameters(route), *_header_parameters(route)],
        "responses": _responses(route, schemas, authenticated),
    }
    if rest.strip():
        operation["description"] = rest.strip()
    if route.public and authenticated:
        operation["security"] = []
    if route.body is not None:
        schema = schemas.of(route.body.kind)
        operation["requestBody"] = {
            "required": not route.body.optional,
            "content": {media: {"schema": schema} for media in route.formats},
        }
    return operation


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", **_PLACES.get(name, {})}}
        for name in route.placeholders
    ]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    kind = route.query.kind
    _, components = msgspec.json.schema_components([kind], ref_template="{name}")
    properties = components[kind.__name__]["properties"]
    return [
        {
            "name": part.encode_name,
            "in": "query",
            "required": part.required,
            "schema": properties[part.encode_name],
            **({"style": "form", "explode": True} if part.name in route.query.lists else {}),
        }
        for part in fields(kind)
    ]


def _header_parameters(route: Route) -> list[dict[str, Any]]:
    parameters = []
    if route.conditional:
        told = "The ETag as it was read: the change is a conflict when there is another by now."
        parameters.append(
            {
                "name": "If-Match",
                "in": "header",
                "required": False,
                "description": told,
                "schema": {"type": "string", "maxLength": 130},
            }
        )
    if not route.keyed:
        return parameters
    about = "A repeat of the same request under the same key answers as the first did and changes nothing."
    schema = {"type": "string", "minLength": 1, "maxLength": 256}
    keyed = {"name": "Idempotency-Key", "in": "header", "required": False, "description": about, "schema": schema}
    return [keyed, *parameters]


def _responses(route: Route, schemas: _Schemas, authenticated: bool) -> dict[str, Any]:
    statuses = {True: [201], False: [200]}[route.creates] if isinstance(route.creates, bool) else [200, 201]
    if route.media:
        success: dict[str, Any] = {route.media: {"schema": {"type": "string"}}}
    else:
        success = {media: {"schema": schemas.of(route.answer)} for media in route.formats}
    headers = _HEADERS if route.etag is None else {**_HEADERS, **_TAGGED}
    described: dict[str, Any] = {
        str(status): {"description": _DESCRIPTIONS[status], "headers": headers, "content": success}
        for status in statuses
    }
    error = {"application/json": {"schema": schemas.of(ErrorAnswer)}}
    for status, codes in sorted(_errors(route, authenticated).items()):
        described[str(status)] = {
            "description": f"{_DESCRIPTIONS[status]} ({', '.join(codes)})",
            "headers": {**_HEADERS, **_ERROR_HEADERS.get(status, {})},
            "content": error,
        }
    return described


def _errors(route: Route, authenticated: bool) -> Mapping[int, list[str]]:
    """By status, the codes that this route may answer with."""
    codes = ["invalid", "forbidden", "unavailable", "internal", "corrupt", *route.errors]
    if not route.public:
        codes.append("rate_limited")
        if authenticated:
            codes.append("unauthenticated")
    if route.body is not None:
        codes.append("too_large")
    if route.keyed:
        codes.append("conflict")
    by_status: dict[int, list[str]] = {}
    for code in dict.fromkeys(codes):
        by_status.setdefault(STATUS[code], []).append(code)
    return by_status


_PLACES: Final[Mapping[str, dict[str, Any]]] = {
    "index": {"pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"},
    "id": {"minLength": 1, "maxLength": 256},
    "key": {"minLength": 1, "maxLength": 256},
}
_DESCRIPTIONS: Final[Mapping[int, str]] = {
    200: "Done.",
    201: "Created.",
    400: "The request itself is wrong; `field` names the argument at fault.",
    401: "No token, or one that cannot be trusted.",
    403: "The caller may not do this.",
    404: "Nothing of that name is visible to the caller.",
    409: "The state does not allow it.",
    413: "Larger than a limit allows.",
    429: "Too many requests.",
    500: "A defect, or damage on disk.",
    503: "Not now.",
}
_HEADERS: Final[dict[str, Any]] = {
    "X-Request-Id": {"description": "The caller's own, or a new one.", "schema": {"type": "string"}}
}
_TAGGED: Final[dict[str, Any]] = {
    "ETag": {"description": "What was answered, as If-Match takes it.", "schema": {"type": "string"}}
}
_ERROR_HEADERS: Final[Mapping[int, dict[str, Any]]] = {
    429: {"Retry-After": {"description": "Seconds.", "schema": {"type": "string"}}},
    503: {"Retry-After": {"description": "Seconds.", "schema": {"type": "string"}}},
}
