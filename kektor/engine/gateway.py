"""The write gate: every mutation from every door is one command through `Gateway.submit`.

The gateway itself knows no memory rules. It runs the policies it was composed with, in their order, then the command
stages its effects, and the transaction is committed with its event and its idempotency key in one frame.
"""

import contextlib
import hashlib
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, ClassVar, Protocol

import msgspec
from msgspec import Struct

from kektor.engine.notices import Notices, Written
from kektor.engine.port import Engine, Transaction
from kektor.engine.records import Actor, Receipt, Scope
from kektor.engine.view import ScopeRule
from kektor.errors import Blocked, Conflict, Forbidden, Internal, Unavailable

__all__ = ["Command", "Gateway", "Grant", "Policy", "Principal", "Right"]

Right = str
"""`read`, `write`, `review` or `admin`."""


class Grant(Struct, frozen=True):
    """What a principal may reach: an index (None is any), within a scope; `shared` lets it write what all share."""

    index: str | None = None
    scope: ScopeRule = ScopeRule()
    shared: bool = False


class Principal(Struct, frozen=True):
    """Who calls, as the door established it: never taken from a payload."""

    actor: Actor
    rights: frozenset[Right]
    grants: tuple[Grant, ...]

    def grants_for(self, index: str) -> tuple[ScopeRule, ...]:
        """The scopes of an index it may read."""
        return tuple(grant.scope for grant in self.grants if grant.index in (None, index))


class Command(Protocol):
    """One mutation. `prepare` may be slow (parsing, embedding) and comes before the commit lock.

    Under it `resolve` finds what the command is about, the policies check, and `stage` collects the effects.
    """

    operation: ClassVar[str]
    right: ClassVar[Right]

    @property
    def index(self) -> str: ...
    @property
    def scope(self) -> Scope: ...
    @property
    def reason(self) -> str: ...
    @property
    def idempotency_key(self) -> str | None: ...
    @property
    def of_one_scope(self) -> bool:
        """Whether all it is about is of `scope`."""

    @property
    def withheld(self) -> Sequence[str]:
        """Tombstones that kept a part of what was asked from being stored."""

    def request(self) -> Any:
        """What the caller asked, for telling a retry from another request under the same key."""

    def prepare(self, engine: Engine, principal: Principal) -> None: ...
    def resolve(self, tx: Transaction, principal: Principal) -> None: ...
    def stage(self, tx: Transaction, principal: Principal) -> Receipt: ...


class Policy(Protocol):
    """One check between the caller and the log; raises a KektorError or amends the command's drafts."""

    name: ClassVar[str]

    def before(self, command: Any, principal: Principal, engine: Engine) -> None:
        """Outside the commit lock: what needs no look at the current state."""

    def check(self, command: Any, principal: Principal, tx: Transaction) -> None:
        """Under the commit lock: against the current state."""


