"""Recall by a plan: what it finds is packed as any other answer is."""

from typing import Any

from kektor import clock
from kektor.engine.port import Vector
from kektor.engine.records import IndexSettings
from kektor.engine.view import View
from kektor.memory.context import MemoryContext
from kektor.memory.objects import Hit, PlanRun, Premise, Recall
from kektor.memory.presenting import memory_of
from kektor.memory.recall.pack import pack
from kektor.memory.recall.said import TakenBack, as_seen_today, near_misses
from kektor.query.plan import Outcome, Plan, run_plan

__all__ = ["recall_by_plan"]


def recall_by_plan(
    context: MemoryContext,
    settings: IndexSettings,
    view: View,
    plan: Plan,
    program: dict[str, Any],
    *,
    k: int,
    budget_tokens: int,
) -> Recall:
    """Run a plan over what a View shows: at most `k` hits and `budget_tokens` tokens of context."""

    def embed(text: str) -> Vector | None:
        vectors = context.embed(settings, [text], kind="query")
        return None if vectors is None else vectors[0]

    found = run_plan(context.engine, view, plan, embed)
    hits = [
        Hit(
            memory=memory_of(row.node, settings, now=view.now, known_at=view.known_at),
            score=row.score,
            scores=row.parts,
            via=[f"plan:{row.stage}"],
        )
        for row in found.rows[:k]
    ]
    taken, whole = TakenBack(context, view), "rejected" in view.include
    packed = pack(as_seen_today(taken, hits, whole=whole), budget_tokens, context.tokenizer.counts, now=view.now)
    misses = [(miss.node, f"only without {miss.dropped} of stage {miss.stage!r}") for miss in found.near_misses]
    return Recall(
        status=_status(found, context, view),
        hits=packed.hits,
        context=packed.context,
        tokens=packed.tokens,
        dropped=packed.dropped,
        nearest_keys=[],
        near_misses=near_misses(taken, settings, view, misses),
        premise=_premise(found),
        history_used=any(stage.status != "current" for stage in plan.stages),
        trace_id=clock.new_id(),
        plan=PlanRun(program, found.stages, found.relaxed, found.unresolved, found.aggregates),
    )


def _status(found: Outcome, context: MemoryContext, view: View) -> str:
    """An answer that had to give something up, or that takes an unknown name for granted, is a weak one."""
    if found.rows:
        return "weak" if found.unresolved or any(step.answered for step in found.relaxed) else "ok"
    return "no_match" if context.engine.count(view.whole()) else "empty"


def _premise(found: Outcome) -> Premise:
    names = [name.value for name in found.unresolved if name.field in ("who", "claim.subject")]
    return Premise(at_risk=bool(names), unknown=list(dict.fromkeys(names)))
