"""Declaring a route: one decorator over a function of plain structs, from which all the rest follows.

    @routes.post("/v1/memories/{id}/evolve", errors=("not_found", "conflict"))
    def evolve(call: Call, id: str, body: EvolveRequest) -> Receipt:
        '''The world changed.'''
        return call.operations.evolve(id, body, call.principal)

The signature says what is decoded: the names in braces from the path, `query` from the query string, `body` from the
body, each into its struct or refused; the return type is what is encoded. The OpenAPI document is made of the same
declarations.
"""

import inspect
import re
from collections.abc import AsyncIterator, Callable, Iterator
from enum import Enum
from typing import Any, Final, Literal, NamedTuple, TypeVar, get_type_hints

import msgspec

from kektor.engine.gateway import Principal
from kektor.engine.records import Receipt
from kektor.errors import Invalid
from kektor.operations import Operations
from kektor_server.rest.body import JSON, MSGPACK, BodyReader, wants_msgpack
from kektor_server.rest.compress import compressed
from kektor_server.rest.principal import Headers
from kektor_server.rest.query import NoQuery, QueryReader
from kektor_server.rest.service import Service
from kektor_server.settings import Settings

__all__ = ["Call", "Code", "Lane", "Reply", "Route", "Routes", "Streamed", "is_new"]

Code = Literal["not_found", "conflict", "blocked"]
"""Errors of a route's own; the others may come from any."""

F = TypeVar("F", bound=Callable[..., Any])


class Lane(Enum):
    """Where a route's function runs: what neither waits nor computes on the event loop, the rest in threads."""

    LOOP = "loop"
    READ = "read"
    WRITE = "write"


class Call:
    """Who calls, and what the caller may use."""

    __slots__ = ("headers", "idempotency_key", "if_match", "principal", "service")

    def __init__(
        self,
        service: Service,
        principal: Principal,
        headers: Headers,
        idempotency_key: str | None,
        if_match: str | None,
    ) -> None:
        self.service = service
        self.principal = principal
        self.headers = headers
        self.idempotency_key = idempotency_key
        self.if_match = if_match

    @property
    def operations(self) -> Operations:
        return self.service.operations

    @property
    def settings(self) -> Settings:
        return self.service.settings


class Reply(msgspec.Struct, frozen=True):
    """An answer as it goes out."""

    status: int
    content_type: bytes
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Streamed(NamedTuple):
    """An answer that goes out in parts, as they come to be. Its route says the type with `media`."""

    parts: AsyncIterator[bytes]


def is_new(receipt: Receipt) -> bool:
    """Whether a save made something: all of it was stored, and not all of it was there."""
    blocked = any(item.outcome == "blocked" for item in receipt.items or ())
    return receipt.outcome not in ("duplicate", "updated") and not blocked


class Route:
    """One method of one path."""

    def __init__(
        self,
        method: str,
        path: str,
        run: Callable[..., Any],
        *,
        tag: str,
        lane: Lane,
        errors: tuple[Code, ...],
        creates: Callable[[Any], bool] | bool,
        formats: tuple[str, ...],
        keyed: bool,
        conditional: bool,
        etag: Callable[[Any], str] | None,
        media: str | None,
        public: bool,
    ) -> None:
        self.method, self.path, self.run, self.tag, self.lane = method, path, run, tag, lane
        self.public = public
        self.errors, self.creates, self.formats = errors, creates, formats
        self.name = run.__name__
        self.about = inspect.getdoc(run) or ""
        self.placeholders = tuple(_PLACEHOLDER.findall(path))
        hints = get_type_hints(run)
        self.answer = hints["return"]
        self.query: QueryReader[Any] = QueryReader(hints.get("query", NoQuery))
        self.body = BodyReader(hints["body"], formats=formats) if "body" in hints else None
        self.keyed = keyed or (self.body is not None and "idempotency_key" in self.body.kind.__struct_fields__)
        """Whether a repeat under the same Idempotency-Key answers as the first did."""
        self.conditional = conditional or (self.body is not None and "if_match" in self.body.kind.__struct_fields__)
        """Whether If-Match is kept."""
        self.etag = etag
        self.media = media
        _check_signature(self, tuple(inspect.signature(run).parameters))
        self._takes_query = "query" in hints

    def reply(
        self, service: Service, principal: Principal, headers: Headers, path: list[str], query: Any, parts: list[bytes]
    ) -> Reply | Streamed:
        """Decode, call the one operation, encode."""
        body = b"".join(parts)
        key = _idempotency_key(headers) if self.keyed else None
        if_match = self._if_match(headers)
        values: list[Any] = [*path]
        if self._takes_query:
            values.append(query)
        if self.body is not None:
            values.append(self._decoded(body, headers, key, if_match))
        elif body not in (b"", b"{}"):
            raise Invalid(f"{self.method} {self.path} takes no body")
        result = self.run(Call(service, principal, headers, key, if_match), *values)
        if isinstance(result, Streamed | Reply):
            return result
        status = 201 if (self.creates if isinstance(self.creates, bool) else self.creates(result)) else 200
        if MSGPACK in self.formats and wants_msgpack(headers):
            return _packed(status, MSGPACK, _MSGPACK_ENCODER.encode(result), headers)
        tag = () if self.etag is None else ((b"etag", f'"{self.etag(result)}"'.encode()),)
        return _packed(status, JSON, _JSON_ENCODER.encode(result), headers, *tag)

    def _if_match(self, headers: Headers) -> str | None:
        raw = headers.get(b"if-match")
        if raw is None:
            return None
        if not self.conditional:
            raise Invalid("this route takes no If-Match: nothing of it is conditional", field="if_match")
        found = _ETAG.fullmatch(raw)
        if found is None:
            raise Invalid('the header If-Match is one strong ETag, in quotes as it was given, or "*"', field="if_match")
        return (found[1] or found[0]).decode("ascii")

    def _decoded(self, body: bytes, headers: Headers, key: str | None, if_match: str | None) -> Any:
        assert self.body is not None
        decoded: Any = self.body.read(body, headers)
        if key is not None:
            if decoded.idempotency_key not in (None, key):
                raise Invalid(
                    f"the header Idempotency-Key is {key!r} and the body says {decoded.idempotency_key!r}",
                    field="idempotency_key",
                )
            decoded.idempotency_key = key
        if if_match is not None:
            if decoded.if_match not in (None, if_match):
                raise Invalid(
                    f"the header If-Match is {if_match!r} and the body says {decoded.if_match!r}", field="if_match"
                )
            decoded.if_match = if_match
        return decoded


