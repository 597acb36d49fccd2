"""A text that makes several statements, taken apart: each by itself, with its subject."""

import re
from collections.abc import Iterator

from kektor.memory.claims.comparing import related_predicates
from kektor.memory.claims.reading import Token, head_of_clause, statement_of, tokens_of
from kektor.memory.claims.tables import english
from kektor.text import sentences

__all__ = ["clauses_of", "remainder_of"]

_BREAK = re.compile(r";\s*(?:(?:and|but)\s+)?|,\s+(?:and|but)\s+|\s+(?:and|but)\s+")
_STANDS_FOR = frozenset({"he", "she", "it", "they"})


def clauses_of(text: str) -> list[str]:
    """The statements of a text, each with its subject; a text that makes one, or that is not understood, is one.

    >>> clauses_of("Priya is an engineer, and she works at Acme; she likes tea and coffee")
    ['Priya is an engineer', 'Priya works at Acme', 'Priya likes tea and coffee']
    """
    found: list[str] = []
    subject = ""
    for span in sentences(text):
        for part in _parts(text[span.start : span.end].rstrip(".! ")):
            whole, subject = _with_subject(part, subject)
            found.append(whole)
    return found


def remainder_of(old: str, new: str) -> str | None:
    """What an old text says besides what a new one is about; None when that is not sure, nothing, or all of it.

    >>> remainder_of("Priya is an engineer, and she works at Acme", "Priya is a manager")
    'Priya works at Acme'
    """
    about = statement_of(new)
    if about is None or not about.predicate:
        return None
    related = related_predicates(about.predicate)
    kept, gone = [], 0
    for clause in clauses_of(old):
        said = statement_of(clause)
        if said is None or not said.predicate:
            return None
        if said.subject == about.subject and said.predicate in related:
            gone += 1
        else:
            kept.append(clause)
    return ". ".join(kept) if kept and gone else None


def _parts(sentence: str) -> Iterator[str]:
    """A sentence at the places where another verb begins; "tea and coffee" stays."""
    start = 0
    for found in _BREAK.finditer(sentence):
        if _begins_clause(tokens_of(sentence[found.end() :])):
            yield sentence[start : found.start()]
            start = found.end()
    yield sentence[start:]


def _begins_clause(tokens: list[Token]) -> bool:
    """Whether what follows has a verb of its own: at once, after "she", or after a subject that it names."""
    if len(tokens) < 2:
        return False
    first = tokens[0]
    if first.word in _STANDS_FOR or first.word in ("i", "we"):
        return True
    return _is_verb(first) or head_of_clause(tokens) is not None


def _is_verb(token: Token) -> bool:
    table = english()
    forms = table.third.keys() | table.past.keys() | table.copula_present | table.copula_past | table.modals
    return token.raw[:1].islower() and (token.word in forms or token.word in ("has", "had", "does", "did", "doesn't"))


def _with_subject(part: str, subject: str) -> tuple[str, str]:
    """A clause that stands by itself, and the subject of the next one that has none."""
    part = part.strip()
    tokens = tokens_of(part)
    if not tokens:
        return part, subject
    if subject and tokens[0].word in _STANDS_FOR:
        return f"{subject}{part[tokens[0].end :]}", subject
    if subject and _is_verb(tokens[0]):
        return f"{subject} {part}", subject
    at = head_of_clause(tokens)
    return part, subject if at is None else part[: tokens[at].start].strip()
