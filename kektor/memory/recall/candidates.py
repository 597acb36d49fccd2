"""Where answers may come from: vectors and BM25 over the same View, and what stands beside what they found."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kektor.engine.port import Engine, Vector
from kektor.engine.records import Node, NodeKey
from kektor.engine.view import View
from kektor.memory.recall.question import Question

__all__ = ["Candidate", "gather"]


class Candidate(NamedTuple):
    """A node with what each side says of it; a cosine of None where there is no vector to compare.

    `beside` are the candidates next to it in its session.
    """

    node: Node
    vector: float | None
    text: float
    exact: bool = False
    beside: tuple[NodeKey, ...] = ()

    @property
    def key(self) -> NodeKey:
        return NodeKey(self.node.scope, self.node.id)


def gather(engine: Engine, view: View, question: Question, vector: Vector | None, *, depth: int) -> list[Candidate]:
    """The `depth` best of each side, nodes named by id, and the session neighbours of all of these.

    Every candidate is scored by both sides, whichever found it.
    """
    keys: dict[NodeKey, None] = {}
    if vector is not None:
        keys.update((found.key, None) for found in engine.nearest(view, vector, depth))
    keys.update((found.key, None) for found in engine.match_text(view, question.text, depth))
    named = {NodeKey(node.scope, node.id) for name in question.possible_ids for node in engine.find(view, name)}
    keys.update(dict.fromkeys(sorted(named)))
    beside = _beside(engine, view, list(keys))
    keys.update(dict.fromkeys(near for around in beside.values() for near in around))
    beside = _beside(engine, view, list(keys)) if beside else {}
    wanted = list(keys)
    return [
        Candidate(node, by_vector, by_text, key in named, beside.get(key, ()))
        for key, node, by_vector, by_text in zip(
            wanted,
            engine.fetch(view, wanted),
            _cosines(engine, view, vector, wanted),
            engine.text_scores(view, question.text, wanted),
            strict=True,
        )
        if node is not None
    ]


def _beside(engine: Engine, view: View, keys: Sequence[NodeKey]) -> dict[NodeKey, tuple[NodeKey, ...]]:
    return {
        key: found
        for key, around in zip(keys, engine.neighbours(view, keys), strict=True)
        if (found := tuple(_present(around)))
    }


def _present(around: Iterable[NodeKey | None]) -> Iterable[NodeKey]:
    return (key for key in around if key is not None)


def _cosines(engine: Engine, view: View, vector: Vector | None, keys: Sequence[NodeKey]) -> Sequence[float | None]:
    return [None] * len(keys) if vector is None else engine.vector_scores(view, vector, keys)
