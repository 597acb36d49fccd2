"""What a tool is, and the list of all of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from kektor.engine.gateway import Principal
from kektor.errors import Invalid
from kektor.operations import Operations
from kektor_server.mcp.schema import Schema, record

__all__ = ["Cancelled", "Progress", "Registry", "Tool", "ToolCall", "ToolResult", "nobody_watches"]

Progress = Callable[[int, int, str], None]
"""Steps done, steps in all, what is being done."""


class Cancelled(Exception):
    """Nobody waits for this call any more: what it has done stands, the rest is left."""


def nobody_watches(_done: int, _total: int, _what: str) -> None:
    """The progress of a call that nobody asked to be told of."""


@dataclass(frozen=True)
class ToolCall:
    """Who calls, on what, with what. `index` is where the call goes when its arguments name none."""

    operations: Operations
    principal: Principal
    index: str
    key: str
    arguments: dict[str, Any]
    progress: Progress = nobody_watches
    cancelled: Callable[[], bool] = bool
    keys: "count[int]" = field(default_factory=lambda: count(1))

    def fields(self, **others: Any) -> dict[str, Any]:
        """The arguments as the fields of a request."""
        return {"index": self.index, **self.arguments, **others}

    def step(self, done: int, total: int, what: str) -> None:
        """Between two steps of a long call: tell how far it is. Raises Cancelled when nobody waits any more."""
        if self.cancelled():
            raise Cancelled
        self.progress(done, total, what)

    def next_key(self) -> str:
        """A key for the next write of a call that writes several times, the same when the call is told again."""
        return f"{self.key}-{next(self.keys)}"


@dataclass(frozen=True)
class ToolResult:
    """Words for a model and the same, or handles to it, for a program."""

    text: str
    structured: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One tool: what clients are told of it, and what runs."""

    name: str
    title: str
    about: str
    arguments: dict[str, Schema]
    required: tuple[str, ...]
    output: Schema
    run: Callable[[ToolCall], ToolResult]
    reads: bool = False
    destroys: bool = False
    repeatable: bool = False

    def described(self) -> dict[str, Any]:
        """As `tools/list` shows it."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.about,
            "inputSchema": record(self.arguments, self.required),
            "outputSchema": self.output,
            "annotations": {
                "title": self.title,
                "readOnlyHint": self.reads,
                "destructiveHint": self.destroys,
                "idempotentHint": self.reads or self.repeatable,
                "openWorldHint": False,
            },
        }

    def accepted(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments without those that are null: models write null for what they leave out.

        Invalid names one that the tool does not take, or one that it needs.
        """
        for name in given:
            if name not in self.arguments:
                taken = ", ".join(self.arguments) or "nothing"
                raise Invalid(f"{self.name} takes no {name!r}; it takes {taken}", field=name)
        accepted = {name: value for name, value in given.items() if value is not None}
        for name in self.required:
            if name not in accepted:
                raise Invalid(f"{self.name} needs {name!r}", field=name)
        return accepted


class Registry:
    """Tools by name, in the order clients are shown, and the profiles that choose among them."""

    def __init__(self, profiles: Mapping[str, tuple[Tool, ...]]) -> None:
        self.profiles = {profile: [tool.name for tool in tools] for profile, tools in profiles.items()}
        self.tools = {tool.name: tool for tools in profiles.values() for tool in tools}

    def described(self) -> list[dict[str, Any]]:
        """Every tool as `tools/list` shows it."""
        return [tool.described() for tool in self.tools.values()]