class Gateway:
    """Authorise, check, log, apply, notify: the one way in."""

    def __init__(self, engine: Engine, policies: Sequence[Policy]) -> None:
        if not policies:
            raise Internal("a database does not open without its write policies")
        self.engine = engine
        self.policies = tuple(policies)
        self._notices = Notices()

    def subscribe(self, listener: Callable[[Written], None]) -> Callable[[], None]:
        """Be told of every write, after it is durable and in the order of the log; returns how to stop."""
        return self._notices.subscribe(listener)

    @property
    def last_lsn(self) -> int:
        """The position of the last write, durable or about to be."""
        with self.engine.transaction() as tx:
            return tx.next_lsn - 1

    def submit(self, command: Command, principal: Principal) -> Receipt:
        """Run one command to its receipt; the write is durable when this returns."""
        try:
            receipt, lsn, outcome = self._run(command, principal)
        except (Blocked, Forbidden) as refusal:
            ids = [str(refusal.details["tombstone"])] if "tombstone" in refusal.details else []
            self._record_refusal(command, principal, ids)
            refusal.audited = True
            raise
        written = None
        try:
            self.engine.wait(lsn)
            written = Written(
                lsn, command.operation, command.index, command.scope, command.of_one_scope, principal.actor, receipt
            )
        finally:
            if outcome is _Outcome.COMMITTED:
                self._notices.end(lsn, written)
        left_out = [*_left_out(receipt), *dict.fromkeys(command.withheld)]
        if left_out and outcome is not _Outcome.REPEATED:
            self._record_refusal(command, principal, left_out)
        return receipt

    def note(self, operation: str, principal: Principal, *, ids: Sequence[str] = (), reason: str = "") -> None:
        """Put down an event that changes nothing here: a token given out, a call denied. Durable when this returns."""
        with self.engine.transaction() as tx:
            lsn = tx.commit(operation, principal.actor, index="", scope=Scope(), ids=ids, reason=reason)
        self.engine.wait(lsn)

    def _run(self, command: Command, principal: Principal) -> "tuple[Receipt, int, _Outcome]":
        """The receipt, the LSN it waits for, and what came of it."""
        for policy in self.policies:
            policy.before(command, principal, self.engine)
        command.prepare(self.engine, principal)
        with self.engine.transaction() as tx:
            key = _idempotency_key(command, principal)
            request = _digest(command.operation, command.request()) if key else b""
            if key is not None and (known := tx.outcome(key)) is not None:
                return _repeat(known, request, command), tx.next_lsn - 1, _Outcome.REPEATED
            command.resolve(tx, principal)
            for policy in self.policies:
                policy.check(command, principal, tx)
            receipt = command.stage(tx, principal)
            if not tx.changes and key is None:
                lsn = tx.next_lsn - 1
                return msgspec.structs.replace(receipt, lsn=lsn), lsn, _Outcome.UNCHANGED
            receipt = msgspec.structs.replace(receipt, lsn=tx.next_lsn)
            if key is not None:
                tx.keep_outcome(key, request, msgspec.msgpack.encode(receipt))
            lsn = _commit(tx, command, principal, command.operation, _ids(receipt))
            self._notices.begin(lsn)
            return receipt, lsn, _Outcome.COMMITTED

    def _record_refusal(self, command: Command, principal: Principal, ids: Sequence[str]) -> None:
        """A refused write, or part of one, leaves its event before it is told, so that no attempt is ever invisible."""
        with contextlib.suppress(Unavailable):
            with self.engine.transaction() as tx:
                lsn = _commit(tx, command, principal, f"refused:{command.operation}", ids)
            self.engine.wait(lsn)


class _Outcome(Enum):
    """Committed now; nothing to change; or a repeat of an earlier one under the same key."""

    COMMITTED = "committed"
    UNCHANGED = "unchanged"
    REPEATED = "repeated"


def _commit(tx: Transaction, command: Command, principal: Principal, operation: str, ids: Sequence[str]) -> int:
    return tx.commit(
        operation,
        principal.actor,
        index=command.index,
        scope=command.scope,
        ids=ids,
        reason=command.reason,
    )


def _ids(receipt: Receipt) -> list[str]:
    ids = list(receipt.ids or ())
    return ids if receipt.id is None else [receipt.id, *ids]


def _left_out(receipt: Receipt) -> list[str]:
    """The ids of those parts of a batch that were refused while the others went on."""
    return [item.id or "" for item in receipt.items or () if item.outcome == "blocked"]


def _digest(*parts: Any) -> bytes:
    # JSON, since a request may hold integers of any size.
    return hashlib.blake2b(msgspec.json.encode(parts, order="deterministic"), digest_size=16).digest()


def _idempotency_key(command: Command, principal: Principal) -> bytes | None:
    """Keys belong to what the caller may reach, so that two tenants never meet in one."""
    if command.idempotency_key is None:
        return None
    return _digest(command.index, principal.grants, command.idempotency_key)


def _repeat(known: tuple[bytes, bytes], request: bytes, command: Command) -> Receipt:
    if known[0] != request:
        raise Conflict(
            f"idempotency key {command.idempotency_key!r} was already used for another request; "
            "use a new key for a new request",
            field="idempotency_key",
        )
    return msgspec.msgpack.decode(known[1], type=Receipt)
