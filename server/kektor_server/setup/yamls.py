"""YAML, edited in place by the marks its parser gives: every other line stays as it is."""

from collections.abc import Sequence
from typing import Any

import yaml

from kektor_server.setup.edits import Uneditable

__all__ = ["read", "remove_member", "set_member"]


def read(text: str) -> dict[str, Any]:
    """The value of a file; an empty one is an empty mapping."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise Uneditable(str(error)) from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Uneditable("the file is not a mapping")
    return value


def set_member(text: str, path: Sequence[str], value: dict[str, Any]) -> str:
    """The file with a mapping of two names, such as `mcp_servers: kektor:`."""
    outer, inner = path
    wanted = read(text)
    existing = wanted.get(outer)
    if existing is not None and not isinstance(existing, dict):
        raise Uneditable(f"{outer} is not a mapping")
    if (existing or {}).get(inner) == value:
        return text
    wanted[outer] = {**(existing or {}), inner: value}
    if inner in (existing or {}):
        text = _without(text, outer, inner)
    newline = "\r\n" if "\r\n" in text else "\n"
    if text and not text.endswith("\n"):
        text += newline
    key, found = _entry(text, outer)
    if key is None or found is None:
        added = _dumped({outer: {inner: value}}, 0)
        at = len(text)
    elif isinstance(found, yaml.MappingNode) and not found.flow_style and found.value:
        added = _dumped({inner: value}, found.value[0][0].start_mark.column)
        at = _line_after(text, found.value[-1][1].end_mark.index)
    else:
        raise Uneditable(f"{outer} is written in a way that cannot be added to safely")
    return _checked(text[:at] + added.replace("\n", newline) + text[at:], wanted)


def remove_member(text: str, path: Sequence[str]) -> str:
    """The file without such a mapping, and without the outer one when this leaves it empty."""
    outer, inner = path
    wanted = read(text)
    if not isinstance(wanted.get(outer), dict) or inner not in wanted[outer]:
        return text
    del wanted[outer][inner]
    if not wanted[outer]:
        del wanted[outer]
    return _checked(_without(text, outer, inner), wanted)


def _without(text: str, outer: str, inner: str) -> str:
    key, found = _entry(text, outer)
    if key is None or not isinstance(found, yaml.MappingNode) or found.flow_style:
        raise Uneditable(f"{outer} is written in a way that cannot be taken from safely")
    name, value = next((name, value) for name, value in found.value if name.value == inner)
    first = key if len(found.value) == 1 else name
    begin = text.rfind("\n", 0, first.start_mark.index) + 1
    return text[:begin] + text[_line_after(text, value.end_mark.index) :]


def _entry(text: str, outer: str) -> tuple[Any, Any]:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is None:
        return None, None
    if root.flow_style:
        raise Uneditable("the file is written in one line: it cannot be added to safely")
    return next(((key, value) for key, value in root.value if key.value == outer), (None, None))


def _line_after(text: str, at: int) -> int:
    """Where the line after the one ends that holds the last thing before `at`."""
    last = len(text[:at].rstrip())
    end = text.find("\n", last)
    return len(text) if end < 0 else end + 1


def _dumped(value: Any, column: int) -> str:
    lines = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=10_000).splitlines()
    return "".join(f"{' ' * column}{line}\n" for line in lines)


def _checked(text: str, wanted: dict[str, Any]) -> str:
    """The edit says what was meant and nothing else."""
    if read(text) != wanted:
        raise Uneditable("it is written in a way that cannot be changed safely")
    return text
