"""The engine of one process over one data directory, or over nothing but memory.

Commit order: under the commit lock a transaction checks, takes the next LSN and slots, hands its frame to the log's
queue and is applied in memory; the lock is released and the caller waits until the frame is durable. A reader may
see a write up to one sync early; receipts and events leave only after it.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from kektor import clock
from kektor.engine import audit
from kektor.engine import effects as fx
from kektor.engine.applied import Applied
from kektor.engine.audit import AuditEvent
from kektor.engine.port import (
    Compacted,
    Damage,
    EngineHealth,
    Upkeep,
)
from kektor.engine.reads import Reads, damage_named
from kektor.engine.recovery import recover
from kektor.engine.repair import mend
from kektor.engine.space import IndexSpace
from kektor.engine.staging import LocalTransaction
from kektor.errors import Conflict, Internal, Unavailable
from kektor.storage.audit import Audited, AuditInMemory, AuditStore
from kektor.storage.disk import disk_errors
from kektor.storage.store import Durability, Finding, Store

if TYPE_CHECKING:
    from kektor.storage.keys import KeyRing

__all__ = ["CHECKPOINT_BYTES", "RETRY_AFTER", "LocalEngine"]

CHECKPOINT_BYTES = 64 << 20
"""Bytes of log after which a checkpoint is written in the background."""

RETRY_AFTER = 1.0
"""Seconds between attempts to write to a disk that refused."""


class LocalEngine(Reads):
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

    def upkeep(self, index: str, action: Upkeep) -> tuple[int, int]:
        with self._reading():
            space = self._space(index)
        # The vector index guards itself; a step holds up neither readers nor a checkpoint.
        if action == "vacuum":
            return space.vectors.vacuum()
        return space.vectors.refine(ef=space.settings.ef_construction)

    # Writing

    @contextmanager
    def transaction(self) -> Iterator[LocalTransaction]:
        with self._commit, damage_named():
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
        with damage_named():
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
                    with damage_named():
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
