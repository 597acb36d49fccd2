"""Where answers may come from: vectors and BM25 over the same View, and what was said around what they found."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from kektor.engine.port import Engine, Vector
from kektor.engine.records import Kind, Node, NodeKey
from kektor.engine.view import View
from kektor.memory.keys import routed
from kektor.memory.recall.question import Question

__all__ = ["REACH", "Candidate", "Vectors", "gather"]

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


class Vectors(NamedTuple):
    """What a question is near to: `text` to what was written to stand alone, `said` to what somebody says."""

    text: Vector
    said: Vector

    def asked(self) -> list[Vector]:
        return [self.text] if self.said is self.text else [self.text, self.said]


def gather(engine: Engine, view: View, question: Question, vectors: Vectors | None, *, depth: int) -> list[Candidate]:
    """The `depth` best of each side, nodes named by id, and the session neighbours of the best of these.

    Every candidate is scored by both sides, whichever found it.
    """
    sides = [] if vectors is None else [engine.nearest(view, vector, depth) for vector in vectors.asked()]
    sides.append(engine.match_text(view, question.text, depth))
    named = {NodeKey(node.scope, node.id) for name in question.possible_ids for node in engine.find(view, name)}
    keys = dict.fromkeys(found.key for rank in zip_longest(*sides) for found in rank if found is not None)
    keys.update(dict.fromkeys(sorted(named)))
    ways = routed(engine, view, question.text)
    shown = engine.admits(view, list(ways))
    keys.update((key, None) for key, seen in zip(ways, shown, strict=True) if seen)
    for steps in engine.neighbours(view, list(keys)[:_WIDENED], reach=REACH):
        keys.update((key, None) for step in steps for key in step)
    wanted = list(keys)
    nodes = engine.fetch(view, wanted)
    return [
        Candidate(node, by_vector, by_text, key in named, around, ways.get(key, 0.0))
        for key, node, by_vector, by_text, around in zip(
            wanted,
            nodes,
            _cosines(engine, view, vectors, wanted, nodes),
            engine.text_scores(view, question.text, wanted),
            engine.neighbours(view, wanted, reach=REACH),
            strict=True,
        )
        if node is not None
    ]


def _cosines(
    engine: Engine, view: View, vectors: Vectors | None, keys: Sequence[NodeKey], nodes: Sequence[Node | None]
) -> list[float | None]:
    if vectors is None:
        return [None] * len(keys)
    by_text, *rest = [engine.vector_scores(view, vector, keys) for vector in vectors.asked()]
    by_said = rest[0] if rest else by_text
    return [
        said if node is not None and node.kind is Kind.SOURCE else text
        for node, text, said in zip(nodes, by_text, by_said, strict=True)
    ]
