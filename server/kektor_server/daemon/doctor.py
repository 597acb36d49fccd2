"""A thorough look at an open database: what was met at opening, every invariant, every byte of every checkpoint."""

from msgspec import Struct

from kektor.engine.local import LocalEngine
from kektor.operations.admin import Finding

__all__ = ["Finding", "Report", "examine"]


class Report(Struct, frozen=True):
    """`ok` when there is nothing to report."""

    ok: bool
    findings: list[Finding]


def examine(engine: LocalEngine) -> Report:
    """Look at everything; changes nothing. It reads every checkpoint to the last byte, and takes as long as that."""
    findings = [Finding(*damage) for damage in engine.health().damage]
    for broken in engine.validate():
        where, _, what = broken.partition(": ")
        findings.append(Finding("error", where, what, "answers that rest on it may be wrong", _BACKUP))
    findings += [
        Finding(
            "error",
            file,
            "its bytes are not what was written (SHA-256)",
            "nothing as long as the other checkpoint and the log are whole",
            _BACKUP,
        )
        for file in engine.damaged_files()
    ]
    return Report(not findings, findings)


_BACKUP = "keep a copy of the directory, and restore a backup"
