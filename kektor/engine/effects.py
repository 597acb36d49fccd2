"""What one frame of the log carries: effects, fully resolved, so that applying them needs no clock, no random
source, no model and no policy.

Slots and edge numbers are assigned before logging. Structs are arrays on the wire: new fields go to the end with a
default, and a tag is never reused.
"""

from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from kektor.engine.audit import Entry, Side
from kektor.engine.records import Edge, Erasure, Evidence, IndexSettings, Node, Scope, State, Tombstone

__all__ = [
    "AddVector",
    "AmendNode",
    "DropIndex",
    "DropKv",
    "DropNode",
    "Effect",
    "EndEdge",
    "KeepOutcome",
    "LiftTombstone",
    "PutEdge",
    "PutErasure",
    "PutIndex",
    "PutKv",
    "PutNode",
    "PutTombstone",
    "SetState",
    "TransactionRecord",
    "decode",
    "decode_audit",
    "encode",
]


class PutIndex(Struct, frozen=True, array_like=True, tag=1):
    """Create an index or replace its settings."""

    settings: IndexSettings


class DropIndex(Struct, frozen=True, array_like=True, tag=2):
    number: int


class PutNode(Struct, frozen=True, array_like=True, tag=3):
    """A new node in a fresh slot; `vector` is little-endian f32."""

    index: int
    slot: int
    node: Node
    vector: bytes | None = None


class SetState(Struct, frozen=True, array_like=True, tag=4):
    """Close the node's last state where the new one begins."""

    index: int
    slot: int
    state: State
    superseded_by: str = ""


class AmendNode(Struct, frozen=True, array_like=True, tag=5):
    """Replace what belongs to today and has no history; None leaves a part as it is."""

    index: int
    slot: int
    metadata: dict[str, Any] | None = None
    tags: tuple[str, ...] | None = None
    layer: str | None = None
    pinned: bool | None = None
    evidence: tuple[Evidence, ...] | None = None
    confirmed_at: int | None = None
    confirmations: int | None = None
    access_count: int | None = None
    access_last: int | None = None
    lineage: str | None = None
    version: int | None = None
    supersedes: str | None = None
    superseded_by: str | None = None


class DropNode(Struct, frozen=True, array_like=True, tag=6):
    """Take a node out of every structure, with its edges; the slot is not used again while a reader may hold it."""

    index: int
    slot: int
    replaced: bool = False
    """A new node takes its place at once, so that the words of the old one may stay in a file until it is merged."""


class PutEdge(Struct, frozen=True, array_like=True, tag=7):
    index: int
    number: int
    src: int
    dst: int
    edge: Edge


class EndEdge(Struct, frozen=True, array_like=True, tag=8):
    index: int
    number: int
    deleted_at: int


class PutKv(Struct, frozen=True, array_like=True, tag=9):
    index: int
    scope: Scope
    key: str
    value: Any
    version: int


class DropKv(Struct, frozen=True, array_like=True, tag=10):
    index: int
    scope: Scope
    key: str


class PutTombstone(Struct, frozen=True, array_like=True, tag=11):
    tombstone: Tombstone


class LiftTombstone(Struct, frozen=True, array_like=True, tag=12):
    id: str
    at: int


class KeepOutcome(Struct, frozen=True, array_like=True, tag=13):
    """An idempotency key with the digest of its request and what was answered."""

    key: bytes
    request: bytes
    outcome: bytes
    at: int


class AddVector(Struct, frozen=True, array_like=True, tag=14):
    """A vector for a node that was stored before its embedding was ready."""

    index: int
    slot: int
    vector: bytes


class PutErasure(Struct, frozen=True, array_like=True, tag=15):
    """A receipt, or the same one signed again when the bytes are gone."""

    erasure: Erasure


Effect: TypeAlias = (
    PutIndex
    | DropIndex
    | PutNode
    | SetState
    | AmendNode
    | DropNode
    | PutEdge
    | EndEdge
    | PutKv
    | DropKv
    | PutTombstone
    | LiftTombstone
    | KeepOutcome
    | AddVector
    | PutErasure
)


class TransactionRecord(Struct, frozen=True, array_like=True):
    """The payload of one frame: what changes, and the part of the audit that tells of it, with its values."""

    time: int
    effects: tuple[Effect, ...]
    entries: tuple[Entry, ...]
    sides: tuple[Side, ...]


class _AuditOnly(Struct, frozen=True, array_like=True):
    """The same, without looking at the effects."""

    time: int
    effects: msgspec.Raw
    entries: tuple[Entry, ...]
    sides: tuple[Side, ...]


_decoder = msgspec.msgpack.Decoder(TransactionRecord)
_audit_decoder = msgspec.msgpack.Decoder(_AuditOnly)
_encoder = msgspec.msgpack.Encoder()


def encode(record: TransactionRecord) -> bytes:
    return _encoder.encode(record)


def decode(payload: bytes) -> TransactionRecord:
    """Raises msgspec.MsgspecError on bytes that are no transaction."""
    return _decoder.decode(payload)


def decode_audit(payload: bytes) -> tuple[tuple[Entry, ...], tuple[Side, ...]]:
    """A transaction's entries and their values."""
    record = _audit_decoder.decode(payload)
    return record.entries, record.sides
