"""The raw node plane: vectors, texts and metadata under the caller's ids, replaced in place and unversioned."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from kektor.engine.gateway import Principal
from kektor.engine.port import Engine, Transaction
from kektor.engine.records import Item, Node, NodeKey, Receipt, Trust
from kektor.engine.view import ScopeRule
from kektor.errors import Blocked, Conflict, NotFound
from kektor.memory.commands.base import MemoryCommand, key_of, target
from kektor.memory.drafts import Draft
from kektor.memory.revision import check_revision

__all__ = ["DeleteNodes", "PatchNode", "UpsertNodes"]


@dataclass(kw_only=True)
class UpsertNodes(MemoryCommand):
    """Store some nodes, each new or in the place of the raw node of its id; all or nothing."""

    operation: ClassVar[str] = "upsert"
    of_one_scope: ClassVar[bool] = True

    def prepare(self, engine: Engine, principal: Principal) -> None:
        """Texts that came without a vector are embedded, where the index has an embedder."""
        settings = engine.index(self.index)
        if settings is None:
            raise NotFound(f"there is no index {self.index!r}", field="index")
        waiting = [draft for draft in self.drafts if draft.vector is None and draft.text]
        vectors = self.context.embed(settings, [draft.text for draft in waiting], kind="document")
        if vectors is not None:
            for draft, vector in zip(waiting, vectors, strict=True):
                draft.vector = vector

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        self.settings(tx)
        items = [self._put(draft, tx, principal) for draft in self.drafts]
        created = any(item.outcome == "created" for item in items)
        ids = [draft.node_id for draft in self.drafts]
        return Receipt("created" if created else "updated", ids=ids, items=items)

    def _put(self, draft: Draft, tx: Transaction, principal: Principal) -> Item:
        old = tx.node(self.index, draft.key)
        if old is not None:
            refuse_versioned(old)
            if draft.trust is Trust.PROPOSED:
                raise Blocked(
                    f"{draft.node_id!r} is there already, and agents only propose here (policy agent_writes=propose)",
                    field="id",
                    details={"policy": "agent_writes"},
                )
            tx.drop_node(self.index, draft.key, replaced=True)
        tx.put_node(self.index, draft.node(principal.actor, tx.time), draft.vector)
        return Item(draft.node_id, "created" if old is None else "updated")


@dataclass(kw_only=True)
class PatchNode(MemoryCommand):
    """Merge into one raw node: metadata key by key (null removes), the other parts whole."""

    operation: ClassVar[str] = "patch"
    of_one_scope: ClassVar[bool] = True
    withdraws: ClassVar[bool] = True

    node_id: str
    rule: ScopeRule = ScopeRule()
    if_match: str | None = None
    changes: dict[str, Any] = field(default_factory=dict)
    """Of text, vector, tags, metadata."""

    def resolve(self, tx: Transaction, principal: Principal) -> None:
        settings = self.settings(tx)
        self.node = target(tx, principal, self.index, self.node_id, self.rule)
        refuse_versioned(self.node)
        check_revision(self.if_match, self.node, settings)
        self.scope = self.node.scope
        draft = self.drafts[0]
        old = self.node
        draft.scope, draft.metadata = old.scope, _merged(old.metadata, self.changes.get("metadata", {}))
        draft.tags = self.changes.get("tags", old.tags)
        draft.text = self.changes.get("text", old.text)
        draft.digest = draft.digest if "text" in self.changes else old.digest
        if draft.vector is None and "text" not in self.changes:
            draft.vector = tx.vector(self.index, key_of(old))

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        draft = self.drafts[0]
        if self.changes.keys() <= {"metadata", "tags"}:
            tx.amend(self.index, draft.key, metadata=draft.metadata, tags=draft.tags)
        else:
            tx.drop_node(self.index, draft.key)
            tx.put_node(self.index, draft.node(principal.actor, tx.time), draft.vector)
        return Receipt("updated", id=draft.node_id, version=1)


@dataclass(kw_only=True)
class DeleteNodes(MemoryCommand):
    """Remove some raw nodes and free their ids; all or nothing."""

    operation: ClassVar[str] = "delete"
    withdraws: ClassVar[bool] = True

    ids: list[str] = field(default_factory=list)
    rule: ScopeRule = ScopeRule()
    missing_ok: bool = False

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        self.settings(tx)
        items = [self._delete(node_id, tx, principal) for node_id in dict.fromkeys(self.ids)]
        return Receipt("deleted", ids=[item.id or "" for item in items if item.outcome == "deleted"], items=items)

    def _delete(self, node_id: str, tx: Transaction, principal: Principal) -> Item:
        try:
            node = target(tx, principal, self.index, node_id, self.rule)
        except NotFound:
            if not self.missing_ok:
                raise
            return Item(node_id, "missing")
        refuse_versioned(node)
        tx.drop_node(self.index, NodeKey(node.scope, node.id))
        return Item(node_id, "deleted")


def refuse_versioned(node: Node) -> None:
    if not node.raw:
        raise Conflict(
            f"{node.id!r} is a memory with a history; change it with the memory routes "
            "(evolve, correct, retract, update, forget)",
            field="id",
            details={"kind": node.kind.value},
        )


def _merged(old: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    merged = {**old, **patch}
    return {key: value for key, value in merged.items() if not (key in patch and value is None)}
