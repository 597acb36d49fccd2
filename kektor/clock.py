"""The one seam for time, randomness and new ids, so that tests can hold all three.

Times are integers: microseconds since 1970-01-01T00:00:00Z.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Clock", "fixed", "new_id", "now", "random_bytes"]


class Clock:
    """Where time and randomness come from; replace both parts to make a run repeatable."""

    def __init__(
        self,
        now: Callable[[], int] = lambda: time.time_ns() // 1000,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.now = now
        self.random_bytes = random_bytes


_clock = Clock()
_id_lock = threading.Lock()
_last_id_ms = 0
_id_sequence = 0


def now() -> int:
    """Microseconds since the epoch, UTC."""
    return _clock.now()


def random_bytes(count: int) -> bytes:
    """Bytes nobody can guess (unless a test holds the seam)."""
    return _clock.random_bytes(count)


def new_id() -> str:
    """A UUIDv7 (RFC 9562): sorts by creation, also within one millisecond of one process.

    >>> len(new_id())
    36
    """
    global _last_id_ms, _id_sequence
    with _id_lock:
        ms = now() // 1000
        if ms > _last_id_ms:
            _last_id_ms, _id_sequence = ms, 0
        else:
            _id_sequence += 1
            if _id_sequence > 0xFFF:
                _last_id_ms, _id_sequence = _last_id_ms + 1, 0
        ms, sequence = _last_id_ms, _id_sequence
    tail = int.from_bytes(random_bytes(8), "big") & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
    value = (ms & 0xFFFF_FFFF_FFFF) << 80 | 7 << 76 | sequence << 64 | tail
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


@contextmanager
def fixed(clock: Clock) -> Iterator[Clock]:
    """Hold the seam for the length of a test."""
    global _clock, _last_id_ms, _id_sequence
    before = _clock, _last_id_ms, _id_sequence
    _clock, _last_id_ms, _id_sequence = clock, 0, 0
    try:
        yield clock
    finally:
        _clock, _last_id_ms, _id_sequence = before
