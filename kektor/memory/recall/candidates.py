"""Where answers may come from: vectors and BM25, each over the same View, every candidate scored by both."""

from typing import NamedTuple

from kektor.engine.port import Engine, Vector
from kektor.engine.records import Node, NodeKey
from kektor.engine.view import View
from kektor.memory.recall.question import Question

__all__ = ["Candidate", "gather"]


class Candidate(NamedTuple):
    """A node with what each side says of it; None where a side cannot tell."""

    node: Node
    vector: float | None
    text: float
    exact: bool


def gather(engine: Engine, view: View, question: Question, vector: Vector | None, *, depth: int) -> list[Candidate]:
    """The `depth` best of each side; what only one side found is scored by the other too."""
    keys: dict[NodeKey, None] = {}
    if vector is not None:
        keys.update((found.key, None) for found in engine.nearest(view, vector, depth))
    keys.update((found.key, None) for found in engine.match_text(view, question.text, depth))
    named = {NodeKey(node.scope, node.id) for name in question.possible_ids for node in engine.find(view, name)}
    keys.update(dict.fromkeys(sorted(named)))
    wanted = list(keys)
    nodes = engine.fetch(view, wanted)
    texts = engine.text_scores(view, question.text, wanted)
    vectors = engine.vector_scores(view, vector, wanted) if vector is not None else [None] * len(wanted)
    return [
        Candidate(node, by_vector, by_text, key in named)
        for key, node, by_vector, by_text in zip(wanted, nodes, vectors, texts, strict=True)
        if node is not None
    ]
