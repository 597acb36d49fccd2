"""Whom a question takes for granted: names that nothing the caller may see has ever mentioned."""

import re
from collections.abc import Iterator

from msgspec import structs

from kektor.engine.port import Engine
from kektor.engine.view import View

__all__ = ["unknown_names"]

_WORD = re.compile(r"[^\W_][\w'’.@-]*")
_SENTENCE_END = re.compile(r"[.!?:;\n\"“”«»]\s*$")

# Capitalised inside an English sentence without naming anybody whom a memory could know.
_COMMON = frozenset({
    "i", "i'm", "i've", "i'd", "i'll", "mr", "mrs", "ms", "dr", "am", "pm", "ok", "english", "monday",
    "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "january", "february", "march",
    "april", "may", "june", "july", "august", "september", "october", "november", "december",
})  # fmt: skip


def unknown_names(engine: Engine, view: View, question: str) -> list[str]:
    """The names in a question that occur in no text, tag or speaker's name a View shows, nor are the caller's own.

    It abstains where capitals are no sign of a name: scripts without them, and questions written in them.

    >>> unknown_names(engine, view, "Does Quentin know where Dana lives?")
    ['Quentin']
    """
    names = list(dict.fromkeys(_names(question)))
    if not names:
        return []
    own = {
        value.casefold()
        for rules in view.scopes
        for rule in rules
        for value in (rule.user, rule.agent, rule.project)
        if value is not None
    }
    # A name is known when anything told it, whatever the question narrows its answer to.
    anything = structs.replace(
        view, history=True, include=view.include | {"superseded"}, kinds=None, layers=None, tags=None, filter=None
    )
    return [name for name in names if name.casefold() not in own and not engine.match_text(anything, name, 1)]


def _names(question: str) -> Iterator[str]:
    words = [(match, match[0].rstrip("'’.-")) for match in _WORD.finditer(question)]
    capitals = sum(word[0].isupper() for _, word in words)
    if len(words) > 2 and capitals > (len(words) + 1) // 2:
        return
    for match, word in words:
        name = re.sub(r"['’]s$", "", word)
        begins = not question[: match.start()].strip() or _SENTENCE_END.search(question[: match.start()])
        if begins or not name[0].isupper() or len(name) < 3 or name.casefold() in _COMMON:
            continue
        yield name
