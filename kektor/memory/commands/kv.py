"""Key-values beside the memories of an index: put and dropped under a key of one scope."""

from dataclasses import dataclass
from typing import Any, ClassVar

from kektor.engine.gateway import Principal
from kektor.engine.port import Engine, Transaction
from kektor.engine.records import Receipt
from kektor.errors import Conflict, NotFound
from kektor.memory.commands.base import MemoryCommand

__all__ = ["DropKv", "PutKv"]


@dataclass(kw_only=True)
class _OnKey(MemoryCommand):
    key: str
    if_match: str | None = None

    def prepare(self, engine: Engine, principal: Principal) -> None:
        return

    def held(self, tx: Transaction) -> int | None:
        """The version that is there; Conflict when it is not the one expected."""
        self.settings(tx)
        held = tx.kv(self.index, self.scope, self.key)
        version = None if held is None else held[1]
        if self.if_match is not None and (version is None or self.if_match not in ("*", str(version))):
            there = "is not there" if version is None else f"is version {version}"
            raise Conflict(
                f"{self.key!r} {there}, not {self.if_match} (If-Match)", field="if_match", details={"version": version}
            )
        return version


@dataclass(kw_only=True)
class PutKv(_OnKey):
    """Store a value, new or in the place of the one there."""

    operation: ClassVar[str] = "put_kv"
    of_one_scope: ClassVar[bool] = True

    value: Any
    only_new: bool = False

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        held = self.held(tx)
        if self.only_new and held is not None:
            raise Conflict(
                f"{self.key!r} is there already, in version {held}", field="only_new", details={"version": held}
            )
        version = tx.put_kv(self.index, self.scope, self.key, self.value)
        return Receipt("created" if held is None else "updated", id=self.key, version=version)


@dataclass(kw_only=True)
class DropKv(_OnKey):
    """Take a value away."""

    operation: ClassVar[str] = "delete_kv"
    of_one_scope: ClassVar[bool] = True
    withdraws: ClassVar[bool] = True

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        version = self.held(tx)
        if version is None:
            raise NotFound(f"there is no key {self.key!r} in index {self.index!r}", field="key")
        tx.drop_kv(self.index, self.scope, self.key)
        return Receipt("deleted", id=self.key, version=version)
