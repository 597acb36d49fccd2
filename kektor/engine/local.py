"""The engine of one process over one data directory, or over nothing but memory.

Commit order: under the commit lock a transaction checks, takes the next LSN and slots, hands its frame to the log's
queue and is applied in memory; the lock is released and the caller waits until the frame is durable. A reader may
see a write up to one sync early; receipts and events leave only after it.
"""

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from kektor_native import CorruptFile
from msgspec import structs
from numpy.typing import NDArray
from pyroaring import BitMap

from kektor import clock
from kektor.engine import audit
from kektor.engine import effects as fx
from kektor.engine.applied import Applied
from kektor.engine.audit import AuditEvent
from kektor.engine.edges import Cost, EdgeRule
from kektor.engine.filters import Filter, conjunction
from kektor.engine.graph_reads import GraphReads
from kektor.engine.long_query import shortened
from kektor.engine.port import (
    Compacted,
    Damage,
    EdgePage,
    EngineHealth,
    EngineStats,
    Graph,
    Page,
    Scored,
    Subgraph,
    Upkeep,
    Vector,
)
from kektor.engine.port import Path as GraphPath
from kektor.engine.records import Edge, Erasure, IndexSettings, Kind, Node, NodeKey, Scope, Tombstone
from kektor.engine.recovery import recover
from kektor.engine.repair import mend
from kektor.engine.space import IndexSpace
from kektor.engine.staging import LocalTransaction
from kektor.engine.tables import SmallTables
from kektor.engine.view import View
from kektor.engine.visible import Compiled
from kektor.errors import Conflict, Corrupt, Internal, Invalid, NotFound, Unavailable
from kektor.storage.audit import Audited, AuditInMemory, AuditStore
from kektor.storage.disk import disk_errors
from kektor.storage.store import Durability, Finding, Store

if TYPE_CHECKING:
    from kektor.storage.keys import KeyRing

__all__ = ["CHECKPOINT_BYTES", "RETRY_AFTER", "LocalEngine"]

Ranked: TypeAlias = tuple[NDArray[np.uint32], NDArray[np.float32]]

CHECKPOINT_BYTES = 64 << 20
"""Bytes of log after which a checkpoint is written in the background."""

RETRY_AFTER = 1.0
"""Seconds between attempts to write to a disk that refused."""


