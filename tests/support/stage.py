"""Where an acceptance test plays: one door, one index that nobody else uses."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from kektor.engine.audit import AuditEvent
from tests.support.acceptance import PendingParts
from tests.support.callers import Caller, Door, Refused, Who
from tests.support.events import events_of

__all__ = ["Stage", "known_ids", "texts_of", "tried"]


class Stage:
    """A door with a fresh index behind it."""

    def __init__(self, door: Door, index: str, pending: PendingParts) -> None:
        self.door = door
        self.index = index
        self.pending = pending

    def open(self, **settings: Any) -> None:
        self.operator.call("create_index", **settings)
        self._made_at: int = self.operator.call("stats")["lsn"]

    def close(self) -> None:
        self.configure(write="open")  # a test that failed may have left it frozen
        self.operator.call("drop_index")

    def caller(self, user: str | None = None, **who: Any) -> Caller:
        """Somebody at this door."""
        return Caller(self.door, Who(user=user, **who), self.index)

    @property
    def operator(self) -> Caller:
        """Whoever prepares a test: sees all, may all, and comes in where there is a way for it."""
        return Caller(self.door.operator(), Who(), self.index)

    def preparing(self, user: str | None = None, **who: Any) -> Caller:
        """The same somebody at the door that can do everything, for what this door cannot."""
        return Caller(self.door.operator(), Who(user=user, **who), self.index)

    def configure(self, **policy: str) -> None:
        """Change the policy of the index."""
        self.operator.call("configure_index", policy=policy)

    def restart(self) -> None:
        self.door.restart()

    def settle(self) -> None:
        self.door.settle()

    def events(self) -> list[AuditEvent]:
        """What was noted of this index since it was made, refusals included."""
        return events_of(self.door.log_folder(), self.index, self._made_at)

    def now(self) -> str:
        """This moment, between what was written before and what is written after."""
        return datetime.now(UTC).isoformat()


def tried(call: Callable[[], Any]) -> Any:
    """What a call answers, or the refusal that it meets."""
    try:
        return call()
    except Refused as refused:
        return refused


def known_ids(recall: Any) -> list[str]:
    """The ids of the hits, best first."""
    return [hit["memory"]["id"] for hit in recall["hits"]]


def texts_of(items: Any) -> list[str]:
    """The texts of memories."""
    return [item["text"] for item in items]
