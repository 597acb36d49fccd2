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
_IDENTIFIER = re.compile(r"[^\s,;!?\"'()\[\]{}<>]{6,256}")


class Question(NamedTuple):
    """The words, whether they ask for the past, and what in them could be an id."""

    text: str
    asks_past: bool
    possible_ids: tuple[str, ...]


def read(text: str) -> Question:
    """Parse a question.

    >>> read("Where did Dana live before?").asks_past, read("Where does Dana live?").asks_past
    (True, False)
    """
    ids = tuple(dict.fromkeys(found.rstrip(".:") for found in _IDENTIFIER.findall(text)))
    return Question(text, _PAST.search(text) is not None, ids)
