"""Where answers may come from: vectors and BM25 over the same View, and what was said around what they found."""

from collections.abc import Sequence
from typing import NamedTuple

from kektor.engine.port import Engine, Scored, Vector
from kektor.engine.records import Node, NodeKey
from kektor.engine.view import View
from kektor.memory.keys import routed
from kektor.memory.recall.question import Question

__all__ = ["REACH", "Candidate", "gather"]

REACH = 2
"""How many messages before and after one its candidates are looked for."""

_WIDENED = 80
"""How many of the best are looked around; further down nothing beside them would come up."""


class Candidate(NamedTuple):
    """A node with what each side says of it; a cosine of None where there is no vector to compare.

    `around[d]` are the nodes d + 1 messages before and after it in its session.
    """

    node: Node
    vector: float | None
    text: float
    exact: bool = False
    around: tuple[tuple[NodeKey, ...], ...] = ()
    way: float = 0.0
    """The weight of the best way that a key named in the question leads here."""

    @property
    def key(self) -> NodeKey:
        return NodeKey(self.node.scope, self.node.id)


def gather(engine: Engine, view: View, question: Question, vector: Vector | None, *, depth: int) -> list[Candidate]:
    """The `depth` best of each side, nodes named by id, and the session neighbours of the best of these.

    Every candidate is scored by both sides, whichever found it.
    """
    near = [] if vector is None else engine.nearest(view, vector, depth)
    said = engine.match_text(view, question.text, depth)
    named = {NodeKey(node.scope, node.id) for name in question.possible_ids for node in engine.find(view, name)}
    keys = dict.fromkeys([found.key for pair in _interleave(near, said) for found in pair])
    keys.update(dict.fromkeys(sorted(named)))
    ways = routed(engine, view, question.text)
    shown = engine.admits(view, list(ways))
    keys.update((key, None) for key, seen in zip(ways, shown, strict=True) if seen)
    for steps in engine.neighbours(view, list(keys)[:_WIDENED], reach=REACH):
        keys.update((key, None) for step in steps for key in step)
    wanted = list(keys)
    return [
        Candidate(node, by_vector, by_text, key in named, around, ways.get(key, 0.0))
        for key, node, by_vector, by_text, around in zip(
            wanted,
            engine.fetch(view, wanted),
            [None] * len(wanted) if vector is None else engine.vector_scores(view, vector, wanted),
            engine.text_scores(view, question.text, wanted),
            engine.neighbours(view, wanted, reach=REACH),
            strict=True,
        )
        if node is not None
    ]


def _interleave(one: Sequence[Scored], other: Sequence[Scored]) -> list[tuple[Scored, ...]]:
    """Ranks side by side, so that the best of both come first."""
    longest = max(len(one), len(other))
    return [(*one[at : at + 1], *other[at : at + 1]) for at in range(longest)]
