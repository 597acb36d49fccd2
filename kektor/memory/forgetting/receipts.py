"""A receipt: proof that something was erased, and of how much, which contains none of it."""

from collections import Counter

import msgspec
from msgspec import structs

from kektor import clock, times
from kektor.engine.port import Transaction
from kektor.engine.records import Erasure, IndexSettings
from kektor.memory.context import MemoryContext
from kektor.memory.forgetting.closure import Closure

__all__ = ["issue", "signed"]


def issue(tx: Transaction, context: MemoryContext, settings: IndexSettings, closure: Closure) -> Erasure:
    """Make the receipt of what a transaction erases, signed at once and kept with it."""
    parts = sorted(
        context.digester.exact("erased", gone.index, *structs.astuple(gone.node.scope), gone.node.id, gone.node.text)
        for gone in closure.reached
    )
    erasure = Erasure(
        id=clock.new_id(),
        index=settings.name,
        scopes=tuple(sorted({each.node.scope for each in closure.reached})),
        requested_at=tx.time,
        digest=context.digester.exact("receipt", *parts).hex(),
        counts=_counts(closure),
        signature="",
    )
    erasure = signed(context, erasure)
    tx.put_erasure(erasure)
    return erasure


def signed(context: MemoryContext, erasure: Erasure) -> Erasure:
    """The receipt with a signature over all it says; signed again when the bytes are gone, under the same id."""
    payload = {
        "id": erasure.id,
        "digest": erasure.digest,
        "counts": erasure.counts,
        "requested_at": times.format(erasure.requested_at),
        "bytes_gone_at": None if erasure.bytes_gone_at is None else times.format(erasure.bytes_gone_at),
    }
    return structs.replace(erasure, signature=context.sign(msgspec.json.encode(payload, order="deterministic")))


def _counts(closure: Closure) -> dict[str, int]:
    """Of each group, and within it by kind."""
    counts: Counter[str] = Counter(matched=0, derived=0, copies=0, cut=len(closure.cuts), rebuilt=len(closure.rebuilt))
    for name in ("matched", "derived", "copies"):
        for gone in getattr(closure, name).values():
            counts[name] += 1
            counts[f"{name}.{gone.node.kind.value}"] += 1
    return dict(counts)