class Routes:
    """The routes of one part of the interface, in the order declared."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self._routes: list[Route] = []

    def __iter__(self) -> Iterator[Route]:
        return iter(self._routes)

    def get(self, path: str, **options: Any) -> Callable[[F], F]:
        """Options as of `add`."""
        return self.add("GET", path, **{"lane": Lane.READ, **options})

    def post(self, path: str, **options: Any) -> Callable[[F], F]:
        return self.add("POST", path, **options)

    def put(self, path: str, **options: Any) -> Callable[[F], F]:
        return self.add("PUT", path, **options)

    def patch(self, path: str, **options: Any) -> Callable[[F], F]:
        return self.add("PATCH", path, **options)

    def delete(self, path: str, **options: Any) -> Callable[[F], F]:
        return self.add("DELETE", path, **options)

    def add(
        self,
        method: str,
        path: str,
        *,
        lane: Lane = Lane.WRITE,
        errors: tuple[Code, ...] = (),
        creates: Callable[[Any], bool] | bool = False,
        formats: tuple[str, ...] = (JSON,),
        keyed: bool = False,
        conditional: bool = False,
        etag: Callable[[Any], str] | None = None,
        media: str | None = None,
        public: bool = False,
    ) -> Callable[[F], F]:
        """`creates` says when the answer is 201; `keyed` and `conditional` that the function itself uses
        `call.idempotency_key` and `call.if_match`; `etag` tells the ETag of an answer; `media` is the type of one
        that is no object; `public` says that it answers callers who cannot be told, too."""

        def declare(run: F) -> F:
            self._routes.append(
                Route(
                    method,
                    path,
                    run,
                    tag=self.tag,
                    lane=lane,
                    errors=errors,
                    creates=creates,
                    formats=formats,
                    keyed=keyed,
                    conditional=conditional,
                    etag=etag,
                    media=media,
                    public=public,
                )
            )
            return run

        return declare


def _packed(status: int, media: str, body: bytes, asked: Headers, *headers: tuple[bytes, bytes]) -> Reply:
    body, encoding = compressed(body, asked)
    if encoding is not None:
        headers = (*headers, (b"content-encoding", encoding))
    return Reply(status, media.encode(), body, (*headers, (b"vary", b"accept-encoding")))


def _check_signature(route: Route, parameters: tuple[str, ...]) -> None:
    """`call`, then the placeholders of the path in their order, then `query` and `body` when they are used."""
    rest = [name for name in ("query", "body") if name in parameters]
    expected = (*route.placeholders, *rest)
    if parameters[1:] != expected:
        raise TypeError(f"{route.name} must take (call, {', '.join(expected)}), not ({', '.join(parameters)})")


def _idempotency_key(headers: Headers) -> str | None:
    raw = headers.get(b"idempotency-key")
    if raw is None:
        return None
    if not _KEY.fullmatch(raw):
        raise Invalid("the header Idempotency-Key must be 1 to 256 visible ASCII characters", field="idempotency_key")
    return raw.decode("ascii")


_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")
_KEY: Final = re.compile(rb"[\x20-\x7e]{1,256}")
_ETAG: Final = re.compile(rb'"([\x21\x23-\x7e]{1,128})"|\*')
_JSON_ENCODER: Final = msgspec.json.Encoder()
_MSGPACK_ENCODER: Final = msgspec.msgpack.Encoder()
