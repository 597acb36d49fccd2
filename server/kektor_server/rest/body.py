"""Bodies: received within the limits, then decoded strictly into the struct of their route."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, Generic, TypeVar

import msgspec

from kektor.contract import decode_json, decode_msgpack
from kektor.errors import Invalid, TooLarge, Unavailable
from kektor_server.rest.principal import Headers

__all__ = ["JSON", "MSGPACK", "BodyReader", "ClientGone", "Intake", "wants_msgpack"]

B = TypeVar("B", bound=msgspec.Struct)
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

JSON: Final = "application/json"
MSGPACK: Final = "application/x-msgpack"
_MSGPACK_NAMES: Final = frozenset({MSGPACK, "application/msgpack", "application/vnd.msgpack"})


class ClientGone(Exception):
    """The connection ended before the request had arrived."""


class Intake:
    """Takes bodies in, each within a limit and all unfinished ones together within another."""

    def __init__(self, *, body_bytes: int, buffered_bytes: int) -> None:
        self.body_bytes = body_bytes
        self.buffered_bytes = buffered_bytes
        self.held = 0

    async def read(self, receive: Receive, headers: Headers) -> list[bytes]:
        """The whole body, in the parts in which it came: joining a large one is no work for the event loop.

        Its size counts as held until `release`, which the caller owes for what it got.
        Raises TooLarge while it is still arriving, whether or not its length was declared, Unavailable when the
        server holds too much already, and ClientGone.
        """
        declared = headers.get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > self.body_bytes:
            raise self._too_large()
        parts: list[bytes] = []
        size = 0
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                part = message.get("body", b"")
                size += len(part)
                self.held += len(part)
                if size > self.body_bytes:
                    raise self._too_large()
                if self.held > self.buffered_bytes:
                    raise Unavailable("too many large requests at once; come back in a second")
                parts.append(part)
                if not message.get("more_body", False):
                    return parts
        except BaseException:
            self.held -= size
            raise

    def release(self, parts: list[bytes]) -> None:
        self.held -= sum(map(len, parts))

    def _too_large(self) -> TooLarge:
        return TooLarge(
            f"the body is larger than {self.body_bytes:,} bytes; send it in parts",
            details={"limit": self.body_bytes},
        )


class BodyReader(Generic[B]):
    """Decodes the bodies of one route; an empty body stands for a struct all of whose fields have defaults."""

    def __init__(self, kind: type[B], *, formats: tuple[str, ...] = (JSON,)) -> None:
        self.kind = kind
        self.formats = formats
        self.optional = not any(part.required for part in msgspec.structs.fields(kind))
        self._json = msgspec.json.Decoder(kind)
        self._msgpack = msgspec.msgpack.Decoder(kind)

    def read(self, body: bytes, headers: Headers) -> B:
        """Invalid says what is wrong: the type or the encoding declared, the syntax, or a field by name."""
        if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
            raise Invalid("the body is compressed, which this route does not take: send it as it is")
        if not body:
            if self.optional:
                return self.kind()
            raise Invalid("the body is empty: this route takes a JSON object")
        if self._format(headers) == MSGPACK:
            return decode_msgpack(self._msgpack, body)
        return decode_json(self._json, body)

    def _format(self, headers: Headers) -> str:
        """JSON when nothing is declared."""
        declared = headers.get(b"content-type")
        if declared is None or declared == b"application/json":
            return JSON
        kind, _, parameters = declared.decode("latin-1").lower().partition(";")
        kind = kind.strip()
        if kind in _MSGPACK_NAMES and MSGPACK in self.formats:
            return MSGPACK
        if kind != JSON:
            raise Invalid(f"the content type is {kind!r}; this route takes {' or '.join(self.formats)}")
        charset = parameters.partition("charset=")[2].strip().strip('"')
        if charset and charset not in ("utf-8", "utf8"):
            raise Invalid(f"the charset is {charset!r}; JSON is UTF-8")
        return JSON


def wants_msgpack(headers: Headers) -> bool:
    """Whether the answer is to be MessagePack: as the Accept header says, else as the request came."""
    accept = headers.get(b"accept", b"*/*").decode("latin-1").lower()
    if any(name in accept for name in _MSGPACK_NAMES):
        return True
    if JSON in accept:
        return False
    declared = headers.get(b"content-type", b"").decode("latin-1").lower().partition(";")[0].strip()
    return declared in _MSGPACK_NAMES
