"""Reviews: what waits for a decision, and deciding it."""

from kektor import clock
from kektor.engine.gateway import Principal
from kektor.engine.records import Receipt, Scope
from kektor.errors import Invalid
from kektor.memory import requests as rq
from kektor.memory.commands.review import Decide
from kektor.memory.drafts import Draft
from kektor.memory.inputs import read_rule
from kektor.memory.limits import LIMITS, check_id, check_text
from kektor.memory.objects import ReviewPage
from kektor.memory.reading import existing_index, make_view
from kektor.memory.reviews import STATUSES, queue
from kektor.operations.base import BaseOperations

__all__ = ["ReviewOperations"]


class ReviewOperations(BaseOperations):
    """The queue of what nobody has decided yet, in what the caller sees."""

    def reviews(
        self,
        index: str,
        principal: Principal,
        *,
        scope: rq.ScopeIn | None = None,
        status: str = "open",
        limit: int = 100,
        cursor: str | None = None,
    ) -> ReviewPage:
        """Reviews, oldest first, a page at a time: `open` (with those asked about), `asked`, `decided` or `all`."""
        if status not in STATUSES:
            raise Invalid(f"status must be {' or '.join(STATUSES)}, not {status!r}", field="status")
        if not 1 <= limit <= LIMITS["k"]:
            raise Invalid(f"limit must be 1 to {LIMITS['k']:,}, not {limit}", field="limit")
        view = make_view(self.engine, principal, index, scope=scope)
        settings = existing_index(self.engine, index)
        if settings is None:
            return ReviewPage([], None)
        found = queue(self.engine, view, settings, status)
        first = 0 if cursor is None else next((n for n, review in enumerate(found, 1) if review.id == cursor), -1)
        if first < 0:
            raise Invalid(f"cursor {cursor!r} did not come from a list", field="cursor")
        items = found[first : first + limit]
        return ReviewPage(items, items[-1].id if first + limit < len(found) else None)

    def review(self, review: str, request: rq.ReviewRequest, principal: Principal) -> Receipt:
        """Decide one, or take the decision back; for people, and services that hold the role `review`."""
        _check_fields(request)
        command = Decide(
            context=self.context,
            index=request.index,
            review=check_id(review),
            decision=request.decision,
            note=request.note,
            how=request.how,
            keep=request.keep,
            into=None if request.into is None else check_id(request.into, field="into"),
            propose=request.propose,
            rule=read_rule(request.scope),
            reason=request.reason or request.note,
            idempotency_key=request.idempotency_key,
            asked=[review, request],
            drafts=[] if request.text is None else [self._text(request)],
        )
        return self._submit(command, principal)

    def _text(self, request: rq.ReviewRequest) -> Draft:
        return Draft(
            index=request.index,
            scope=Scope(),  # that of what it is about, once it is found
            text=check_text(request.text or ""),
            node_id=clock.new_id(),
            checks_duplicates=False,
        )


def _check_fields(request: rq.ReviewRequest) -> None:
    """Refuse what the decision does not take: ignoring it would decide something else than was meant."""
    takes = {"text": ("edit", "merge"), "into": ("merge",)}
    for field, decisions in takes.items():
        if getattr(request, field) is not None and request.decision not in decisions:
            raise Invalid(f"{request.decision} takes no {field}", field=field)
    if request.keep != "newer" and request.decision != "accept":
        raise Invalid(f"{request.decision} takes no keep", field="keep")
