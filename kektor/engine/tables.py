"""What belongs to the whole database and stays small: settings, key-values, tombstones, kept outcomes.

One structure of a checkpoint, encoded whole.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from kektor_native import CHUNK_HEADER_BYTES, Chunk, CorruptFile, check_chunk, write_chunk

from kektor.engine.audit import GENESIS
from kektor.engine.effects import DropKv, KeepOutcome, LiftTombstone, PutErasure, PutKv, PutTombstone
from kektor.engine.records import Erasure, IndexSettings, Scope, Tombstone

__all__ = ["OUTCOMES_KEPT_FOR", "SmallTables"]

_KIND = "tables"
_FILE = "tables.msgpack"
OUTCOMES_KEPT_FOR = 7 * 24 * 3600 * 1_000_000
"""How long an idempotency key is remembered, in microseconds."""


class _KvRow(msgspec.Struct, frozen=True, array_like=True):
    index: int
    scope: Scope
    key: str
    value: Any
    version: int


class _Saved(msgspec.Struct, frozen=True, array_like=True):
    time: int
    next_index: int
    settings: list[IndexSettings]
    next_slots: dict[int, int]
    next_edges: dict[int, int]
    kv: list[_KvRow]
    tombstones: list[Tombstone]
    outcomes: list[KeepOutcome]
    erasures: list[Erasure] = []
    audit_head: bytes = GENESIS
    audit_count: int = 0


class SmallTables:
    """Plain dictionaries; `next_slots` and `next_edges` are filled in by the engine when it freezes."""

    def __init__(self) -> None:
        self.time = 0
        self.next_index = 1
        self.settings: dict[str, IndexSettings] = {}
        self.next_slots: dict[int, int] = {}
        self.next_edges: dict[int, int] = {}
        self.kv: dict[tuple[int, Scope, str], tuple[Any, int]] = {}
        self.kv_scopes: dict[tuple[int, str], set[Scope]] = {}
        """Which scopes have a value under a key."""
        self.tombstones: dict[str, Tombstone] = {}
        self.outcomes: dict[bytes, KeepOutcome] = {}
        self.erasures: dict[str, Erasure] = {}
        self.audit_head = GENESIS
        """Hash of the newest event of the audit, and how many there have been."""
        self.audit_count = 0
        self._standing: dict[tuple[int, Scope, bytes], tuple[str, ...]] = {}
        self._guards: dict[tuple[int, Scope, bytes], tuple[str, ...]] = {}
        """By the least of its tokens, which a sentence that holds all of them holds, too."""
        self._in_force: Counter[tuple[int, Scope, str]] = Counter()
        """How many tombstones of a class stand in a scope."""
        self._frozen = b""
        self._lsn = 0

    @classmethod
    def open(cls, folder: Path) -> "SmallTables":
        """Load what `write` left; CorruptFile when it cannot be trusted."""
        path = folder / _FILE
        check_chunk(str(path), _KIND)
        try:
            saved = msgspec.msgpack.decode(path.read_bytes()[CHUNK_HEADER_BYTES:], type=_Saved)
        except msgspec.MsgspecError as error:
            raise CorruptFile(f"{path}: {error}") from error
        tables = cls()
        tables.time = saved.time
        tables.next_index = saved.next_index
        tables.settings = {settings.name: settings for settings in saved.settings}
        tables.next_slots, tables.next_edges = saved.next_slots, saved.next_edges
        for row in saved.kv:
            tables.put_kv(PutKv(row.index, row.scope, row.key, row.value, row.version))
        for tombstone in saved.tombstones:
            tables.put_tombstone(PutTombstone(tombstone))
        tables.audit_head, tables.audit_count = saved.audit_head, saved.audit_count
        tables.outcomes = {kept.key: kept for kept in saved.outcomes}
        tables.erasures = {erasure.id: erasure for erasure in saved.erasures}
        return tables

    def standing(self, index: int, scope: Scope, digest: bytes) -> list[Tombstone]:
        """Those in force for a value, oldest first: it may have been rejected more than once."""
        return [self.tombstones[stone] for stone in self._standing.get((index, scope, digest), ())]

    def withholds(self, index: int, scope: Scope, cls: str) -> bool:
        return self._in_force[index, scope, cls] > 0

    def guarding(self, index: int, scope: Scope, tokens: frozenset[bytes]) -> list[Tombstone]:
        """Those in force whose every token is among some tokens, oldest first."""
        found = {stone for token in tokens for stone in self._guards.get((index, scope, token), ())}
        stones = [self.tombstones[stone] for stone in found]
        return sorted(
            (stone for stone in stones if tokens.issuperset(stone.tokens)), key=lambda s: (s.created_at, s.id)
        )

    def put_kv(self, effect: PutKv) -> None:
        self.kv[effect.index, effect.scope, effect.key] = (effect.value, effect.version)
        self.kv_scopes.setdefault((effect.index, effect.key), set()).add(effect.scope)

    def drop_kv(self, effect: DropKv) -> None:
        if self.kv.pop((effect.index, effect.scope, effect.key), None) is not None:
            scopes = self.kv_scopes[effect.index, effect.key]
            scopes.discard(effect.scope)
            if not scopes:
                del self.kv_scopes[effect.index, effect.key]

    def put_tombstone(self, effect: PutTombstone) -> None:
        stone = effect.tombstone
        self.tombstones[stone.id] = stone
        if stone.lifted_at is None:
            self._in_force[stone.index, stone.scope, stone.cls] += 1
            for table, digest in self._places(stone):
                key = (stone.index, stone.scope, digest)
                table[key] = (*table.get(key, ()), stone.id)

    def lift_tombstone(self, effect: LiftTombstone) -> None:
        stone = msgspec.structs.replace(self.tombstones[effect.id], lifted_at=effect.at)
        self.tombstones[stone.id] = stone
        self._in_force[stone.index, stone.scope, stone.cls] -= 1
        for table, digest in self._places(stone):
            key = (stone.index, stone.scope, digest)
            left = tuple(other for other in table.pop(key, ()) if other != stone.id)
            if left:
                table[key] = left

    def _places(self, stone: Tombstone) -> Iterator[tuple[dict[tuple[int, Scope, bytes], tuple[str, ...]], bytes]]:
        for digest in dict.fromkeys(stone.digests):
            yield self._standing, digest
        if stone.tokens:
            yield self._guards, min(stone.tokens)

    def put_erasure(self, effect: PutErasure) -> None:
        self.erasures[effect.erasure.id] = effect.erasure

    def keep_outcome(self, effect: KeepOutcome) -> None:
        self.outcomes[effect.key] = effect
        # Kept in the order of time, so the oldest come first.
        while (oldest := next(iter(self.outcomes.values()))).at < effect.at - OUTCOMES_KEPT_FOR:
            del self.outcomes[oldest.key]

    def drop_index(self, number: int) -> None:
        """Forget an index by its number, with its key-values and tombstones."""
        self.settings = {name: s for name, s in self.settings.items() if s.number != number}
        self.kv = {key: value for key, value in self.kv.items() if key[0] != number}
        self.kv_scopes = {key: scopes for key, scopes in self.kv_scopes.items() if key[0] != number}
        self.tombstones = {key: stone for key, stone in self.tombstones.items() if stone.index != number}
        self._standing = {key: value for key, value in self._standing.items() if key[0] != number}
        self._guards = {key: value for key, value in self._guards.items() if key[0] != number}
        self._in_force = Counter({key: count for key, count in self._in_force.items() if key[0] != number})

    # The chunk protocol

    def freeze(self, lsn: int) -> list[Chunk]:
        saved = _Saved(
            self.time,
            self.next_index,
            list(self.settings.values()),
            self.next_slots,
            self.next_edges,
            [_KvRow(index, scope, key, value, version) for (index, scope, key), (value, version) in self.kv.items()],
            list(self.tombstones.values()),
            list(self.outcomes.values()),
            list(self.erasures.values()),
            self.audit_head,
            self.audit_count,
        )
        self._frozen, self._lsn = msgspec.msgpack.encode(saved), lsn
        return [Chunk(_FILE, True)]

    def write(self, chunk: Any, path: str) -> tuple[int, str]:
        return write_chunk(path, _KIND, self._lsn, self._frozen)

    def release(self, written: bool) -> None:
        self._frozen = b""

    def validate(self) -> list[str]:
        numbers = {settings.number for settings in self.settings.values()}
        return [
            f"key-value {key!r} belongs to index {index}, which does not exist"
            for index, _, key in self.kv
            if index not in numbers
        ]
