"""A small cache of recent vectors, since the same question is asked again and again."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["VectorCache"]


class VectorCache:
    """The last `capacity` vectors by digest of their text; safe for many threads.

    >>> cache = VectorCache(2)
    >>> cache.put([(b"a", np.zeros(3, np.float32))])
    >>> sorted(cache.find([b"a", b"b"]))
    [b'a']
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._rows: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """What is held of `keys`, now the most recent. The rows are shared: copy, never write."""
        found = {}
        with self._lock:
            for key in keys:
                row = self._rows.get(key)
                if row is not None:
                    self._rows.move_to_end(key)
                    found[key] = row
        return found

    def put(self, rows: Iterable[tuple[bytes, NDArray[np.float32]]]) -> None:
        """Keep copies (a view would hold its whole batch in memory) and let the least recent go."""
        copies = [(key, row.copy()) for key, row in rows]
        with self._lock:
            for key, row in copies:
                self._rows[key] = row
                self._rows.move_to_end(key)
            while len(self._rows) > self.capacity:
                self._rows.popitem(last=False)

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._rows.clear()

    def __len__(self) -> int:
        return len(self._rows)
