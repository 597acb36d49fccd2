"""The word lists of `data/english.toml`, as the rules use them."""

import tomllib
from importlib import resources
from typing import Any, Final

__all__ = [
    "BASE_VERBS", "DISLIKING", "ENGLISH", "FILLERS", "KINDS", "LABELS", "MONTHS_AND_DAYS", "NEGATORS", "OPENERS",
    "PLACES", "SAME", "TIMES", "TITLES", "VERBS", "WORDS_THAT_ARE_NAMES",
]  # fmt: skip

_TABLE: Final[dict[str, Any]] = tomllib.loads(
    resources.files("kektor.memory.forgetting").joinpath("data/english.toml").read_text("utf-8")
)


def _words(name: str) -> frozenset[str]:
    listed: str = _TABLE[name]
    return frozenset(listed.split())


def _forms(verb: str) -> set[str]:
    """What is said of one person, and of the past."""
    ending = "es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else "s"
    third = f"{verb[:-1]}ies" if verb[-1] == "y" and verb[-2] not in "aeiou" else f"{verb}{ending}"
    past = f"{verb}d" if verb[-1] == "e" else f"{verb[:-1]}ied" if third.endswith("ies") else f"{verb}ed"
    return {third, past, f"{verb}{verb[-1]}ed"}


BASE_VERBS: Final = _words("base_verbs")
VERBS: Final = BASE_VERBS | _words("irregular_verbs") | {form for verb in BASE_VERBS for form in _forms(verb)}
NEGATORS: Final = _words("negators")
DISLIKING: Final = _words("disliking")
WORDS_THAT_ARE_NAMES: Final = _words("words_that_are_names")
PLACES: Final = _words("places")
TITLES: Final = _words("titles")
OPENERS: Final = _words("openers")
TIMES: Final = _words("times")
MONTHS_AND_DAYS: Final = _words("months_and_days")
LABELS: Final = _words("labels")
ENGLISH: Final = _words("english")
FILLERS: Final = _words("fillers")
SAME: Final = tuple(tuple(group.split()) for group in _TABLE["same"])
KINDS: Final = {kind: tuple(words.split()) for kind, words in _TABLE["kinds"].items()}
