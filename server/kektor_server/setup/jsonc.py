"""JSON with comments, edited in place: a member is set or taken out, and every other byte stays.

A small reader keeps where every member begins and ends; edits cut and paste by these places. Comments, trailing
commas, indentation and line ends are the file's own.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kektor_server.setup.edits import Uneditable

__all__ = ["append_item", "read", "remove_items", "remove_member", "set_member"]

Path = Sequence[str]


def read(text: str) -> Any:
    """The value of a file; an empty one is an empty object."""
    return _parse(text).value


def set_member(text: str, path: Path, value: Any) -> str:
    """The file with a member set, the objects on the way to it made where they are not there."""
    node, rest = _descend(_parse(text), path)
    if not rest:
        return _checked(_replaced(text, node, value), path, value)
    nested = value
    for name in reversed(rest[1:]):
        nested = {name: nested}
    return _checked(_with_member(_editable(text), node, rest[0], nested), path, value)


def append_item(text: str, path: Path, value: Any) -> str:
    """The file with a value at the end of a list, which is made where it is not there."""
    node, rest = _descend(_parse(text), path)
    if rest:
        return set_member(text, path, [value])
    if node.kind != "array":
        raise Uneditable(f"{'.'.join(path)} is not a list")
    changed = _with_child(text, node, lambda indent: _dumped(value, indent, _unit(text)))
    return _checked(changed, path, [*node.value, value])


def remove_member(text: str, path: Path) -> str:
    """The file without a member, and without the objects on the way to it that this leaves empty."""
    for length in range(len(path), 0, -1):
        node, rest = _descend(_parse(text), path[: length - 1])
        if rest or node.kind != "object":
            return text
        index = next((i for i, child in enumerate(node.children) if child.name == path[length - 1]), None)
        if index is None or (length < len(path) and node.children[index].value != {}):
            return text
        text = _without(text, node, index)
        _parse(text)
    return text


def remove_items(text: str, path: Path, ours: Callable[[Any], bool]) -> str:
    """The file without the values of a list that are ours, and without the list and objects that this leaves empty."""
    node, rest = _descend(_parse(text), path)
    if rest or node.kind != "array" or not any(ours(child.value) for child in node.children):
        return text
    while (index := next((i for i, child in enumerate(node.children) if ours(child.value)), None)) is not None:
        text = _without(text, node, index)
        node, _ = _descend(_parse(text), path)
    if not node.children:
        parent, _ = _descend(_parse(text), path[:-1])
        index = next(i for i, child in enumerate(parent.children) if child.name == path[-1])
        text = _without(text, parent, index)
        if len(path) > 1 and read_at(text, path[:-1]) == {}:
            text = remove_member(text, path[:-1])
    return text


def read_at(text: str, path: Path) -> Any:
    """The value at a path; None where there is none."""
    node, rest = _descend(_parse(text), path)
    return None if rest else node.value


@dataclass
class _Node:
    """A value and its place; `begin` is where its name begins when it has one."""

    kind: str
    start: int
    end: int
    value: Any
    name: str | None = None
    begin: int = 0
    children: list["_Node"] = field(default_factory=list)
    trailing: int | None = None
    """Where a comma stands behind the last child."""


_SPACE = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\n]*|/\*.*?\*/)*", re.S)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_PLAIN = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")


def _parse(text: str) -> _Node:
    at = _skip(text, 0)
    if at == len(text):
        return _Node("object", at, at, {})
    node, end = _value(text, at)
    rest = _skip(text, end)
    if rest != len(text):
        raise _wrong(text, rest, "the end of the file")
    if node.kind != "object":
        raise Uneditable("the file is not an object")
    return node


def _value(text: str, at: int) -> tuple[_Node, int]:
    opening = text[at : at + 1]
    if opening in ("{", "["):
        return _container(text, at, "object" if opening == "{" else "array")
    if opening == '"':
        return _plain(text, at, _STRING, "a text")
    return _plain(text, at, _PLAIN, "a value")


def _plain(text: str, at: int, pattern: re.Pattern[str], what: str) -> tuple[_Node, int]:
    found = pattern.match(text, at)
    if found is None:
        raise _wrong(text, at, what)
    try:
        value = json.loads(found.group())
    except ValueError:
        raise _wrong(text, at, what) from None
    return _Node("plain", at, found.end(), value, begin=at), found.end()


def _container(text: str, start: int, kind: str) -> tuple[_Node, int]:
    closing = "}" if kind == "object" else "]"
    node = _Node(kind, start, start, {} if kind == "object" else [], begin=start)
    at = _skip(text, start + 1)
    while text[at : at + 1] != closing:
        child, at = _member(text, at) if kind == "object" else _value(text, at)
        if kind == "object":
            if child.name in node.value:
                raise Uneditable(f"{child.name!r} is there twice ({_where(text, child.begin)})")
            node.value[child.name] = child.value
        else:
            node.value.append(child.value)
        node.children.append(child)
        node.trailing = None
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            node.trailing = at
            at = _skip(text, at + 1)
        elif text[at : at + 1] != closing:
            raise _wrong(text, at, f"a comma or {closing}")
    node.end = at + 1
    return node, at + 1


def _member(text: str, at: int) -> tuple[_Node, int]:
    name, end = _plain(text, at, _STRING, "a name in quotes")
    colon = _skip(text, end)
    if text[colon : colon + 1] != ":":
        raise _wrong(text, colon, "a colon")
    node, end = _value(text, _skip(text, colon + 1))
    node.name, node.begin = name.value, at
    return node, end


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _descend(node: _Node, path: Path) -> tuple[_Node, list[str]]:
    """As far as the path is there, and the names of it that are not."""
    for depth, name in enumerate(path):
        if node.kind != "object":
            raise Uneditable(f"{'.'.join(path[:depth])} is not an object")
        child = next((child for child in node.children if child.name == name), None)
        if child is None:
            return node, list(path[depth:])
        node = child
    return node, []


def _checked(text: str, path: Path, value: Any) -> str:
    """The edit says what was meant."""
    if read_at(text, path) != value:
        raise Uneditable("it is written in a way that cannot be changed safely")
    return text


def _editable(text: str) -> str:
    return text if text.strip() else "{}\n"


def _replaced(text: str, node: _Node, value: Any) -> str:
    if node.value == value:
        return text
    indent = _indent_at(text, node.begin)
    return text[: node.start] + _lines(text, _dumped(value, indent, _unit(text))) + text[node.end :]


def _with_member(text: str, node: _Node, name: str, value: Any) -> str:
    if node.start == node.end:  # the file was empty
        node = _parse(text)
    return _with_child(
        text, node, lambda indent: f"{json.dumps(name, ensure_ascii=False)}: {_dumped(value, indent, _unit(text))}"
    )


def _with_child(text: str, node: _Node, dumped: Callable[[str], str]) -> str:
    """A child after the last one, and after the comments that stand behind that."""
    closing = node.end - 1
    own = _indent_at(text, node.begin)
    indent = _indent_at(text, node.children[0].begin) if node.children else own + _unit(text)
    if not node.children:
        within = text[node.start + 1 : closing].rstrip()
        added = f"{within}\n{indent}{dumped(indent)}\n{own}"
        return text[: node.start + 1] + _lines(text, added) + text[closing:]
    last = node.children[-1].end
    behind = text[last:closing].rstrip()
    comma = "" if node.trailing is not None else ","
    trailing = "," if node.trailing is not None else ""
    if "\n" in text[node.start : closing]:
        added = f"{comma}{behind}\n{indent}{dumped(indent)}{trailing}\n{own}"
    else:
        added = f"{comma}{behind} {dumped(own)}{trailing}{text[last + len(behind) : closing]}"
    return text[:last] + _lines(text, added) + text[closing:]


def _without(text: str, node: _Node, index: int) -> str:
    """Without one child, its comma, and the white space before it."""
    child = node.children[index]
    begin, end = len(text[: child.begin].rstrip()), child.end
    last = index + 1 == len(node.children)
    if not last or node.trailing is not None:
        end = text.index(",", _skip(text, end)) + 1
    elif index > 0:
        comma = text.index(",", _skip(text, node.children[index - 1].end))
        return text[:comma] + text[comma + 1 : begin] + text[end:]
    if last and index == 0 and not text[end : node.end - 1].strip():
        closing = node.end - 1
        commented = begin > node.start + 1
        return text[:begin] + (_lines(text, f"\n{_indent_at(text, node.begin)}") if commented else "") + text[closing:]
    return text[:begin] + text[end:]


def _dumped(value: Any, indent: str, unit: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", f"\n{indent}")


def _unit(text: str) -> str:
    """What the file indents by: that of its first indented line."""
    found = re.search(r"^([ \t]+)\S", text, re.M)
    if found is None:
        return "  "
    return "\t" if found.group(1).startswith("\t") else found.group(1)


def _indent_at(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _lines(text: str, added: str) -> str:
    return added.replace("\r\n", "\n").replace("\n", "\r\n") if "\r\n" in text else added


def _wrong(text: str, at: int, expected: str) -> Uneditable:
    found = repr(text[at : at + 1]) if at < len(text) else "the end of the file"
    return Uneditable(f"{_where(text, at)}: expected {expected}, found {found}")


def _where(text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    return f"line {line}, column {at - text.rfind(chr(10), 0, at)}"
