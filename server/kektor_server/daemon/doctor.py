"""A thorough look at an open database: what was met at opening, every invariant, every byte of every checkpoint."""

from collections.abc import Iterator

from msgspec import Struct

from kektor.engine.local import LocalEngine
from kektor.engine.port import Engine
from kektor.operations.admin import Finding

__all__ = ["Finding", "Report", "examine"]


class Report(Struct, frozen=True):
    """`ok` when there is nothing to report."""

    ok: bool
    findings: list[Finding]


def examine(engine: Engine) -> Report:
    """Look at everything; changes nothing. It reads every checkpoint to the last byte, and takes as long as that."""
    findings = [Finding(*damage) for damage in engine.health().damage]
    if isinstance(engine, LocalEngine):
        findings += _of_files(engine)
    return Report(not findings, findings)


def _of_files(engine: LocalEngine) -> Iterator[Finding]:
    for broken in engine.validate():
        where, _, what = broken.partition(": ")
        yield Finding("error", where, what, "answers that rest on it may be wrong", _BACKUP)
    for what in engine.verify_audit():
        yield Finding("error", "audit", what, "the account of that change", _BACKUP)
    for file, what in engine.damaged_files():
        yield Finding(
            "error",
            file,
            what,
            "nothing as long as the other checkpoint and the log are whole",
            _BACKUP,
        )


_BACKUP = "keep a copy of the directory, and restore a backup"
