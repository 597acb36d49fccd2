"""The statements inside a sentence, each with its subject, as far as rules can tell them apart."""

import re
from typing import NamedTuple

from kektor.memory.forgetting.lexicon import BASE_VERBS, VERBS
from kektor.text import Span

__all__ = ["Clause", "clauses", "joined"]

_JOINT = re.compile(r";\s+|,?\s+(?:and|but|while|whereas|yet)\s+", re.IGNORECASE)
_WORD = re.compile(r"[^\W_](?:[\w'’.@-]*\w)?")
_PRONOUNS = frozenset({"he", "she", "it", "they", "i", "we", "you"})
_THEIRS = frozenset({"his", "her", "its", "their", "my", "our", "your", "the", "a", "an", "this", "that"})
_FARTHEST = 6


class Clause(NamedTuple):
    """Where it stands, and what it says by itself: its subject restored where it was left out."""

    span: Span
    text: str


def clauses(sentence: str, at: int = 0) -> list[Clause]:
    """Split a sentence that makes several statements; one clause when the rules see no more. `at` is where it begins.

    >>> [clause.text for clause in clauses("Dana works at Acme and likes tea, but Erik prefers coffee.")]
    ['Dana works at Acme', 'Dana likes tea', 'Erik prefers coffee.']
    >>> len(clauses("Frank and Dana went to Riga."))
    1
    """
    pieces: list[tuple[int, int]] = []
    start = 0
    for joint in _JOINT.finditer(sentence):
        left, right = sentence[start : joint.start()], sentence[joint.end() :]
        if _verb_at(left) is not None and (_starts_with_verb(right) or _states(right)):
            pieces.append((start, joint.start()))
            start = joint.end()
    pieces.append((start, len(sentence)))
    found: list[Clause] = []
    subject = ""
    for begin, end in pieces:
        text = sentence[begin:end].strip()
        verb = _verb_at(text)
        if found and _starts_with_verb(text):
            text = f"{subject} {text}".strip()
        elif (
            found and (first := _WORD.match(text)) and first[0].casefold() in _PRONOUNS - {"i", "we", "you"} and subject
        ):
            text = f"{subject}{text[first.end() :]}"
        elif verb is not None:
            subject = text[:verb].strip()
        found.append(Clause(Span(at + begin, at + end), text))
    return found


def joined(statements: list[str]) -> str:
    """Clauses as a sentence of their own."""
    text = "; ".join(statement.strip().rstrip(".;,") for statement in statements if statement.strip())
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _verb_at(text: str) -> int | None:
    """Where the first verb begins that has a subject before it."""
    for number, word in enumerate(_WORD.finditer(text)):
        if number and word[0].casefold() in VERBS:
            return word.start()
        if number == 0 and word[0].casefold().endswith(("'s", "’s", "'re", "'m", "n't")) and word[0][0].isupper():
            return word.end()
    return None


def _starts_with_verb(text: str) -> bool:
    first = _WORD.match(text)
    if first is None or first[0][0].isupper():
        return False
    word = first[0].casefold()
    # A base form after "and" goes on a list of infinitives or follows a plural subject: "likes to swim and run".
    return word in VERBS and word not in BASE_VERBS


def _states(text: str) -> bool:
    """Whether a statement of its own begins here: a subject within a few words of a verb."""
    words = list(_WORD.finditer(text))[:_FARTHEST]
    if len(words) < 2:
        return False
    first = words[0][0]
    if not (first[0].isupper() or first.casefold() in _PRONOUNS | _THEIRS or not first.isascii()):
        return False
    for number, word in enumerate(words[1:], 1):
        if word[0].casefold() in VERBS:
            return True
        if ";" in text[words[number - 1].end() : word.start()] or "," in text[words[number - 1].end() : word.start()]:
            return False
    return False
