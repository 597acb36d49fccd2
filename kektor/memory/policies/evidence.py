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
from kektor.memory.sources import source_for
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
            resolved = [
                self._resolve(span, f"evidence[{number}]", draft, principal, tx)
                for number, span in enumerate(draft.evidence)
            ]
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

    def _resolve(
        self, span: Evidence, where: str, draft: Draft, principal: Principal, tx: Transaction
    ) -> tuple[Evidence, Node]:
        source = source_for(tx, principal, draft.index, span.source, draft.scope)
        if source is None:
            raise Invalid(f"there is no source {span.source!r} for this evidence", field=f"{where}.source")
        start, end = _locate(span, where, source)
        quote = source.text[start:end]
        cls = class_of(self._context, draft.index, source, Span(start, end))
        return structs.replace(span, start=start, end=end, quote=quote, cls=cls, scope=source.scope), source


def _refused(message: str, **details: str) -> Blocked:
    return Blocked(message, field="evidence", details={"policy": "evidence", **details})


def _locate(span: Evidence, where: str, source: Node) -> tuple[int, int]:
    """Offsets in code points; -1 stands for one that was not given, which the length of the quote tells."""
    start, end = span.start, span.end
    if start < 0 and end < 0:
        start = source.text.find(span.quote) if span.quote else -1
        if start < 0:
            raise Invalid(f"source {source.id!r} does not contain the quote word for word", field=f"{where}.quote")
        return start, start + len(span.quote)
    start = end - len(span.quote) if start < 0 else start
    end = start + len(span.quote) if end < 0 else end
    if not 0 <= start < end <= len(source.text):
        raise Invalid(
            f"the span {start} to {end} lies outside of source {source.id!r} ({len(source.text)} characters)",
            field=f"{where}.start" if span.start >= 0 else f"{where}.end",
        )
    if span.quote and source.text[start:end] != span.quote:
        raise Invalid(f"the quote is not what source {source.id!r} says there", field=f"{where}.quote")
    return start, end
