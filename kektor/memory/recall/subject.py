"""Whose fact it is: whether what a question asks of somebody was said of somebody else.

"Is Priya allergic to peanuts?" is near to "Marco is allergic to peanuts" by every word and by meaning, and is not
answered by it. Sentences are bound to persons by the signs a language gives: who speaks in the first person, who is
spoken to in the second, whose name the sentence has. Where there is no such sign, the gate abstains.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from kektor.engine.records import Kind, Node, NodeKey, Scope
from kektor.memory.recall.candidates import Candidate
from kektor.memory.recall.fuse import Fused
from kektor.memory.recall.names import names_in, subject_names
from kektor.memory.recall.question import Question, words_of
from kektor.text import content_terms, sentences

__all__ = ["ABSTAINS", "Subject", "subject_of"]

_TOP = 30
"""How many of the best are read for whose they are."""

_SURE, _DOUBTFUL = 0.0, -0.12
_FEWEST = 0.5
_SHORTEST = 3
_HALF_AGAIN = 1.5
_FIRST = re.compile(r"\b(?:i|me|my|mine|myself|we|us|our|ours)\b", re.IGNORECASE)
_SECOND = re.compile(r"\b(?:you|your|yours|yourself)\b", re.IGNORECASE)
_Person: TypeAlias = tuple[str, ...]
"""Whom a sentence is about: the names it has, the first of which stands for it."""

_ANYBODY: _Person = ()
"""Where there is no sign and nobody is known to have said it."""


class Subject(NamedTuple):
    """What reading for whose it is has brought.

    `margin` is the share of the question's words said of somebody else at once, less one and a half times the share
    said of the one it names. `people` are those it is said of, and `keys` where.
    """

    margin: float
    people: tuple[str, ...] = ()
    keys: frozenset[NodeKey] = frozenset()

    @property
    def wrong(self) -> bool:
        return bool(self.people)

    @property
    def doubtful(self) -> bool:
        return self.margin > _DOUBTFUL


ABSTAINS = Subject(-_HALF_AGAIN)


def subject_of(question: Question, ranked: Sequence[Fused], language: str, replaced: Mapping[NodeKey, str]) -> Subject:
    """Read the best candidates for whom they speak of, beside the one person a question names.

    A question that names nobody, or several speakers, is not judged; nor is one in a language whose pronouns are not
    known.
    """
    named = _one_person(question, ranked)
    if language != "english" or not named:
        return ABSTAINS
    asked = frozenset(content_terms(question.without(named), language))
    if not asked:
        return ABSTAINS
    everything = {fused.candidate.key: fused.candidate for fused in ranked}
    top = [fused.candidate for fused in ranked[:_TOP]]
    # A reply may stand among the best where what it replies to does not.
    near = (everything[key] for one in top for key in (one.around or ((),))[0] if key in everything)
    found = {one.key: one for one in (*top, *near)}
    speakers = _speakers(found.values())
    spoke = frozenset(word for people in speakers.values() for name in people for word in words_of(name))
    named |= {word for word in spoke if any(_short_for(word, name) for name in named)}
    known = named | spoke | _names_inside(found.values())
    read = partial(
        _spoken_of,
        terms=lambda sentence: asked & set(content_terms(sentence, language)),
        # Of somebody who never speaks, people do speak in the first person: "I fed him" is about both.
        speakers=speakers if named & spoke else {},
        known=known,
    )
    bound = {key: read(candidate.node) for key, candidate in found.items()}
    for key, candidate in found.items():
        text = candidate.node.text.casefold()
        if candidate.node.kind is not Kind.SOURCE and any(name in text for name in named):
            bound[key] = {_ANYBODY: frozenset().union(*bound[key].values())}  # it has the name, wherever words begin
    for key in found.keys() & replaced.keys():
        if named & words_of(replaced[key]):  # what holds in the place of what was said of them answers
            bound[key] = {_ANYBODY: asked & set(content_terms(f"{found[key].node.text} {replaced[key]}", language))}
    shares = {one.key: _shares(_together(one, bound), named, len(asked)) for one in top}
    own = max((share.own for share in shares.values()), default=0.0)
    other = max((share.other for share in shares.values()), default=0.0)
    margin = other - _HALF_AGAIN * own
    if margin <= _SURE or other < _FEWEST:
        return Subject(min(margin, _SURE) if other < _FEWEST else margin)
    said = {
        key: share
        for key, share in shares.items()
        if share.other >= _FEWEST and share.other > _HALF_AGAIN * share.own and share.by_itself
    }
    most = max((share.other for share in said.values()), default=0.0)
    people = dict.fromkeys(name for share in said.values() if share.other == most for name in share.people)
    return Subject(margin, tuple(people), frozenset(said))


def _one_person(question: Question, ranked: Sequence[Fused]) -> frozenset[str]:
    """The words of the name a question is about: of the one speaker in it, else the first name.

    The word that opens it has a capital in any case, and is a name when the candidates use it as one.
    """
    names = [words_of(name) for name in names_in(question.text)]
    if question.speakers:
        return question.speakers if len(question.speakers) == 1 or question.speakers in names else frozenset()
    opening = next((words_of(name) for name in subject_names(question.text)), frozenset())
    if opening and any(opening <= words_of(name) for name in _names_used(ranked)):
        return opening
    return names[0] if names else frozenset()


def _names_used(ranked: Sequence[Fused]) -> Iterator[str]:
    for found in ranked[:_TOP]:
        text = found.candidate.node.text
        for start, end in sentences(text):
            yield from names_in(text[start:end], opening=True)


def _short_for(one: str, other: str) -> bool:
    """Whether one name is the beginning of the other: Mel and Melanie."""
    return min(len(one), len(other)) >= _SHORTEST and (one.startswith(other) or other.startswith(one))


_Bound: TypeAlias = Mapping[_Person, frozenset[str]]
"""What of the question is said of whom."""


def _names_inside(candidates: Iterable[Candidate]) -> frozenset[str]:
    """Words with a capital inside a sentence: what opens one in a conversation is mostly no name."""
    return frozenset(word for one in candidates for name in names_in(one.node.text) for word in words_of(name))


def _spoken_of(
    node: Node,
    *,
    speakers: Mapping[tuple[Scope, str], frozenset[str]],
    known: frozenset[str],
    terms: Callable[[str], frozenset[str]],
) -> _Bound:
    bound: dict[_Person, frozenset[str]] = {}
    for sentence in (node.text[start:end] for start, end in sentences(node.text)):
        if said := terms(sentence):
            for person in _persons(node, sentence, speakers, known):
                bound[person] = bound.get(person, frozenset()) | said
    return bound


def _persons(
    node: Node, sentence: str, speakers: Mapping[tuple[Scope, str], frozenset[str]], known: frozenset[str]
) -> Iterable[_Person]:
    if node.kind is not Kind.SOURCE:
        return [tuple(names_in(sentence, opening=True))]
    speaker = _speaker(node) if (node.scope, node.session) in speakers else ""
    persons = [(name,) for name in subject_names(sentence) if name.casefold() in known]
    if speaker and _FIRST.search(sentence):
        persons.append((speaker,))
    if _SECOND.search(sentence):
        persons += [(other,) for other in speakers.get((node.scope, node.session), frozenset()) - {speaker}]
    return persons or [(speaker,) if speaker else _ANYBODY]


def _speaker(node: Node) -> str:
    speaker = node.metadata.get("speaker")
    return speaker if isinstance(speaker, str) else ""


def _speakers(candidates: Iterable[Candidate]) -> dict[tuple[Scope, str], frozenset[str]]:
    found: dict[tuple[Scope, str], set[str]] = {}
    for candidate in candidates:
        if candidate.node.kind is Kind.SOURCE and (speaker := _speaker(candidate.node)):
            found.setdefault((candidate.node.scope, candidate.node.session), set()).add(speaker)
    return {session: frozenset(people) for session, people in found.items()}


def _together(candidate: Candidate, bound: Mapping[NodeKey, _Bound]) -> Iterator[tuple[bool, _Person, frozenset[str]]]:
    """What a candidate says of whom, and what is said right beside it: a question and its reply speak of one thing."""
    for key in (candidate.key, *(candidate.around or ((),))[0]):
        for person, said in bound.get(key, {}).items():
            yield key == candidate.key, person, said


class _Share(NamedTuple):
    own: float
    other: float
    people: tuple[str, ...]
    by_itself: bool
    """Whether the candidate itself, not what stands beside it, says something of them."""


def _shares(said: Iterable[tuple[bool, _Person, frozenset[str]]], named: frozenset[str], asked: int) -> _Share:
    own: frozenset[str] = frozenset()
    others: dict[_Person, frozenset[str]] = {}
    itself: set[_Person] = set()
    for by_itself, person, terms in said:
        if not person or named & words_of(" ".join(person)):
            own |= terms
        else:
            others[person] = others.get(person, frozenset()) | terms
            if by_itself:
                itself.add(person)
    best = max((len(terms) for terms in others.values()), default=0)
    people = [person for person, terms in others.items() if len(terms) == best]
    return _Share(len(own) / asked, best / asked, tuple(name for name, *_ in people), bool(itself.intersection(people)))
