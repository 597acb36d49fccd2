"""basic-memory: a folder of Markdown notes, with observations and relations written as list items."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from kektor_server.importers.items import Item, Left, Link, Statement, Unreadable
from kektor_server.importers.sources import read_text, text_of

__all__ = ["read_markdown"]

_FRONT = re.compile(r"\A---\r?\n(.*?)\r?\n---\r?\n?", re.S)
_OBSERVATION = re.compile(r"^\s*[-*] \[(?P<category>[^\]\n]+)\] (?P<text>.+)$", re.M)
_RELATION = re.compile(r"^\s*[-*] (?P<rel>[^\[\n]*?)\s*\[\[(?P<target>[^\]\n]+)\]\]", re.M)
_TAG = re.compile(r"(?:^|\s)#([\w/-]+)")
_TASK = ("x", "X", " ", "-")


class _Note:
    def __init__(self, path: Path, root: Path) -> None:
        text = read_text(path)
        front = _FRONT.match(text)
        self.front = _front(front.group(1), path) if front else {}
        self.body = text[front.end() :] if front else text
        self.place = str(path.relative_to(root)) if path != root else path.name
        self.title = text_of(self.front.get("title")) or path.stem
        self.permalink = text_of(self.front.get("permalink")) or str(Path(self.place).with_suffix(""))

    @property
    def names(self) -> set[str]:
        """What a link may call it."""
        return {self.title.casefold(), self.permalink.casefold(), Path(self.place).stem.casefold()}


def read_markdown(path: Path) -> Iterator[Item]:
    """Every note, then its observations, then the relations between notes."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*.md") if not any(part.startswith(".") for part in file.parts))
        if not files:
            raise Unreadable(f"{path} holds no Markdown file")
    else:
        files = [path]
    notes = [_Note(file, path) for file in files]
    by_name = {name: note for note in notes for name in note.names}
    for note in notes:
        yield from _statements(note)
    for note in notes:
        for found in _RELATION.finditer(note.body):
            name = found["target"].partition("|")[0].strip()
            target = by_name.get(name.casefold())
            rel = re.sub(r"\s+", "_", found["rel"].strip()) or "links_to"
            if target is None:
                yield Left(f"{note.place}: {found.group().strip()}", f"there is no note {name!r}")
            else:
                yield Link(f"note:{note.permalink}", rel, f"note:{target.permalink}")


def _statements(note: _Note) -> Iterator[Item]:
    kind = text_of(note.front.get("type")) or "note"
    tags = _tags(note.front.get("tags"))
    metadata = {"entity": note.title, "entity_type": kind, "permalink": note.permalink, "path": note.place}
    prose = _RELATION.sub("", _OBSERVATION.sub(_kept, note.body)).strip()
    text = f"{note.title}\n\n{prose}" if prose else f"{note.title} ({kind})"
    yield Statement(f"note:{note.permalink}", text, {"tags": ["entity", *tags], "metadata": metadata})
    for found in _OBSERVATION.finditer(note.body):
        category, said = found["category"].strip(), found["text"].strip()
        if found["category"] in _TASK or found["category"].startswith("["):
            continue
        key = f"observation:{note.permalink}:{category}:{said}"
        of = {"entity": note.title, "observation": said, "category": category}
        its_tags = ["observation", category, *_TAG.findall(said)]
        yield Statement(key, f"{note.title}: {said}", {"tags": list(dict.fromkeys(its_tags)), "metadata": of})
        yield Link(key, "about", f"note:{note.permalink}")


def _kept(found: re.Match[str]) -> str:
    """A task list is prose and no observation."""
    return found.group() if found["category"] in _TASK else ""


def _front(text: str, path: Path) -> dict[str, Any]:
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise Unreadable(f"{path}: its head is no YAML: {error}") from None
    return value if isinstance(value, dict) else {}


def _tags(value: Any) -> list[str]:
    listed = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return [tag for each in listed if (tag := str(each).strip().lstrip("#"))]
