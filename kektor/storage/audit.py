"""The files of the audit chain: for every transaction a record that is never changed, and one that can be emptied.

`audit/00000001.kaud` holds what the chain is made of, `audit/00000001.side` the values it commits to, which erasing
takes out. Both are a 64-byte header and records, one a transaction, in the order of their LSN:

    length u32 · crc32c u32 (of what follows) · lsn u64 · payload

A transaction's side is synced before its chain record, so that the chain never speaks of values that were lost.
"""

import os
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from kektor_native import crc32c

from kektor.errors import Corrupt, NewerFormat
from kektor.storage.disk import make_folder, replace_file, sync_folder

__all__ = ["AuditFiles", "AuditInMemory", "AuditStore", "Audited"]

FORMAT = 1
SEGMENT_BYTES = 16 << 20
_MAGIC = b"KEKAUDIT"
_HEADER = struct.Struct("<8sHH48x")
_RECORD = struct.Struct("<IIQ")
HEADER_BYTES = 64


class Audited(NamedTuple):
    """One transaction's part of the audit: its chain record, and the values beside it (None when they are gone)."""

    lsn: int
    chain: bytes
    side: bytes | None


class AuditStore(Protocol):
    """Where the audit is kept."""

    @property
    def last_lsn(self) -> int: ...
    def append(self, records: Iterable[Audited]) -> None: ...
    def read(self) -> Iterator[Audited]:
        """Everything, oldest first; Corrupt where a record is damaged, with all before it given."""

    def rewrite(self, change: Callable[[Audited], Audited]) -> None:
        """Replace the values of every transaction by those of what `change` makes of it."""


class AuditInMemory:
    """For a database that keeps nothing."""

    def __init__(self) -> None:
        self._records: list[Audited] = []

    @property
    def last_lsn(self) -> int:
        return self._records[-1].lsn if self._records else 0

    def append(self, records: Iterable[Audited]) -> None:
        self._records.extend(records)

    def read(self) -> Iterator[Audited]:
        return iter(list(self._records))

    def rewrite(self, change: Callable[[Audited], Audited]) -> None:
        self._records = [change(record) for record in self._records]


