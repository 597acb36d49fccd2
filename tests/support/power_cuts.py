"""What a power cut leaves of a folder: from the notes of a disk, any state that the calls so far allow.

What was synced is there. What was not may be there, or not, or in part, and in any order: each write by itself, names
by folder, each folder having forgotten some of its last changes.
"""

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.failing_disk import Call

__all__ = ["Note", "read_notes", "what_is_left"]

_HEAD = struct.Struct("<IIIIQQ")
_GONE = " (deleted)"


@dataclass(frozen=True)
class Note:
    """One call, or a line of the writer's own (`MARK`)."""

    call: Call
    path: str
    other: str
    offset: int
    data: bytes


def read_notes(path: Path) -> list[Note]:
    """All of them, in order."""
    content, at, notes = path.read_bytes(), 0, []
    while at < len(content):
        kind, path_bytes, other_bytes, _, offset, length = _HEAD.unpack_from(content, at)
        at += _HEAD.size
        parts = []
        for size in (path_bytes, other_bytes, length):
            parts.append(content[at : at + size])
            at += size
        notes.append(Note(Call(kind), parts[0].decode(), parts[1].decode(), offset, parts[2]))
    return notes


@dataclass
class _File:
    """What was done to a file's bytes since it was made, and how much of that was synced."""

    done: list[Note] = field(default_factory=list)
    synced: int = 0


@dataclass
class _Folder:
    """Changes of names: (name, the file or folder that it got, or None), and how many were synced."""

    changes: list[tuple[str, "_File | _Folder | None"]] = field(default_factory=list)
    synced: int = 0


class _Disk:
    def __init__(self, root: str) -> None:
        self.root = root
        self.top = _Folder()
        self._live: dict[str, _File | _Folder] = {root: self.top}

    def do(self, note: Note) -> None:
        path = note.path.removesuffix(_GONE)
        match note.call:
            case Call.OPEN:
                self._name(path, _File())
            case Call.MAKE:
                self._name(path, _Folder())
            case Call.REMOVE:
                self._name(path, None)
            case Call.RENAME:
                moved = self._live.get(path)
                self._name(path, None)
                self._name(note.other, moved)
            case Call.LINK:
                self._name(note.other, self._live.get(path))
            case Call.SYNC:
                held = self._live.get(path)
                if isinstance(held, _File):
                    held.synced = len(held.done)
                elif held is not None:
                    held.synced = len(held.changes)
            case Call.WRITE | Call.TRUNCATE | Call.ALLOCATE:
                held = self._live.get(path)
                if isinstance(held, _File):
                    held.done.append(note)
            case Call.MARK:
                pass

    def _name(self, path: str, what: "_File | _Folder | None") -> None:
        parent, _, name = path.rpartition("/")
        folder = self._live.get(parent)
        if isinstance(folder, _Folder):
            folder.changes.append((name, what))
        if what is None:
            self._live.pop(path, None)
        else:
            self._live[path] = what


def what_is_left(notes: list[Note], root: Path, into: Path, pick: random.Random) -> None:
    """Make, in a new folder, one state that a power cut behind these calls may leave of `root`."""
    disk = _Disk(str(root))
    for note in notes:
        disk.do(note)
    into.mkdir(parents=True)
    _make(disk.top, into, pick)


def _make(folder: _Folder, into: Path, pick: random.Random) -> None:
    kept = pick.choice([folder.synced, len(folder.changes), pick.randint(folder.synced, len(folder.changes))])
    names: dict[str, _File | _Folder] = {}
    for name, what in folder.changes[:kept]:
        if what is None:
            names.pop(name, None)
        else:
            names[name] = what
    for name, what in names.items():
        if isinstance(what, _Folder):
            (into / name).mkdir()
            _make(what, into / name, pick)
        else:
            (into / name).write_bytes(b"")
            with (into / name).open("r+b") as stream:
                for note in _survivors(what, pick):
                    if note.call is Call.WRITE:
                        stream.seek(note.offset)
                        stream.write(note.data)
                    elif note.call is Call.TRUNCATE or note.offset > stream.seek(0, 2):
                        stream.truncate(note.offset)


def _survivors(file: _File, pick: random.Random) -> Iterator[Note]:
    yield from file.done[: file.synced]
    luck = pick.random()
    for note in file.done[file.synced :]:
        if pick.random() < luck:
            cut = pick.choice([len(note.data), len(note.data), pick.randint(0, len(note.data))])
            yield Note(note.call, note.path, note.other, note.offset, note.data[:cut])
