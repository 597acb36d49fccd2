"""The tables of `data/`, read once, and the forms of verbs that the rules of spelling give."""

import tomllib
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

__all__ = ["English", "Negators", "default_single_valued", "english", "negators", "single_valued_of_names"]


class English(NamedTuple):
    """Words by what they are for; the verb tables give the base form of each other form."""

    determiners: frozenset[str]
    possessives: frozenset[str]
    relative: frozenset[str]
    prepositions: frozenset[str]
    adverbs: frozenset[str]
    copula_present: frozenset[str]
    copula_past: frozenset[str]
    modals: frozenset[str]
    negators: tuple[tuple[str, ...], ...]
    negative_determiners: frozenset[str]
    closing_negators: tuple[str, ...]
    base: dict[str, str]
    third: dict[str, str]
    past: dict[str, str]
    participle: dict[str, str]
    progressive: dict[str, str]
    opposite_verbs: dict[str, frozenset[str]]
    opposite_states: dict[str, frozenset[str]]


class Negators(NamedTuple):
    """What turns a sentence of any language but English into its opposite."""

    words: tuple[str, ...]
    instead: dict[str, str]
    inside: tuple[str, ...]
    endings: dict[str, str]


@lru_cache
def english() -> English:
    data = _load("english.toml")
    base: dict[str, str] = {}
    third: dict[str, str] = {}
    past: dict[str, str] = {}
    participle: dict[str, str] = {}
    progressive: dict[str, str] = {}
    for verb in data["verbs"]["regular"]:
        base[verb], third[_third(verb)], progressive[_progressive(verb)] = verb, verb, verb
        past[_past(verb)] = participle[_past(verb)] = verb
    for verb, (its_third, its_past, its_participle) in data["irregular"].items():
        base[verb], third[its_third or _third(verb)], progressive[_progressive(verb)] = verb, verb, verb
        past[its_past], participle[its_participle] = verb, verb
    return English(
        **{
            name: frozenset(data[name])
            for name in (
                "determiners",
                "possessives",
                "relative",
                "prepositions",
                "adverbs",
                "copula_present",
                "copula_past",
                "modals",
                "negative_determiners",
            )
        },
        negators=tuple(sorted((tuple(words.split()) for words in data["negators"]), key=len, reverse=True)),
        closing_negators=tuple(data["closing_negators"]),
        base=base,
        third=third,
        past=past,
        participle=participle,
        progressive=progressive,
        opposite_verbs=_opposites(data["opposite_verbs"]),
        opposite_states=_opposites(data["opposite_states"]),
    )


@lru_cache
def negators() -> Negators:
    """Of all languages together: they are only ever applied to two sentences that are otherwise equal."""
    tables = _load("negators.toml").values()
    words = {word for table in tables for word in table.get("words", ())}
    return Negators(
        words=tuple(sorted(words, key=lambda word: (-len(word), word))),
        instead={word: other for table in tables for word, other in table.get("instead", {}).items()},
        inside=tuple(sorted({part for table in tables for part in table.get("inside", ())}, key=len, reverse=True)),
        endings={ending: other for table in tables for ending, other in table.get("endings", {}).items()},
    )


def default_single_valued() -> tuple[str, ...]:
    """What an index takes as having one value at a time when its policy does not say."""
    data = _single_valued()
    return (*data["nouns"], *data["predicates"], *data["predicates_of_names"])


def single_valued_of_names() -> tuple[str, ...]:
    return tuple(_single_valued()["predicates_of_names"])


@lru_cache
def _single_valued() -> dict[str, Any]:
    return _load("single_valued.toml")


def _load(name: str) -> dict[str, Any]:
    return tomllib.loads((resources.files("kektor.memory.claims") / "data" / name).read_text("utf-8"))


def _opposites(pairs: list[dict[str, list[str]]]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for pair in pairs:
        for side, other in ((pair["one"], pair["other"]), (pair["other"], pair["one"])):
            for word in side:
                found.setdefault(word, set()).update(other)
    return {word: frozenset(others) for word, others in found.items()}


_VOWELS = "aeiou"


def _third(verb: str) -> str:
    if verb.endswith("y") and verb[-2] not in _VOWELS:
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("s", "x", "z", "ch", "sh")) else "s")


def _past(verb: str) -> str:
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in _VOWELS:
        return verb[:-1] + "ied"
    return _doubled(verb) + "ed"


def _progressive(verb: str) -> str:
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")):
        return verb[:-1] + "ing"
    return _doubled(verb) + "ing"


_DOUBLING = frozenset({
    "ban", "begin", "chat", "commit", "control", "cut", "drop", "forbid", "forget", "get", "hit", "jog", "let", "log",
    "map", "occur", "permit", "plan", "prefer", "put", "quit", "refer", "run", "set", "ship", "shut", "sit", "skip",
    "step", "stop", "swap", "swim", "transfer", "win",
})  # fmt: skip


def _doubled(verb: str) -> str:
    return verb + verb[-1] if verb in _DOUBLING else verb