class AuditFiles:
    """The `audit` folder of a data directory; `damage` says what was met on the way in."""

    def __init__(self, folder: Path, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self.damage: list[tuple[Path, str, bytes]] = []
        make_folder(folder)
        for unfinished in folder.glob("*.new"):
            unfinished.unlink()
        chains = self._chains()
        self._number = int(chains[-1].stem) if chains else 0
        self.last_lsn = self._mend(chains) if chains else 0

    def _chains(self) -> list[Path]:
        return sorted(self._folder.glob("*.kaud"))

    def _mend(self, chains: list[Path]) -> int:
        """Cut off what a crash left unfinished; the log still holds those transactions. Returns the last whole LSN."""
        for chain in reversed(chains):
            last = 0
            for path in (chain.with_suffix(".side"), chain):
                content = path.read_bytes() if path.exists() else b""
                end = HEADER_BYTES if _is_header(path, content) else 0
                last = 0
                for lsn, _, behind in _records(content):
                    last, end = lsn, behind
                if end < len(content) or end == 0:
                    self.damage.append((path, f"its records end at {end} of {len(content)} bytes", content[end:]))
                    _cut(path, end)
            if last:
                return last
        return 0

    def append(self, records: Iterable[Audited]) -> None:
        chain, side, last = bytearray(), bytearray(), self.last_lsn
        for record in records:
            chain += _record(record.lsn, record.chain)
            side += _record(record.lsn, record.side or b"")
            last = record.lsn
            if len(chain) + len(side) >= self._segment_bytes:
                self._write(chain, side, last)
                chain, side = bytearray(), bytearray()
        if chain:
            self._write(chain, side, last)

    def _write(self, chain: bytearray, side: bytearray, last: int) -> None:
        path = self._folder / f"{self._number:08d}.kaud"
        if self._number == 0 or path.stat().st_size >= self._segment_bytes:
            self._number += 1
            path = self._folder / f"{self._number:08d}.kaud"
            for new in (path.with_suffix(".side"), path):
                replace_file(new, _HEADER.pack(_MAGIC, FORMAT, 0) + bytes(HEADER_BYTES - _HEADER.size))
        for target, content in ((path.with_suffix(".side"), side), (path, chain)):
            _append(target, content)
        self.last_lsn = last

    def read(self) -> Iterator[Audited]:
        for chain in self._chains():
            beside = chain.with_suffix(".side")
            _check_header(beside, kept := beside.read_bytes())
            sides = {lsn: payload for lsn, payload, _ in _records(kept)}
            content = chain.read_bytes()
            _check_header(chain, content)
            end = HEADER_BYTES
            for lsn, payload, behind in _records(content):
                end = behind
                yield Audited(lsn, payload, sides.get(lsn))
            if end < len(content):
                raise Corrupt(
                    f"{chain}: {len(content) - end} bytes at offset {end} are no whole audit record",
                    details={"path": str(chain)},
                )

    def rewrite(self, change: Callable[[Audited], Audited]) -> None:
        for chain in self._chains():
            path = chain.with_suffix(".side")
            content = path.read_bytes()
            sides = {lsn: payload for lsn, payload, _ in _records(content)}
            changed = bytearray(content[:HEADER_BYTES])
            for lsn, payload, _ in _records(chain.read_bytes()):
                changed += _record(lsn, change(Audited(lsn, payload, sides.get(lsn))).side or b"")
            if changed != content:
                replace_file(path, bytes(changed))
        sync_folder(self._folder)


def _record(lsn: int, payload: bytes) -> bytes:
    numbered = lsn.to_bytes(8, "little")
    return _RECORD.pack(len(payload), crc32c(payload, crc32c(numbered)), lsn) + payload


def _records(content: bytes) -> Iterator[tuple[int, bytes, int]]:
    """LSN, payload and end of every record up to the first that is not whole."""
    at = HEADER_BYTES
    while at + _RECORD.size <= len(content):
        length, checksum, lsn = _RECORD.unpack_from(content, at)
        start, at = at + _RECORD.size, at + _RECORD.size + length
        payload = content[start:at]
        if len(payload) != length or crc32c(payload, crc32c(lsn.to_bytes(8, "little"))) != checksum:
            return
        yield lsn, payload, at


def _is_header(path: Path, content: bytes) -> bool:
    if len(content) < HEADER_BYTES:
        return False
    magic, version, _ = _HEADER.unpack_from(content)
    if magic == _MAGIC and version > FORMAT:
        raise NewerFormat(
            f"{path}: audit format {version} is newer than this program's {FORMAT}: upgrade kektor. "
            "Nothing was changed.",
            details={"path": str(path), "format": version},
        )
    return bool(magic == _MAGIC)


def _check_header(path: Path, content: bytes) -> None:
    if not _is_header(path, content):
        raise Corrupt(f"{path}: not an audit file (its header is damaged)", details={"path": str(path)})


def _cut(path: Path, end: int) -> None:
    if end == 0:
        replace_file(path, _HEADER.pack(_MAGIC, FORMAT, 0) + bytes(HEADER_BYTES - _HEADER.size))
        return
    with path.open("r+b") as stream:
        stream.truncate(end)
        os.fsync(stream.fileno())


def _append(path: Path, content: bytes | bytearray) -> None:
    """All of it, synced, or what was there before."""
    with path.open("r+b", buffering=0) as stream:
        end = stream.seek(0, os.SEEK_END)
        try:
            view = memoryview(content)
            while view:
                view = view[stream.write(view) :]
            os.fsync(stream.fileno())
        except OSError:
            stream.truncate(end)
            raise
