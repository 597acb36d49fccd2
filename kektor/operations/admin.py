"""The database as a whole: whether it works, what it is made of, checkpoints."""

from msgspec import Struct

from kektor.engine.gateway import Principal
from kektor.errors import Forbidden
from kektor.memory.compaction import Compaction
from kektor.operations.base import BaseOperations
from kektor.version import __version__

__all__ = ["About", "AdminOperations", "Checkpoint", "CompactRequest", "Finding", "Health"]


class Finding(Struct, frozen=True):
    """Damage that was met: where, what it is, what is lost by it, what to do."""

    severity: str
    where: str
    what: str
    lost: str
    action: str


class Health(Struct, frozen=True):
    """`status` is `ready`, `degraded` (all works, something was lost or fails) or `unavailable`."""

    status: str
    reasons: list[str]
    findings: list[Finding]


class About(Struct, frozen=True):
    """The version, what new indexes embed with, and what counts tokens."""

    version: str
    embedder: str
    tokenizer: str


class Checkpoint(Struct, frozen=True):
    """Up to which log sequence number everything is in checkpoint files."""

    lsn: int


class CompactRequest(Struct, frozen=True, forbid_unknown_fields=True):
    wait: bool = False


class AdminOperations(BaseOperations):
    """What concerns no single index."""

    def health(self) -> Health:
        """Whether reads and writes work at the moment; anyone may ask, and it waits for nothing."""
        health = self.engine.health()
        findings = [Finding(*damage) for damage in health.damage]
        reasons = [reason for reason in (health.closed, health.read_only) if reason is not None]
        if reasons:
            return Health("unavailable", reasons, findings)
        return Health("degraded" if findings else "ready", [], findings)

    def about(self) -> About:
        """Names only: no model is loaded for it."""
        return About(__version__, self._default_embedder, self.context.tokenizer.name)

    def compact(self, request: CompactRequest, principal: Principal) -> Compaction:
        """Rid the files of everything erased: soon, or with `wait` before this answers. Forbidden without `admin`."""
        _refuse_others(principal, "compacting")
        if request.wait:
            return self._compactor.run()
        self._compactor.request()
        return Compaction(True)

    def checkpoint(self, principal: Principal) -> Checkpoint:
        """Write a checkpoint of everything committed. Raises Forbidden without the right `admin`."""
        _refuse_others(principal, "writing a checkpoint")
        return Checkpoint(self.engine.checkpoint())


def _refuse_others(principal: Principal, what: str) -> None:
    if "admin" not in principal.rights or not principal.reaches_everything:
        raise Forbidden(f"{what} needs the right 'admin' and a grant without bounds: it concerns the whole database")
