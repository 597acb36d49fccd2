"""Errors as the command line shows them, and the exit code of each."""

from typing import Any

__all__ = ["OK", "TROUBLE", "UNABLE", "Fault", "exit_code"]

OK, TROUBLE, UNABLE = 0, 1, 2
"""Done; looked and found trouble, or refused; used wrongly, or unable to look."""

_TROUBLE = frozenset({"blocked", "conflict", "not_found", "forbidden"})


class Fault(Exception):
    """The error object of any door, as an exception."""

    def __init__(
        self, message: str, code: str = "invalid", field: str | None = None, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.field = field
        self.details = details or {}

    @classmethod
    def of(cls, error: dict[str, Any]) -> "Fault":
        """From the value under `error` of an answer."""
        return cls(error["message"], error["code"], error.get("field"), error.get("details"))

    def as_dict(self) -> dict[str, Any]:
        """The error object."""
        return {"error": {"code": self.code, "message": self.message, "field": self.field, "details": self.details}}


def exit_code(code: str) -> int:
    """What a command ends with after an error."""
    return TROUBLE if code in _TROUBLE else UNABLE
