"""A query of a megabyte costs what a long sentence does: of many terms only those that weigh most are asked for."""

import math
from collections import Counter
from collections.abc import Callable
from typing import Final

__all__ = ["MOST_TERMS", "shortened"]

MOST_TERMS: Final = 128
"""Distinct terms that a query asks for at most."""

_SHORT: Final = 600
"""Characters that never hold so many."""


def shortened(
    query: str, *, terms_of: Callable[[str], list[str]], frequency: Callable[[str], int], documents: int
) -> str:
    """The query itself, or the words of it whose terms are the `MOST_TERMS` that weigh most.

    A term weighs what BM25 gives it: its rarity (as idf) times how often the query names it; what no document has
    weighs nothing. Of equals the first in the alphabet counts. Words keep their order and their number.

    >>> query = " ".join(f"w{n}" for n in range(1000))
    >>> short = shortened(query, terms_of=str.split, frequency=lambda term: int(term[1:]), documents=1000)
    >>> len(short.split()), short[:8]
    (128, 'w1 w2 w3')
    """
    if len(query) <= _SHORT:
        return query
    named = Counter(terms_of(query))
    if len(named) <= MOST_TERMS:
        return query
    weights: dict[str, float] = {}
    for term, times in named.items():
        holding = frequency(term)
        if holding > 0:
            weights[term] = times * math.log(1 + (documents - holding + 0.5) / (holding + 0.5))
    kept = set(sorted(weights, key=lambda term: (-weights[term], term))[:MOST_TERMS])
    words = query.split()
    asked = {word: kept.intersection(terms_of(word)) for word in dict.fromkeys(words)}
    return " ".join(word for word in words if asked[word])
