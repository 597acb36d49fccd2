"""The sentences of a conversation that say the most, word for word: a summary without a model."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from kektor.engine.records import Evidence, Node
from kektor.text import CUT, held, sentences

__all__ = ["telling_sentences"]

_FEWEST, _MOST = 3, 12
_LONGEST = 1200
_SHARE = 0.2
_SHORTEST_WORDS = 3


class _Said(NamedTuple):
    """A sentence, where it stands, and the stems it holds."""

    order: int
    source: Node
    start: int
    end: int
    text: str
    stems: frozenset[str]


def telling_sentences(
    sources: Sequence[Node], language: str, *, leave_out: frozenset[tuple[str, int]]
) -> list[Evidence]:
    """The quotes that a summary is made of, in the order said: those whose words are spoken of most and said by nobody
    else, none twice. `leave_out` names sentences by source and start that must not be repeated."""
    said = [
        _Said(order, source, span.start, span.end, text, held(text, language))
        for order, source in enumerate(sources)
        for span in sentences(source.text)
        if CUT not in (text := source.text[span.start : span.end]) and (source.id, span.start) not in leave_out
    ]
    worth = [each for each in said if not each.text.endswith(("?", "？")) and len(each.text.split()) >= _SHORTEST_WORDS]
    worth = worth or said
    holding = Counter(stem for each in said for stem in each.stems)
    room = min(_MOST, max(_FEWEST, math.ceil(_SHARE * len(said))))
    taken: list[_Said] = []
    covered: set[str] = set()
    while worth and len(taken) < room:
        best = max(worth, key=lambda each: (_weight(each, holding, len(said), covered), -each.order, -each.start))
        worth.remove(best)
        if sum(len(each.text) for each in taken) + len(best.text) > _LONGEST and taken:
            continue
        if best.stems <= covered and taken:
            continue
        taken.append(best)
        covered |= best.stems
    taken.sort(key=lambda each: (each.order, each.start))
    return [Evidence(each.source.id, each.start, each.end, each.text) for each in taken]


def _weight(said: _Said, holding: Counter[str], all_of_them: int, covered: set[str]) -> float:
    """New words count by how rare they are; what a person says counts more than what answers it; numbers and names
    count more than talk."""
    new = sum(math.log(1 + all_of_them / holding[stem]) for stem in said.stems - covered)
    length = 1 + abs(len(said.text) - 90) / 90
    spoken = 1.4 if said.source.metadata.get("role") == "user" else 1.0
    facts = 1 + 0.3 * any(map(str.isdigit, said.text)) + 0.2 * any(word[:1].isupper() for word in said.text.split()[1:])
    return new * spoken * facts / length
