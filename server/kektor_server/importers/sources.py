"""Reading files: text, JSON, JSON lines, and a member of a zip."""

import json
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kektor_server.importers.items import Unreadable

__all__ = ["instant", "json_lines", "json_of", "objects", "read_text", "text_of"]


def read_text(path: Path, member: str | None = None) -> str:
    """A file's text, or that of a member when the file is a zip."""
    try:
        if member is not None and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                name = next((name for name in archive.namelist() if name.rpartition("/")[2] == member), None)
                if name is None:
                    raise Unreadable(f"{path} has no {member} in it")
                return archive.read(name).decode("utf-8-sig")
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise Unreadable(f"there is no file {path}") from None
    except IsADirectoryError:
        raise Unreadable(f"{path} is a folder: name the file in it") from None
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path} is not UTF-8 (byte {error.start})") from None
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}") from None


def json_of(text: str, where: str) -> Any:
    """A JSON value."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{where}: {error}") from None


def json_lines(text: str, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a file with one a line, each with its place."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            place = f"{where}, line {number}"
            value = json_of(line, place)
            if not isinstance(value, dict):
                raise Unreadable(f"{place}: an object was expected")
            yield place, value


def objects(value: Any, where: str) -> list[dict[str, Any]]:
    """A list of objects."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise Unreadable(f"{where}: a list of objects was expected")
    return value


def text_of(value: Any) -> str:
    """A text, or nothing."""
    return value if isinstance(value, str) else ""


def instant(value: Any) -> str | None:
    """A time of any of these files as RFC 3339; None when there is none. Epoch numbers are seconds."""
    if isinstance(value, bool) or value is None or value == "":
        return None
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value, UTC).isoformat().replace("+00:00", "Z")
    try:
        told = datetime.fromisoformat(str(value).strip())
    except ValueError:
        return None
    return (told if told.tzinfo else told.replace(tzinfo=UTC)).isoformat()
