"""How often one caller may ask: a bucket each, that fills with time."""

import math
import time
from collections.abc import Callable
from typing import Final

from kektor.errors import RateLimited

__all__ = ["Rates"]

_MOST_CALLERS: Final = 10_000


class Rates:
    """`rate` requests a second, after a burst of as many as one brings (at least ten); 0 is no bound. One thread's."""

    def __init__(self, rate: float, now: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = max(rate, 10.0)
        self._now = now
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, caller: str) -> None:
        """RateLimited when the caller's bucket is empty; `details.retry_after` says when it is not."""
        if not self._rate:
            return
        now = self._now()
        left, since = self._buckets.pop(caller, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._rate)
        # Put back at the end: the first of the dictionary is who has not asked for longest.
        self._buckets[caller] = (max(left - 1, 0.0) if left >= 1 else left, now)
        if len(self._buckets) > _MOST_CALLERS:
            del self._buckets[next(iter(self._buckets))]
        if left < 1:
            wait = math.ceil((1 - left) / self._rate)
            raise RateLimited(
                f"more than {self._rate:g} requests a second; come back in {wait} s", details={"retry_after": wait}
            )
