"""Words of a text as they are compared where no index does it: in folded letters, without possessive endings."""

import re
import unicodedata

from kektor.text.normalise import plain

__all__ = ["has_beginning", "holds_phrase", "within", "words"]

_WORD = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"['’]s\b")


def words(text: str) -> list[str]:
    """The words of a text, folded.

    >>> words("Dana's café, TKT-100")
    ['dana', 'cafe', 'tkt', '100']
    """
    return [_bare(word) for word in _WORD.findall(_POSSESSIVE.sub("", plain(_composed(text))))]


def holds_phrase(text: str, phrase: str) -> bool:
    """Whether the words of a phrase stand in a text one after the other.

    >>> holds_phrase("She took the train to Lisbon.", "Train to lisbon"), holds_phrase("a train", "a train to")
    (True, False)
    """
    return within(words(phrase), words(text))


def has_beginning(text: str, beginning: str) -> bool:
    """Whether a word of a text begins so.

    >>> has_beginning("two conferences", "confer"), has_beginning("two conferences", "ferences")
    (True, False)
    """
    wanted = _bare(beginning)
    return bool(wanted) and any(word.startswith(wanted) for word in words(text))


def within(wanted: list[str], held: list[str]) -> bool:
    """Whether some words stand in others one after the other."""
    size = len(wanted)
    return size > 0 and any(held[at : at + size] == wanted for at in range(len(held) - size + 1))


def _bare(word: str) -> str:
    apart = unicodedata.normalize("NFKD", plain(word))
    return "".join(char for char in apart if not unicodedata.combining(char) or ord(char) > 0x36F)


def _composed(text: str) -> str:
    """Marks that stand alone would cut a word in two."""
    return unicodedata.normalize("NFC", text)
