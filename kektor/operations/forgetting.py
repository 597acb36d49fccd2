"""Forgetting: choosing, previewing, doing, and the receipts of what was erased."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import structs

from kektor import clock
from kektor.contract import convert
from kektor.engine.gateway import Principal
from kektor.engine.records import Erasure, Kind, Receipt
from kektor.engine.view import View
from kektor.errors import Invalid, NotFound
from kektor.memory import requests as rq
from kektor.memory.commands.base import key_of
from kektor.memory.commands.forget import Erase, Withdraw, may_see
from kektor.memory.commands.lifecycle import Archive, Retract
from kektor.memory.forgetting.choosing import ByFilter, ByIds, ByQuery, Chooser, Expired
from kektor.memory.forgetting.closure import Closure, Gone, Place
from kektor.memory.forgetting.previews import Preview, compare, fingerprints, read_preview, write_preview
from kektor.memory.inputs import instant, read_rule
from kektor.memory.limits import LIMITS, check_id, check_text
from kektor.memory.objects import ErasurePage, ForgetReceipt, Forgotten, ForgottenNode
from kektor.memory.presenting import erasure_of
from kektor.memory.reading import make_view, only_by_id
from kektor.operations.base import BaseOperations

__all__ = ["ForgetOperations"]

_WAYS = ("ids", "query", "filter", "preview", "expired")


class ForgetOperations(BaseOperations):
    """What goes is chosen by ids, by a query, by a filter or by age; a preview is what is then done."""

    def forget(self, request: rq.ForgetRequest, principal: Principal) -> Forgotten:
        """Retract, archive or erase, all or nothing.

        By query, filter or age it is a preview unless `dry_run` is false; the token of a preview does exactly what
        that showed, or is a Conflict. A repeat under an idempotency key answers the same receipt and no entries: what
        was erased is not told again.
        """
        if sum(bool(getattr(request, way)) for way in _WAYS) != 1:
            raise Invalid(f"give exactly one of {', '.join(_WAYS)}, and not empty", field="ids")
        if request.preview is not None:
            return self._as_previewed(request, principal)
        present = instant(request.now, field="now", tz=request.tz)
        dry = request.dry_run if request.dry_run is not None else not request.ids
        return self._run(request, principal, present or clock.now(), dry_run=dry, check=None)

    def erasures(self, principal: Principal, *, limit: int = 100, cursor: str | None = None) -> ErasurePage:
        """The receipts of what was erased in what the caller may see, oldest first."""
        if not 1 <= limit <= LIMITS["k"]:
            raise Invalid(f"limit must be 1 to {LIMITS['k']:,}, not {limit}", field="limit")
        seen = [erasure for erasure in self.engine.erasures() if _sees(principal, erasure)]
        first = 0 if cursor is None else next((n for n, e in enumerate(seen, 1) if e.id == cursor), -1)
        if first < 0:
            raise Invalid(f"cursor {cursor!r} did not come from a list", field="cursor")
        taken = [erasure_of(erasure) for erasure in seen[first : first + limit]]
        return ErasurePage(taken, taken[-1].id if first + limit < len(seen) and taken[-1].id else None)

    def erasure(self, erasure_id: str, principal: Principal) -> ForgetReceipt:
        """One receipt."""
        for erasure in self.engine.erasures():
            if erasure.id == erasure_id and _sees(principal, erasure):
                return erasure_of(erasure)
        raise NotFound(f"there is no erasure {erasure_id!r}", field="id")

    def jwks(self) -> dict[str, Any]:
        """The public keys that receipts are verified with."""
        return self.context.jwks()

    def _as_previewed(self, request: rq.ForgetRequest, principal: Principal) -> Forgotten:
        assert request.preview is not None
        preview = read_preview(self.context.digester, request.preview)
        asked = convert(rq.ForgetRequest, preview.asked)
        of_mode = asked.mode or ("archive" if asked.expired else "retract")
        if request.mode not in (None, of_mode):
            raise Invalid(f"the preview was of mode {of_mode!r}", field="mode")
        asked.reason, asked.idempotency_key = request.reason or asked.reason, request.idempotency_key

        def check(closure: Closure) -> None:
            marks = fingerprints(self.context.digester, closure)
            compare(preview, marks, _visible(closure, principal))

        return self._run(asked, principal, preview.now, dry_run=bool(request.dry_run), check=check)

    def _run(
        self,
        request: rq.ForgetRequest,
        principal: Principal,
        now: int,
        *,
        dry_run: bool,
        check: Callable[[Closure], None] | None,
    ) -> Forgotten:
        mode = request.mode or ("archive" if request.expired else "retract")
        chooser = self._chooser(request, principal, now)
        if isinstance(chooser, ByIds) and len(chooser.ids) == 1 and mode != "erase" and not dry_run and check is None:
            return self._of_one(request, principal, mode)
        kind: type[Erase] | type[Withdraw] = Erase if mode == "erase" else Withdraw
        arguments: dict[str, Any] = {
            "context": self.context,
            "index": request.index,
            "chooser": chooser,
            "dry_run": dry_run,
            "check": check,
            "reason": request.reason,
            "idempotency_key": None if dry_run else request.idempotency_key,
            "asked": request,
        }
        command = kind(**arguments) if kind is Erase else Withdraw(**arguments, mode=mode)
        receipt = self._submit(command, principal)
        closure = command.closure
        token = None
        if dry_run:
            marks = fingerprints(self.context.digester, closure)
            asked: dict[str, Any] = msgspec.to_builtins(request)
            token = write_preview(
                self.context.digester,
                Preview({**asked, "dry_run": None, "idempotency_key": None}, now, b"".join(marks.values())),
            )
        return Forgotten(
            matched=[*_told(closure.matched.values(), principal), *_cut(closure, principal)],
            derived=[*_told(closure.derived.values(), principal), *_rebuilt(closure, principal)],
            copies=_told(closure.copies.values(), principal),
            dry_run=dry_run,
            preview=token,
            receipt=None if dry_run else self._receipt(receipt),
        )

    def _chooser(self, request: rq.ForgetRequest, principal: Principal, now: int) -> Chooser:
        if request.ids:
            _check_ids(request.ids)
            return ByIds(request.ids, read_rule(request.scope))
        view = self._everything(request, principal, now)
        if request.query:
            check_text(request.query, field="query")
            return ByQuery(view, request.query)
        return Expired(view, request.mode or "archive") if request.expired else ByFilter(view)

    def _everything(self, request: rq.ForgetRequest, principal: Principal, now: int) -> View:
        """Erasing looks into every state; the milder modes at what is current."""
        if request.mode == "erase":
            view = only_by_id(self.engine, principal, request.index, scope=request.scope)
            narrowed = make_view(
                self.engine, principal, request.index, scope=request.scope, filter=request.filter, tz=request.tz
            )
            view = structs.replace(view, filter=narrowed.filter, now=now)
        else:
            view = make_view(
                self.engine, principal, request.index, scope=request.scope, filter=request.filter, tz=request.tz
            )
            view = structs.replace(view, now=now)
        if request.filter or request.expired:
            return structs.replace(view, kinds=frozenset({Kind.MEMORY, Kind.SOURCE, Kind.ENTITY}))
        return view

    def _of_one(self, request: rq.ForgetRequest, principal: Principal, mode: str) -> Forgotten:
        assert request.ids is not None
        command = (Retract if mode == "retract" else Archive)(
            context=self.context,
            index=request.index,
            node_id=request.ids[0],
            rule=read_rule(request.scope),
            reason=request.reason,
            idempotency_key=request.idempotency_key,
            asked=[request.ids[0], request],
        )
        receipt = self._submit(command, principal)
        repeated = not hasattr(command, "node")
        matched = (
            [] if repeated else [ForgottenNode(command.node.id, command.node.kind.value, command.node.text, "named")]
        )
        return Forgotten(matched, [], [], False, None, self._receipt(receipt))

    def _receipt(self, receipt: Receipt) -> ForgetReceipt:
        """What the write answered, and for an erasure what proves it."""
        erasure = next((e for e in self.engine.erasures() if e.id == receipt.id), None)
        told = ForgetReceipt(
            id=receipt.id,
            outcome=receipt.outcome,
            ids=list(receipt.ids or ([] if receipt.id is None else [receipt.id])),
            lsn=receipt.lsn,
            of=receipt.of,
            version=receipt.version,
            warnings=receipt.warnings,
        )
        if erasure is None:
            return told
        proof = erasure_of(erasure)
        return structs.replace(
            told,
            digest=proof.digest,
            signature=proof.signature,
            counts=proof.counts,
            requested_at=proof.requested_at,
            bytes_gone_at=proof.bytes_gone_at,
        )


def _sees(principal: Principal, erasure: Erasure) -> bool:
    grants = principal.grants_for(erasure.index)
    return all(any(grant.admits(scope) for grant in grants) for scope in erasure.scopes) and bool(grants)


def _check_ids(ids: list[str]) -> None:
    if len(ids) > LIMITS["batch"]:
        raise Invalid(f"more than {LIMITS['batch']:,} ids in one call", field="ids")
    for number, node_id in enumerate(ids):
        check_id(node_id, field=f"ids[{number}]")


def _told(gone: Iterable[Gone], principal: Principal) -> list[ForgottenNode]:
    return [
        ForgottenNode(each.node.id, each.node.kind.value, each.node.text, each.why)
        for each in gone
        if may_see(principal, each.index, each.node)
    ]


def _cut(closure: Closure, principal: Principal) -> list[ForgottenNode]:
    """What stays without some sentences: the text is what goes."""
    return [
        ForgottenNode(
            cut.node.id,
            cut.node.kind.value,
            " ".join(cut.node.text[span.start : span.end] for span in cut.spans),
            f"{cut.why}; the rest stays",
        )
        for cut in closure.cuts.values()
        if may_see(principal, cut.index, cut.node)
    ]


def _rebuilt(closure: Closure, principal: Principal) -> list[ForgottenNode]:
    return [
        ForgottenNode(made.node.id, made.node.kind.value, made.node.text, "made anew without it")
        for made in closure.rebuilt.values()
        if may_see(principal, made.index, made.node)
    ]


def _visible(closure: Closure, principal: Principal) -> set[Place]:
    return {
        Place(each.index, key_of(each.node)) for each in closure.reached if may_see(principal, each.index, each.node)
    }
