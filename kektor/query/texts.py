"""Text search on stricter terms than any word: all words, or a phrase. A query is data, never syntax."""

from typing import Final, Literal

from kektor.engine.port import Engine, Scored
from kektor.engine.view import View
from kektor.text import holds_phrase
from kektor.text.words import words

__all__ = ["TextMatch", "find_text"]

TextMatch = Literal["any", "all", "phrase"]

_MOST: Final = 100_000
"""Candidates looked at for a stricter match."""


def find_text(engine: Engine, view: View, text: str, k: int, *, match: TextMatch = "any") -> list[Scored]:
    """The k best whose text answers to the query; by any of its words, as BM25 ranks them, unless told."""
    if match == "any":
        return engine.match_text(view, text, k)
    asked = 4 * k
    while True:
        found = engine.match_text(view, text, asked)
        holding = _with_all(engine, view, text, found)
        if match == "phrase":
            nodes = engine.fetch(view, [scored.key for scored in holding])
            pairs = zip(holding, nodes, strict=True)
            holding = [scored for scored, node in pairs if node is not None and holds_phrase(node.text, text)]
        if len(holding) >= k or len(found) < asked or asked >= _MOST:
            return holding[:k]
        asked *= 4


def _with_all(engine: Engine, view: View, text: str, found: list[Scored]) -> list[Scored]:
    for word in dict.fromkeys(text.split()):
        if words(word):  # a sign alone asks for nothing
            scores = engine.text_scores(view, word, [scored.key for scored in found])
            found = [scored for scored, score in zip(found, scores, strict=True) if score > 0]
    return found
