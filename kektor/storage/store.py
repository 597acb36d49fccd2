"""A data directory: who owns it, what was logged, what was checkpointed."""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from kektor_native import Damage, Frame, Log, NewerFile, crc32c, scan_log

from kektor import clock
from kektor.errors import Corrupt, Invalid, NewerFormat, Unavailable
from kektor.storage.audit import AuditFiles
from kektor.storage.checkpoint import Checkpoints, Frozen, Manifest
from kektor.storage.disk import disk_errors, make_folder, replace_file, sync_folder
from kektor.storage.lock import DirectoryLock
from kektor.storage.structure import FrozenChunk, Structure

__all__ = ["Durability", "Finding", "Store", "newer_refused"]

_SECRET_BYTES = 32
_LARGEST_QUARANTINED = 64 << 20
_READ_ONLY = (
    "The database is read-only and holds what was acknowledged; writes are taken again as soon as the disk takes them. "
)


class Durability(NamedTuple):
    """When a write is acknowledged: after its sync, up to `interval_ms` before it, or never waiting for one."""

    sync: Literal["always", "interval", "off"] = "always"
    interval_ms: int = 100

    @classmethod
    def parse(cls, text: str) -> "Durability":
        """`always`, `interval:<ms>` or `off`."""
        if text == "always":
            return cls("always")
        if text == "off":
            return cls("off")
        kind, _, ms = text.partition(":")
        if kind == "interval" and ms.isdecimal() and 1 <= int(ms) <= 60_000:
            return cls("interval", int(ms))
        raise Invalid(f"sync must be 'always', 'interval:<ms>' with 1 to 60000 or 'off', not {text!r}", field="sync")


class Finding(NamedTuple):
    """Damage met on the way in: what it is, where, and what is lost."""

    severity: Literal["warning", "error"]
    where: str
    what: str
    lost: str
    action: str


