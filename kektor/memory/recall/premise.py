"""What a question takes for granted: names that were mentioned, and facts of those it names."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import structs

from kektor.engine.port import Engine
from kektor.engine.records import NodeKey
from kektor.engine.view import View
from kektor.memory.recall.fuse import Fused
from kektor.memory.recall.names import identifiers_in, names_in
from kektor.memory.recall.question import Question, words_of
from kektor.memory.recall.subject import ABSTAINS, Subject, subject_of

__all__ = ["Premise", "read_premise"]


_SEEN = 10
"""How many of the best are read for a name itself."""


class Premise(NamedTuple):
    """What speaks against a question.

    `unknown` are names in it that nothing the caller may see has ever mentioned, and `known` the others; `nearest`
    are names that were mentioned and are spelled almost like an unknown one.
    """

    unknown: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    nearest: tuple[str, ...] = ()
    subject: Subject = ABSTAINS

    @property
    def at_risk(self) -> bool:
        return bool(self.unknown) or self.subject.doubtful

    @property
    def fails(self) -> bool:
        """Whether there is nobody it could be about."""
        return bool(self.unknown) and not self.known and not self.nearest


def read_premise(
    engine: Engine,
    view: View,
    question: Question,
    ranked: Sequence[Fused],
    language: str,
    *,
    replaced: Mapping[NodeKey, str],
) -> Premise:
    """Hold a question against what the View shows, and against the best candidates.

    `replaced` are the texts in whose place some of these stand, by the key of what does: whom they mention is known,
    and answered with what holds instead.
    """
    words = (word for name in names_in(question.text) for word in name.split())
    names = list(dict.fromkeys([*words, *identifiers_in(question.text)]))
    told = {word for text in replaced.values() for word in words_of(text)}
    # A name may stand in a text where no word of the index begins, behind a control character say.
    seen = "\n".join(found.candidate.node.text for found in ranked[:_SEEN])
    unknown = [name for name in unknown_names(engine, view, names) if not words_of(name) <= told and name not in seen]
    return Premise(
        unknown=tuple(unknown),
        known=tuple(name for name in names if name not in unknown),
        nearest=tuple(dict.fromkeys(near for name in unknown for near in _spelled_like(name, ranked))),
        subject=ABSTAINS if unknown else subject_of(question, ranked, language, replaced),
    )


def unknown_names(engine: Engine, view: View, names: Sequence[str]) -> list[str]:
    """The names that occur in no text, tag or speaker's name a View shows, nor are the caller's own.

    >>> unknown_names(engine, view, ["Quentin", "Dana"])
    ['Quentin']
    """
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


def _spelled_like(name: str, ranked: Sequence[Fused]) -> list[str]:
    """Words of the candidates, who said them and what they are tagged, that are one edit away from a name."""
    wanted = name.casefold()
    found = (
        word
        for fused in ranked
        for text in (
            fused.candidate.node.text,
            *fused.candidate.node.tags,
            str(fused.candidate.node.metadata.get("speaker", "")),
        )
        for word in words_of(text)
    )
    return sorted({word for word in found if word != wanted and _one_edit(wanted, word)})


def _one_edit(one: str, other: str) -> bool:
    """Whether one letter added, left out, changed, or exchanged with its neighbour makes one word of the other."""
    if abs(len(one) - len(other)) > 1 or min(len(one), len(other)) < 3:
        return False
    start = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    a, b = one[start:], other[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
