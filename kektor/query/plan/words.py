"""Comparing words where no index does it: names, phrases, beginnings of words."""

import re
import unicodedata

from kektor.engine.records import Node
from kektor.text import fold, plain

__all__ = ["has_beginning", "holds_phrase", "mentions", "same"]

_WORD = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"['’]s\b")


def mentions(node: Node, name: str) -> bool:
    """Whether a node speaks of somebody, was said by them, or is theirs: whole words, whatever the case and accents.

    "Dana" is mentioned by "Dana's boat" and not by "Danae".
    """
    wanted = _words(name)
    if not wanted:
        return False
    speaker = node.metadata.get("speaker")
    places = [node.text, speaker if isinstance(speaker, str) else "", node.scope.user, *node.tags]
    if node.claim is not None:
        places += [node.claim.subject, node.claim.object]
    return any(_within(wanted, _words(place)) for place in places)


def holds_phrase(text: str, phrase: str) -> bool:
    """Whether the words of a phrase stand in a text one after the other."""
    return _within(_words(phrase), _words(text))


def has_beginning(text: str, prefix: str) -> bool:
    """Whether a word of a text begins so."""
    wanted = _bare(prefix)
    return any(word.startswith(wanted) for word in _words(text))


def same(one: str, other: str) -> bool:
    """Equal but for case, accents, look-alike letters and punctuation."""
    return bool(one) and fold(one) == fold(other)


def _words(text: str) -> list[str]:
    return [_bare(word) for word in _WORD.findall(_POSSESSIVE.sub("", plain(text)))]


def _bare(word: str) -> str:
    apart = unicodedata.normalize("NFKD", plain(word))
    return "".join(char for char in apart if not unicodedata.combining(char) or ord(char) > 0x36F)


def _within(wanted: list[str], held: list[str]) -> bool:
    size = len(wanted)
    return size > 0 and any(held[at : at + size] == wanted for at in range(len(held) - size + 1))
