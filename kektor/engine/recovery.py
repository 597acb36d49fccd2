"""Opening a data directory: the newest good checkpoint, then the log; damage costs what it hit and is named."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from kektor_native import CorruptFile, Frame, NewerFile

from kektor.engine import effects as fx
from kektor.engine.applied import Applied
from kektor.engine.audit import Entry
from kektor.engine.space import IndexSpace, Loss
from kektor.engine.tables import SmallTables
from kektor.engine.visible import ViewCompiler
from kektor.errors import Corrupt, NewerFormat
from kektor.storage.store import Finding, Store

__all__ = ["Recovered", "recover"]


class Recovered(NamedTuple):
    """What there is, the LSN of the checkpoint it began from (0 for none), and the bytes of log applied to it."""

    applied: Applied
    checkpoint_lsn: int
    logged: int


def recover(store: Store, *, until: int | None) -> Recovered:
    """Everything up to a transaction (None is the last); damage met on the way is reported to the store."""
    left_out: dict[int, str] = {}
    while True:
        try:
            return _recover(store, until, left_out)
        except _NotApplicable as failed:
            # Whole or not at all: what it did before it failed goes by beginning again without it.
            left_out[failed.lsn] = failed.why
            store.quarantine(f"transaction-{failed.lsn}", failed.payload)


class _NotApplicable(Exception):
    """A whole frame that cannot be read or applied: a defect of ours, which must cost that transaction alone."""

    def __init__(self, lsn: int, why: str, payload: bytes) -> None:
        super().__init__(why)
        self.lsn, self.why, self.payload = lsn, why, payload


def _recover(store: Store, until: int | None, left_out: Mapping[int, str]) -> Recovered:
    applied = _from_checkpoints(store)
    base = applied.lsn
    lossy = any(space.losses for space in applied.spaces.values())
    logged = 0
    for frame in store.frames_after(base):
        if until is not None and frame.lsn > until:
            break
        if frame.lsn != applied.lsn + 1:
            _report_gap(store, applied.lsn, frame.lsn)
            lossy = True
        if frame.lsn in left_out:
            what = f"transaction {frame.lsn} cannot be applied ({left_out[frame.lsn]}); it is kept in quarantine/"
            store.report(Finding("error", "log", what, "what it wrote", _BACKUP))
            applied.pass_over(frame.lsn, _entries(frame))
            lossy = True
            continue
        try:
            record = fx.decode(frame.payload)
            if lossy:
                record = _what_still_applies(store, applied, record, frame.lsn)
            applied.apply(record, frame.lsn)
        except Exception as error:
            raise _NotApplicable(frame.lsn, f"{type(error).__name__}: {error}", frame.payload) from error
        logged += len(frame.payload)
    return Recovered(applied, base, logged)


def _entries(frame: Frame) -> Sequence[Entry]:
    with contextlib.suppress(msgspec.MsgspecError):
        return fx.decode_audit(frame.payload)[0]
    return ()


def _from_checkpoints(store: Store) -> Applied:
    """The newest one without damage; when none is, the newest that can be opened at all, less what is damaged."""
    checkpoints = store.checkpoints
    names = checkpoints.names()
    rejected: dict[str, str] = {}
    for tolerant in (False, True):
        for name in names:
            try:
                manifest = checkpoints.manifest(name) if tolerant else checkpoints.read(name)
                applied = _open(checkpoints.path(name), tolerant=tolerant)
            except NewerFile as error:
                raise NewerFormat(f"{error}. Nothing was changed.") from error
            except (CorruptFile, Corrupt, FileNotFoundError, msgspec.MsgspecError, KeyError) as error:
                rejected.setdefault(name, str(error))
                continue
            applied.lsn = manifest.lsn
            for other in names:
                if other != name and other in rejected:
                    store.reject_checkpoint(other, rejected[other], _BESIDE)
            if tolerant:
                _report_losses(store, applied, name)
            else:
                checkpoints.base = name
            return applied
    for name, why in rejected.items():
        store.reject_checkpoint(name, why, "what the log no longer holds")
    return Applied()


def _open(folder: Path, *, tolerant: bool) -> Applied:
    applied = Applied()
    tables = applied.tables = SmallTables.open(folder / "database")
    for settings in tables.settings.values():
        number = settings.number
        applied.spaces[number] = IndexSpace.open(
            settings,
            folder / str(number),
            next_slot=tables.next_slots[number],
            next_edge=tables.next_edges[number],
            tolerant=tolerant,
        )
        applied.compilers[number] = ViewCompiler(applied.spaces[number])
    return applied


def _report_losses(store: Store, applied: Applied, used: str) -> None:
    losses = [loss for space in applied.spaces.values() for loss in space.losses]
    misfits = store.checkpoints.misfits(used)
    losses += [Loss(f"checkpoints/{used}/{file}", f"the file {what}", _BESIDE) for file, what in misfits]
    for loss in losses:
        store.report(Finding("error", loss.where, loss.what, loss.lost, _BACKUP))


def _report_gap(store: Store, reached: int, found: int) -> None:
    """Transactions are numbered without holes: a missing one is lost data, and saying so is all that is left."""
    missing = f"transactions {reached + 1} to {found - 1} are in no checkpoint and no log segment"
    if reached == 0 and any(finding.where.startswith("checkpoints/") for finding in store.findings):
        raise Corrupt(f"{store.folder}: no checkpoint can be read and {missing}: restore a backup")
    store.report(Finding("error", "log", missing, "what they wrote", _BACKUP))


def _what_still_applies(store: Store, applied: Applied, record: fx.TransactionRecord, lsn: int) -> fx.TransactionRecord:
    """Behind a loss: without the changes of what is not there any more, each of which is named."""
    kept: list[fx.Effect] = []
    made: set[int | tuple[int, int]] = set()
    for effect in record.effects:
        if isinstance(effect, fx.PutIndex):
            made.add(effect.settings.number)
        elif isinstance(effect, fx.PutNode):
            made.add((effect.index, effect.slot))
        if _stands_on_something(applied, effect, made.__contains__):
            kept.append(effect)
        else:
            what = f"transaction {lsn} changes a record that is lost ({type(effect).__name__})"
            store.report(Finding("error", "log", what, "that change", _BACKUP))
    return msgspec.structs.replace(record, effects=tuple(kept))


def _stands_on_something(applied: Applied, effect: fx.Effect, made: Callable[[int | tuple[int, int]], bool]) -> bool:
    """Whether what an effect changes is there, or `made` in the same transaction."""
    match effect:
        case fx.PutIndex() | fx.PutTombstone() | fx.KeepOutcome() | fx.PutErasure():
            return True
        case fx.DropIndex():
            return effect.number in applied.spaces
        case fx.LiftTombstone():
            return effect.id in applied.tables.tombstones
    space = applied.spaces.get(effect.index)
    if space is None:
        return made(effect.index)
    match effect:
        case fx.SetState() | fx.AmendNode() | fx.DropNode() | fx.AddVector():
            known = effect.slot in space.lost_nodes or space.nodes.get(effect.slot) is not None
            return known or made((effect.index, effect.slot))
        case fx.EndEdge():
            return effect.number in space.lost_edges or space.edges.get(effect.number) is not None
        case _:
            return True


_BESIDE = "nothing but what is named beside it"
_BACKUP = "restore it from a backup"
