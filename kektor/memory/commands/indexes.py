"""Creating, configuring and dropping indexes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec

from kektor.engine.gateway import Principal
from kektor.engine.port import Engine, Transaction
from kektor.engine.records import IndexSettings, Policy, Receipt, Retention
from kektor.errors import Conflict, Invalid, NotFound
from kektor.memory.commands.base import MemoryCommand
from kektor.memory.settings import check_settings

__all__ = ["ConfigureIndex", "CreateIndex", "DropIndex", "merged_policy"]


@dataclass(kw_only=True)
class CreateIndex(MemoryCommand):
    """A new index; `exist_ok` makes a second creation by a race with the first harmless."""

    operation: ClassVar[str] = "create_index"

    new: IndexSettings
    exist_ok: bool = False

    def prepare(self, engine: Engine, principal: Principal) -> None:
        return

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        if tx.index(self.index) is not None:
            if self.exist_ok:
                return Receipt("duplicate", id=self.index, of=self.index)
            raise Conflict(f"index {self.index!r} exists", field="name")
        tx.put_index(check_settings(self.new))
        return Receipt("created", id=self.index)


@dataclass(kw_only=True)
class ConfigureIndex(MemoryCommand):
    """Merge a policy and layers into the settings."""

    operation: ClassVar[str] = "configure_index"
    right: ClassVar[str] = "admin"
    whole_index: ClassVar[bool] = True

    policy: dict[str, Any] = field(default_factory=dict)
    layers: dict[str, Any] = field(default_factory=dict)

    def prepare(self, engine: Engine, principal: Principal) -> None:
        return

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        old = self.settings(tx)
        new = msgspec.structs.replace(
            old,
            policy=merged_policy(old.policy, self.policy),
            layers={**old.layers, **self.layers},
        )
        tx.put_index(check_settings(new))
        return Receipt("updated", id=self.index)


def merged_policy(old: Policy, changes: Mapping[str, Any]) -> Policy:
    """What is named replaces what was there; retention is merged layer by layer, None taking one away.

    The entries of `single_valued` are kept without white space around them, each once.
    """
    kept = {**old.retention, **(changes.get("retention") or {})}
    rules = {layer: _retention(layer, rule) for layer, rule in kept.items() if rule is not None}
    merged = {**changes, "retention": rules}
    if changes.get("single_valued") is not None:
        merged["single_valued"] = tuple(dict.fromkeys(entry.strip() for entry in changes["single_valued"]))
    return msgspec.structs.replace(old, **merged)


_DAYS = {"d": 1, "w": 7, "y": 365}


def _retention(layer: str, rule: Retention | str) -> Retention:
    """`90d`, `12w` or `2y` is short for archiving after that time."""
    if isinstance(rule, Retention):
        return rule
    number, unit = rule[:-1], rule[-1:]
    if not number.isdecimal() or len(number) > 6 or unit not in _DAYS:
        raise Invalid(
            f"{rule!r} is no time to keep something: give a number of days, weeks or years such as 90d, 12w or 2y",
            field=f"policy.retention.{layer}",
        )
    return Retention(int(number) * _DAYS[unit])


@dataclass(kw_only=True)
class DropIndex(MemoryCommand):
    """Drop an index with all it holds."""

    operation: ClassVar[str] = "delete_index"
    right: ClassVar[str] = "admin"
    whole_index: ClassVar[bool] = True

    def prepare(self, engine: Engine, principal: Principal) -> None:
        return

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        if tx.index(self.index) is None:
            raise NotFound(f"there is no index {self.index!r}", field="index")
        tx.drop_index(self.index)
        return Receipt("deleted", id=self.index)