class Store:
    """Lock, log and checkpoints of one folder.

    Opening it only takes the lock. The owner then loads the newest good checkpoint, replays `frames_after` its LSN,
    and calls `start_log` once before the first `append`.
    """

    def __init__(self, folder: Path, durability: Durability) -> None:
        self.folder = folder
        self.durability = durability
        self.findings: list[Finding] = []
        with disk_errors(folder, "opened", ""):
            folder.parent.mkdir(parents=True, exist_ok=True)
            make_folder(folder)
            self._lock = DirectoryLock(folder)
            try:
                make_folder(folder / "log")
                make_folder(folder / "keys")
                self.checkpoints = Checkpoints(folder)
                self.audit = AuditFiles(folder / "audit")
            except BaseException:
                self._lock.release()
                raise
        self._log: Log | None = None
        self._logged_to = 0
        for path, what, cut in self.audit.damage:
            # Nothing is lost where a crash ended an append: the log is read again from there.
            if cut:
                self.quarantine(f"{path.name}-{path.stat().st_size}", cut)
                self.report(
                    Finding(
                        "warning", f"audit/{path.name}", what, "nothing that the log still holds", "verify the audit"
                    )
                )

    def secret(self, name: str, *, fresh: bool) -> bytes:
        """32 random bytes of this database, readable by its owner only; made once, while it is `fresh`.

        The file holds their CRC behind them: another key would recognise nothing, and nobody would notice.
        """
        path = self.folder / "keys" / name
        if fresh and not path.exists():
            made = clock.random_bytes(_SECRET_BYTES)
            replace_file(path, made + _checksum(made))
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            content = b""
        secret, checksum = content[:_SECRET_BYTES], content[_SECRET_BYTES:]
        if len(secret) != _SECRET_BYTES or checksum != _checksum(secret):
            raise Corrupt(
                f"{path} is missing or damaged: what was rejected could not be recognised without it. "
                "Restore it from a backup.",
                details={"path": str(path)},
            )
        return secret

    def damaged_files(self) -> list[tuple[str, str]]:
        """Every file whose bytes are not what was written, and what is wrong; reads all of checkpoints and log."""
        return [*self.checkpoints.damaged_files(), *self._damaged_log()]

    def _damaged_log(self) -> Iterator[tuple[str, str]]:
        """Also segments that opening had no need to read: falling back to the older checkpoint needs them."""
        kept = [int(name) for name in self.checkpoints.names() if name not in self.checkpoints.rejected]
        expected = min(kept, default=0) + 1
        for segment, items in scan_log(str(self.folder / "log"), 0):
            where = f"log/{os.path.basename(segment)}"
            for item in items:
                if isinstance(item, Damage):
                    yield where, f"{item.length} bytes at offset {item.offset} are no good frame"
                elif item.lsn >= expected:
                    if item.lsn > expected:
                        yield where, f"transactions {expected} to {item.lsn - 1} are missing before it"
                    expected = item.lsn + 1

    def reject_checkpoint(self, name: str, why: str, lost: str) -> None:
        """Note a checkpoint that is not used."""
        self.checkpoints.rejected.add(name)
        self.report(Finding("error", f"checkpoints/{name}", why, lost, "write a new one: kektor checkpoint"))

    def report(self, finding: Finding) -> None:
        """Note damage, once."""
        if finding not in self.findings:
            self.findings.append(finding)

    def quarantine(self, where: str, content: bytes) -> None:
        """Keep damaged bytes aside under a name that says where they were."""
        folder = self.folder / "quarantine"
        make_folder(folder)
        path = folder / where.replace("/", "-")
        if not path.exists():
            replace_file(path, content)

    def frames_after(self, lsn: int) -> Iterator[Frame]:
        """Replay: every good frame above an LSN, in order. Damaged bytes become findings and are set aside."""
        with newer_refused():
            scan = scan_log(str(self.folder / "log"), lsn)
        for segment, items in scan:
            for item in items:
                if isinstance(item, Damage):
                    self._report_damage(Path(segment), item)
                else:
                    yield item
        self._logged_to = scan.last_lsn

    def logged(self, after: int, through: int) -> Iterator[Frame]:
        """Good frames of some transactions that are durable; a writer may be at work behind them."""
        if after >= through:
            return
        for _, items in scan_log(str(self.folder / "log"), after):
            for item in items:
                if not isinstance(item, Damage):
                    if item.lsn > through:
                        return
                    yield item

    def _report_damage(self, segment: Path, damage: Damage) -> None:
        self.report(
            Finding(
                "error",
                f"{segment} (after LSN {damage.after_lsn})",
                f"{damage.length} bytes at offset {damage.offset} are no good frame",
                "the transactions in those bytes",
                "restore them from a backup; the bytes are kept in quarantine/",
            )
        )
        # A full or failing disk must not keep what is whole from being opened.
        with contextlib.suppress(OSError), segment.open("rb") as stream:
            stream.seek(damage.offset)
            self.quarantine(f"{segment.name}-{damage.offset}", stream.read(min(damage.length, _LARGEST_QUARANTINED)))

    def start_log(self, lsn: int) -> int:
        """Begin a new segment behind everything the log has reached; what came before is only read from now on.

        Returns the last LSN in use: `lsn`, or a greater one whose frame was lost to damage and must not be reused.
        """
        lsn = max(lsn, self._logged_to)
        if self._log is not None:
            self._log.close()
        with disk_errors(self.folder, "written", "A new segment of the log reserves 64 MiB. "):
            self._log = Log(
                str(self.folder / "log"),
                next_lsn=lsn + 1,
                sync=self.durability.sync,
                interval_ms=self.durability.interval_ms,
            )
        return lsn

    @property
    def log(self) -> Log:
        if self._log is None:
            raise Unavailable("the log is not open")
        return self._log

    def append(self, lsn: int, payload: bytes) -> None:
        """Queue one transaction's frame, in LSN order."""
        with disk_errors(self.folder, "written", _READ_ONLY):
            self.log.append(lsn, payload)

    def wait(self, lsn: int) -> None:
        """Return when the frame is durable."""
        with disk_errors(self.folder, "written", _READ_ONLY):
            self.log.wait(lsn)

    def flush(self) -> None:
        """Sync everything appended, whatever the durability asked for."""
        with disk_errors(self.folder, "written", _READ_ONLY):
            self.log.flush()

    def freeze(self, lsn: int, structures: Mapping[str, Structure]) -> Frozen:
        """The short part of a checkpoint, under the commit lock."""
        chunks: dict[str, Sequence[FrozenChunk]] = {}
        try:
            for name, part in structures.items():
                chunks[name] = part.freeze(lsn)
        except BaseException:
            for name in chunks:
                structures[name].release(False)
            raise
        return Frozen(lsn, structures, chunks)

    def roll(self) -> None:
        """End the segment of the log here, so that all before it can be trimmed together."""
        with disk_errors(self.folder, "written", _READ_ONLY):
            self.log.roll()

    def clear_quarantine(self) -> None:
        """Remove the damaged bytes that were set aside: what was erased since may be among them."""
        with disk_errors(self.folder, "cleared", ""):
            shutil.rmtree(self.folder / "quarantine", ignore_errors=True)
            sync_folder(self.folder)

    def clear_remains(self) -> None:
        """Remove what is left beside the log and the two newest checkpoints: older ones, files never finished."""
        with disk_errors(self.folder, "cleared", ""):
            for unfinished in self.folder.glob("*.new"):
                unfinished.unlink()
            self.checkpoints.prune(rejected=True)
            sync_folder(self.folder)

    def write_checkpoint(self, frozen: Frozen, *, created_at: int, full: bool = False) -> Manifest:
        """The long part, in the background: write, publish, drop what is no longer needed."""
        written = False
        try:
            self.flush()  # a checkpoint must never be ahead of the log
            with disk_errors(self.folder, "checkpointed", "The log holds everything; the next attempt follows. "):
                manifest = self.checkpoints.write(frozen, created_at=created_at, full=full)
            written = True
        finally:
            for part in frozen.structures.values():
                part.release(written)
        with disk_errors(self.folder, "written", _READ_ONLY):
            behind = self.checkpoints.prune()
            self.log.roll()
            self.log.trim(min(behind, self.audit.last_lsn))
        return manifest

    def close(self) -> None:
        """Flush the log and give the directory up."""
        try:
            if self._log is not None:
                self._log.close()
        finally:
            self._lock.release()


def _checksum(secret: bytes) -> bytes:
    return crc32c(secret).to_bytes(4, "little")


@contextlib.contextmanager
def newer_refused() -> Iterator[None]:
    try:
        yield
    except NewerFile as error:
        raise NewerFormat(f"{error}. Nothing was changed.") from error
