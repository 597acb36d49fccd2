"""Memories: saving them and everything that may happen to one."""

from typing import Any

from kektor import clock
from kektor.engine.gateway import Principal
from kektor.engine.records import Evidence, Receipt, Scope
from kektor.errors import Invalid
from kektor.ingest.conversations import IngestMessages, IngestMessagesRequest, message_drafts
from kektor.memory import requests as rq
from kektor.memory.claims import remainder_of
from kektor.memory.commands.details import Confirm, Reinforce, Update
from kektor.memory.commands.dismiss import Dismiss
from kektor.memory.commands.lifecycle import Archive, Correct, Evolve, OnOne, Restore, Retract
from kektor.memory.commands.remember import Remember
from kektor.memory.drafts import Draft
from kektor.memory.inputs import claim, end, moment, read_rule, write_scope
from kektor.memory.keys import check_keys
from kektor.memory.limits import LIMITS, check_id, check_layer, check_metadata, check_tags, check_text
from kektor.memory.reading import find_one, only_by_id
from kektor.operations.base import BaseOperations
from kektor.operations.sessions import check_session

__all__ = ["MemoryOperations"]

_VERBS: dict[str, type[OnOne]] = {"retract": Retract, "archive": Archive, "restore": Restore}


class MemoryOperations(BaseOperations):
    """The write half of memory; reading is in `reads`."""

    def remember(self, request: rq.RememberRequest, principal: Principal) -> Receipt:
        """Save one statement: created, or recognised as a duplicate."""
        draft = self._draft(request, principal)
        self._writable_index(principal, request.index)
        command = Remember(
            context=self.context,
            index=request.index,
            scope=draft.scope,
            reason=request.reason,
            idempotency_key=request.idempotency_key,
            asked=request,
            drafts=[draft],
        )
        return self._submit(command, principal)

    def evolve(self, node_id: str, request: rq.EvolveRequest, principal: Principal) -> Receipt:
        """The world changed: the text holds from `valid_from` (default now) on, the old version until then."""
        return self._submit(self._replacement(Evolve, node_id, request, principal), principal)

    def correct(self, node_id: str, request: rq.EvolveRequest, principal: Principal) -> Receipt:
        """It was never true: the text takes the whole interval, and the old value cannot come back."""
        return self._submit(self._replacement(Correct, node_id, request, principal), principal)

    def change_state(self, verb: str, node_id: str, request: rq.VerbRequest, principal: Principal) -> Receipt:
        """`retract`, `archive` or `restore`."""
        return self._submit(_VERBS[verb](**self._about(node_id, request)), principal)

    def pin(self, node_id: str, request: rq.VerbRequest, principal: Principal, *, pinned: bool) -> Receipt:
        """A pinned memory does not age out of sight."""
        return self._submit(Update(**self._about(node_id, request), pinned=pinned), principal)

    def update(self, node_id: str, request: rq.UpdateRequest, principal: Principal) -> Receipt:
        """Replace tags, metadata, layer or pin; no new version, since the statement is the same."""
        command = Update(
            **self._about(node_id, request),
            tags=None if request.tags is None else check_tags(request.tags),
            metadata=None if request.metadata is None else check_metadata(request.metadata),
            layer=None if request.layer is None else check_layer(request.layer),
            pinned=request.pinned,
        )
        return self._submit(command, principal)

    def confirm(self, node_id: str, request: rq.ConfirmRequest, principal: Principal) -> Receipt:
        """It was seen to hold again."""
        return self._submit(Confirm(**self._about(node_id, request), evidence=request.evidence), principal)

    def dismiss(self, node_id: str, request: rq.DismissRequest, principal: Principal) -> Receipt:
        """A key led here wrongly: that way counts for less, and the memory stays as it is."""
        return self._submit(Dismiss(**self._about(node_id, request), key=request.key), principal)

    def reinforce(self, request: rq.ReinforceRequest, principal: Principal) -> Receipt:
        """Count a use; reading never does."""
        _check_ids(request.ids)
        command = Reinforce(
            context=self.context,
            index=request.index,
            ids=request.ids,
            rule=read_rule(request.scope),
            reason=request.reason,
            idempotency_key=request.idempotency_key,
            asked=request,
        )
        return self._submit(command, principal)

    def ingest_messages(self, request: IngestMessagesRequest, principal: Principal) -> Receipt:
        """Keep a conversation verbatim, one source a message; sending it again changes nothing."""
        if not request.messages:
            raise Invalid("messages is empty", field="messages")
        if len(request.messages) > LIMITS["batch"]:
            raise Invalid(f"more than {LIMITS['batch']:,} messages in one call", field="messages")
        check_session(request.session)
        if request.title is not None:
            check_text(request.title, field="title")
        scope = write_scope(request.scope, principal, request.index)
        drafts = message_drafts(request, scope, self.context)
        self._writable_index(principal, request.index)
        command = IngestMessages(
            context=self.context,
            index=request.index,
            scope=scope,
            reason=request.reason,
            idempotency_key=request.idempotency_key,
            asked=request,
            drafts=drafts,
        )
        return self._submit(command, principal)

    def _draft(self, request: rq.RememberRequest, principal: Principal) -> Draft:
        tz = request.tz
        valid_from = moment(request.valid_from, field="valid_from", tz=tz)
        valid_to = end(request.valid_to, field="valid_to", tz=tz)
        if valid_from is not None and valid_to is not None and valid_to.at <= valid_from.at:
            raise Invalid("valid_to lies before valid_from", field="valid_to")
        return Draft(
            index=request.index,
            scope=write_scope(request.scope, principal, request.index),
            text=check_text(request.text),
            node_id=clock.new_id() if request.id is None else check_id(request.id),
            given_id=request.id is not None,
            metadata=check_metadata(request.metadata),
            tags=check_tags(request.tags),
            layer=check_layer(request.layer),
            pinned=request.pinned,
            session="" if request.session is None else check_session(request.session),
            occurred=moment(request.occurred_at, field="occurred_at", tz=tz),
            valid_from=valid_from,
            valid_to=valid_to,
            claim=claim(request.claim),
            evidence=_spans(request.evidence),
            keys=check_keys(request.keys),
        )

    def _replacement(
        self, kind: type[Evolve | Correct], node_id: str, request: rq.EvolveRequest, principal: Principal
    ) -> Evolve | Correct:
        draft = Draft(
            index=request.index,
            scope=Scope(),  # the target's, once it is found
            text=check_text(request.text),
            node_id=clock.new_id(),
            claim=claim(request.claim),
            evidence=_spans(request.evidence),
            checks_duplicates=False,
        )
        kept = self._remainder(node_id, request, principal)
        return kind(
            **self._about(node_id, request),
            drafts=[draft] if kept is None else [draft, kept],
            valid_from=moment(request.valid_from, field="valid_from", tz=request.tz),
        )

    def _remainder(self, node_id: str, request: rq.EvolveRequest, principal: Principal) -> Draft | None:
        """What a partial replacement leaves: in the caller's words, or what the old text says besides."""
        if not request.partial:
            if request.remainder is not None:
                raise Invalid("remainder goes with partial=true", field="remainder")
            return None
        text = request.remainder
        if text is None:
            view = only_by_id(self.engine, principal, request.index, scope=request.scope)
            text = remainder_of(find_one(self.engine, view, check_id(node_id)).text, request.text)
        if text is None:
            raise Invalid(
                "the old text cannot be split into what this replaces and what stays: pass remainder, the text of "
                "what stays",
                field="partial",
            )
        return Draft(
            index=request.index,
            scope=Scope(),
            text=check_text(text, field="remainder"),
            node_id=clock.new_id(),
            checks_duplicates=False,
        )

    def _about(self, node_id: str, request: Any) -> dict[str, Any]:
        """The common arguments of a command about one memory."""
        return {
            "context": self.context,
            "index": request.index,
            "node_id": check_id(node_id),
            "rule": read_rule(request.scope),
            "expected_version": getattr(request, "expected_version", None),
            "if_match": getattr(request, "if_match", None),
            "reason": request.reason,
            "idempotency_key": request.idempotency_key,
            "asked": [node_id, request],
        }


def _check_ids(ids: list[str]) -> None:
    if not ids:
        raise Invalid("ids is empty: name what to forget", field="ids")
    if len(ids) > LIMITS["batch"]:
        raise Invalid(f"more than {LIMITS['batch']:,} ids in one call", field="ids")
    for number, node_id in enumerate(ids):
        check_id(node_id, field=f"ids[{number}]")


def _spans(given: list[rq.EvidenceIn]) -> tuple[Evidence, ...]:
    """As asked for: the policy on evidence finds the source, and the offsets that were not given."""
    spans = []
    for number, span in enumerate(given):
        if span.quote is None and (span.start is None or span.end is None):
            raise Invalid("evidence needs a quote, or start and end", field=f"evidence[{number}].quote")
        for name, offset in (("start", span.start), ("end", span.end)):
            if offset is not None and offset < 0:
                raise Invalid(f"{name} is {offset}; offsets count from 0", field=f"evidence[{number}].{name}")
        start = -1 if span.start is None else span.start
        spans.append(Evidence(span.source, start, -1 if span.end is None else span.end, span.quote or ""))
    return tuple(spans)
