"""The write gate: every mutation from every door is one command through `Gateway.submit`.

The gateway itself knows no memory rules. It runs the policies it was composed with, in their order, then the command
stages its effects, and the transaction is committed with its event and its idempotency key in one frame.
"""

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Protocol

import msgspec
from msgspec import Struct

from kektor.engine.notices import Notices, Written
from kektor.engine.port import Engine, Transaction
from kektor.engine.records import Actor, Event, Receipt, Scope
from kektor.engine.view import ScopeRule
from kektor.engine.within import within
from kektor.errors import Blocked, Conflict, Forbidden, Internal, Unavailable

__all__ = ["Command", "Gateway", "Grant", "Policy", "Principal", "Right", "Unit"]

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

    @property
    def reaches_everything(self) -> bool:
        """Whether some grant has no bounds: what concerns the whole database is for nobody else."""
        return any(grant.index is None and grant.scope == ScopeRule() for grant in self.grants)

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
        self.notices = Notices()

    def subscribe(self, listener: Callable[[Written], None]) -> Callable[[], None]:
        """Be told of every write, after it is durable and in the order of the log; returns how to stop."""
        return self.notices.subscribe(listener)

    @property
    def last_lsn(self) -> int:
        """The position of the last write, durable or about to be."""
        with self.engine.transaction() as tx:
            return tx.next_lsn - 1

    def submit(self, command: Command, principal: Principal) -> Receipt:
        """Run one command to its receipt; the write is durable when this returns."""
        with self.together() as unit:
            return unit.submit(command, principal)

    @contextlib.contextmanager
    def together(self) -> Iterator["Unit"]:
        """Commands that become one frame of the log, or none: all of them are stored, or nothing is.

        No other writer gets in between from the first one (or the first read within) on. When the block ends without
        an error everything is committed and durable; a command that failed has undone them all, whoever caught it.
        """
        unit = Unit(self)
        try:
            yield unit
            lsn = unit.commit()
        finally:
            unit.end()
            for command, principal, refusal in unit.refused:
                stones = [str(refusal.details["tombstone"])] if "tombstone" in refusal.details else []
                self._record_refusal(command, principal, stones)
                refusal.audited = True
        told: list[Written] = []
        try:
            self.engine.wait(lsn)
            told = [_written(lsn, *done) for done in unit.committed]
        finally:
            if unit.committed:
                self.notices.end(lsn, told)
        for command, principal, receipt in unit.answered:
            if left_out := [*_left_out(receipt), *dict.fromkeys(command.withheld)]:
                self._record_refusal(command, principal, left_out)

    def note(self, operation: str, principal: Principal, *, ids: Sequence[str] = (), reason: str = "") -> None:
        """Put down an event that changes nothing here: a token given out, a call denied. Durable when this returns."""
        with self.engine.transaction() as tx:
            tx.note(Event(operation, principal.actor, "", Scope(), tuple(ids), reason))
            lsn = tx.commit()
        self.engine.wait(lsn)

    def _record_refusal(self, command: Command, principal: Principal, ids: Sequence[str]) -> None:
        """A refused write, or part of one, leaves its event before it is told, so that no attempt is ever invisible."""
        with contextlib.suppress(Unavailable):
            with self.engine.transaction() as tx:
                tx.note(_event(command, principal, f"refused:{command.operation}", ids))
                lsn = tx.commit()
            self.engine.wait(lsn)


class Unit:
    """What `Gateway.together` gives: `submit` as the gateway has it, and `engine`, which reads what was staged."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._held = contextlib.ExitStack()
        self._tx: Transaction | None = None
        self._failure: BaseException | None = None
        self.engine = within(gateway.engine, self._begin)
        self.answered: list[tuple[Command, Principal, Receipt]] = []
        """All but repeats of what was answered before."""
        self.committed: list[tuple[Command, Principal, Receipt]] = []
        """Those of them that changed something."""
        self.refused: list[tuple[Command, Principal, Blocked | Forbidden]] = []

    def submit(self, command: Command, principal: Principal) -> Receipt:
        """Run one command; what it did is seen within, and stored with all the others."""
        self._refuse_after_failure()
        try:
            # The first one is made ready, which may be slow, before other writers are kept waiting.
            engine = self._gateway.engine if self._tx is None else self.engine
            for policy in self._gateway.policies:
                policy.before(command, principal, engine)
            command.prepare(engine, principal)
            return self._stage(self._begin(), command, principal)
        except BaseException as error:
            self._failure = error
            if isinstance(error, Blocked | Forbidden):
                self.refused.append((command, principal, error))
            raise

    def commit(self) -> int:
        """Queue the frame of all that was staged; the LSN to wait for."""
        self._refuse_after_failure()
        if self._tx is None:
            return 0
        if not self.committed:
            return self._tx.next_lsn - 1
        lsn = self._tx.commit()
        self._gateway.notices.begin(lsn)
        return lsn

    def end(self) -> None:
        """Let other writers in again; what was not committed is gone."""
        self._held.close()

    def _begin(self) -> Transaction:
        if self._tx is None:
            self._tx = self._held.enter_context(self._gateway.engine.transaction())
        return self._tx

    def _refuse_after_failure(self) -> None:
        if self._failure is not None:
            raise Conflict(
                f"nothing of this transaction was stored, since one of its writes failed: {self._failure}"
            ) from self._failure

    def _stage(self, tx: Transaction, command: Command, principal: Principal) -> Receipt:
        key = _idempotency_key(command, principal)
        request = _digest(command.operation, command.request()) if key else b""
        if key is not None and (known := tx.outcome(key)) is not None:
            return _repeat(known, request, command)
        command.resolve(tx, principal)
        for policy in self._gateway.policies:
            policy.check(command, principal, tx)
        staged = tx.staged
        receipt = command.stage(tx, principal)
        changed = tx.staged != staged or key is not None
        receipt = msgspec.structs.replace(receipt, lsn=tx.next_lsn if changed else tx.next_lsn - 1)
        self.answered.append((command, principal, receipt))
        if changed:
            if key is not None:
                tx.keep_outcome(key, request, msgspec.msgpack.encode(receipt))
            tx.note(_event(command, principal, command.operation, _ids(receipt)))
            self.committed.append((command, principal, receipt))
        return receipt


def _written(lsn: int, command: Command, principal: Principal, receipt: Receipt) -> Written:
    return Written(lsn, command.operation, command.index, command.scope, command.of_one_scope, principal.actor, receipt)


def _event(command: Command, principal: Principal, operation: str, ids: Sequence[str]) -> Event:
    return Event(operation, principal.actor, command.index, command.scope, tuple(ids), command.reason)


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
