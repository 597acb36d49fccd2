"""What both written forms of a filter come down to, before anything is asked of its fields and types."""

import re
from collections.abc import Callable, Sequence
from typing import ClassVar, Final, Literal, TypeAlias

import msgspec

from kektor.errors import Invalid, TooLarge

__all__ = [
    "MAX_CHARACTERS",
    "MAX_CONDITIONS",
    "MAX_DEPTH",
    "MAX_VALUES",
    "Branch",
    "Condition",
    "Place",
    "Test",
    "Tree",
    "branch",
    "split_path",
    "too_large",
    "unescape",
]

MAX_CHARACTERS: Final = 20_000
"""Length of the text form, and of one text value in the JSON form; longer lists fit the JSON form."""

MAX_DEPTH: Final = 64
"""How many AND, OR and NOT may stand inside one another."""

MAX_CONDITIONS: Final = 1_000

MAX_VALUES: Final = 10_000
"""Values of all conditions together, which bounds the lists of IN."""

Test = Literal["=", "!=", "<", "<=", ">", ">=", "in", "contains", "like", "exists"]


class Place(msgspec.Struct, frozen=True):
    """Where something stands: at a character of the text form (from 1) or at a path in the JSON form."""

    position: int | None = None
    path: str | None = None

    def __str__(self) -> str:
        return f"filter, character {self.position}" if self.path is None else self.path

    def invalid(self, what: str, **details: object) -> Invalid:
        """The error that says what is wrong here."""
        where = {"position": self.position} if self.path is None else {"path": self.path}
        return Invalid(f"{self}: {what}", field="filter", details={**where, **details})


class Condition(msgspec.Struct, frozen=True):
    """One test of one field, its values as they were written."""

    test: Test
    path: tuple[str, ...]
    values: tuple[object, ...]
    place: Place

    depth: ClassVar[int] = 0
    conditions: ClassVar[int] = 1

    @property
    def listed(self) -> int:
        """How many values it has."""
        return len(self.values)


class Branch(msgspec.Struct, frozen=True):
    """Terms under AND, OR or NOT, with the sizes that limits are held against."""

    kind: Literal["and", "or", "not"]
    terms: "tuple[Tree, ...]"
    depth: int
    conditions: int
    listed: int


Tree: TypeAlias = Branch | Condition


def branch(kind: Literal["and", "or", "not"], terms: "Sequence[Tree]") -> Branch:
    """Join terms; `TooLarge` past `MAX_DEPTH`, so that whatever walks the tree stays within it."""
    depth = 1 + max(term.depth for term in terms)
    if depth > MAX_DEPTH:
        raise too_large("levels of AND, OR and NOT inside one another", MAX_DEPTH)
    conditions = sum(term.conditions for term in terms)
    return Branch(kind, tuple(terms), depth, conditions, sum(term.listed for term in terms))


def too_large(what: str, limit: int) -> TooLarge:
    """The error for more than a filter may have of something."""
    return TooLarge(f"filter: more than {limit:,} {what}", field="filter", details={"limit": limit})


def split_path(text: str, place: Place) -> tuple[str, ...]:
    """The steps of a field such as `metadata.a."odd key"`; `Invalid` when it is none.

    >>> split_path('metadata.a."odd key"', Place(position=1))
    ('metadata', 'a', 'odd key')
    """
    if not _PATH.fullmatch(text):
        raise place.invalid(
            f"{text[:40]!r} is no field name; what has more than letters, digits, _ and - is quoted, "
            'as in metadata."odd key"'
        )
    return tuple(unescape(step, lambda _: place) if step[0] in "'\"" else step for step in _STEP.findall(text))


def unescape(quoted: str, place_of: Callable[[int], Place]) -> str:
    r"""The text inside a quoted literal; `place_of` maps an offset in it to a place, for the error.

    >>> unescape(r"'it\'s'", lambda offset: Place(position=offset + 1))
    "it's"
    """
    body = quoted[1:-1]
    if "\\" not in body:
        return body

    def plain(escape: re.Match[str]) -> str:
        code = escape[1]
        if len(code) == 5:
            return chr(int(code[1:], 16))
        if code not in _ESCAPES:
            raise place_of(escape.start() + 1).invalid(
                f"'{escape[0]}' is no escape; what may follow \\ is {' '.join(_ESCAPES)} or u and four digits"
            )
        return _ESCAPES[code]

    text = _ESCAPE.sub(plain, body)
    try:
        # Two escapes make one character outside the basic plane; half a pair is no character.
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise place_of(0).invalid("a \\u escape names half of a surrogate pair") from None


_QUOTED: Final = r"""'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*\""""
_PATH: Final = re.compile(rf"[^\W\d][\w-]*(?:\.(?:[\w-]+|{_QUOTED}))*", re.DOTALL)
_STEP: Final = re.compile(rf"[\w-]+|{_QUOTED}", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES: Final = {
    "\\": "\\",
    "'": "'",
    '"': '"',
    "/": "/",
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
}
