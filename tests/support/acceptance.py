"""Which promises there are, which test keeps which, and what of them is still to come."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.support.callers import Pending

__all__ = ["PendingParts", "Promise", "id_of_test", "promises"]

_PAGE = Path(__file__).parents[2] / "docs" / "acceptance.md"
_ROW = re.compile(r"^\| `(?P<id>[a-z_]+\.[a-z_]+)` \| (?P<text>.*?) \| (?P<pending>.*?) ?\|$", re.MULTILINE)


class Promise(NamedTuple):
    """A line of docs/acceptance.md; `pending` says what is missing before the whole of it can be tested."""

    id: str
    text: str
    pending: str


@cache
def promises() -> dict[str, Promise]:
    """All of them, in the order of the page."""
    return {row["id"]: Promise(row["id"], row["text"], row["pending"]) for row in _ROW.finditer(_PAGE.read_text())}


def id_of_test(name: str) -> str | None:
    """The promise that a test is named after.

    >>> id_of_test("test_tombstone_laundering[rest]")
    'tombstone.laundering'
    """
    told = name.partition("[")[0].removeprefix("test_")
    fits = [known for known in promises() if _begins(told, known.replace(".", "_"))]
    return max(fits, key=len, default=None)


def _begins(name: str, start: str) -> bool:
    return name == start or name.startswith(f"{start}_")


class PendingParts:
    """What a test would also assert if it were there."""

    def __init__(self) -> None:
        self.noted: dict[str, None] = {}
        self.lacking: dict[str, None] = {}
        """What the door under test does not have yet, while others do."""

    def __call__(self, what: str) -> None:
        """Put down a part that no door has."""
        self.noted[what] = None

    def lacks(self, missing: Pending) -> None:
        """Put down what this door lacks."""
        self.lacking[str(missing)] = None

    @contextmanager
    def part(self) -> Iterator[None]:
        """The assertions of a block, as far as the door can be asked: what it lacks is put down, and the test goes on.

        An assertion that fails in the block still fails the test.
        """
        try:
            yield
        except Pending as missing:
            self.lacks(missing)
