"""A value that is made at its first use, by one thread, once."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Once"]

T = TypeVar("T")


class Once(Generic[T]):
    """Holds what `make` returns; many threads may ask first, `make` runs once.

    A `make` that raises leaves nothing behind: the next caller tries again.

    >>> once = Once(lambda: object())
    >>> once.ready, once.get() is once.get(), once.ready
    (False, True, True)
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._value: list[T] = []

    @property
    def ready(self) -> bool:
        """True once the value exists; never waits."""
        return bool(self._value)

    def get(self) -> T:
        """The value, made now if it was not yet."""
        if not self._value:
            with self._lock:
                if not self._value:
                    self._value.append(self._make())
        return self._value[0]
