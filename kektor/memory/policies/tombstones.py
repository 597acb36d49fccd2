"""What was rejected or erased does not come back, by any door and in any disguise."""

from typing import Any, ClassVar

from kektor.engine.gateway import Principal
from kektor.engine.port import Engine, Transaction
from kektor.engine.records import Kind, Node, Tombstone
from kektor.errors import Blocked
from kektor.memory.context import MemoryContext
from kektor.memory.drafts import Draft
from kektor.memory.tombstones import ERASURE, claim_digest
from kektor.text import CUT, Span, blank, held, sentences

__all__ = ["Tombstones"]


class Tombstones:
    """Checks the text and the claim of whatever is new or comes back; a batch that can go on without one marks it.

    Of a text that holds an erased sentence among others, the sentence is withheld and the rest goes on.
    """

    name: ClassVar[str] = "tombstones"

    def __init__(self, context: MemoryContext) -> None:
        self._context = context

    def before(self, command: Any, principal: Principal, engine: Engine) -> None:
        for draft in command.drafts:
            if draft.text:
                draft.digest = self._context.digester.digest(draft.text)

    def check(self, command: Any, principal: Principal, tx: Transaction) -> None:
        for value in (*command.drafts, *command.revived):
            stone = self._standing(command.index, value, tx)
            if stone is None and tx.guarded(command.index, value.scope):
                stone = self._guarded(command, value, tx)
            if stone is None:
                continue
            refusal = _refusal(stone)
            if not (command.goes_on_without_blocked and isinstance(value, Draft)):
                raise refusal
            value.blocked = refusal

    def _standing(self, index: str, value: Draft | Node, tx: Transaction) -> Tombstone | None:
        """That of the whole text or of the claim."""
        digester = self._context.digester
        digests = digester.digests(value.text) if value.text else ()
        if value.claim is not None:
            digests += (claim_digest(digester, value.claim),)
        return next(
            (stone for digest in digests if (stone := tx.tombstone(index, value.scope, digest)) is not None),
            None,
        )

    def _guarded(self, command: Any, value: Draft | Node, tx: Transaction) -> Tombstone | None:
        """Take the erased sentences out of a draft; the guard of one when nothing is left, or nothing can be taken."""
        settings = tx.index(command.index)
        language = "english" if settings is None else settings.text.language
        met = [
            (span, stone)
            for span in sentences(value.text)
            if (stone := self._of_sentence(command.index, value, value.text[span.start : span.end], language, tx))
        ]
        if not met:
            return None
        first = met[0][1]
        if not isinstance(value, Draft) or not self._withhold(value, [span for span, _ in met]):
            return first
        stones = list(dict.fromkeys(stone.id for _, stone in met))
        command.withheld += stones
        value.warnings.append(
            f"{len(met)} erased sentence{'s' if len(met) > 1 else ''} withheld (tombstone {', '.join(stones)})"
        )
        if value.vector is not None and settings is not None and not value.raw:
            vectors = self._context.embed(settings, [value.text], kind="document")
            value.vector = None if vectors is None else vectors[0]
        return None

    def _of_sentence(
        self, index: str, value: Draft | Node, said: str, language: str, tx: Transaction
    ) -> Tombstone | None:
        digester = self._context.digester
        for digest in digester.digests(said):
            stone = tx.tombstone(index, value.scope, digest)
            if stone is not None and stone.cls == ERASURE:
                return stone
        tokens = frozenset(digester.digest("token", token) for token in held(said, language))
        return next(iter(tx.guards(index, value.scope, tokens)), None)

    def _withhold(self, draft: Draft, spans: list[Span]) -> bool:
        """Whether something is left: of what was said with its offsets, of a statement without the gap."""
        cut = blank(draft.text, spans)
        if draft.kind is not Kind.SOURCE:
            cut = " ".join(part for part in cut.replace(CUT, "").split(" ") if part)
        if not cut.replace(CUT, "").strip():
            return False
        draft.text = cut
        draft.digest = self._context.digester.digest(cut)
        return True


def _refusal(stone: Tombstone) -> Blocked:
    what = "was erased and is guarded" if stone.cls == ERASURE else "was rejected"
    return Blocked(
        f"this statement {what} (tombstone {stone.id}); a person can lift the tombstone",
        details={"tombstone": stone.id, "class": stone.cls},
    )
