"""What a question asks for, read without a model."""

import re
from typing import NamedTuple

__all__ = ["Question", "read", "words_of"]

# Words that ask about what was, rather than what is. Each must be unable to stand in a question about the present.
_PAST = re.compile(
    r"\b(used to|previous(?:ly)?|former(?:ly)?|originally|in the past|back then|at first|no longer|any ?more"
    r"|before (?:that|now|this|then|it changed|(?:19|20)\d\d|\w+ing)|(?:what|where|who|which|how)\b.*\bbefore\s*\?"
    r"|ever (?:lived?|worked?|had|been)|history of|earlier|until (?:19|20)\d\d)\b"
    r"|\bbefore\s*\??$",
    re.IGNORECASE,
)
# Any longer word could be an id; a short one is taken for one only where it looks like nothing else.
_POSSIBLE_ID = re.compile(r"[^\s,;!?\"'()\[\]{}<>]{6,256}|(?=[^\s,;!?]*\d)[\w][\w.:/#-]{1,4}(?<![.:])(?!\w)")

_WHEN = re.compile(
    r"\s*(?:when\b|since when|until when|how long ago"
    r"|(?:on |in )?(?:what|which) (?:date|day|month|year|week)\b)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+")
_NAME = re.compile(r"([^\W_]+)(?:['’]s\b)?")


class Question(NamedTuple):
    """The text, what it asks for, what in it could be an id, and its words in folded case.

    `speakers` are the words that name somebody whose messages the caller may see, and `said` is what is asked of
    them: the question without their names, which a speaker does not say of himself.
    """

    text: str
    asks_past: bool
    asks_when: bool
    possible_ids: tuple[str, ...]
    words: frozenset[str]
    speakers: frozenset[str] = frozenset()

    @property
    def said(self) -> str:
        return self.without(self.speakers)

    def without(self, names: frozenset[str]) -> str:
        """The question without some words, given in folded case, and what is left of their possessives."""
        kept = _NAME.sub(lambda found: "" if found[1].casefold() in names else found[0], self.text)
        return " ".join(kept.split()) if names and _WORD.search(kept) else self.text


def words_of(text: str) -> frozenset[str]:
    """The words of a text in folded case."""
    return frozenset(word.casefold() for word in _WORD.findall(text))


def read(text: str) -> Question:
    """Parse a question.

    >>> read("Where did Dana live before?").asks_past, read("Where does Dana live?").asks_past
    (True, False)
    """
    ids = tuple(dict.fromkeys(found.rstrip(".:") for found in _POSSIBLE_ID.findall(text)))
    return Question(text, _PAST.search(text) is not None, _WHEN.match(text) is not None, ids, words_of(text))
