"""What was rejected or erased does not come back, by any door and in any disguise."""

from typing import Any, ClassVar

from msgspec import structs

from kektor.engine.gateway import Principal
from kektor.engine.port import Engine, Transaction
from kektor.engine.records import Node, Tombstone
from kektor.errors import Blocked
from kektor.memory.drafts import Draft
from kektor.text import Digester

__all__ = ["Tombstones"]


class Tombstones:
    """Checks the text and the claim of whatever is new or comes back; a batch that can go on without one marks it."""

    name: ClassVar[str] = "tombstones"

    def __init__(self, digester: Digester) -> None:
        self._digester = digester

    def before(self, command: Any, principal: Principal, engine: Engine) -> None:
        for draft in command.drafts:
            if draft.text:
                draft.digest = self._digester.digest(draft.text)

    def check(self, command: Any, principal: Principal, tx: Transaction) -> None:
        for value in (*command.drafts, *command.revived):
            stone = self._standing(command.index, value, tx)
            if stone is None:
                continue
            refusal = _refusal(stone)
            if not (command.goes_on_without_blocked and isinstance(value, Draft)):
                raise refusal
            value.blocked = refusal

    def _standing(self, index: str, value: Draft | Node, tx: Transaction) -> Tombstone | None:
        digests = [value.digest] if value.digest else []
        if value.claim is not None:
            digests.append(self._digester.digest("claim", *structs.astuple(value.claim)))
        return next(
            (stone for digest in digests if (stone := tx.tombstone(index, value.scope, digest)) is not None),
            None,
        )


def _refusal(stone: Tombstone) -> Blocked:
    what = "was erased and is guarded" if stone.cls == "erasure" else "was rejected"
    return Blocked(
        f"this statement {what} (tombstone {stone.id}); a person can lift the tombstone",
        details={"tombstone": stone.id, "class": stone.cls},
    )
