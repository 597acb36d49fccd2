"""Checkpoints: every structure as immutable files, exact at one LSN, published by one atomic rename.

`checkpoints/<lsn>/manifest.json` lists each file with its length and SHA-256; `CURRENT` names the live checkpoint.
A file that did not change since the last checkpoint is the same file, by hard link. Two checkpoints are kept.
`CURRENT` is for people and tools: opening trusts a manifest, which only a finished checkpoint has.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from kektor.errors import Corrupt, NewerFormat
from kektor.storage.disk import make_folder, replace_file, sync_folder
from kektor.storage.structure import FrozenChunk, Structure

__all__ = ["FORMAT", "Checkpoints", "FileEntry", "Frozen", "Manifest"]

FORMAT = 1
"""Version of the data directory; a newer one is refused by name, older ones open."""

KEPT = 2
_NAME = re.compile(r"\d{20}")


class FileEntry(msgspec.Struct, frozen=True):
    length: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """What a checkpoint holds; `structures` maps a folder to nothing but its presence, also when it is empty."""

    format: int
    lsn: int
    created_at: int
    structures: list[str]
    files: dict[str, FileEntry]
    digest: str
    """SHA-256 of the manifest itself, with nothing in this place."""


class Frozen(NamedTuple):
    """Structures and their chunks as they stood at one LSN."""

    lsn: int
    structures: Mapping[str, Structure]
    chunks: Mapping[str, Sequence[FrozenChunk]]


class Checkpoints:
    """The `checkpoints` folder and `CURRENT` of one data directory."""

    def __init__(self, folder: Path) -> None:
        self._current = folder / "CURRENT"
        self._folder = folder / "checkpoints"
        self.base: str | None = None
        """The checkpoint that the structures were opened from or last written to: what a clean chunk equals."""
        self.rejected: set[str] = set()
        """Those that could not be opened. They count for nothing, and are not removed while they are news."""
        make_folder(self._folder)

    def names(self) -> list[str]:
        """Complete checkpoints, newest first. The manifest is written last, so one that has it is complete."""
        return sorted(
            (
                path.name
                for path in self._folder.iterdir()
                if _NAME.fullmatch(path.name) and (path / "manifest.json").exists()
            ),
            reverse=True,
        )

    def path(self, name: str) -> Path:
        return self._folder / name

    def read(self, name: str) -> Manifest:
        """Load a manifest and check that every file it names is there with its exact length."""
        manifest = self.manifest(name)
        for file, what in _misfits(self._folder / name, manifest):
            raise Corrupt(f"{self._folder / name / file} {what}")
        return manifest

    def manifest(self, name: str) -> Manifest:
        """Load a manifest, whatever became of the files it names; Corrupt, or NewerFormat when it is sound."""
        path = self._folder / name / "manifest.json"
        try:
            content = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
            if content.get("digest") != _digest(content):
                raise Corrupt(f"{path} is damaged: it does not have its own digest")
            if isinstance(found := content.get("format"), int) and found > FORMAT:
                raise NewerFormat(
                    f"{path} has data format {found}, newer than this program's {FORMAT}: upgrade kektor. "
                    "Nothing was changed.",
                    details={"path": str(path), "format": found},
                )
            return msgspec.convert(content, Manifest)
        except msgspec.MsgspecError as error:
            raise Corrupt(f"{path}: {error}") from error

    def misfits(self, name: str) -> list[tuple[str, str]]:
        """Files that are missing or of another length than the manifest says."""
        return list(_misfits(self._folder / name, self.manifest(name)))

    def damaged_files(self) -> list[tuple[str, str]]:
        """What is not as it was written, and how: every byte is read, of every checkpoint."""
        complete = self.names()
        damaged = [(f"checkpoints/{name}/{file}", what) for name in complete for file, what in self._damage(name)]
        newest = max(complete, default="")
        # Only a newer one may be incomplete: an attempt that a crash ended.
        damaged += [
            (f"checkpoints/{path.name}", "its manifest is missing")
            for path in sorted(self._folder.iterdir())
            if path.name not in complete and path.name < newest
        ]
        if newest and self._content_of_current() not in {f"{name}\n" for name in complete}:
            damaged.append(("CURRENT", "it names no checkpoint that is there"))
        return damaged

    def _damage(self, name: str) -> Iterator[tuple[str, str]]:
        folder = self._folder / name
        try:
            manifest = self.manifest(name)
        except (Corrupt, OSError) as error:
            yield "manifest.json", str(error)
            return
        for file, entry in manifest.files.items():
            try:
                with (folder / file).open("rb") as stream:
                    if hashlib.file_digest(stream, "sha256").hexdigest() != entry.sha256:
                        yield file, "its bytes are not what was written (SHA-256)"
            except OSError as error:
                yield file, f"it cannot be read: {error.strerror}"

    def _content_of_current(self) -> str | None:
        try:
            return self._current.read_text()
        except (OSError, UnicodeDecodeError):
            return None

    def write(self, frozen: Frozen, *, created_at: int, full: bool = False) -> Manifest:
        """Write and publish a checkpoint; the structures' freeze is ended by the caller.

        A `full` one shares no file with any other.
        """
        name = f"{frozen.lsn:020d}"
        folder = self._folder / name
        if self.base == name:
            return self.read(name)
        old = None if full else self._base_manifest()
        if folder.exists():  # an attempt at the same LSN that did not finish, or one that could not be opened
            shutil.rmtree(folder)
        try:
            return self._write(frozen, folder, old, created_at)
        except BaseException:
            # On a full disk what was written so far is in the way of everything else.
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def _write(self, frozen: Frozen, folder: Path, old: Manifest | None, created_at: int) -> Manifest:
        folder.mkdir(mode=0o700)
        files: dict[str, FileEntry] = {}
        for where, chunks in sorted(frozen.chunks.items()):
            target = folder / where
            target.mkdir(parents=True, mode=0o700)
            for chunk in chunks:
                key = f"{where}/{chunk.name}"
                if old is not None and not chunk.dirty and key in old.files:
                    os.link(self._folder / str(self.base) / key, target / chunk.name)
                    files[key] = old.files[key]
                else:
                    length, sha256 = frozen.structures[where].write(chunk, str(target / chunk.name))
                    files[key] = FileEntry(length, sha256)
            sync_folder(target)
            sync_folder(target.parent)
        manifest = Manifest(FORMAT, frozen.lsn, created_at, sorted(frozen.chunks), files, "")
        manifest = msgspec.structs.replace(manifest, digest=_digest(msgspec.to_builtins(manifest)))
        sync_folder(folder)
        replace_file(folder / "manifest.json", msgspec.json.format(msgspec.json.encode(manifest)))
        sync_folder(self._folder)
        replace_file(self._current, folder.name.encode() + b"\n")
        self.base = folder.name
        self.rejected.discard(folder.name)
        return manifest

    def _base_manifest(self) -> Manifest | None:
        """None when it is damaged or gone: then nothing of it is linked, and everything is written anew."""
        try:
            return None if self.base is None else self.read(self.base)
        except (Corrupt, OSError):
            return None

    def prune(self, *, rejected: bool = False) -> int:
        """Remove all but the newest two good ones; returns the LSN the log may be trimmed behind.

        Those that could not be opened are kept as long as they are news, unless they are `rejected` for good.
        """
        kept = [name for name in self.names() if name not in self.rejected][:KEPT]
        for path in self._folder.iterdir():
            if path.name not in kept and (rejected or path.name not in self.rejected):
                shutil.rmtree(path)
        sync_folder(self._folder)
        return int(kept[-1]) if len(kept) == KEPT else 0


def _digest(content: Mapping[str, Any]) -> str:
    """Of a manifest as it was read, so that one with fields this program does not know is told from a damaged one."""
    parts = ({**content, "digest": ""}).items()
    encode = msgspec.json.Encoder(order="deterministic").encode
    body = b",".join(encode(key) + b":" + encode(value) for key, value in parts)
    return hashlib.sha256(b"{" + body + b"}").hexdigest()


def _misfits(folder: Path, manifest: Manifest) -> Iterator[tuple[str, str]]:
    for file, entry in manifest.files.items():
        try:
            length = (folder / file).stat().st_size
        except FileNotFoundError:
            yield file, "is missing"
            continue
        if length != entry.length:
            yield file, f"is {length} bytes long, its manifest says {entry.length}"
