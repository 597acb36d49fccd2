"""Every error a caller can meet, as one tree.

Each class has the stable `code` that REST, MCP and the CLI show. `field` names the argument at fault, `details`
holds what a program may act on.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

__all__ = [
    "Blocked",
    "Conflict",
    "Corrupt",
    "Forbidden",
    "Internal",
    "Invalid",
    "KektorError",
    "Locked",
    "NewerFormat",
    "NotFound",
    "RateLimited",
    "TooLarge",
    "Unauthenticated",
    "Unavailable",
]


class KektorError(Exception):
    """The root: `except kektor.KektorError` catches all that Kektor raises on purpose.

    >>> error = Invalid("k must be 1 to 1,000, not 0", field="k")
    >>> error.code, error.field, str(error)
    ('invalid', 'k', 'k must be 1 to 1,000, not 0')
    """

    code: ClassVar[str] = "internal"
    audited = False
    """Whether the audit holds this refusal already."""

    def __init__(self, message: str, *, field: str | None = None, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
        self.details: dict[str, Any] = dict(details or {})

    def as_dict(self) -> dict[str, Any]:
        """The error object every door answers with."""
        return {
            "error": {
                "code": self.code,
                "message": self.message,
                "field": self.field,
                "details": self.details,
            }
        }


class Invalid(KektorError):
    """The request itself is wrong; the message says where and how."""

    code = "invalid"


class Unauthenticated(KektorError):
    """No token, or one that cannot be trusted."""

    code = "unauthenticated"


class Forbidden(KektorError):
    """The caller is known and may not do this."""

    code = "forbidden"


class NotFound(KektorError):
    """Nothing of that name is visible to the caller."""

    code = "not_found"


class Conflict(KektorError):
    """The state has moved on, or what was given is taken."""

    code = "conflict"


class Blocked(KektorError):
    """A tombstone, an erasure or a policy forbids storing this; `details` names it."""

    code = "blocked"


class TooLarge(KektorError):
    """More than a limit allows; the message names the limit."""

    code = "too_large"


class RateLimited(KektorError):
    """Too many requests; `details["retry_after"]` is in seconds."""

    code = "rate_limited"


class Unavailable(KektorError):
    """Not now: read-only after a failed disk, closing, or waiting for something that did not come."""

    code = "unavailable"


class Locked(Unavailable):
    """Another process owns the data directory; the message names it and `kektor.connect()`."""


class NewerFormat(Unavailable):
    """The data was written by a later version of Kektor; the message names the file. Nothing was changed."""


class Corrupt(KektorError):
    """Bytes on disk are damaged; the message names the file and what is lost."""

    code = "corrupt"


class Internal(KektorError):
    """A defect of ours: an invariant did not hold."""

    code = "internal"
