"""Reading memories: by id, by list, by history, by graph, by question."""

from typing import Any

from msgspec import structs

from kektor import clock
from kektor.engine.gateway import Principal
from kektor.engine.records import IndexSettings, Node, NodeKey
from kektor.errors import Invalid, NotFound
from kektor.memory import requests as rq
from kektor.memory.inputs import instant
from kektor.memory.limits import LIMITS, check_id, check_text
from kektor.memory.objects import Evidence, Memory, MemoryPage, NodeOut, Premise, Recall
from kektor.memory.presenting import memory_of, node_of
from kektor.memory.reading import existing_index, find_one, make_view, only_by_id
from kektor.memory.recall import recall
from kektor.operations.base import BaseOperations
from kektor.operations.plans import recall_by_plan
from kektor.query.plan import Plan, compile_question, read_plan

__all__ = ["ReadOperations"]

_RECALLED = ("memory", "source", "summary", "profile", "artifact")


class ReadOperations(BaseOperations):
    """Every one of these goes through a View and changes nothing."""

    def recall(self, request: rq.RecallRequest, principal: Principal) -> Recall:
        """Answer a question with at most `k` hits and `budget_tokens` tokens of context."""
        check_text(request.query, field="query")
        if not 1 <= request.k <= LIMITS["k"]:
            raise Invalid(f"k must be 1 to {LIMITS['k']:,}, not {request.k}", field="k")
        if not 1 <= request.budget_tokens <= 1_000_000:
            raise Invalid(f"budget_tokens must be 1 to 1,000,000, not {request.budget_tokens}", field="budget_tokens")
        asked_at = instant(request.now, field="now", tz=request.tz)
        now = clock.now() if asked_at is None else asked_at
        program = self._program(request, now)
        plan = None if program is None else read_plan(program, tz=request.tz, now=now)
        view = make_view(
            self.engine,
            principal,
            request.index,
            scope=request.scope,
            filter=request.filter,
            include=request.include,
            kinds=_kinds(plan) if request.kinds is None else request.kinds,
            layers=request.layers,
            tags=request.tags,
            as_of=request.as_of,
            known_at=request.known_at,
            now=request.now,
            tz=request.tz,
        )
        settings = existing_index(self.engine, request.index)
        if settings is None:
            return Recall("empty", [], "", 0, [], [], [], Premise(), False, clock.new_id())
        if plan is not None and program is not None:
            return recall_by_plan(
                self.context, settings, view, plan, program, k=request.k, budget_tokens=request.budget_tokens
            )
        return recall(
            self.context,
            settings,
            view,
            query=request.query,
            k=request.k,
            budget_tokens=request.budget_tokens,
            history=request.history,
            mode="hybrid" if request.mode == "plan" else request.mode,
            explain=request.explain,
        )

    def _program(self, request: rq.RecallRequest, now: int) -> dict[str, Any] | None:
        """The plan as given, or as rules make it of the question; None when they find no more in it than words."""
        if request.plan is not None:
            if request.mode != "plan":
                raise Invalid(f"a plan is run in mode 'plan', not {request.mode!r}", field="mode")
            return request.plan
        return compile_question(request.query, now=now, tz=request.tz) if request.mode == "plan" else None

    def get(
        self,
        index: str,
        node_id: str,
        principal: Principal,
        *,
        scope: rq.ScopeIn | None = None,
        resolve: str | None = None,
        as_of: rq.TimeIn | None = None,
        known_at: rq.TimeIn | None = None,
        tz: str = "UTC",
    ) -> Memory:
        """That version exactly, whatever its state; `resolve="head"` its newest successor.

        `known_at` shows it as the database held it then, and knows nothing recorded later; `as_of` answers the version
        of the same statement that held at that time.
        """
        if resolve not in (None, "head"):
            raise Invalid(f"resolve must be 'head', not {resolve!r}", field="resolve")
        if resolve is not None and as_of is not None:
            raise Invalid("as_of names a version, and so does resolve: give one of them", field="resolve")
        view = only_by_id(self.engine, principal, index, scope=scope, known_at=known_at, tz=tz)
        settings = existing_index(self.engine, index)
        if settings is None:
            raise NotFound(f"there is no {node_id!r} in index {index!r}", field="id")
        node = find_one(self.engine, view, check_id(node_id))
        if as_of is not None:
            then = make_view(self.engine, principal, index, scope=scope, as_of=as_of, known_at=known_at, tz=tz)
            held = self.engine.versions(then, node.scope, node.lineage)
            if not held:
                raise NotFound(f"no version of {node_id!r} held at {as_of}", field="as_of")
            node = held[-1]
        elif resolve == "head":
            node = self.engine.versions(view, node.scope, node.lineage)[-1]
        return memory_of(node, settings, now=view.now, known_at=view.known_at)

    def get_node(
        self,
        index: str,
        node_id: str,
        principal: Principal,
        *,
        scope: rq.ScopeIn | None = None,
        vector: bool = False,
    ) -> NodeOut:
        """A node, with its stored vector when that is asked for (null when it has none)."""
        settings, node = self._named(index, node_id, principal, scope)
        view = only_by_id(self.engine, principal, index, scope=scope)
        out = node_of(node, settings, now=view.now)
        if not vector:
            return out
        stored = self.engine.vectors(view, [NodeKey(node.scope, node.id)])[0]
        return structs.replace(out, vector=None if stored is None else stored.tolist())

    def vector_of(
        self, index: str, node_id: str, principal: Principal, *, scope: rq.ScopeIn | None = None
    ) -> list[float] | None:
        """The stored vector of a node, or None when it has none."""
        _, node = self._named(index, node_id, principal, scope)
        view = only_by_id(self.engine, principal, index, scope=scope)
        vector = self.engine.vectors(view, [NodeKey(node.scope, node.id)])[0]
        return None if vector is None else vector.tolist()

    def history(
        self, index: str, node_id: str, principal: Principal, *, scope: rq.ScopeIn | None = None
    ) -> list[Memory]:
        """Every version of the lineage, oldest first."""
        settings, node = self._named(index, node_id, principal, scope)
        view = only_by_id(self.engine, principal, index, scope=scope)
        now = clock.now()
        return [memory_of(n, settings, now=now) for n in self.engine.versions(view, node.scope, node.lineage)]

    def evidence(
        self, index: str, node_id: str, principal: Principal, *, scope: rq.ScopeIn | None = None
    ) -> list[Evidence]:
        """The spans a memory rests on, of sources the caller sees."""
        settings, node = self._named(index, node_id, principal, scope)
        view = only_by_id(self.engine, principal, index, scope=None)
        seen = self.engine.admits(view, [span.key for span in node.evidence])
        memory = memory_of(node, settings, now=clock.now())
        return [span for span, admitted in zip(memory.evidence, seen, strict=True) if admitted]

    def list_memories(self, request: rq.ListRequest, principal: Principal) -> MemoryPage:
        """Memories in the order they were recorded, a page at a time."""
        if not 1 <= request.limit <= LIMITS["k"]:
            raise Invalid(f"limit must be 1 to {LIMITS['k']:,}, not {request.limit}", field="limit")
        view = make_view(
            self.engine,
            principal,
            request.index,
            scope=request.scope,
            filter=request.filter,
            include=request.include,
            kinds=["memory"] if request.kinds is None else request.kinds,
            as_of=request.as_of,
            known_at=request.known_at,
            tz=request.tz,
        )
        settings = existing_index(self.engine, request.index)
        if settings is None:
            return MemoryPage([], None)
        page = self.engine.page(view, limit=request.limit, cursor=request.cursor)
        items = [memory_of(node, settings, now=view.now, known_at=view.known_at) for node in page.nodes]
        return MemoryPage(items, page.cursor)

    def count(self, request: rq.ListRequest, principal: Principal) -> int:
        """How many a list would give in all."""
        view = make_view(
            self.engine,
            principal,
            request.index,
            scope=request.scope,
            filter=request.filter,
            include=request.include,
            kinds=["memory"] if request.kinds is None else request.kinds,
            as_of=request.as_of,
            known_at=request.known_at,
            tz=request.tz,
        )
        return 0 if existing_index(self.engine, request.index) is None else self.engine.count(view)

    def _named(
        self, index: str, node_id: str, principal: Principal, scope: rq.ScopeIn | None
    ) -> tuple[IndexSettings, Node]:
        view = only_by_id(self.engine, principal, index, scope=scope)
        settings = existing_index(self.engine, index)
        if settings is None:
            raise NotFound(f"there is no {node_id!r} in index {index!r}", field="id")
        return settings, find_one(self.engine, view, check_id(node_id))


def _kinds(plan: Plan | None) -> list[str]:
    """What recall answers with, and what a plan names besides."""
    named = [] if plan is None else [kind for stage in plan.stages for kind in stage.kinds]
    return list(dict.fromkeys([*_RECALLED, *named]))
