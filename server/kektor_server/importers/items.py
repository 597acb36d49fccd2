"""What a reader finds in a file: statements, changes of them, links between them, and conversations."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

__all__ = ["Change", "Conversation", "Item", "Left", "Link", "Reader", "Statement", "Unreadable"]


class Unreadable(Exception):
    """A file that is not of the format; the message says where and what was expected."""


@dataclass(frozen=True)
class Statement:
    """One memory. `key` tells it from all others of its source, for ever, so that it is imported once."""

    key: str
    text: str
    fields: dict[str, Any] = field(default_factory=dict)
    """Further fields of a remember request."""
    scope: dict[str, str] = field(default_factory=dict)
    """Whose it is there; the flags of the command count before it."""


@dataclass(frozen=True)
class Change:
    """What happened to a statement later: `text` is its new wording, None when it was deleted."""

    key: str
    of: str
    text: str | None
    at: str | None = None


@dataclass(frozen=True)
class Link:
    """A relation between two statements by their keys."""

    src: str
    rel: str
    dst: str


@dataclass(frozen=True)
class Conversation:
    """Messages as they were said."""

    session: str
    title: str
    messages: list[dict[str, Any]]


@dataclass(frozen=True)
class Left:
    """Something that is not imported, and why."""

    where: str
    why: str


Item = Statement | Change | Link | Conversation | Left


class Reader(Protocol):
    """A format: its items in an order in which they can be stored. Raises Unreadable before the first item."""

    def __call__(self, path: Path) -> Iterator[Item]: ...
