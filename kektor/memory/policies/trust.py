"""How far a new statement is believed: from the channel it came through, never from what it says of itself."""

from typing import Any, ClassVar

from kektor.engine.gateway import Principal
from kektor.engine.port import Engine, Transaction
from kektor.engine.records import ActorKind, Kind, Trust
from kektor.errors import Blocked

__all__ = ["TrustPolicy"]


class TrustPolicy:
    """Everything is accepted, except what agents write where `agent_writes=propose`, and the gardener's findings.

    Who only proposes takes nothing away either: a proposed replacement leaves what it would replace as it is.
    """

    name: ClassVar[str] = "trust"

    def before(self, command: Any, principal: Principal, engine: Engine) -> None:
        return

    def check(self, command: Any, principal: Principal, tx: Transaction) -> None:
        settings = tx.index(command.index)
        if settings is None:
            return
        kind = principal.actor.kind
        proposes = kind is ActorKind.GARDENER or (kind is ActorKind.AGENT and settings.policy.agent_writes == "propose")
        if proposes and command.withdraws:
            raise Blocked(
                f"{command.operation} is for a person here: agents only propose (policy agent_writes=propose)",
                details={"policy": "agent_writes"},
            )
        for draft in command.drafts:
            withheld = proposes and draft.kind not in (Kind.SOURCE, Kind.SESSION, Kind.SUMMARY)
            draft.trust = Trust.PROPOSED if withheld else Trust.ACCEPTED
