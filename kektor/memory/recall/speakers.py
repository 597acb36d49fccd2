"""Whose words a question asks for: names in it that are names of people who spoke."""

from collections.abc import Iterator

from msgspec import structs

from kektor.engine.filters import And, Compare, Field, Filter, In, Or
from kektor.engine.port import Engine
from kektor.engine.records import Kind
from kektor.engine.view import View
from kektor.memory.recall.question import Question

__all__ = ["with_speakers"]

_SPEAKER = Field(("metadata", "speaker"))
_MOST = 24
"""Words looked up; a text that names more people than this asks about none of them in particular."""


def with_speakers(engine: Engine, view: View, question: Question) -> Question:
    """The question, with the words in it that are a speaker's name, or the first of one, in messages a View shows.

    >>> with_speakers(engine, view, read("What does Caroline collect?")).said
    'What does collect?'
    """
    names = list(dict.fromkeys(_names(question)))[:_MOST]
    messages = structs.replace(view, kinds=frozenset({Kind.SOURCE}), layers=None, tags=None, filter=None)
    if not names or not _anybody(engine, messages, names):
        return question
    speakers = {name.casefold() for name in names if _anybody(engine, messages, [name])}
    return question._replace(speakers=frozenset(speakers))


def _names(question: Question) -> Iterator[str]:
    """Words as a name is written; a question typed in small letters names people too."""
    for word in question.words:
        if len(word) > 1 and not word.isdigit():
            yield word.capitalize()


def _anybody(engine: Engine, view: View, names: list[str]) -> bool:
    asked: Filter = Or((In(_SPEAKER, tuple(names)), *(_begins_with(name) for name in names)))
    return engine.count(structs.replace(view, filter=asked)) > 0


def _begins_with(name: str) -> Filter:
    """A longer name whose first word this is, as a range: what the ordered index answers without reading records."""
    return And((Compare(">=", _SPEAKER, f"{name} "), Compare("<", _SPEAKER, f"{name}!")))
