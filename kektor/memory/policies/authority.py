"""Who may write at all."""

from typing import Any, ClassVar

from kektor.engine.gateway import Principal
from kektor.engine.port import Engine, Transaction
from kektor.engine.records import ActorKind
from kektor.engine.view import ScopeRule
from kektor.errors import Blocked, Forbidden

__all__ = ["Authority", "decides"]


class Authority:
    """The caller holds the right the command needs, its grants reach the index, and the index takes writes."""

    name: ClassVar[str] = "authority"

    def before(self, command: Any, principal: Principal, engine: Engine) -> None:
        person = command.right == "review" and principal.actor.kind is ActorKind.HUMAN and "write" in principal.rights
        if not person and command.right not in principal.rights and "admin" not in principal.rights:
            raise Forbidden(f"{command.operation} needs the right {command.right!r}")
        if not principal.grants_for(command.index):
            raise Forbidden(f"no grant of this caller reaches index {command.index!r}", field="index")
        if command.whole_index and ScopeRule() not in principal.grants_for(command.index):
            raise Forbidden(
                f"{command.operation} concerns every scope of the index; this caller has some", field="index"
            )

    def check(self, command: Any, principal: Principal, tx: Transaction) -> None:
        settings = tx.index(command.index)
        if settings is None or command.operation == "configure_index":
            return
        if settings.policy.write == "frozen":
            raise Blocked(f"index {command.index!r} is frozen (policy write=frozen)", details={"policy": "write"})
        if settings.policy.write == "gated" and principal.actor.kind in (ActorKind.AGENT, ActorKind.GARDENER):
            raise Blocked(
                f"index {command.index!r} takes no writes from agents (policy write=gated)",
                details={"policy": "write"},
            )


def decides(principal: Principal) -> bool:
    """Whether what it says settles a question: a person, or a service that holds the role `review`."""
    kind = principal.actor.kind
    return kind is ActorKind.HUMAN or (kind is ActorKind.SERVICE and bool(principal.rights & {"review", "admin"}))
