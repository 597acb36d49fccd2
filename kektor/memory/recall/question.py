"""What a question asks for, read without a model."""

import re
from typing import NamedTuple

__all__ = ["Question", "read"]

# Words that ask about what was, rather than what is. Each must be unable to stand in a question about the present.
_PAST = re.compile(
    r"\b(used to|previous(?:ly)?|former(?:ly)?|originally|in the past|back then|at first|no longer|any ?more"
    r"|before (?:that|now|this|then|it changed|(?:19|20)\d\d|\w+ing)|(?:what|where|who|which|how)\b.*\bbefore\s*\?"
    r"|ever (?:lived?|worked?|had|been)|history of|earlier|until (?:19|20)\d\d)\b"
    r"|\bbefore\s*\??$",
    re.IGNORECASE,
)
# Long enough to be nobody's word, or with a digit, or joined as only identifiers are: TKT-1, A12, a_b.
_IDENTIFIER = re.compile(r"[^\s,;!?\"'()\[\]{}<>]{2,256}")


def _could_be_an_id(word: str) -> bool:
    return len(word) >= 6 or any(char.isdigit() for char in word) or any(char in "_@/:#-" for char in word[1:-1])


_WHEN = re.compile(
    r"\s*(?:when\b|since when|until when|how long ago"
    r"|(?:on |in )?(?:what|which) (?:date|day|month|year|week)\b)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+")


class Question(NamedTuple):
    """The text, what it asks for, what in it could be an id, and its words in folded case."""

    text: str
    asks_past: bool
    asks_when: bool
    possible_ids: tuple[str, ...]
    words: frozenset[str]


def read(text: str) -> Question:
    """Parse a question.

    >>> read("Where did Dana live before?").asks_past, read("Where does Dana live?").asks_past
    (True, False)
    """
    found = dict.fromkeys(word.rstrip(".:") for word in _IDENTIFIER.findall(text))
    ids = tuple(word for word in found if _could_be_an_id(word))
    words = frozenset(word.casefold() for word in _WORD.findall(text))
    return Question(text, _PAST.search(text) is not None, _WHEN.match(text) is not None, ids, words)
