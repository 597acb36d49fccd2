"""TOML, edited with its comments and its order kept."""

import tomllib
from collections.abc import Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from kektor_server.setup.edits import Uneditable

__all__ = ["read", "remove_table", "set_table"]


def read(text: str) -> dict[str, Any]:
    """The value of a file."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Uneditable(str(error)) from None


def set_table(text: str, path: Sequence[str], value: dict[str, Any]) -> str:
    """The file with a table of two names, such as `[mcp_servers.kektor]`, at its end or in place of the one there."""
    outer, inner = path
    wanted = read(text)
    existing = wanted.setdefault(outer, {})
    if not isinstance(existing, dict):
        raise Uneditable(f"{outer} is not a table")
    if existing.get(inner) == value:
        return text
    known = inner in existing
    existing[inner] = value
    changed = _in_place(text, outer, inner, value) if known else _at_end(text, outer, inner, value)
    return _checked(changed, wanted)


def remove_table(text: str, path: Sequence[str]) -> str:
    """The file without such a table."""
    outer, inner = path
    wanted = read(text)
    if inner not in wanted.get(outer, {}):
        return text
    del wanted[outer][inner]
    if not wanted[outer]:
        del wanted[outer]
    block = _block(outer, inner, read(text)[outer][inner], _newline(text))
    if text.endswith(block):  # as it was put there
        return _checked(text[: -len(block)], wanted)
    document = _document(text)
    table: Any = document[outer]
    table.remove(inner)
    if not table:
        document.remove(outer)
    return _checked(tomlkit.dumps(document), wanted)


def _at_end(text: str, outer: str, inner: str, value: dict[str, Any]) -> str:
    newline = _newline(text)
    if text and not text.endswith("\n"):
        text += newline
    return text + _block(outer, inner, value, newline)


def _block(outer: str, inner: str, value: dict[str, Any], newline: str) -> str:
    table = tomlkit.document()
    for name, part in value.items():
        table.add(name, tomlkit.item(part))
    return f"\n[{outer}.{inner}]\n{tomlkit.dumps(table)}".replace("\r\n", "\n").replace("\n", newline)


def _in_place(text: str, outer: str, inner: str, value: dict[str, Any]) -> str:
    document = _document(text)
    table: Any = document[outer]
    entry = table[inner]
    for name in [name for name in entry if name not in value]:
        entry.remove(name)
    for name, part in value.items():
        if entry.get(name) != part:
            entry[name] = part
    return tomlkit.dumps(document)


def _document(text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise Uneditable(str(error)) from None


def _checked(text: str, wanted: dict[str, Any]) -> str:
    """The edit says what was meant and nothing else; an empty table may stay where somebody wrote one."""
    if {name: value for name, value in read(text).items() if value != {} or name in wanted} != wanted:
        raise Uneditable("its tables are written in a way that cannot be added to safely")
    return text


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
