"""The receipts of erasures, signed again when no file holds the bytes any more."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from msgspec import structs

from kektor.engine.gateway import Principal
from kektor.engine.port import Engine, Transaction
from kektor.engine.records import Node, Receipt, Scope
from kektor.memory.context import MemoryContext
from kektor.memory.drafts import Draft
from kektor.memory.forgetting.receipts import signed

__all__ = ["BytesGone"]


@dataclass(kw_only=True)
class BytesGone:
    """What the compactor says when it is done: everything erased until `before` left the files at `at`.

    No door has this as a command of its own: it says what was done, and changes nothing that anybody stored.
    """

    operation: ClassVar[str] = "compact"
    right: ClassVar[str] = "admin"
    goes_on_without_blocked: ClassVar[bool] = False
    whole_index: ClassVar[bool] = False
    withdraws: ClassVar[bool] = False
    of_one_scope: ClassVar[bool] = False

    context: MemoryContext
    before: int
    at: int
    index: str = ""
    scope: Scope = Scope()
    reason: str = ""
    idempotency_key: str | None = None
    withheld: tuple[str, ...] = ()
    drafts: list[Draft] = field(default_factory=list)
    revived: list[Node] = field(default_factory=list)

    def request(self) -> Any:
        return None

    def prepare(self, engine: Engine, principal: Principal) -> None:
        return

    def resolve(self, tx: Transaction, principal: Principal) -> None:
        return

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        for erasure in self.context.engine.erasures():
            if erasure.bytes_gone_at is None and erasure.requested_at <= self.before:
                tx.put_erasure(signed(self.context, structs.replace(erasure, bytes_gone_at=self.at)))
        return Receipt("compacted")
