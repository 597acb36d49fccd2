"""The audit chain: who did what to which of our slots, committed to in an order that nobody can change unseen.

An entry holds fixed fields, our own numbers and commitments: HMACs of values over random salts. Salts and values
(names, ids, reasons, digests of records before and after) lie beside it and leave when what they speak of is erased:
verification then accepts the gap, because the chain itself says that those slots were erased.
"""

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from kektor import clock
from kektor.engine.records import Actor, ActorKind, Event, Scope
from kektor.errors import Corrupt
from kektor.storage.audit import Audited

__all__ = [
    "EVERY_SLOT",
    "GENESIS",
    "AuditEvent",
    "Entry",
    "Erased",
    "Noted",
    "Side",
    "Subject",
    "Value",
    "encoded",
    "entry_of",
    "erased_by",
    "events",
    "verify",
    "without",
]

GENESIS = bytes(32)
"""The hash before the first entry."""

_SALT_BYTES = 16
_WHO, _ABOUT, _FIRST_SUBJECT = 0, 1, 2

EVERY_SLOT = (1 << 32) - 1
"""In the place of a slot: the whole index."""

Place = tuple[int, int]
"""An index's number and a slot in it: our own name for a node, never used for another one."""


class Erased:
    """The slots that some events took out for good."""

    def __init__(self) -> None:
        self._places: set[Place] = set()

    def add(self, entry: "Entry") -> None:
        self._places.update(entry.erased)

    def __contains__(self, place: Place) -> bool:
        return place in self._places or (place[0], EVERY_SLOT) in self._places


class Entry(Struct, frozen=True, array_like=True):
    """One event as the chain holds it; `erased` are the slots that it took out for good."""

    lsn: int
    place: int
    time: int
    operation: str
    actor: ActorKind
    index: int
    subjects: tuple[Place, ...]
    erased: tuple[Place, ...]
    commitments: tuple[bytes, ...]
    hash: bytes = b""

    def hashed_after(self, previous: bytes) -> bytes:
        fields = msgspec.msgpack.encode(msgspec.structs.replace(self, hash=b""))
        return hashlib.sha256(previous + fields).digest()


class Value(Struct, frozen=True, array_like=True):
    """What a commitment commits to."""

    salt: bytes
    content: bytes

    @property
    def commitment(self) -> bytes:
        return hmac.digest(self.salt, self.content, "sha256")


class _Who(Struct, frozen=True, array_like=True):
    actor: str
    channel: str
    index: str
    scope: Scope


class _About(Struct, frozen=True, array_like=True):
    ids: tuple[str, ...]
    reason: str
    effects: bytes
    """Digest of the effects that concern no node: settings, values, edges, tombstones."""


class _SubjectSaid(Struct, frozen=True, array_like=True):
    id: str
    before: bytes
    after: bytes


class Subject(NamedTuple):
    """A node that a transaction changed: what it is called, and its record before and after (empty for none)."""

    id: str
    before: bytes
    after: bytes


class Noted(NamedTuple):
    """One event of a transaction, and what it touched."""

    event: Event
    number: int
    """Of the index."""
    subjects: dict[Place, Subject]
    erased: tuple[Place, ...]
    effects: bytes


Side = tuple[Value | None, ...]
"""The values of one entry; None where it was erased."""

_chain = msgspec.msgpack.Decoder(tuple[Entry, ...])
_sides = msgspec.msgpack.Decoder(tuple[Side, ...])


def entry_of(noted: Noted, *, lsn: int, place: int, time: int, previous: bytes) -> tuple[Entry, Side]:
    """The next link of the chain, and the values it commits to."""
    event = noted.event
    named = {subject.id for subject in noted.subjects.values()}
    said: list[Struct] = [
        _Who(event.actor.id, event.actor.channel, event.index, event.scope),
        _About(tuple(i for i in event.ids if i not in named), event.reason, noted.effects),
    ]
    said += [_SubjectSaid(s.id, _digest(s.before), _digest(s.after)) for s in noted.subjects.values()]
    salts = clock.random_bytes(_SALT_BYTES * len(said))
    side = tuple(
        Value(salts[at * _SALT_BYTES : (at + 1) * _SALT_BYTES], msgspec.msgpack.encode(each))
        for at, each in enumerate(said)
    )
    entry = Entry(
        lsn,
        place,
        time,
        event.operation,
        event.actor.kind,
        noted.number,
        tuple(noted.subjects),
        noted.erased,
        tuple(value.commitment for value in side),
    )
    return msgspec.structs.replace(entry, hash=entry.hashed_after(previous)), side


def encoded(lsn: int, entries: Sequence[Entry], sides: Sequence[Side]) -> Audited:
    """A transaction's audit as it is stored."""
    return Audited(lsn, msgspec.msgpack.encode(entries), msgspec.msgpack.encode(sides))


