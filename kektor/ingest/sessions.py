"""Sessions: started, or begun by their first message; ended with a summary of their own words."""

import base64
from dataclasses import dataclass, field
from typing import ClassVar

from msgspec import structs

from kektor.engine.gateway import Principal
from kektor.engine.port import Transaction
from kektor.engine.records import Edge, Kind, Node, NodeKey, Receipt, Scope, Status
from kektor.errors import Conflict, Forbidden, NotFound
from kektor.memory.commands.base import MemoryCommand, key_of
from kektor.memory.commands.versions import link_evidence, step
from kektor.memory.context import MemoryContext
from kektor.memory.drafts import Draft
from kektor.memory.inputs import may_write

__all__ = ["EndSession", "StartSession", "session_draft", "session_key"]


def session_key(context: MemoryContext, scope: Scope, name: str) -> NodeKey:
    """The node of a session: one for each name in a scope."""
    digest = context.digester.exact("session", name, *structs.astuple(scope))
    return NodeKey(scope, base64.b32encode(digest[:10]).decode().lower())


def session_draft(context: MemoryContext, index: str, scope: Scope, name: str, title: str | None) -> Draft:
    return Draft(
        index=index,
        scope=scope,
        text=title or "",
        node_id=session_key(context, scope, name).id,
        kind=Kind.SESSION,
        session=name,
        metadata={"title": title} if title else {},
        checks_duplicates=False,
    )


@dataclass(kw_only=True)
class StartSession(MemoryCommand):
    """A session that was not there; the one draft is its node."""

    operation: ClassVar[str] = "start_session"

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        self.settings(tx)
        draft = self.drafts[0]
        if tx.node(self.index, draft.key) is not None:
            return Receipt("duplicate", id=draft.session, of=draft.session)
        tx.put_node(self.index, draft.node(principal.actor, tx.time), draft.vector)
        return Receipt("created", id=draft.session)


@dataclass(kw_only=True)
class EndSession(MemoryCommand):
    """Put a summary of what was said beside it, resting on the quotes it is made of; the messages stay as they are.

    The one draft is the summary; without one nothing was said. Ended again after more was said, the session gets a new
    version of its summary.
    """

    operation: ClassVar[str] = "end_session"

    session: str
    sources: list[Node] = field(default_factory=list)

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        self.settings(tx)
        key = session_key(self.context, self.scope, self.session)
        node = tx.node(self.index, key)
        if node is None:
            raise NotFound(f"there is no session {self.session!r} in index {self.index!r}", field="session")
        if not may_write(principal, self.index, self.scope):
            raise Forbidden(
                f"session {self.session!r} is shared; this caller may read it and not end it", field="session"
            )
        for source in self.sources:
            if tx.node(self.index, key_of(source)) != source:
                raise Conflict("the session changed while it was summarised; end it again", field="session")
        old = self._summary(tx, node)
        draft = self.drafts[0] if self.drafts else None
        told = (None if old is None else old.text, None if draft is None else draft.text)
        if "ended_at" in node.metadata and told[0] == told[1]:
            return Receipt("duplicate", id=self.session, of=None if old is None else old.id)
        metadata = {**node.metadata, "ended_at": tx.time}
        if draft is not None:
            metadata["summary"] = self._put(tx, principal, draft, old).id
        tx.amend(self.index, key, metadata=metadata)
        return Receipt("ended", id=self.session, of=metadata.get("summary"), warnings=draft.warnings if draft else [])

    def _put(self, tx: Transaction, principal: Principal, draft: Draft, old: Node | None) -> Node:
        lineage, version = ("", 1) if old is None else (old.lineage, old.version + 1)
        new = draft.node(
            principal.actor, tx.time, lineage=lineage, version=version, supersedes="" if old is None else old.id
        )
        tx.put_node(self.index, new, draft.vector)
        link_evidence(tx, self.index, draft.evidence, key_of(new), principal)
        for source in dict.fromkeys(span.key for span in draft.evidence):
            edge = Edge(new.id, "derived_from", source.id, created_at=tx.time, actor=principal.actor)
            tx.put_edge(self.index, key_of(new), source, edge)
        if old is not None:
            step(tx, self, principal, old, status=Status.SUPERSEDED, superseded_by=new.id)
            edge = Edge(new.id, "supersedes", old.id, created_at=tx.time, actor=principal.actor)
            tx.put_edge(self.index, key_of(new), key_of(old), edge)
        return new

    def _summary(self, tx: Transaction, node: Node) -> Node | None:
        """The summary it has; None when it has none, or that was forgotten."""
        named = node.metadata.get("summary")
        found = None if named is None else tx.node(self.index, NodeKey(self.scope, str(named)))
        return found if found is not None and found.status is Status.CURRENT else None
