"""Errors on the wire: one object, and the status that its code has."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from kektor.errors import Internal, KektorError

__all__ = ["STATUS", "ErrorAnswer", "ErrorBody", "MethodNotAllowed", "encode_error", "error_headers", "status_of"]

STATUS: Final[Mapping[str, int]] = {
    "invalid": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "conflict": 409,
    "blocked": 409,
    "too_large": 413,
    "rate_limited": 429,
    "unavailable": 503,
    "corrupt": 500,
    "internal": 500,
}


class ErrorBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What went wrong, the argument at fault when there is one, and what a program may act on."""

    code: str
    message: str
    field: str | None
    details: dict[str, Any]


class ErrorAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """Every answer that is no success."""

    error: ErrorBody


class MethodNotAllowed(KektorError):
    """The path is known, the method is not one of its own."""

    code = "invalid"

    def __init__(self, method: str, allowed: list[str]) -> None:
        listed = ", ".join(allowed)
        super().__init__(f"{method} is no method of this path; it takes {listed}", details={"allowed": allowed})
        self.allowed = listed


def status_of(error: KektorError) -> int:
    """The HTTP status of an error: always that of its code, but for a wrong method."""
    return 405 if isinstance(error, MethodNotAllowed) else STATUS[error.code]


def error_headers(error: KektorError) -> list[tuple[bytes, bytes]]:
    """Headers that HTTP gives a meaning of their own: Allow, Retry-After, WWW-Authenticate."""
    if isinstance(error, MethodNotAllowed):
        return [(b"allow", error.allowed.encode())]
    if error.code in ("unavailable", "rate_limited"):
        return [(b"retry-after", str(error.details.get("retry_after", 1)).encode())]
    if error.code == "unauthenticated":
        where = error.details.get("resource_metadata")
        return [(b"www-authenticate", b"Bearer" if where is None else f'Bearer resource_metadata="{where}"'.encode())]
    return []


def encode_error(error: KektorError, request_id: str) -> bytes:
    """The error object; of a defect of ours it says no more than where the log tells it."""
    if isinstance(error, Internal):
        hidden = f"an internal error; the server's log has it under request {request_id}"
        return _ENCODER.encode(ErrorAnswer(ErrorBody("internal", hidden, None, {"request_id": request_id})))
    body = ErrorBody(error.code, _unicode(error.message), error.field and _unicode(error.field), error.details)
    try:
        return _ENCODER.encode(ErrorAnswer(body))
    except UnicodeEncodeError:
        return _ENCODER.encode(ErrorAnswer(msgspec.structs.replace(body, details={})))


def _unicode(text: str) -> str:
    """Messages quote what the caller sent, which may hold half of a surrogate pair."""
    return text.encode("utf-8", "backslashreplace").decode()


_ENCODER: Final = msgspec.json.Encoder(enc_hook=str)