class AuditEvent(Struct, frozen=True):
    """An event as it is told; `erased` when some of what it named is gone."""

    lsn: int
    place: int
    time: int
    operation: str
    actor: Actor
    index: str
    scope: Scope
    ids: list[str]
    reason: str
    erased: bool


def events(records: Iterable[Audited]) -> Iterator[AuditEvent]:
    """Everything that was noted, oldest first."""
    for record in records:
        for entry, side in zip(_chain.decode(record.chain), _sides_of(record), strict=False):
            yield _told(entry, side)


def _sides_of(record: Audited) -> tuple[Side, ...]:
    entries = _chain.decode(record.chain)
    return _sides.decode(record.side) if record.side else tuple(() for _ in entries)


def _told(entry: Entry, side: Side) -> AuditEvent:
    who = _said(side, _WHO, _Who) or _Who("", "", "", Scope())
    about = _said(side, _ABOUT, _About)
    subjects = [_said(side, _FIRST_SUBJECT + at, _SubjectSaid) for at in range(len(entry.subjects))]
    ids = dict.fromkeys(subject.id for subject in subjects if subject is not None)
    ids |= dict.fromkeys(about.ids if about is not None else ())
    return AuditEvent(
        entry.lsn,
        entry.place,
        entry.time,
        entry.operation,
        Actor(entry.actor, who.actor, who.channel),
        who.index,
        who.scope,
        list(ids),
        "" if about is None else about.reason,
        about is None or None in subjects,
    )


def _said(side: Side, at: int, kind: type[Any]) -> Any:
    value = side[at] if at < len(side) else None
    return None if value is None else msgspec.msgpack.decode(value.content, type=kind)


def verify(records: Iterable[Audited], *, head: bytes, count: int) -> list[str]:
    """What does not hold, in words; nothing when every event is as it was noted, in its place, and none is missing.

    `head` and `count` are what the database itself knows of the chain's end.
    """
    findings: list[str] = []
    missing: dict[Place, int] = {}
    erased = Erased()
    previous, last, seen = GENESIS, (0, -1), 0
    try:
        for record in records:
            entries = _chain.decode(record.chain)
            sides = _sides_of(record)
            if len(sides) != len(entries):
                findings.append(f"transaction {record.lsn}: {len(sides)} sides for {len(entries)} events")
            for entry, side in zip(entries, sides, strict=False):
                where = f"transaction {entry.lsn}, event {entry.place}"
                if entry.lsn != record.lsn or (entry.lsn, entry.place) <= last:
                    findings.append(f"{where} stands out of its order")
                if entry.hash != entry.hashed_after(previous):
                    findings.append(
                        f"{where} does not follow from the one before it: changed, moved, or one is missing"
                    )
                last, previous, seen = (entry.lsn, entry.place), entry.hash, seen + 1
                erased.add(entry)
                findings += _check_values(where, entry, side, missing)
    except (Corrupt, msgspec.MsgspecError) as error:
        findings.append(str(error))
    findings += [
        f"transaction {lsn}: a value is missing, and no erasure names what it belongs to"
        for place, lsn in missing.items()
        if place not in erased
    ]
    if (previous, seen) != (head, count):
        findings.append(
            f"the chain ends with event {seen}, the database has noted {count}: the end is missing or made up"
        )
    return findings


def _check_values(where: str, entry: Entry, side: Side, missing: dict[Place, int]) -> Iterator[str]:
    for at, commitment in enumerate(entry.commitments):
        value = side[at] if at < len(side) else None
        if value is not None:
            if value.commitment != commitment:
                yield f"{where}: value {at} is not what was committed to"
        elif at >= _FIRST_SUBJECT:
            missing.setdefault(entry.subjects[at - _FIRST_SUBJECT], entry.lsn)
        elif at == _WHO or all(value is not None for value in side[_FIRST_SUBJECT:]):
            # The reason goes with any of those it speaks of, whose own values are then missing, too.
            yield f"{where}: value {at} is missing, and nothing may take it away"


def without(record: Audited, erased: Erased) -> Audited:
    """A transaction's audit less the values of erased slots, and the reasons that may speak of them."""
    sides = []
    for entry, side in zip(_chain.decode(record.chain), _sides_of(record), strict=False):
        gone = {at for at, place in enumerate(entry.subjects, _FIRST_SUBJECT) if place in erased}
        if gone:
            gone.add(_ABOUT)
        sides.append(tuple(None if at in gone else value for at, value in enumerate(side)))
    return record._replace(side=msgspec.msgpack.encode(sides))


def erased_by(records: Iterable[Audited]) -> Erased:
    """All that was ever taken out for good."""
    erased = Erased()
    for record in records:
        for entry in _chain.decode(record.chain):
            erased.add(entry)
    return erased


def _digest(record: bytes) -> bytes:
    return hashlib.blake2b(record, digest_size=16).digest() if record else b""
