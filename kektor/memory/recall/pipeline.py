"""The stages in their order."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from kektor import clock
from kektor.engine.port import Engine
from kektor.engine.records import IndexSettings, Kind, Node, NodeKey, Status
from kektor.engine.view import View
from kektor.memory.context import MemoryContext
from kektor.memory.keys import connected, nearest
from kektor.memory.objects import Hit, Premise, Recall
from kektor.memory.presenting import memory_of
from kektor.memory.recall.alike import Ordered, latest_first
from kektor.memory.recall.candidates import Candidate, Vectors, gather
from kektor.memory.recall.fuse import Fused, fuse
from kektor.memory.recall.judge import Judged, judge, thresholds_for
from kektor.memory.recall.pack import pack
from kektor.memory.recall.premise import read_premise
from kektor.memory.recall.question import Question, read
from kektor.memory.recall.said import TakenBack, as_read_today, as_seen_today, near_misses
from kektor.memory.recall.speakers import with_speakers
from kektor.text import content_terms

__all__ = ["recall"]

_DEPTH = 100
"""Fewest candidates of each side; more when more hits are asked for."""

_READ = 60
"""How many of the best are read without what was taken back before anything is made of them."""


def recall(
    context: MemoryContext,
    settings: IndexSettings,
    view: View,
    *,
    query: str,
    k: int,
    budget_tokens: int,
    history: str,
    mode: str,
    explain: bool,
) -> Recall:
    """Answer a question from what a View admits: at most `k` hits and `budget_tokens` tokens of context."""
    engine = context.engine
    question = with_speakers(engine, view, read(query))
    past = history == "always" or (history == "auto" and question.asks_past)
    view = structs.replace(view, history=past)
    vectors = None if mode == "fast" else _vectors(context, settings, question)
    wide = _with_predecessors(view)
    candidates = gather(engine, wide, question, vectors, depth=max(_DEPTH, 2 * k))
    resolved = _resolve(engine, view, candidates)
    ranked = fuse([candidate for candidate, _ in resolved], question)
    origins = {candidate.key: origin for candidate, origin in resolved}
    replaced = _replaced(candidates, origins)
    language = settings.text.language
    asked = frozenset(content_terms(question.said, language))

    def covers(text: str) -> float:
        return len(asked & set(content_terms(text, language))) / len(asked) if asked else 1.0

    taken, whole = TakenBack(context, view), "rejected" in view.include
    if not whole:
        ranked = as_read_today(taken, ranked, lambda text: covers(text) > 0, most=_READ)
    judged = judge(
        ranked,
        thresholds_for(settings.fingerprint),
        read_premise(engine, view, question, ranked, language, replaced=replaced),
        asks=bool(asked or question.speakers or not question.words),
        covers=covers,
    )
    if not judged.relevant and not candidates and engine.count(view) == 0:
        judged = judged._replace(status="empty")
    # Only what answers stands for the source it rests on, which may say more than the memory quotes of it.
    now = view.now if view.as_of is None else view.as_of
    hits = [
        _hit(engine, entry, settings, view, origins) for entry in latest_first(_group_evidence(judged.relevant), k, now)
    ]
    packed = pack(as_seen_today(taken, hits, whole=whole), budget_tokens, context.tokenizer.counts, now)
    return Recall(
        status=judged.status,
        hits=packed.hits,
        context=packed.context,
        tokens=packed.tokens,
        dropped=packed.dropped,
        nearest_keys=_nearest_keys(engine, view, query, judged),
        near_misses=near_misses(taken, settings, view, [(miss.node, why) for miss, why in judged.near_misses[:k]]),
        premise=Premise(
            at_risk=judged.premise.at_risk,
            unknown=list(judged.premise.unknown),
            wrong_subject=list(judged.premise.subject.people),
        ),
        history_used=past,
        trace_id=clock.new_id(),
        trace=_trace(question, candidates, ranked, judged) if explain else None,
    )


def _vectors(context: MemoryContext, settings: IndexSettings, question: Question) -> Vectors | None:
    texts = list(dict.fromkeys([question.text, question.said]))
    found = context.embed(settings, texts, kind="query")
    return None if found is None else Vectors(found[0], found[-1] if len(texts) > 1 else found[0])


def _nearest_keys(engine: Engine, view: View, query: str, judged: Judged) -> list[str]:
    """Names that may have been meant; where nothing answers also the keys that share most with the question."""
    keys = nearest(engine, view, query) if judged.status == "no_match" else []
    return list(dict.fromkeys([*judged.premise.nearest, *keys]))


def _with_predecessors(view: View) -> View:
    """Also what was replaced: its words may be the only ones the question shares with the answer."""
    return structs.replace(view, history=True, include=view.include | {"superseded", "rejected"})


def _resolve(engine: Engine, view: View, candidates: Sequence[Candidate]) -> list[tuple[Candidate, str | None]]:
    """What the View admits, and the visible head in the place of a version that it does not."""
    keys = [candidate.key for candidate in candidates]
    seen = engine.admits(view, keys)
    found: dict[NodeKey, tuple[Candidate, str | None]] = {}
    for key, candidate, visible in zip(keys, candidates, seen, strict=True):
        if visible:
            _keep_best(found, key, candidate, None)
        elif candidate.node.status is Status.SUPERSEDED and (head := _head(engine, view, candidate.node)):
            head_key = NodeKey(head.scope, head.id)
            _keep_best(found, head_key, candidate._replace(node=head), candidate.node.id)
    return list(found.values())


def _keep_best(
    found: dict[NodeKey, tuple[Candidate, str | None]], key: NodeKey, candidate: Candidate, origin: str | None
) -> None:
    """One hit a head, with the best each side said of any of its versions."""
    held = found.get(key)
    if held is None:
        found[key] = (candidate, origin)
        return
    best, best_origin = held
    if _says_more(candidate, best):
        best_origin = origin
    vectors = [v for v in (best.vector, candidate.vector) if v is not None]
    merged = best._replace(
        vector=max(vectors) if vectors else None,
        text=max(best.text, candidate.text),
        exact=best.exact or candidate.exact,
        way=max(best.way, candidate.way),
    )
    found[key] = (merged, best_origin)


def _says_more(one: Candidate, other: Candidate) -> bool:
    """Which of two versions of a lineage the question was really about: the one it names, else the nearer one."""
    return (one.exact, one.vector or 0.0, one.text) > (other.exact, other.vector or 0.0, other.text)


def _replaced(candidates: Sequence[Candidate], origins: Mapping[NodeKey, str | None]) -> dict[NodeKey, str]:
    """The text of the version that was found, for each head that stands in its place."""
    texts = {NodeKey(candidate.node.scope, candidate.node.id): candidate.node.text for candidate in candidates}
    return {head: texts[NodeKey(head.scope, origin)] for head, origin in origins.items() if origin is not None}


def _head(engine: Engine, view: View, node: Node) -> Node | None:
    versions = engine.versions(view, node.scope, node.lineage)
    return versions[-1] if versions else None


def _group_evidence(ranked: Sequence[Fused]) -> Sequence[Fused]:
    """A memory and the sources it rests on are one hit: the memory, in the best place of the group."""
    resting: dict[NodeKey, Fused] = {}
    for found in ranked:
        node = found.candidate.node
        if node.kind is Kind.MEMORY:  # a summary stands beside what it is made of
            for span in node.evidence:
                resting.setdefault(span.key, found)
    if not resting:
        return ranked
    out: list[Fused] = []
    placed: set[NodeKey] = set()
    for found in ranked:
        owner = resting.get(found.candidate.key)
        taken = found if owner is None else owner._replace(score=found.score)
        if taken.candidate.key not in placed:
            placed.add(taken.candidate.key)
            out.append(taken)
    return out


def _hit(
    engine: Engine, entry: Ordered, settings: IndexSettings, view: View, origins: dict[NodeKey, str | None]
) -> Hit:
    found, told_earlier = entry
    node = found.candidate.node
    return Hit(
        connected_keys=connected(engine, view, node),
        memory=memory_of(node, settings, now=view.now, known_at=view.known_at),
        score=found.score,
        scores=found.parts,
        via=_via(found.candidate),
        resolved_from=origins.get(found.candidate.key),
        told_earlier=told_earlier,
    )


def _via(candidate: Candidate) -> list[str]:
    via = ["id"] if candidate.exact else []
    if candidate.vector is not None:
        via.append("vector")
    if candidate.text > 0:
        via.append("text")
    return via


def _trace(
    question: Question, candidates: Sequence[Candidate], ranked: Sequence[Fused], judged: Judged
) -> dict[str, Any]:
    """What each stage made of it; ids only of what the caller may see."""
    return {
        "question": {
            "asks_past": question.asks_past,
            "asks_when": question.asks_when,
            "speakers": sorted(question.speakers),
            "said": question.said,
        },
        "premise": {"margin": judged.premise.subject.margin},
        "candidates": len(candidates),
        "resolved": len(ranked),
        "judged_relevant": len(judged.relevant),
        "ranking": [
            {
                "id": found.candidate.node.id,
                "score": found.score,
                "cosine": found.candidate.vector,
                "bm25": found.candidate.text,
            }
            for found in ranked[:50]
        ],
    }
