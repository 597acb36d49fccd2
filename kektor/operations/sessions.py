"""Sessions and sources: starting, ending, and reading what was said."""

from kektor import clock, times
from kektor.engine.gateway import Principal
from kektor.engine.records import Kind, Node, NodeKey, Receipt
from kektor.engine.view import View
from kektor.errors import Conflict, Invalid, NotFound
from kektor.ingest.extract import telling_sentences
from kektor.ingest.sessions import EndSession, StartSession, session_draft
from kektor.memory import requests as rq
from kektor.memory.drafts import Draft
from kektor.memory.inputs import write_scope
from kektor.memory.limits import LIMITS, check_text
from kektor.memory.objects import Session, SessionPage
from kektor.memory.presenting import scope_of
from kektor.memory.reading import existing_index, make_view
from kektor.memory.recall.said import TakenBack
from kektor.operations.base import BaseOperations

__all__ = ["SessionOperations", "check_session"]


class SessionOperations(BaseOperations):
    """A session is named by its caller, within an index and a scope; its messages are sources."""

    def start_session(self, request: rq.StartSessionRequest, principal: Principal) -> Receipt:
        """Begin one; naming one that is there changes nothing."""
        name = clock.new_id() if request.id is None else check_session(request.id, field="id")
        if request.title is not None:
            check_text(request.title, field="title")
        scope = write_scope(request.scope, principal, request.index)
        self._writable_index(principal, request.index)
        command = StartSession(
            context=self.context,
            index=request.index,
            scope=scope,
            reason=request.reason,
            idempotency_key=request.idempotency_key,
            asked=request,
            drafts=[session_draft(self.context, request.index, scope, name, request.title)],
        )
        return self._submit(command, principal)

    def end_session(self, name: str, request: rq.EndSessionRequest, principal: Principal) -> Receipt:
        """Summarise what was said in its own words; every message stays, and is recalled as before."""
        check_session(name)
        view = make_view(self.engine, principal, request.index, scope=request.scope)
        node = self._session(view, name)
        sources = [
            source
            for source in self.engine.session(view, node.scope, name)
            if source.kind is Kind.SOURCE and source.text
        ]
        command = EndSession(
            context=self.context,
            index=request.index,
            scope=node.scope,
            reason=request.reason,
            idempotency_key=request.idempotency_key,
            asked=[name, request],
            session=name,
            sources=sources,
            drafts=self._summary(view, node, sources),
        )
        return self._submit(command, principal)

    def sessions(
        self,
        index: str,
        principal: Principal,
        *,
        scope: rq.ScopeIn | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> SessionPage:
        """Those the caller sees, in the order in which they began."""
        if not 1 <= limit <= LIMITS["k"]:
            raise Invalid(f"limit must be 1 to {LIMITS['k']:,}, not {limit}", field="limit")
        view = make_view(self.engine, principal, index, scope=scope, kinds=[Kind.SESSION])
        if existing_index(self.engine, index) is None:
            return SessionPage([], None)
        page = self.engine.page(view, limit=limit, cursor=cursor)
        sources = make_view(self.engine, principal, index, scope=scope, kinds=[Kind.SOURCE])
        return SessionPage([self._told(index, sources, node) for node in page.nodes], page.cursor)

    def _summary(self, view: View, node: Node, sources: list[Node]) -> list[Draft]:
        index = view.index
        settings = self.engine.index(index)
        language = "english" if settings is None else settings.text.language
        taken = TakenBack(self.context, view)
        gone = {
            (source.id, span.start)
            for source in sources
            for span in taken.spans(NodeKey(source.scope, source.id), source.text)
        }
        quotes = telling_sentences(sources, language, leave_out=frozenset(gone))
        if not quotes:
            return []
        last = max(sources, key=lambda source: source.recorded_at)
        return [
            Draft(
                index=index,
                scope=node.scope,
                text="\n".join(quote.quote for quote in quotes),
                node_id=clock.new_id(),
                kind=Kind.SUMMARY,
                metadata={"title": node.text} if node.text else {},
                layer="episodic",
                session=node.session,
                occurred=last.occurred,
                evidence=tuple(quotes),
                checks_duplicates=False,
            )
        ]

    def _session(self, view: View, name: str) -> Node:
        if self.engine.index(view.index) is None:
            raise NotFound(f"there is no session {name!r} in index {view.index!r}", field="session")
        found = [node for node in self.engine.in_session(view, name) if node.kind is Kind.SESSION]
        if not found:
            raise NotFound(f"there is no session {name!r} in index {view.index!r}", field="session")
        if len(found) > 1:
            raise Conflict(f"session {name!r} is in {len(found)} scopes: say which", field="scope")
        return found[0]

    def _told(self, index: str, sources: View, node: Node) -> Session:
        ended = node.metadata.get("ended_at")
        return Session(
            id=node.session,
            index=index,
            title=node.text or None,
            scope=scope_of(node.scope),
            status="open" if ended is None else "ended",
            messages=len(self.engine.session(sources, node.scope, node.session)),
            started_at=times.format(node.recorded_at),
            ended_at=None if ended is None else times.format(ended),
            summary=node.metadata.get("summary"),
        )


def check_session(name: str, *, field: str = "session") -> str:
    """A name of a session: any text that is not empty, as long as an id may be."""
    check_text(name, field=field)
    if len(name.encode()) > LIMITS["id_bytes"]:
        raise Invalid(f"{field} is longer than {LIMITS['id_bytes']} bytes", field=field)
    return name
