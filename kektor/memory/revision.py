"""What a memory is at the moment, as one short text that changes with it: for conditional requests."""

import hashlib

import msgspec
from msgspec import structs

from kektor.engine.records import IndexSettings, Node
from kektor.errors import Conflict
from kektor.memory.objects import Memory
from kektor.memory.presenting import memory_of

__all__ = ["check_revision", "revision"]

_PASSING = frozenset({"freshness", "access", "validity", "vector"})
"""What passes with time, or tells of use; of the validity the interval counts and its words do not."""


def revision(memory: Memory) -> str:
    """Equal for equal states of one version, whoever asks and whenever."""
    lasting = {name: value for name, value in structs.asdict(memory).items() if name not in _PASSING}
    interval = (memory.validity.from_, memory.validity.to, memory.freshness.confirmed_at)
    content = msgspec.json.encode((lasting, interval), order="deterministic")
    return hashlib.blake2b(content, digest_size=12).hexdigest()


def check_revision(expected: str | None, node: Node, settings: IndexSettings) -> None:
    """Conflict when the node is no longer what the caller has seen; `*` is any."""
    if expected is None or expected == "*":
        return
    current = revision(memory_of(node, settings, now=node.recorded_at))
    if expected != current:
        raise Conflict(
            f"{node.id!r} has changed since it was read (If-Match {expected!r}); read it again",
            field="if_match",
            details={"etag": current, "version": node.version},
        )
