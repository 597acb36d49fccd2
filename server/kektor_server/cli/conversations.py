"""Reading conversations from files, and sending them in parts so that the parts mean what the whole would."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kektor_server.cli.faults import Fault

__all__ = ["Part", "parts", "read_conversation"]

FIELDS = ("role", "content", "at", "speaker", "id", "metadata")
_REQUIRED = ("role", "content")
_READABLE = (".jsonl", ".ndjson", ".json")
_SUPPORTED = (
    "conversations as .jsonl (a message a line) or .json (an array), each message {role, content, at?, speaker?, id?}"
)

Message = dict[str, Any]


class Part(NamedTuple):
    """Messages for one call: `repeated` ones first, which the call before stored already, then the `new` ones."""

    repeated: list[Message]
    new: list[Message]


def read_conversation(path: Path) -> list[Message]:
    """The messages of a file, all of them checked before the first is sent; Fault names the line at fault."""
    if path.is_dir():
        raise Fault(f"{path} is a folder: name the files in it", field="path")
    if path.suffix.lower() not in _READABLE:
        kind = f"{path.suffix} files" if path.suffix else "files without an ending"
        raise Fault(f"{path}: {kind} cannot be ingested yet; supported now are {_SUPPORTED}", field="path")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Fault(f"there is no file {path}", field="path") from None
    except UnicodeDecodeError as error:
        raise Fault(f"{path} is not UTF-8 (byte {error.start})", field="path") from error
    except OSError as error:
        raise Fault(f"{path} cannot be read: {error.strerror}", field="path") from error
    located = _array(path, text) if text.lstrip().startswith("[") else _lines(path, text)
    messages = [_checked(where, message) for where, message in located]
    if not messages:
        raise Fault(f"{path} holds no message", field="path")
    return messages


def parts(messages: Sequence[Message], size: int) -> Iterator[Part]:
    """Cut a conversation so that sending part after part stores what one call with all of it would.

    A message without an id is told from its equals by its place among them *in one call*. So a part begins with every
    earlier equal of its messages again: the server knows them, and counts on from there.
    """
    before: dict[tuple[Any, ...], list[Message]] = defaultdict(list)
    for start in range(0, len(messages), size):
        new = list(messages[start : start + size])
        keys = {_key(message) for message in new if "id" not in message}
        yield Part([message for key in sorted(keys) for message in before.get(key, ())], new)
        for message in new:
            if "id" not in message:
                before[_key(message)].append(message)


def _key(message: Message) -> tuple[Any, ...]:
    """What equals share, but for the time: one instant may be spelt in two ways, which only the server can tell."""
    return (message["role"], message.get("speaker") or "", message["content"])


def _lines(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield f"{path}, line {number}", _json(f"{path}, line {number}", line)


def _array(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    for number, message in enumerate(_json(str(path), text), 1):
        yield f"{path}, message {number}", message


def _json(where: str, text: str) -> Any:
    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is no JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise Fault(f"{where}: {error}", field="path") from error


def _checked(where: str, message: Any) -> Message:
    if not isinstance(message, dict):
        raise Fault(f"{where}: a message is an object, not {type(message).__name__}", field="path")
    for name in message:
        if name not in FIELDS:
            raise Fault(f"{where}: unknown field {name!r}; a message takes {', '.join(FIELDS)}", field=name)
    for name in _REQUIRED:
        if not isinstance(message.get(name), str):
            raise Fault(f"{where}: {name} must be a text", field=name)
    found = {name: value for name, value in message.items() if value is not None}
    for name in ("speaker", "id"):
        if not isinstance(found.get(name, ""), str):
            raise Fault(f"{where}: {name} must be a text", field=name)
    return found
