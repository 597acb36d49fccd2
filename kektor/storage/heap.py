"""Encoded records by dense number: read from the checkpoint's files on access, changes kept in memory.

A chunk file covers `ROWS` numbers. Its payload is the end offset of every row (u64), a CRC32C of every row (u32),
then the rows. A row of no bytes is a number without a record. Files are read with `pread`, so that a failing disk
is an exception and not a signal.
"""

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from kektor_native import CHUNK_HEADER_BYTES, CorruptFile, NewerFile, check_chunk, crc32c, write_chunk
from numpy.typing import NDArray

from kektor.errors import Corrupt

__all__ = ["ROWS", "RecordHeap"]

ROWS = 4096
_TABLE_BYTES = ROWS * (8 + 4)
_OF_NOTHING = crc32c(b"")
_NAME = re.compile(r"rows-(\d{8})\.heap")


class _Frozen(NamedTuple):
    """A chunk as it was at the freeze: the file it had, and what had changed since."""

    name: str
    dirty: bool
    number: int
    changes: dict[int, bytes]


class RecordHeap:
    """Rows of bytes by number, each checked against its CRC when read.

    >>> heap = RecordHeap("nodes")
    >>> heap.put(7, b"a record")
    >>> heap.get(7), heap.get(8)
    (b'a record', None)
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._files: dict[int, _HeapFile] = {}
        self._changes: dict[int, dict[int, bytes]] = {}
        self._frozen: list[_Frozen] = []
        self._written: dict[int, Path] = {}
        self._lock = threading.Lock()
        self.broken: dict[Path, str] = {}
        """Files that were opened although their header or their table of rows is damaged."""

    @classmethod
    def open(cls, folder: Path, kind: str, *, tolerant: bool = False) -> "RecordHeap":
        """Map the chunk files that `write` left in a folder; CorruptFile names one that cannot be trusted.

        A `tolerant` heap takes what each file still has: rows are judged one by one, by their own checksums, and
        `broken` says what is wrong with a file beside its rows.
        """
        heap = cls(kind)
        for path in sorted(folder.iterdir()):
            match = _NAME.fullmatch(path.name)
            if match is None:
                raise CorruptFile(f"{path}: not a file of this structure")
            try:
                heap._files[int(match[1])] = _HeapFile(path, kind)
            except NewerFile:
                raise
            except CorruptFile as error:
                if not tolerant:
                    raise
                heap.broken[path] = str(error)
                if path.stat().st_size >= CHUNK_HEADER_BYTES + _TABLE_BYTES:
                    heap._files[int(match[1])] = _HeapFile(path, kind, tolerant=True)
        return heap

    def get(self, number: int) -> bytes | None:
        """The record of a number; None when there is none, Corrupt when its bytes are damaged."""
        chunk, row = divmod(number, ROWS)
        changed = self._changes.get(chunk, {}).get(row)
        if changed is None and (file := self._files.get(chunk)) is not None:
            changed = file.read(row)
        return changed or None

    def put(self, number: int, record: bytes) -> None:
        """Set a record (not empty)."""
        self._set(number, record)

    def drop(self, number: int) -> None:
        """Forget a record; its bytes leave the files at the next checkpoint."""
        self._set(number, b"")

    def raw(self, number: int) -> bytes:
        """The bytes of a record as they are, be they damaged."""
        chunk, row = divmod(number, ROWS)
        file = self._files.get(chunk)
        return b"" if file is None else file.raw(row)[0]

    def numbers(self) -> Iterator[int]:
        """Every number with a record, ascending."""
        for chunk in sorted(self._files.keys() | self._changes.keys()):
            changes = self._changes.get(chunk, {})
            file = self._files.get(chunk)
            for row in range(ROWS):
                changed = changes.get(row)
                if changed or (changed is None and file is not None and file.holds(row)):
                    yield chunk * ROWS + row

    def freeze(self, lsn: int) -> list[_Frozen]:
        """The chunks as they are now. Rows are immutable bytes, so a shallow copy of the changes suffices."""
        self._lsn = lsn
        self._frozen = [
            _Frozen(f"rows-{chunk:08d}.heap", chunk in self._changes, chunk, dict(self._changes.get(chunk, {})))
            for chunk in sorted(self._files.keys() | self._changes.keys())
        ]
        return list(self._frozen)

    def write(self, chunk: _Frozen, path: str) -> tuple[int, str]:
        """Write one chunk file; returns (length, sha256 hex)."""
        file = self._files.get(chunk.number)
        rows, checksums = [], []
        for row in range(ROWS):
            record = chunk.changes.get(row)
            if record is not None or file is None:
                record = record or b""
                checksum = crc32c(record)
            else:
                # A damaged row keeps its wrong checksum, so that copying it never makes it look sound.
                record, checksum = file.raw(row)
            rows.append(record)
            checksums.append(checksum)
        ends = np.cumsum([len(record) for record in rows], dtype="<u8")
        tables = ends.tobytes() + np.array(checksums, dtype="<u4").tobytes()
        written = write_chunk(path, self._kind, self._lsn, tables + b"".join(rows))
        self._written[chunk.number] = Path(path)
        return written

    def release(self, written: bool) -> None:
        """End the freeze; what reached a file is read from it from now on."""
        frozen, self._frozen = self._frozen, []
        paths, self._written = self._written, {}
        if not written:
            return
        for chunk in frozen:
            # A clean chunk that was written all the same is read from its new file: the old one is to go.
            if chunk.number not in paths:
                continue
            file = _HeapFile(paths[chunk.number], self._kind)
            with self._lock:
                self._files[chunk.number] = file
                changes = self._changes.get(chunk.number, {})
                for row, record in chunk.changes.items():
                    if changes.get(row) is record:
                        del changes[row]
                if not changes:
                    self._changes.pop(chunk.number, None)

    def _set(self, number: int, record: bytes) -> None:
        chunk, row = divmod(number, ROWS)
        with self._lock:
            self._changes.setdefault(chunk, {})[row] = record

    def validate(self) -> list[str]:
        """Every row whose bytes do not match their CRC, in words."""
        findings = []
        for chunk, file in sorted(self._files.items()):
            for row in range(ROWS):
                try:
                    file.read(row)
                except (Corrupt, OSError) as error:
                    findings.append(f"row {chunk * ROWS + row}: {error}")
        return findings


class _HeapFile:
    """One chunk file, its tables in memory, its rows on disk."""

    def __init__(self, path: Path, kind: str, *, tolerant: bool = False) -> None:
        length = path.stat().st_size - CHUNK_HEADER_BYTES
        if not tolerant:
            check_chunk(str(path), kind)
            if length < _TABLE_BYTES:
                raise CorruptFile(f"{path}: {length} bytes are too few for the tables of {ROWS} rows")
        self._path = path
        self._rows_bytes = length - _TABLE_BYTES
        self._descriptor = os.open(path, os.O_RDONLY)
        tables = os.pread(self._descriptor, _TABLE_BYTES, CHUNK_HEADER_BYTES)
        self._ends: NDArray[np.uint64] = np.frombuffer(tables, "<u8", ROWS)
        self._checksums: NDArray[np.uint32] = np.frombuffer(tables, "<u4", ROWS, ROWS * 8)
        adds_up = not (np.diff(self._ends.astype(np.int64)) < 0).any() and int(self._ends[-1]) == self._rows_bytes
        if not tolerant and not adds_up:
            raise CorruptFile(f"{path}: its table of rows does not add up to its length")

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)

    def holds(self, row: int) -> bool:
        """Whether the row has a record, be it damaged."""
        start, end = self._bounds(row)
        return end != start or int(self._checksums[row]) != _OF_NOTHING

    def read(self, row: int) -> bytes:
        try:
            record, checksum = self.raw(row)
        except OSError as error:
            raise self._damaged(row, f"it cannot be read: {os.strerror(error.errno or 0)}") from error
        if crc32c(record) != checksum:
            raise self._damaged(row, "its checksum does not match")
        return record

    def raw(self, row: int) -> tuple[bytes, int]:
        """The bytes as they are on disk, and the checksum they should have."""
        start, end = self._bounds(row)
        if not start <= end <= self._rows_bytes:
            return b"", int(self._checksums[row])
        record = os.pread(self._descriptor, end - start, CHUNK_HEADER_BYTES + _TABLE_BYTES + start)
        return record, int(self._checksums[row])

    def _bounds(self, row: int) -> tuple[int, int]:
        return (int(self._ends[row - 1]) if row else 0), int(self._ends[row])

    def _damaged(self, row: int, why: str) -> Corrupt:
        return Corrupt(
            f"{self._path}: row {row} is damaged ({why}); only this record is lost",
            details={"path": str(self._path), "row": row},
        )
