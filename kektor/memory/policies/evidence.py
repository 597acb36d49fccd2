"""What a memory rests on: every span names a source the caller sees, and quotes it to the letter."""

from typing import Any, ClassVar

from msgspec import structs

from kektor.engine.gateway import Principal
from kektor.engine.port import Engine, Transaction
from kektor.engine.records import Evidence, Kind, Node
from kektor.errors import Blocked, Invalid
from kektor.memory.context import MemoryContext
from kektor.memory.drafts import Draft
from kektor.memory.grounds import class_of, echoes, unlicensed
from kektor.text import Span

__all__ = ["EvidencePolicy"]


class EvidencePolicy:
    """Resolves quotes to offsets, stamps the class from the source, and enforces `evidence=require`."""

    name: ClassVar[str] = "evidence"

    def __init__(self, context: MemoryContext) -> None:
        self._context = context

    def before(self, command: Any, principal: Principal, engine: Engine) -> None:
        return

    def check(self, command: Any, principal: Principal, tx: Transaction) -> None:
        settings = tx.index(command.index)
        required = settings is not None and settings.policy.evidence == "require"
        for draft in command.drafts:
            if draft.kind is Kind.SOURCE:
                continue
            grants = principal.grants_for(draft.index)
            resolved = [self._resolve(span, draft, grants, tx) for span in draft.evidence]
            new = [(span, source) for span, source in resolved if not self._is_echo(span, source, draft, tx)]
            draft.evidence = tuple(span for span, _ in new)
            if not required or draft.kind is not Kind.MEMORY:
                continue
            if not new:
                raise _refused(
                    "this index requires evidence (policy evidence=require): name a source and quote it"
                    if not resolved
                    else f"this index requires evidence, and {draft.warnings[-1]}"
                )
            if (why := unlicensed(draft.text, draft.evidence, [source for _, source in new])) is not None:
                raise _refused(f"this index requires evidence (policy evidence=require): {why}", why=why)

    def _is_echo(self, span: Evidence, source: Node, draft: Draft, tx: Transaction) -> bool:
        """Whether a quote only repeats what memory gave out: it is left out, and the receipt says so."""
        known = echoes(tx, self._context, draft.index, source, Span(span.start, span.end), span.cls)
        if known is None:
            return False
        draft.warnings.append(f"the quote of {source.id} only repeats {known.id}: it is no new evidence")
        return True

    def _resolve(self, span: Evidence, draft: Draft, grants: Any, tx: Transaction) -> tuple[Evidence, Node]:
        found = [
            node
            for node in tx.nodes_of_id(draft.index, span.source)
            if node.kind is Kind.SOURCE
            and node.scope in (draft.scope, type(draft.scope)())
            and any(grant.admits(node.scope) for grant in grants)
        ]
        if not found:
            raise Invalid(f"there is no source {span.source!r} for this evidence", field="evidence.source")
        source = found[0]
        start, end = _locate(span, source)
        quote = source.text[start:end]
        cls = class_of(self._context, draft.index, source, Span(start, end))
        return structs.replace(span, start=start, end=end, quote=quote, cls=cls), source


def _refused(message: str, **details: str) -> Blocked:
    return Blocked(message, field="evidence", details={"policy": "evidence", **details})


def _locate(span: Evidence, source: Node) -> tuple[int, int]:
    """Offsets in code points; -1 stands for one that was not given."""
    if span.start >= 0 and span.end >= 0:
        if not 0 <= span.start < span.end <= len(source.text):
            raise Invalid(
                f"the span {span.start} to {span.end} lies outside of source {source.id!r} "
                f"({len(source.text)} characters)",
                field="evidence.start",
            )
        if span.quote and source.text[span.start : span.end] != span.quote:
            raise Invalid(f"the quote is not what source {source.id!r} says there", field="evidence.quote")
        return span.start, span.end
    at = source.text.find(span.quote) if span.quote else -1
    if at < 0:
        raise Invalid(f"source {source.id!r} does not contain the quote word for word", field="evidence.quote")
    return at, at + len(span.quote)
