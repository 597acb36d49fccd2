"""When erased bytes leave the files: a while after they were erased, or at once when somebody asks."""

import threading
from collections.abc import Callable

from msgspec import Struct

from kektor import clock, times
from kektor.engine.notices import Written
from kektor.engine.port import Compacted, Engine

__all__ = ["DELAY", "Compaction", "Compactor"]

DELAY = 60.0
"""Seconds after an erasure until its bytes go; what is erased meanwhile goes with them."""

ERASING = frozenset({"erase"})
"""What a run is made for. Raw deletions go with the next one, whenever it comes: a run writes everything anew."""


class Compaction(Struct, frozen=True):
    """A run: erasures up to transaction `lsn` have left every file at `bytes_gone_at`; both null while it is ahead."""

    scheduled: bool
    lsn: int | None = None
    bytes_gone_at: str | None = None


class Compactor:
    """Runs compactions of one database, one at a time. Whoever asks before one has begun shares it."""

    def __init__(self, engine: Engine, *, delay: float = DELAY) -> None:
        self._engine = engine
        self._delay = delay
        self._asked = threading.Lock()
        self._running = threading.Lock()
        self._timer: threading.Timer | None = None
        self._begun = 0
        self._closed = False
        self.last: Compaction | None = None
        self.failure: str | None = None
        """Why the last run that nobody waited for failed."""
        self.when_gone: list[Callable[[Compacted, int], None]] = []
        """Told of every run and when it was done, before it answers."""

    def noticed(self, written: Written) -> None:
        """A listener of the gateway: erasing asks for a run."""
        if written.operation in ERASING:
            self.request()

    def request(self) -> None:
        """Have a run begin after the delay, unless one is ahead already."""
        with self._asked:
            if self._timer is None and not self._closed:
                self._timer = threading.Timer(self._delay, self._run_alone)
                self._timer.daemon = True
                self._timer.start()

    def run(self) -> Compaction:
        """Run one now, or take part in one that has not begun yet, and return when the bytes are gone."""
        with self._asked:
            mine = self._begun + 1
        with self._running:
            if self._begun >= mine and self.last is not None:
                return self.last
            return self._run()

    def _run(self) -> Compaction:
        with self._asked:
            self._begun += 1
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        done, gone_at = self._engine.compact(), clock.now()
        for told in self.when_gone:
            told(done, gone_at)
        self.failure = None
        self.last = Compaction(False, done.lsn, times.format(gone_at))
        return self.last

    def _run_alone(self) -> None:
        with self._running:
            try:
                self._run()
            except Exception as error:  # noqa: BLE001 - kept; what is erased stays so, and the next run takes it too
                self.failure = str(error)

    def close(self) -> None:
        """Call off what is ahead; a run under way is waited for."""
        with self._asked:
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        with self._running:
            return
