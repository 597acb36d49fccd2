"""What a quote is worth: whose word it is, whether it only repeats the memory, and what may be said on it.

Nobody tells any of this: the class of a quote comes from the role and the writer of its source, and a user's turn into
which something else was pasted is not the user's word.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from kektor.engine.port import Transaction
from kektor.engine.records import Evidence, Kind, Node
from kektor.engine.view import INCLUDABLE, ScopeRule, View
from kektor.memory.context import MemoryContext
from kektor.text import Span, plain, touched

__all__ = ["class_of", "echoes", "unlicensed"]

_CLASS_OF_ROLE = {"user": "user", "assistant": "self", "tool": "tool", "system": "self"}
_FEWEST_LETTERS = 12
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:[.,]\d+)*(?![\w]*\d)")
_FREE = re.compile(r"\b(?:19|20)\d\d(?:-\d\d(?:-\d\d)?)?(?:T[\d:.]+Z?)?\b|\b\d{1,2}:\d\d(?::\d\d)?\b")
"""Dates and clock times: words of a source such as "next Friday" are resolved to them."""
_SAYING = (
    r"(?:said|says|told|tells|decided|decides|asked|asks|approved|approves|agreed|agrees|promised|promises|wants|wanted"
    r"|prefers|preferred|confirmed|confirms|thinks|believes|requested|requests|demanded|insists|insisted|mentioned)"
)
_CREDITS_USER = re.compile(rf"\b(?:the\s+)?(?:user|human|owner|they)\b[^.!?]{{0,24}}?\b{_SAYING}\b", re.IGNORECASE)
_CREDITS_NAME = re.compile(rf"\b([A-Z][\w'’-]+)(?:\s+[A-Z][\w'’-]+)?\s+(?:\w+ly\s+)?{_SAYING}\b")
_ENVELOPE = re.compile(r"<memor(?:y|ies)\b.*?(?:</memories>|\Z)", re.DOTALL)


def class_of(context: MemoryContext, index: str, source: Node, span: Span) -> str:
    """`user`, `tool`, `act`, `self` or `doc`: whose word a quote is.

    A user's sentence that a tool or an assistant of the same session had said before is theirs.
    """
    own = _told_class(source)
    return _pasted_from(context, index, source, span) or own if own == "user" else own


def echoes(tx: Transaction, context: MemoryContext, index: str, source: Node, span: Span, cls: str) -> Node | None:
    """The memory that a quote only repeats: it was known before this was said, and is not the user's own retelling."""
    if cls == "user" and not _inside_envelope(source.text, span):
        return None
    said = [source.text[one.start : one.end] for one in touched(source.text, [span])]
    said.append(source.text[span.start : span.end])
    for text in said:
        for node in tx.nodes_of_digest(index, source.scope, context.digester.digest(text)):
            if node.kind is Kind.MEMORY and not node.raw and node.recorded_at < source.recorded_at:
                return node
    return None


def unlicensed(text: str, evidence: Sequence[Evidence], sources: Iterable[Node]) -> str | None:
    """What a statement says that its quotes do not allow; None when they do.

    >>> quote = Evidence("s", 0, 25, "p95 latency was 45 ms", "tool")
    >>> unlicensed("The p95 latency is 45 ms", [quote], []), unlicensed("The p95 latency is 54 ms", [quote], [])
    (None, "the number 54 is in no quote of a tool, a document or the user")
    """
    quoted = {n for span in evidence if span.cls != "self" for n in _numbers(span.quote)}
    for number in _numbers(_FREE.sub(" ", unicodedata.normalize("NFKC", text))):
        # One with a sign needs the same sign; one without may cite a signed one.
        if number not in quoted and (number[0] in "+-" or not quoted & {f"-{number}", f"+{number}"}):
            return f"the number {number} is in no quote of a tool, a document or the user"
    users = any(span.cls == "user" for span in evidence)
    if _CREDITS_USER.search(text) and not users:
        return "it credits the user, and no quote is the user's"
    speakers = {str(speaker) for source in sources if (speaker := source.metadata.get("speaker"))}
    known = {part.casefold() for speaker in speakers for part in (speaker, *speaker.split())}
    for name in _CREDITS_NAME.findall(text):
        if speakers and name.casefold() not in known | {"user", "they", "owner", "human", "i", "we", "he", "she", "it"}:
            return f"it credits {name}, and the quotes are of {', '.join(sorted(speakers))}"
    return None


def _told_class(source: Node) -> str:
    if source.actor.kind == "agent":
        return "self"
    return _CLASS_OF_ROLE.get(str(source.metadata.get("role", "")), "doc")


def _pasted_from(context: MemoryContext, index: str, source: Node, span: Span) -> str | None:
    """The class of what an earlier turn of the session had said already, word for word."""
    if not source.session:
        return None
    said = [plain(source.text[one.start : one.end]) for one in touched(source.text, [span])]
    said = [text for text in said if len(text) >= _FEWEST_LETTERS and " " in text]
    if not said:
        return None
    view = View(index, ((ScopeRule(),),), now=0, include=INCLUDABLE, kinds=frozenset({Kind.SOURCE}), history=True)
    for turn in context.engine.in_session(view, source.session):
        if turn.id == source.id:
            return None
        cls = _told_class(turn)
        if turn.scope == source.scope and cls != "user" and all(text in plain(turn.text) for text in said):
            return cls
    return None


def _inside_envelope(text: str, span: Span) -> bool:
    return any(found.start() <= span.start < found.end() for found in _ENVELOPE.finditer(text))


def _numbers(text: str) -> list[str]:
    """As they compare: without separators of thousands, with one sign for minus."""
    told = unicodedata.normalize("NFKC", text).replace("−", "-").replace("–", "-")
    told = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", told)
    return [number.rstrip(".,") for number in _NUMBER.findall(told)]
