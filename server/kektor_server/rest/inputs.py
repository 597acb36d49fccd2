"""What requests carry beside the library's own structs: query strings, and bodies of which the path is a part."""

from typing import Any, Literal

from msgspec import Struct

from kektor.memory.requests import ListRequest, ScopeIn, TimeIn

__all__ = [
    "DeleteMemoryQuery",
    "DeleteNodeQuery",
    "DropIndexQuery",
    "EdgesQuery",
    "GetMemoryQuery",
    "LiftQuery",
    "ListQuery",
    "MemoryQuery",
    "NodeQuery",
    "NodesQueryBody",
    "PageQuery",
    "ReinforceBody",
    "ReviewsQuery",
    "ScopedQuery",
    "SessionsQuery",
    "SourcesQuery",
    "StatsQuery",
    "TombstonesQuery",
]


class ScopedQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A scope in a query string; a member left out is any value, `shared=true` is what is nobody's own."""

    user: str | None = None
    agent: str | None = None
    project: str | None = None
    shared: bool = False

    def scope(self) -> ScopeIn | None:
        """None when no member is given."""
        if self.user is self.agent is self.project is None and not self.shared:
            return None
        return ScopeIn(user=self.user, agent=self.agent, project=self.project, shared=self.shared)


class MemoryQuery(ScopedQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    index: str = "default"


class GetMemoryQuery(MemoryQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`resolve=head` answers the newest version of the same statement."""

    resolve: Literal["head"] | None = None
    as_of: TimeIn | None = None
    known_at: TimeIn | None = None
    tz: str = "UTC"


class StatsQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When `shown` is counted."""

    as_of: TimeIn | None = None
    known_at: TimeIn | None = None
    tz: str = "UTC"


class DeleteMemoryQuery(MemoryQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    mode: Literal["archive", "erase"] = "erase"
    reason: str = ""


class LiftQuery(MemoryQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    reason: str = ""


class SessionsQuery(MemoryQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    limit: int = 100
    cursor: str | None = None


class ReviewsQuery(MemoryQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    status: Literal["open", "asked", "decided", "all"] = "open"
    limit: int = 100
    cursor: str | None = None


class SourcesQuery(MemoryQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A page of sources; `session` keeps those of one."""

    session: str | None = None
    include: list[str] = []
    limit: int = 100
    cursor: str | None = None

    def request(self) -> ListRequest:
        return ListRequest(
            index=self.index,
            scope=self.scope(),
            filter=None if self.session is None else {"eq": ["session", self.session]},
            include=self.include,
            kinds=["source"],
            limit=self.limit,
            cursor=self.cursor,
        )


class PageQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    limit: int = 100
    cursor: str | None = None


class TombstonesQuery(MemoryQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    limit: int = 100
    cursor: str | None = None


class AuditQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    since: TimeIn | None = None
    id: str | None = None
    actor: str | None = None
    limit: int = 100
    cursor: str | None = None
    tz: str = "UTC"


class ListQuery(MemoryQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A page of memories. `filter` is text, or the JSON form as text."""

    filter: str | None = None
    include: list[str] = []
    kinds: list[str] | None = None
    limit: int = 100
    cursor: str | None = None
    as_of: TimeIn | None = None
    known_at: TimeIn | None = None
    tz: str = "UTC"

    def request(self) -> ListRequest:
        return ListRequest(
            index=self.index,
            scope=self.scope(),
            filter=self.filter,
            include=self.include,
            kinds=self.kinds,
            limit=self.limit,
            cursor=self.cursor,
            as_of=self.as_of,
            known_at=self.known_at,
            tz=self.tz,
        )


class NodeQuery(ScopedQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    with_vector: bool = False


class DeleteNodeQuery(ScopedQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    reason: str = ""


class DropIndexQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    reason: str = ""


class EdgesQuery(ScopedQuery, frozen=True, forbid_unknown_fields=True, kw_only=True):
    direction: Literal["out", "in", "both"] = "both"
    rel: str | None = None
    rels: list[str] | None = None
    filter: str | None = None
    edge_filter: str | None = None
    limit: int = 1000
    cursor: str | None = None
    as_of: TimeIn | None = None
    known_at: TimeIn | None = None
    tz: str = "UTC"


class NodesQueryBody(Struct, forbid_unknown_fields=True, kw_only=True):
    """Without a filter all nodes; `kinds` asks for others than `memory`, which raw nodes are."""

    filter: str | dict[str, Any] | None = None
    include: list[str] = []
    kinds: list[str] | None = None
    limit: int = 100
    cursor: str | None = None
    scope: ScopeIn | None = None
    as_of: TimeIn | None = None
    known_at: TimeIn | None = None
    tz: str = "UTC"


class ReinforceBody(Struct, forbid_unknown_fields=True, kw_only=True):
    index: str = "default"
    scope: ScopeIn | None = None
    idempotency_key: str | None = None
    reason: str = ""
