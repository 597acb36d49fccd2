"""What was rejected or erased does not come back, by any door and in any disguise."""

from typing import Any, ClassVar

from msgspec import structs

from kektor.engine.gateway import Principal
from kektor.engine.port import Engine, Transaction
from kektor.engine.records import Tombstone
from kektor.errors import Blocked
from kektor.memory.drafts import Draft
from kektor.text import Digester

__all__ = ["Tombstones"]


class Tombstones:
    """Checks the text and the claim of every draft; a batch that can go on without one marks it instead."""

    name: ClassVar[str] = "tombstones"

    def __init__(self, digester: Digester) -> None:
        self._digester = digester

    def before(self, command: Any, principal: Principal, engine: Engine) -> None:
        for draft in command.drafts:
            if draft.text:
                draft.digest = self._digester.digest(draft.text)

    def check(self, command: Any, principal: Principal, tx: Transaction) -> None:
        for draft in command.drafts:
            stone = self._standing(draft, tx)
            if stone is None:
                continue
            refusal = _refusal(stone)
            if not command.goes_on_without_blocked:
                raise refusal
            draft.blocked = refusal

    def _standing(self, draft: Draft, tx: Transaction) -> Tombstone | None:
        digests = [draft.digest] if draft.digest else []
        if draft.claim is not None:
            digests.append(self._digester.digest("claim", *structs.astuple(draft.claim)))
        return next(
            (stone for digest in digests if (stone := tx.tombstone(draft.index, draft.scope, digest)) is not None),
            None,
        )


def _refusal(stone: Tombstone) -> Blocked:
    what = "was erased and is guarded" if stone.cls == "erasure" else "was rejected"
    return Blocked(
        f"this statement {what} (tombstone {stone.id}); a person can lift the tombstone",
        details={"tombstone": stone.id, "class": stone.cls},
    )
