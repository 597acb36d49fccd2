"""The words that tell a sentence from others: identifiers, numbers, names, stemmed content words."""

import re

from kektor_native import analyze, query_terms

from kektor.text.normalise import unmask

__all__ = ["content_terms", "held", "telling"]

_FEWEST = 3
_SHORTEST_IDENTIFIER = 6


def telling(sentence: str, language: str) -> frozenset[str]:
    """What every sentence that says the same in about these words would hold; empty when that is too little to go by.

    >>> sorted(telling("The vault opens with Zephyr-4417.", "english"))
    ['open', 'vault', 'zephyr-4417']
    >>> telling("She did it.", "english")
    frozenset()
    """
    words = frozenset(word for word in query_terms(unmask(sentence), language) if not _SINGLE.fullmatch(word))
    identifies = any(len(word) >= _SHORTEST_IDENTIFIER and any(map(str.isdigit, word)) for word in words)
    return words if len(words) >= _FEWEST or identifies else frozenset()


def content_terms(text: str, language: str) -> list[str]:
    """The terms of a text that carry meaning by themselves: none, where it has only function words.

    >>> content_terms("What is it that she likes?", "english"), content_terms("to be or not to be", "english")
    (['like'], [])
    """
    # A query of function words alone is searched by these; beside a word that means something they are left out.
    return query_terms(f"{text} {_MEANINGFUL}", language)[:-1]


def held(sentence: str, language: str) -> frozenset[str]:
    """Every word of a sentence, identifiers whole and in parts."""
    return frozenset(analyze(unmask(sentence), language))


_SINGLE = re.compile(r"[a-z]")
_MEANINGFUL = "xylophone"
