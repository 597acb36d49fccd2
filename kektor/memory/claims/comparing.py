"""What two statements of the same subject are to each other."""

from collections.abc import Iterable
from typing import Literal

from kektor.memory.claims.reading import predicate_of
from kektor.memory.claims.statement import Statement
from kektor.memory.claims.tables import english, single_valued_of_names

__all__ = ["Relation", "SingleValued", "compare", "related_predicates"]

Relation = Literal["refines", "shorter", "conflict"]
"""The second says the first and more, less of the first, or what cannot hold beside it."""

_MORE = (", ", " (", " and ")


class SingleValued:
    """Predicates of which a subject has one value at a time."""

    def __init__(self, entries: Iterable[str]) -> None:
        self._entries = frozenset(filter(None, map(predicate_of, entries)))
        self._of_names = frozenset(map(predicate_of, single_valued_of_names()))

    def holds(self, one: Statement, other: Statement) -> bool:
        """Whether the predicate of two statements has one value: it or the noun it ends with is listed."""
        words = one.predicate.split()
        listed = {" ".join(words[at:]) for at in range(len(words))} & self._entries
        if not listed:
            return False
        return bool(listed - self._of_names) or (one.named and other.named)


def related_predicates(predicate: str) -> frozenset[str]:
    """The predicate and those that may say its opposite."""
    return frozenset({predicate}) | english().opposite_verbs.get(predicate, frozenset())


def compare(old: Statement, new: Statement, single: SingleValued) -> Relation | None:
    """What `new` is to `old`, whose subject is the same; None when both can hold, or the rules are not sure.

    >>> from kektor.memory.claims import statement_of
    >>> single = SingleValued(["lives in"])
    >>> berlin = statement_of("Dana lives in Berlin")
    >>> [compare(berlin, statement_of(f"Dana {said}"), single)
    ...  for said in ("lives in Lisbon", "lives in Berlin, near the park", "doesn't live in Berlin", "moved to Lisbon")]
    ['conflict', 'refines', 'conflict', None]
    """
    same = old.predicate == new.predicate
    then = old.past == new.past or None in (old.past, new.past)
    if same and then and old.negative == new.negative and old.event == new.event:
        if _more(old.tail, new.tail):
            return "refines"
        if _more(new.tail, old.tail):
            return "shorter"
    if old.event or new.event or not then:
        return None
    if _opposite(old, new):
        return "conflict"
    both = same and not old.negative and not new.negative and bool(old.object) and bool(new.object)
    if both and single.holds(old, new) and not _overlap(old.object, new.object):
        return "conflict"
    return None


def _opposite(old: Statement, new: Statement) -> bool:
    if old.object == new.object:
        if old.predicate == new.predicate:
            return old.negative != new.negative
        opposed = new.predicate in english().opposite_verbs.get(old.predicate, ())
        return opposed and old.negative == new.negative
    opposed = new.object in english().opposite_states.get(old.object, ())
    return opposed and old.predicate == new.predicate and not (old.negative or new.negative)


def _more(shorter: str, longer: str) -> bool:
    """Whether the longer is the whole shorter one followed by a comma, "and" or a parenthesis."""
    short, long = (" ".join(text.casefold().split()) for text in (shorter, longer))
    return bool(short) and long.startswith(short) and long[len(short) :].startswith(_MORE)


def _overlap(one: str, other: str) -> bool:
    """Whether one value is part of the other, as Berlin is of Berlin, Germany."""
    few, many = sorted((one.split(), other.split()), key=len)
    return any(many[at : at + len(few)] == few for at in range(len(many) - len(few) + 1))