class LocalEngine:
    """See `port.Engine`; `folder` None keeps everything in memory and nothing after."""

    def __init__(
        self,
        folder: Path | None,
        *,
        durability: Durability = Durability(),
        checkpoint_bytes: int = CHECKPOINT_BYTES,
    ) -> None:
        self._commit = threading.RLock()
        self._state = threading.RLock()
        self._checkpointing = threading.Lock()
        self._checkpoint_bytes = checkpoint_bytes
        self._background: threading.Thread | None = None
        self._closed = False
        self._broken: str | None = None
        """Why writes are refused, until a later one finds that the disk takes them again."""
        self._retry_at = 0.0
        self._stale = False
        self._open = False
        """Whether the holder of the commit lock is inside a transaction."""
        self.checkpoint_failure: str | None = None
        self.checkpoint_pause = 0.0
        """Seconds for which the last checkpoint kept writers and readers waiting."""
        self._reset()
        self._store = None if folder is None else Store(folder, durability)
        self._audit: AuditStore = AuditInMemory() if self._store is None else self._store.audit
        self._auditing = threading.Lock()
        if self._store is not None:
            try:
                with disk_errors(self._store.folder, "read", ""):
                    self._load(self._store, until=None)
                self._applied.lsn = self._store.start_log(self.lsn)
                self._store.audit.last_lsn = min(self._store.audit.last_lsn, self.lsn)
            except BaseException:
                self._store.close()
                raise

    def _reset(self) -> None:
        self._applied = Applied()
        self._checkpoint_lsn = 0
        self._logged = 0

    def _load(self, store: Store, *, until: int | None) -> None:
        self._applied, self._checkpoint_lsn, self._logged = recover(store, until=until)

    @property
    def lsn(self) -> int:
        """The last transaction in memory."""
        return self._applied.lsn

    @property
    def tables(self) -> SmallTables:
        """Of what is applied: for transactions."""
        return self._applied.tables

    # Indexes

    def indexes(self) -> list[IndexSettings]:
        with self._reading():
            return sorted(self.tables.settings.values(), key=lambda settings: settings.name)

    def index(self, name: str) -> IndexSettings | None:
        with self._reading():
            return self.tables.settings.get(name)

    def metadata_keys(self, view: View) -> set[str]:
        with self._reading():
            space, visible = self._seen(view)
            return {
                path[0]
                for path, column in space.columns.metadata.items()
                if len(path) == 1 and column.present.intersect(visible.slots)
            }

    def stats(self, index: str) -> EngineStats:
        with self._reading():
            space = self._space(index)
            return EngineStats(
                nodes=len(space.columns.alive),
                vectors=len(space.vectors),
                texts=len(space.texts),
                edges=sum(1 for _ in space.edges.numbers()),
                lsn=self.lsn,
                vector=space.vectors.stats(),
                text=space.texts.stats(),
            )

    def upkeep(self, index: str, action: Upkeep) -> tuple[int, int]:
        with self._reading():
            space = self._space(index)
        # The vector index guards itself; a step holds up neither readers nor a checkpoint.
        if action == "vacuum":
            return space.vectors.vacuum()
        return space.vectors.refine(ef=space.settings.ef_construction)

    # Nodes

    def holds(self, index: str, key: NodeKey) -> bool:
        with self._reading():
            return self._space(index).names.slot(key) is not None

    def find(self, view: View, node_id: str) -> list[Node]:
        with self._reading():
            space, visible = self._seen(view)
            return [space.node(slot) for slot in space.names.of_id(node_id) if slot in visible.slots]

    def fetch(self, view: View, keys: Sequence[NodeKey]) -> list[Node | None]:
        with self._reading():
            space, visible = self._seen(view)
            slots = [space.names.slot(key) for key in keys]
            return [None if slot is None or slot not in visible.slots else space.node(slot) for slot in slots]

    def admits(self, view: View, keys: Sequence[NodeKey]) -> list[bool]:
        with self._reading():
            space, visible = self._seen(view)
            slots = [space.names.slot(key) for key in keys]
            return [slot is not None and slot in visible.slots for slot in slots]

    def page(self, view: View, *, limit: int, cursor: str | None = None) -> Page:
        after = _read_cursor(cursor)
        with self._reading():
            space, visible = self._seen(view)
            slots = visible.slots
            first = 0 if after is None else slots.rank(after)
            taken = list(slots[first : first + limit])
            more = first + limit < len(slots)
            return Page([space.node(slot) for slot in taken], _write_cursor(taken[-1]) if more else None)

    def count(self, view: View) -> int:
        with self._reading():
            return len(self._seen(view)[1].slots)

    def versions(self, view: View, scope: Scope, lineage: str) -> list[Node]:
        with self._reading():
            space, visible = self._seen(view)
            return [node for slot, node in space.lineage(scope, lineage) if slot in visible.slots]

    def session(self, view: View, scope: Scope, session: str) -> list[Node]:
        return [node for node in self.in_session(view, session) if node.scope == scope]

    def in_session(self, view: View, session: str) -> list[Node]:
        with self._reading():
            space, visible = self._seen(view)
            slots = space.columns.having("session", session) & visible.slots
            return [space.node(slot) for slot in sorted(slots, key=space.names.place)]

    def neighbours(self, view: View, keys: Sequence[NodeKey], *, reach: int) -> list[tuple[tuple[NodeKey, ...], ...]]:
        with self._reading():
            space, visible = self._seen(view)
            sources = space.columns.having("kind", Kind.SOURCE.value) & visible.slots
            sessions: dict[tuple[str, Scope], list[int]] = {}
            return [self._around(space, key, sources, sessions, reach) for key in keys]

    def _around(
        self,
        space: IndexSpace,
        key: NodeKey,
        sources: BitMap,
        sessions: dict[tuple[str, Scope], list[int]],
        reach: int,
    ) -> tuple[tuple[NodeKey, ...], ...]:
        slot = space.names.slot(key)
        if slot is None or slot not in sources or not (session := space.names.session(slot)):
            return ()
        if (session, key.scope) not in sessions:
            slots = space.columns.in_session(session, key.scope) & sources
            sessions[session, key.scope] = sorted(slots, key=space.names.place)
        order = sessions[session, key.scope]
        at = bisect_left(order, space.names.place(slot), key=space.names.place)
        return tuple(
            tuple(
                found
                for other in (at - distance, at + distance)
                if 0 <= other < len(order) and (found := space.names.key(order[other])) is not None
            )
            for distance in range(1, reach + 1)
        )

    # Searching

    def vectors(self, view: View, keys: Sequence[NodeKey]) -> list[Vector | None]:
        with self._reading():
            space, visible = self._seen(view)
            slots = [space.names.slot(key) for key in keys]
            return [
                space.vectors.vectors(np.array([slot], np.uint32))[0]
                if slot is not None and slot in visible.slots and slot in space.vectors
                else None
                for slot in slots
            ]

    def nearest(self, view: View, vector: Vector, k: int, *, ef: int | None = None) -> list[Scored]:
        with self._reading():
            space, visible = self._seen(view)

        def search(count: int) -> Ranked:
            return space.vectors.search(vector, count, ef=ef, filter=visible.native)

        return self._best(space, search, k)

    def nearest_batch(
        self, view: View, vectors: Vector, k: int, *, ef: int | None = None, threads: int | None = None
    ) -> tuple[list[list[str]], NDArray[np.float32]]:
        with self._reading():
            space, visible = self._seen(view)
        with _damage_named():
            slots, scores = space.vectors.search_batch(vectors, k + 1, ef=ef, filter=visible.native, threads=threads)
        # Rows in which nothing is tied are in their order already.
        tied = np.flatnonzero((scores[:, 1:] == scores[:, :-1]).any(axis=1))
        with self._reading():
            key = space.names.key
            ids = [[held.id for slot in row if (held := key(slot)) is not None] for row in slots[:, :k].tolist()]
        for row in tied.tolist():
            found = self.nearest(view, vectors[row], k, ef=ef)
            ids[row] = [scored.key.id for scored in found]
            scores[row, : len(found)] = [scored.score for scored in found]
        return ids, np.ascontiguousarray(scores[:, :k])

    def match_text(self, view: View, query: str, k: int) -> list[Scored]:
        with self._reading():
            space, visible = self._seen(view)
        asked = _shortened(space, query)

        def search(count: int) -> Ranked:
            return space.texts.search(asked, count, filter=visible.native)

        return self._best(space, search, k)

    def text_scores(self, view: View, query: str, keys: Sequence[NodeKey]) -> list[float]:
        with self._reading():
            space, visible = self._seen(view)
            slots = [space.names.slot(key) for key in keys]
        known = [slot for slot in slots if slot is not None and slot in visible.slots]
        with _damage_named():
            scores = dict(
                zip(
                    known,
                    space.texts.scores(_shortened(space, query), np.array(known, np.uint32)).tolist(),
                    strict=True,
                )
            )
        return [scores.get(slot, 0.0) if slot is not None else 0.0 for slot in slots]

    def vector_scores(self, view: View, vector: Vector, keys: Sequence[NodeKey]) -> list[float | None]:
        with self._reading():
            space, visible = self._seen(view)
            slots = [space.names.slot(key) for key in keys]
            known = [s for s in slots if s is not None and s in visible.slots and s in space.vectors]
            found = space.vectors.scores(vector, np.array(known, np.uint32)).tolist()
        scores = dict(zip(known, found, strict=True))
        return [None if slot is None else scores.get(slot) for slot in slots]

    # Graph

    def edges(
        self,
        view: View,
        key: NodeKey,
        rule: EdgeRule,
        *,
        limit: int,
        cursor: str | None = None,
        through: Filter | None = None,
    ) -> EdgePage:
        with self._reading():
            return self._graph(view, rule, through).edges(key, limit=limit, cursor=cursor)

    def edges_ever(self, view: View, key: NodeKey) -> list[tuple[Edge, NodeKey]]:
        with self._reading():
            space, visible = self._seen(view)
            slot = space.names.slot(key)
            if slot is None or slot not in visible.slots:
                return []
            rows = [row for _, row in space.edges_at(slot, "out") if row.dst in visible.slots]
            return [(row.edge, NodeKey((end := space.node(row.dst)).scope, end.id)) for row in rows]

    def traverse(
        self,
        view: View,
        roots: Sequence[NodeKey],
        rule: EdgeRule,
        *,
        depth: int,
        limit: int,
        through: Filter | None = None,
        induced: bool = False,
    ) -> Subgraph:
        with self._reading():
            return self._graph(view, rule, through).traverse(roots, depth=depth, limit=limit, induced=induced)

    def path(
        self,
        view: View,
        src: NodeKey,
        dst: NodeKey,
        rule: EdgeRule,
        *,
        max_depth: int,
        limit: int,
        cost: Cost = "hops",
        through: Filter | None = None,
    ) -> GraphPath:
        with self._reading():
            reads = self._graph(view, rule, through)
            return reads.path(src, dst, max_depth=max_depth, cost=cost, limit=limit)

    def graph(self, view: View, rule: EdgeRule, *, limit: int) -> Graph:
        with self._reading():
            return self._graph(view, rule).graph(limit=limit)

    def _graph(self, view: View, rule: EdgeRule, through: Filter | None = None) -> GraphReads:
        space, visible = self._seen(view)
        between = visible.slots
        if through is not None:
            between = self._seen(structs.replace(view, filter=conjunction([view.filter, through])))[1].slots
        return GraphReads(space, view, rule, visible=visible.slots, between=between)

    # Small values

    def tombstones(self, index: str) -> list[Tombstone]:
        with self._reading():
            number = self._space(index).settings.number
            return [stone for stone in self.tables.tombstones.values() if stone.index == number]

    def withholds(self, index: str, scope: Scope, cls: str) -> bool:
        with self._reading():
            return self.tables.withholds(self._space(index).settings.number, scope, cls)

    def withheld(self, index: str, scope: Scope, cls: str, digests: Iterable[bytes]) -> bool:
        with self._reading():
            number = self._space(index).settings.number
            stones = (stone for digest in digests for stone in self.tables.standing(number, scope, digest))
            return any(stone.cls == cls for stone in stones)

    def erasures(self) -> list[Erasure]:
        with self._reading():
            return list(self.tables.erasures.values())

    def kv(self, index: str, scope: Scope, key: str) -> tuple[Any, int] | None:
        with self._reading():
            return self.tables.kv.get((self._space(index).settings.number, scope, key))

    def kv_scopes(self, index: str, key: str) -> list[Scope]:
        with self._reading():
            return sorted(self.tables.kv_scopes.get((self._space(index).settings.number, key), ()))

    # Writing

    @contextmanager
    def transaction(self) -> Iterator[LocalTransaction]:
        with self._commit, _damage_named():
            if self._open:
                raise Conflict(
                    "this thread has a transaction open: write through it, or end it first", field="transaction"
                )
            self._ready()
            self._take_up_the_log()
            self._open = True
            try:
                yield LocalTransaction(self, max(clock.now(), self.tables.time + 1))
            finally:
                self._open = False

    def append(self, record: fx.TransactionRecord, payload: bytes) -> int:
        """Queue and apply one transaction; its commit lock is held."""
        lsn = self.lsn + 1
        try:
            with self._state:
                self._applied.apply(record, lsn)
        except BaseException as error:
            # Nothing of it is in the log, and nothing will be; memory holds a part of it until it is loaded anew.
            self._stale = True
            raise Internal(f"this transaction cannot be applied, and was not stored: {error!r}") from error
        if self._store is not None:
            try:
                self._store.append(lsn, payload)
            except Unavailable as error:
                self._fail(error)
                raise
        self._logged += len(payload)
        if self._store is None:
            self._audit.append([audit.encoded(lsn, record.entries, record.sides)])
        if self._store is not None and self._logged >= self._checkpoint_bytes:
            self._checkpoint_in_background()
        return lsn

    def wait(self, lsn: int) -> None:
        if self._store is None:
            return
        try:
            self._store.wait(lsn)
        except Unavailable as error:
            with self._commit:
                self._fail(error)
            raise

    def _fail(self, error: Unavailable) -> None:
        """A write or sync failed: until the disk takes writes again, memory is what is durable and no more."""
        if self._broken is None:
            self._broken, self._stale = error.message, True
            self._retry_at = time.monotonic() + RETRY_AFTER

    def _take_up_the_log(self) -> None:
        """Refuse a write while the disk does; now and then see whether it takes them again."""
        if self._broken is None or self._store is None:
            return
        if time.monotonic() < self._retry_at:
            raise Unavailable(self._broken)
        self._retry_at = time.monotonic() + RETRY_AFTER
        try:
            self._applied.lsn = self._store.start_log(self.lsn)
        except Unavailable as error:
            self._broken = error.message
            raise
        self._broken = None

    def checkpoint(self) -> int:
        if self._store is None:
            return self.lsn
        with self._checkpointing:
            return self._checkpoint(self._store)

    def compact(self) -> Compacted:
        """Rid the files of everything erased.

        The log ends a segment, two full checkpoints that share nothing with older ones take the place of all there
        are, the log before them goes, and so do the values of the audit that spoke of what was erased.
        """
        if self._store is None:
            with self._commit:
                erased = Compacted(self.lsn, self.tables.time)
            self._forget_in_audit()
            return erased
        with self._checkpointing:
            self._ready()
            with self._commit:
                erased = Compacted(self.lsn, self.tables.time)
            self._renew(self._store)
            self._store.clear_quarantine()
            self._forget_in_audit()
            return erased

    def repair(self) -> list[str]:
        """Build anew what is derived, set damaged records aside, write sound checkpoints; says what was done.

        It changes nothing that the log would have to tell of: what is taken out was lost before.
        """
        if self._store is None:
            return []
        with self._checkpointing:
            with self._commit, self._reading():
                spaces = self._applied.spaces.values()
                done = [what for space in spaces for what in mend(space, self._store.quarantine)]
                for compiler in self._applied.compilers.values():
                    compiler.invalidate()
            if done or self._store.findings or self._store.damaged_files():
                self._renew(self._store)
                self._store.findings.clear()
                self._store.checkpoints.rejected.clear()
                done.append("two new checkpoints of what is sound took the place of all others")
            return done

    def _renew(self, store: Store) -> None:
        """Two full checkpoints in the place of all there are; the log before them goes."""
        store.roll()
        for _ in range(2):
            self._tick()
            self._checkpoint(store, full=True)
        store.clear_remains()

    def _tick(self) -> None:
        """A transaction of nothing, so that a checkpoint has a number of its own."""
        with self.transaction() as tx:
            tx.commit()
        self.wait(self.lsn)

    def _forget_in_audit(self) -> None:
        with self._auditing:
            erased = audit.erased_by(self._audit.read())
            self._audit.rewrite(lambda record: audit.without(record, erased))

    def _checkpoint(self, store: Store, *, full: bool = False) -> int:
        self._ready()
        # Before the freeze: what is trimmed afterwards lies behind an older checkpoint still.
        self._complete_audit(self.lsn)
        with self._commit:
            self._ready()
            if self.lsn == self._checkpoint_lsn:
                return self.lsn
            began = time.perf_counter()
            with self._state:
                frozen = store.freeze(self.lsn, self._applied.structures())
            self._logged = 0
            self.checkpoint_pause = time.perf_counter() - began
        store.write_checkpoint(frozen, created_at=clock.now(), full=full)
        self._checkpoint_lsn = frozen.lsn
        return frozen.lsn

    def audit(self) -> Iterator[AuditEvent]:
        """Every event there was, oldest first."""
        with self._commit:
            self._ready()
            lsn = self.lsn
        self._complete_audit(lsn)
        with _damage_named():
            yield from audit.events(self._audit.read())

    def verify_audit(self) -> list[str]:
        """Whether every event is as it was noted, in its place; what does not hold, in words."""
        with self._commit:
            self._ready()
            lsn, head, count = self.lsn, self.tables.audit_head, self.tables.audit_count
        self._complete_audit(lsn)
        beyond: list[int] = []

        def up_to_now() -> Iterator[Audited]:
            for record in self._audit.read():
                if record.lsn <= lsn:
                    yield record
                elif record.lsn > self.lsn:
                    beyond.append(record.lsn)

        findings = audit.verify(up_to_now(), head=head, count=count)
        return findings + [f"transaction {lsn} is in the audit and was never made" for lsn in beyond]

    def _complete_audit(self, through: int) -> None:
        """Bring the audit's files up to a transaction, from the log; it is never trimmed past what they hold."""
        if self._store is None:
            return
        if self._broken is None:
            self._store.flush()
        with self._auditing, disk_errors(self._store.folder, "audited", "The log holds it all. "):
            frames = self._store.logged(self._audit.last_lsn, through)
            self._audit.append(audit.encoded(frame.lsn, *fx.decode_audit(frame.payload)) for frame in frames)

    def findings(self) -> list[Finding]:
        """Damage met so far."""
        return [] if self._store is None else list(self._store.findings)

    def health(self) -> EngineHealth:
        damage = [Damage(*finding) for finding in self.findings()]
        if self.checkpoint_failure is not None:
            damage.append(
                Damage(
                    "warning",
                    "checkpoints",
                    f"the last checkpoint failed: {self.checkpoint_failure}",
                    "nothing: the log holds it all, and grows",
                    "make room on the disk, or look at its health",
                )
            )
        return EngineHealth("the database is closed" if self._closed else None, self._broken, damage)

    def validate(self) -> list[str]:
        """Walk every invariant of every structure; each broken one in words."""
        with self._commit, self._reading():
            return [
                f"{where}: {what}" for where, part in self._applied.structures().items() for what in part.validate()
            ]

    def damaged_files(self) -> list[tuple[str, str]]:
        """Files whose bytes are not what was written, and what is wrong with each; reads all of them."""
        return [] if self._store is None else self._store.damaged_files()

    def secret(self, name: str) -> bytes:
        """A key of this database that no door shows."""
        return clock.random_bytes(32) if self._store is None else self._store.secret(name, fresh=self.lsn == 0)

    @cached_property
    def signing_keys(self) -> "KeyRing":
        """What receipts and tokens are signed with."""
        # Here, because the library of the curves takes longer to import than all of the engine.
        from kektor.storage.keys import KeyRing

        return KeyRing(None if self.folder is None else self.folder / "keys" / "signing.json")

    @property
    def folder(self) -> Path | None:
        return None if self._store is None else self._store.folder

    def close(self) -> None:
        """Checkpoint what is new and let the directory go; safe to call twice."""
        if self._closed:
            return
        if self._background is not None:
            self._background.join()
        try:
            if self._store is not None and self._broken is None:
                self.checkpoint()
        finally:
            with self._commit, self._state:
                self._closed = True
                if self._store is not None:
                    self._store.close()
                self._reset()

    def space_by_number(self, number: int) -> IndexSpace | None:
        """For transactions: an index that is applied, not only staged."""
        return self._applied.spaces.get(number)

    # Loading and applying

    def _checkpoint_in_background(self) -> None:
        if self._background is not None and self._background.is_alive():
            return

        def run() -> None:
            try:
                self.checkpoint()
                self.checkpoint_failure = None
            except Exception as error:  # noqa: BLE001 - reported by stats and health; the log still holds everything
                self.checkpoint_failure = str(error)

        self._background = threading.Thread(target=run, name="kektor-checkpoint", daemon=True)
        self._background.start()

    # Reading helpers

    @contextmanager
    def _reading(self) -> Iterator[None]:
        while True:
            # Never while the state lock is held: reloading takes the commit lock first, as every writer does.
            self._ready()
            with self._state:
                if not self._stale:
                    with _damage_named():
                        yield
                    return

    def _ready(self) -> None:
        if self._closed:
            raise Unavailable("this database is closed")
        if self._stale:
            with self._commit, self._state:
                if self._stale:
                    self._reload()

    def _reload(self) -> None:
        """After a failed write: memory is what is durable, nothing more."""
        if self._store is None:
            raise Internal("the in-memory database is inconsistent after a failed transaction")
        if self._broken is None:
            self._store.flush()
        with disk_errors(self._store.folder, "read again", "Nothing acknowledged is lost. "):
            self._load(self._store, until=self._store.log.durable_lsn)
        self._stale = False

    def _space(self, index: str) -> IndexSpace:
        settings = self.tables.settings.get(index)
        if settings is None:
            raise NotFound(f"there is no index {index!r}", field="index")
        return self._applied.spaces[settings.number]

    def _seen(self, view: View) -> tuple[IndexSpace, Compiled]:
        space = self._space(view.index)
        return space, self._applied.compilers[space.settings.number].compile(view)

    def _best(self, space: IndexSpace, search: Callable[[int], Ranked], k: int) -> list[Scored]:
        """The k best; equal scores in the order of content, then id, never of slot.

        What is tied with the last place is asked for until all of it is there, since a structure may know no other
        order than that of slots.
        """
        asked = k + 1
        with _damage_named():
            slots, scores = search(asked)
            while len(slots) == asked and scores[-1] == scores[k - 1]:
                asked *= 4
                slots, scores = search(asked)
        with self._reading():
            if len(slots) > k:
                slots, scores = _without_hopeless(space, slots, scores, k)
            order = space.names.by_content(slots).tolist()
            found = [
                (-score, content, key.id, key.scope, Scored(key, score))
                for slot, score, content in zip(slots.tolist(), scores.tolist(), order, strict=True)
                if (key := space.names.key(slot)) is not None
            ]
        return [entry[-1] for entry in sorted(found, key=lambda entry: entry[:-1])[:k]]


def _shortened(space: IndexSpace, query: str) -> str:
    texts = space.texts
    with _damage_named():
        return shortened(query, terms_of=texts.query_terms, frequency=texts.document_frequency, documents=len(texts))


def _without_hopeless(space: IndexSpace, slots: NDArray[np.uint32], scores: NDArray[np.float32], k: int) -> Ranked:
    """Of many tied with the last place only those whose content comes early enough."""
    kept = scores > scores[k - 1]
    tied = np.flatnonzero(scores == scores[k - 1])
    content = space.names.by_content(slots[tied])
    places = k - int(kept.sum())
    kept[tied[content <= np.partition(content, places - 1)[places - 1]]] = True
    return slots[kept], scores[kept]


@contextmanager
def _damage_named() -> Iterator[None]:
    """What the native structures find broken, as the error that callers know."""
    try:
        yield
    except CorruptFile as error:
        raise Corrupt(f"{error}; doctor tells what else is damaged") from error


def _read_cursor(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not cursor.startswith("s") or not cursor[1:].isdecimal():
        raise Invalid(f"cursor {cursor!r} did not come from a list", field="cursor")
    return int(cursor[1:])


def _write_cursor(slot: int) -> str:
    return f"s{slot}"
