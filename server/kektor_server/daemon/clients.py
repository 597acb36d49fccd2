"""Who is using the daemon, and since when nobody is."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Clients"]


class Clients:
    """Counts requests under way and clients attached; all on the event loop's thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._present = 0
        self._alone_since = clock()

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """Somebody is here as long as the block runs."""
        self._present += 1
        try:
            yield
        finally:
            self._present -= 1
            self._alone_since = self._clock()

    @property
    def present(self) -> int:
        return self._present

    def alone_for(self) -> float:
        """Seconds since the last one left; 0 while somebody is here."""
        return 0.0 if self._present else self._clock() - self._alone_since
