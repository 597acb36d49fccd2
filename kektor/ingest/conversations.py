"""Conversations: one `source` node a message, in the order said, the same however often they are sent."""

import base64
from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from msgspec import Struct, structs

from kektor.engine.gateway import Principal
from kektor.engine.port import Engine, Transaction
from kektor.engine.records import Item, Kind, Moment, Receipt, Scope
from kektor.errors import Invalid, NotFound
from kektor.ingest.sessions import session_draft
from kektor.memory.commands.base import MemoryCommand
from kektor.memory.context import MemoryContext
from kektor.memory.drafts import Draft
from kektor.memory.inputs import moment
from kektor.memory.limits import check_id, check_metadata, check_text
from kektor.memory.requests import ScopeIn, TimeIn

__all__ = ["IngestMessages", "IngestMessagesRequest", "MessageIn", "message_drafts"]

Role = Literal["user", "assistant", "system", "tool"]


class MessageIn(Struct, forbid_unknown_fields=True, kw_only=True):
    role: Role
    content: str
    at: TimeIn | None = None
    speaker: str | None = None
    id: str | None = None
    metadata: dict[str, Any] = {}


class IngestMessagesRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    session: str
    messages: list[MessageIn]
    title: str | None = None
    index: str = "default"
    scope: ScopeIn | None = None
    idempotency_key: str | None = None
    reason: str = ""
    tz: str = "UTC"


def message_drafts(request: IngestMessagesRequest, scope: Scope, context: MemoryContext) -> list[Draft]:
    """One draft a message, and one of the session at the end.

    A message's node id is a keyed digest of what identifies it, so a repeated call finds it again.
    """
    ordinals: Counter[bytes] = Counter()
    named: dict[str, int] = {}
    drafts = []
    for number, message in enumerate(request.messages):
        where = f"messages[{number}]"
        check_text(message.content, field=f"{where}.content")
        at = moment(message.at, field=f"{where}.at", tz=request.tz)
        identity = _identity(request.session, message, at, context)
        if message.id is not None and named.setdefault(message.id, number) != number:
            raise Invalid(f"id {message.id!r} stands twice in this call", field=f"{where}.id")
        if message.id is None:
            ordinals[identity] += 1
            identity = context.digester.exact(identity, str(ordinals[identity]))
        metadata = check_metadata(message.metadata, field=f"{where}.metadata")
        metadata["role"] = message.role
        if message.speaker is not None:
            metadata["speaker"] = message.speaker
        if message.id is not None:
            metadata["message_id"] = check_id(message.id, field=f"{where}.id")
        drafts.append(
            Draft(
                index=request.index,
                scope=scope,
                text=message.content,
                node_id=_node_id(context.digester.exact(identity, *structs.astuple(scope))),
                kind=Kind.SOURCE,
                metadata=metadata,
                layer="episodic",
                session=request.session,
                occurred=at,
                checks_duplicates=False,
            )
        )
    return [*drafts, session_draft(context, request.index, scope, request.session, request.title)]


def _node_id(digest: bytes) -> str:
    """80 bits are enough to tell messages apart, and short ids leave more of a context to what was said."""
    return base64.b32encode(digest[:10]).decode().lower()


def _identity(session: str, message: MessageIn, at: Moment | None, context: MemoryContext) -> bytes:
    if message.id is not None:
        return context.digester.exact(b"id", session, message.id)
    when = "" if at is None else str(at.at)
    return context.digester.exact(b"said", session, message.role, message.speaker or "", when, message.content)


@dataclass(kw_only=True)
class IngestMessages(MemoryCommand):
    """Store the messages of one session that are not there yet; a blocked one is left out and named.

    The last draft is the session itself.
    """

    operation: ClassVar[str] = "ingest_messages"
    of_one_scope: ClassVar[bool] = True
    goes_on_without_blocked: ClassVar[bool] = True

    def prepare(self, engine: Engine, principal: Principal) -> None:
        """Only what is new is embedded: sending a conversation again costs no model time."""
        settings = engine.index(self.index)
        if settings is None:
            raise NotFound(f"there is no index {self.index!r}", field="index")
        new = [draft for draft in self.drafts[:-1] if not self._known(engine, draft)]
        vectors = self.context.embed(settings, [draft.text for draft in new], kind="document")
        if vectors is not None:
            for draft, vector in zip(new, vectors, strict=True):
                draft.vector = vector

    def _known(self, engine: Engine, draft: Draft) -> bool:
        return engine.holds(self.index, draft.key)

    def stage(self, tx: Transaction, principal: Principal) -> Receipt:
        self.settings(tx)
        *messages, session = self.drafts
        items = [self._store(draft, tx, principal) for draft in messages]
        created = any(item.outcome == "created" for item in items)
        warnings = [f"{item.id}: {item.error}" for item in items if item.outcome == "blocked"]
        warnings += [f"{draft.node_id}: {warning}" for draft in messages for warning in draft.warnings]
        warnings += self._begin(session, tx, principal)
        return Receipt(
            "created" if created else "duplicate",
            ids=[draft.node_id for draft in messages],
            items=items,
            warnings=warnings,
        )

    def _begin(self, session: Draft, tx: Transaction, principal: Principal) -> list[str]:
        """A session that a call names and nobody started is created, without a title that must not come back."""
        if tx.node(self.index, session.key) is not None:
            return []
        warnings = []
        if session.blocked is not None:
            session.text, session.digest, session.metadata = "", b"", {}
            warnings = [f"title: {session.blocked.message}"]
        tx.put_node(self.index, session.node(principal.actor, tx.time))
        return warnings

    def _store(self, draft: Draft, tx: Transaction, principal: Principal) -> Item:
        if draft.blocked is not None:
            return Item(draft.node_id, "blocked", error=draft.blocked.message)
        if tx.node(self.index, draft.key) is not None:
            return Item(draft.node_id, "duplicate", of=draft.node_id)
        tx.put_node(self.index, draft.node(principal.actor, tx.time), draft.vector)
        return Item(draft.node_id, "created")
