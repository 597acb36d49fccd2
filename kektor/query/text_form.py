"""The text form of a filter: `tags CONTAINS 'crm' AND NOT metadata.stage IN ('draft', 'old')`."""

from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, cast

import lark

from kektor.errors import Invalid
from kektor.query.syntax import (
    MAX_CHARACTERS,
    Condition,
    Place,
    Test,
    Tree,
    branch,
    split_path,
    too_large,
    unescape,
)

__all__ = ["read"]


def read(source: str) -> Tree:
    """The tree of a filter in text; `Invalid` gives the character, what is there and what was expected."""
    return _remembered(source) if len(source) <= _REMEMBERED_LENGTH else _read(source)


# The same few filters come again and again; long ones are not kept, so that what this holds stays small.
_REMEMBERED_LENGTH: Final = 1_000


@lru_cache(maxsize=512)
def _remembered(source: str) -> Tree:
    return _read(source)


def _read(source: str) -> Tree:
    if len(source) > MAX_CHARACTERS:
        raise too_large("characters", MAX_CHARACTERS)
    if not source.strip():
        raise Invalid("filter: it is empty; leave it out to filter nothing", field="filter")
    if not source.isascii():
        _refuse_half_characters(source)
    try:
        return cast(Tree, _parser().parse(source))
    except lark.UnexpectedInput as error:
        raise _explained(source, error) from None


class _Build(lark.Transformer[Any, Any]):
    """Called while parsing, bottom up, so that no depth of nesting needs a stack."""

    def any_of(self, terms: list[Tree]) -> Tree:
        return branch("or", terms)

    def every_of(self, terms: list[Tree]) -> Tree:
        return branch("and", terms)

    def negation(self, terms: list[Tree]) -> Tree:
        return branch("not", terms)

    def compare(self, parts: list[lark.Token]) -> Tree:
        path, operator, value = parts
        test: Any = _SPELLINGS.get(operator, str(operator))
        return _condition(test, path, value)

    def within(self, parts: list[Any]) -> Tree:
        return _condition("in", parts[0], *parts[1])

    def not_within(self, parts: list[Any]) -> Tree:
        return branch("not", [self.within(parts)])

    def contains(self, parts: list[lark.Token]) -> Tree:
        return _condition("contains", *parts)

    def not_contains(self, parts: list[lark.Token]) -> Tree:
        return branch("not", [self.contains(parts)])

    def like(self, parts: list[lark.Token]) -> Tree:
        return _condition("like", *parts)

    def not_like(self, parts: list[lark.Token]) -> Tree:
        return branch("not", [self.like(parts)])

    def exists(self, parts: list[lark.Token]) -> Tree:
        return _condition("exists", *parts)

    def list(self, values: list[lark.Token]) -> list[lark.Token]:
        return values


_SPELLINGS: Final = {"<>": "!="}
_GRAMMAR: Final = Path(__file__).with_name("grammar.lark")


@lru_cache(maxsize=1)
def _parser() -> lark.Lark:
    return lark.Lark(_GRAMMAR.read_text("utf-8"), parser="lalr", transformer=_Build(), maybe_placeholders=False)


def _condition(test: Test, path: lark.Token, *values: lark.Token) -> Condition:
    place = _at(path)
    return Condition(test, split_path(path, place), tuple(_literal(value) for value in values), place)


def _literal(token: lark.Token) -> object:
    match token.type:
        case "STRING":
            return unescape(token, lambda offset: Place(position=(token.start_pos or 0) + 1 + offset))
        case "NUMBER":
            return _number(token)
        case "NULL":
            return None
        case kind:
            return kind == "TRUE"


def _number(token: lark.Token) -> int | float:
    try:
        return int(token)
    except ValueError:  # a fraction, an exponent, or more digits than Python reads
        number = float(token)
    if number in (float("inf"), float("-inf")):
        raise _at(token).invalid("this number is too large")
    return number


def _at(token: lark.Token) -> Place:
    return Place(position=(token.start_pos or 0) + 1)


def _refuse_half_characters(source: str) -> None:
    try:
        source.encode()
    except UnicodeEncodeError as error:
        raise Place(position=error.start + 1).invalid("half of a surrogate pair is no character") from None


_VALUE: Final = "a value (text in quotes, a number, TRUE, FALSE or NULL)"
_TEXT: Final = "text in quotes"
_WORDS: Final = (
    ({"STRING", "NUMBER", "TRUE", "FALSE", "NULL"}, _VALUE),
    ({"STRING"}, _TEXT),
    ({"OPERATOR", "_IN", "_NOT", "_CONTAINS", "_LIKE"}, "a comparison (= != < <= > >= IN CONTAINS LIKE)"),
    ({"_IN", "_CONTAINS", "_LIKE"}, "IN, CONTAINS or LIKE"),
    ({"PATH", "_NOT", "_EXISTS", "LPAR"}, "a condition such as layer = 'semantic'"),
    ({"PATH"}, "a field name"),
    ({"LPAR"}, "an opening parenthesis"),
    ({"_AND"}, "AND"),
    ({"_OR"}, "OR"),
    ({"COMMA"}, "a comma"),
    ({"RPAR"}, "a closing parenthesis"),
    ({"$END"}, "the end of the filter"),
)
# What other languages write, and this one does not.
_HINTS: Final = {
    "=": "write = once",
    "&": "write AND",
    "|": "write OR",
    "!": "write NOT before a condition",
    "is": "write EXISTS(field), or field = NULL",
    "between": "write field >= a AND field <= b",
    "ilike": "LIKE minds case",
    "[": "a list stands in parentheses",
}


def _explained(source: str, error: lark.UnexpectedInput) -> Invalid:
    token = error.token if isinstance(error, lark.UnexpectedToken) else None
    at_end = token is not None and token.type == "$END"
    offset = len(source) if at_end else error.pos_in_stream or 0
    expected = _expected(source, offset)
    place = Place(position=offset + 1)
    if at_end:
        return place.invalid(f"it ends where {_either(expected)} should follow", expected=expected)
    if token is None and source[offset] in "'\"":
        return place.invalid(f"the text that begins with {source[offset]} is never closed", expected=expected)
    found = source[offset:].split(maxsplit=1)[0] if token is None else str(token)
    shown = found if len(found) <= 40 else f"{found[:40]}…"
    hint = _hint(source[:offset], found, expected)
    return place.invalid(f"found {shown!r}, expected {_either(expected)}{hint}", expected=expected)


def _expected(source: str, offset: int) -> list[str]:
    """What the grammar takes at this place, in words."""
    parsing: Any = _parser().parse_interactive(source)
    with suppress(lark.UnexpectedInput):
        for token in parsing.lexer_thread.lex(parsing.parser_state):
            if token.start_pos >= offset:
                break
            parsing.feed_token(token)
    accepted = set(parsing.accepts())
    words = []
    for terminals, word in _WORDS:
        if terminals <= accepted:
            words.append(word)
            accepted -= terminals
    return words


def _either(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _hint(before: str, found: str, expected: list[str]) -> str:
    if found[0] in "'\"" and before.endswith(found[0]):
        return f"; inside a text write \\{found[0]} for a quote"
    takes_text = bool(expected) and expected[0] in (_VALUE, _TEXT)
    if takes_text and (found[0].isalnum() or found[0] == "_"):
        return "; text needs quotes"
    hint = _HINTS.get(found.lower()) or _HINTS.get(found[0])
    return f"; {hint}" if hint else ""
