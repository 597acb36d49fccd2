"""Threads for calls that wait or compute, bounded so that overload is an answer and not a queue without end."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from kektor.errors import Unavailable

__all__ = ["Lane"]

T = TypeVar("T")


class Lane:
    """Some threads, and a bounded number of calls that may wait for one of them."""

    def __init__(self, name: str, *, threads: int, queue: int) -> None:
        self.name = name
        self.room = threads + queue
        self.busy = 0
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=f"kektor-{name}")

    async def run(self, work: Callable[[], T]) -> T:
        """Run in a thread; Unavailable at once when every place is taken."""
        if self.busy >= self.room:
            raise Unavailable(
                f"{self.busy} {self.name} calls are under way, as many as this server takes; come back in a second",
                details={"retry_after": 1},
            )
        self.busy += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self.busy -= 1

    def close(self) -> None:
        """Wait for what runs, drop what has not begun."""
        self._threads.shutdown(wait=True, cancel_futures=True)
