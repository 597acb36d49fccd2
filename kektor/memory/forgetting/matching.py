"""What a request to forget is about, and whether a sentence is: identifiers whole, names as names, the rest by stems.

Deterministic and without a model. Where the rules are not sure they leave a sentence alone: a preview shows what goes,
and what stays can be asked for again.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from kektor.memory.forgetting.clauses import clauses, joined
from kektor.memory.forgetting.identifiers import identifiers, spelled
from kektor.memory.forgetting.lexicon import (
    DISLIKING,
    ENGLISH,
    FILLERS,
    KINDS,
    LABELS,
    MONTHS_AND_DAYS,
    NEGATORS,
    OPENERS,
    PLACES,
    SAME,
    TIMES,
    TITLES,
    VERBS,
    WORDS_THAT_ARE_NAMES,
)
from kektor.text import Span, held, sentences, unmask

__all__ = ["Told", "Topic", "read_topic"]

_LEADS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?:please|kindly|just|can you|could you|would you|i want you to|you should|you must|go ahead and)\s+",
        r"(?:forget|delete|erase|remove|drop|wipe|clear|purge|redact)(?:\s+(?:about|out|off|away))?(?:\s+|$)",
        r"(?:everything|anything|all|whatever|what|things?|every (?:fact|memory|note|thing))(?:\s+of)?"
        r"(?:\s+(?:that|which))?"
        r"(?:\s+(?:i|we|you|he|she|they|anyone|anybody|somebody|people))?"
        r"(?:\s*(?:['’]ve|have|has|had|ever|just|already|may|might))*"
        r"(?:\s+(?:said|say|told|tell|knew|know|learned|remembers?|saved|stored|mentioned|mentions?|wrote|kept|have"
        r"|recorded|noted|there is|is there|is stored|concerns?|involves?|contains?))?"
        r"(?:\s+to)?(?:\s+(?:you|me))?(?:\s+|$)",
        r"(?:the\s+|any\s+|your\s+|my\s+(?=(?:note|memor|message)))?"
        r"(?:facts?|memory|memories|notes?|information|info|data|details?|records?|statements?|messages?|entries|entry|mentions?|references?|conversations?)\s+(?=(?:that|which|about|of|on|regarding|concerning"
        r"|mentioning|with|containing|to|for|from|related|involving|in)\b)(?:that\s+|which\s+)?(?:mentions?\s+|contains?\s+)?",
        r"(?:about|regarding|concerning|mentioning|related to|involving|containing|to do with|of|on|with|for)\s+",
        r"(?:the fact\s+)?that\s+",
    )
)
_ABOUT, _THAT = _LEADS[4], _LEADS[5]
_WORD = re.compile(r"[^\W_](?:[\w'’-]*[^\W_])?")
_POSSESSIVE = re.compile(r"['’]s?$")
_OR = re.compile(r"\s*(?:,\s*(?:and|or)\s+|[,;&]\s*|\s+(?:and|or)\s+)", re.IGNORECASE)
_WHEN = re.compile(r"\b(before|after|since|until)\s+(?:the year\s+)?((?:19|20)\d\d)\b", re.IGNORECASE)
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_OWN = re.compile(r"\b(?:my|mine|i|me|i['’]m|i['’]ve|our|the user(?:['’]s)?|user(?:['’]s)?)\b", re.IGNORECASE)
_REFERS = re.compile(r"(?:he|she|they|his|her|their|him|them)\b", re.IGNORECASE)
_UNCASED = re.compile(
    r"[\u0900-\u0dff\u0e00-\u0eff\u0600-\u06ff\u0590-\u05ff\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)
_NO_SPACES = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_ENDINGS = "а|у|ом|е|ы|и|ой|ою|ем|ём|ю|я|ей|ой"
_LOWER = frozenset({
    "I", "The", "A", "An", "My", "Our", "Your", "His", "Her", "Its", "Their", "This", "That", "These", "Those",
})  # fmt: skip


class Told(NamedTuple):
    """Where a text is about a topic, and what it says without that; `left` is empty when all of it is."""

    spans: list[Span]
    left: str


class _Need(NamedTuple):
    """What a sentence must hold, all of it."""

    identifiers: tuple[frozenset[str], ...]
    names: tuple[tuple[str, ...], ...]
    words: tuple[frozenset[str], ...]
    """Of each at least one stem."""
    uncased: tuple[str, ...]
    years: tuple[tuple[str, int], ...]
    negative: bool | None
    """The polarity of a statement; None for a topic."""
    own: bool

    @property
    def only_names(self) -> bool:
        return bool(self.names or self.identifiers or self.uncased) and not self.words and self.negative is None


class Topic:
    """A request that was read; a sentence is about it when it meets any of the alternatives."""

    def __init__(self, needs: tuple[_Need, ...], language: str) -> None:
        self._needs = needs
        self._language = language

    def told_in(self, text: str, *, user: str = "") -> Told:
        """Which sentences of a text, or which of the statements in one, are about it; `user` is whose "my" it is."""
        if not any(_possible(text, need, self._language) for need in self._needs):
            return Told([], text)
        gone: list[Span] = []
        left: list[str] = []
        followed = False
        for span in sentences(text):
            said = text[span.start : span.end]
            parts = clauses(said, span.start)
            meant = [part for part in parts if self._meets(part.text, user)]
            if not meant and (self._meets(said, user) or (followed and self._goes_on(said))):
                meant = parts
            followed = bool(meant)
            if len(meant) == len(parts):
                gone.append(span)
            elif meant:
                gone += [part.span for part in meant]
                left.append(joined([part.text for part in parts if part not in meant]))
            else:
                left.append(said)
        return Told(gone, " ".join(left))

    def named_in(self, values: Iterable[str]) -> bool:
        """Whether short texts beside a statement (tags, metadata) name what it is about."""
        return any(need.only_names and self._has(value, need, "") for value in values for need in self._needs)

    def _meets(self, said: str, user: str) -> bool:
        return any(self._has(said, need, user) for need in self._needs)

    def _goes_on(self, said: str) -> bool:
        """A sentence that begins with a pronoun speaks of whom the one before spoke."""
        return _REFERS.match(said) is not None and any(need.only_names for need in self._needs)

    def _has(self, said: str, need: _Need, user: str) -> bool:
        if need.identifiers:
            known = _identified(said)
            if not all(known & names for names in need.identifiers):
                return False
        if not all(_speaks_of(said, name) for name in need.names):
            return False
        if not all(_holds_uncased(said, word) for word in need.uncased):
            return False
        if need.years and not _in_years(said, need.years):
            return False
        if need.words:
            stems = _stems(said, self._language) | _kinds_of(said)
            if not all(stems & one for one in need.words):
                return False
        if need.own and not need.names and _of_another(said, need, user):
            return False
        return need.negative is None or need.negative == _is_negative(said)


def read_topic(query: str, language: str) -> Topic:
    """Read what somebody wants forgotten.

    >>> topic = read_topic("Forget everything about Frank", "english")
    >>> topic.told_in("Frank moved to Riga. We had a frank discussion.").left
    'We had a frank discussion.'
    """
    rest, about, states = _without_leads(query.strip())
    if not states:
        parts = [part for part in _OR.split(rest) if part.strip()]
        needs = tuple(_need(part, language, about=about, statement=False) for part in parts)
        if len(parts) > 1 and all(need.only_names for need in needs):
            return Topic(needs, language)
    return Topic((_need(rest, language, about=about, statement=states),), language)


def _without_leads(query: str) -> tuple[str, bool, bool]:
    """What is left of a request without its opening words; whether they said "about", and whether "that"."""
    rest, about, states = query.rstrip("?!. \t\n"), False, False
    going = True
    while going:
        going = False
        for lead in _LEADS:
            found = lead.match(rest)
            if found is None or found.end() == 0:
                continue
            if lead is _THAT or (lead is _LEADS[1] and re.match(r"that\s", rest[found.end() :], re.IGNORECASE)):
                states = states or lead is _THAT
            about = about or lead in (_ABOUT, _LEADS[2], _LEADS[3])
            shorter = rest[found.end() :]
            if not shorter.strip():
                return rest, about, states
            rest, going = shorter, True
            break
    return rest, about, states and not about


def _need(rest: str, language: str, *, about: bool, statement: bool) -> _Need:
    years = tuple((word.casefold(), int(year)) for word, year in _WHEN.findall(rest))
    rest_without_years = spelled(_WHEN.sub(" ", rest))
    known = _identified(rest_without_years)
    spans = _identifier_words(rest_without_years)
    names = _names(rest_without_years, spans, about=about)
    inside = {word.casefold() for name in names for word in name}
    uncased = tuple(word for word in _UNCASED.findall(rest_without_years) if len(word) > 1 or _NO_SPACES.match(word))
    grouped = _grouped(rest_without_years, spans) if known else ()
    labelled = any(not name.startswith(("n:", "date:")) for names in grouped for name in names)
    words = []
    for match in _WORD.finditer(rest_without_years):
        word = _POSSESSIVE.sub("", match[0])
        if any(start <= match.start() < end for start, end in spans) or _UNCASED.search(word):
            continue
        plain = word.casefold().replace("’", "'")
        if plain in inside or plain in FILLERS or plain in NEGATORS or plain.endswith("n't") or plain == "longer":
            continue
        if plain in LABELS and labelled:
            continue
        stems = _asked(word.casefold(), language)
        if stems:
            words.append(stems)
    return _Need(
        identifiers=grouped,
        names=names,
        words=tuple(dict.fromkeys(words)),
        uncased=uncased,
        years=years,
        negative=_is_negative(rest) if statement else None,
        own=_OWN.search(rest) is not None,
    )


def _identifier_words(text: str) -> list[tuple[int, int]]:
    """Where identifiers stand: runs of what is no plain word, joined where only one whole gives a name."""
    found = []
    for match in re.finditer(r"\S+", text):
        word = match[0].strip(".,;:!?\"“”()[]'’")
        bare = _POSSESSIVE.sub("", word)
        if re.fullmatch(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*", bare):
            continue
        if _identified(word):
            found.append((match.start(), match.end()))
    return found


def _grouped(text: str, spans: list[tuple[int, int]]) -> tuple[frozenset[str], ...]:
    """The names of each identifier. Written in several runs (a telephone number, a spelled-out address) it is one."""
    whole = _identified(text)
    runs: list[tuple[int, int]] = []
    for start, end in spans:
        if runs and not re.search(r"[^\W\d_]", text[runs[-1][1] : start]):
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((start, end))
    groups = []
    for start, end in runs:
        names = _identified(text[start:end])
        long = frozenset(name for name in names if not name.startswith(("n:", "host:"))) or names
        groups.append(_strongest(long))
    mails = frozenset(name for name in whole if name.startswith("mail:"))
    if mails and not any(mails & group for group in groups):
        return (mails,)
    spaced = frozenset(name for name in whole if re.fullmatch(r"[a-z]{2,12}-\d+(?:-\d+)*", name))
    if len(groups) == 1 and all(name.startswith("n:") for name in groups[0]) and spaced and _looks_coded(text):
        return (spaced,)
    return tuple(groups)


def _strongest(names: frozenset[str]) -> frozenset[str]:
    """Of a date the most exact form, of others all."""
    days = frozenset(name for name in names if re.fullmatch(r"date:\d+-\d+-\d+", name))
    months = frozenset(name for name in names if name.startswith("date:"))
    return days or months or names


def _looks_coded(text: str) -> bool:
    """Capitals before a number are a code of two parts: TKT 100."""
    return re.search(r"\b[A-Z]{2,8} \d+\b", text) is not None


@lru_cache(8192)
def _identified(text: str) -> frozenset[str]:
    return identifiers(text)


def _names(rest: str, spans: list[tuple[int, int]], *, about: bool) -> tuple[tuple[str, ...], ...]:
    """Runs of capitalised words. A first word counts as one too, unless it opens a sentence of plain words."""
    words = [
        match
        for match in _WORD.finditer(rest)
        if not any(start <= match.start() < end for start, end in spans) and not _UNCASED.search(match[0])
    ]
    names: list[list[str]] = []
    last_end = -1
    for number, match in enumerate(words):
        word = _POSSESSIVE.sub("", match[0])
        if not word[0].isupper() or word in _LOWER or word.casefold() in FILLERS:
            continue
        opens = match.start() == 0 and not about and len(words) > 1
        if opens and not (match[0] != word or words[1][0][0].isupper() or words[1][0].casefold() in VERBS):
            continue
        if number and match.start() == last_end + 1 and names:
            names[-1].append(word)
        else:
            names.append([word])
        last_end = match.end() if match[0] == word else -1
    return tuple(map(tuple, names))


def _possible(text: str, need: _Need, language: str) -> bool:
    """Whether a text might hold what is needed: quick, and never wrong when it says no."""
    typed = text.translate(_TYPED)
    if typed.isascii():
        low = typed.casefold()
        if any(word.isascii() and word.casefold() not in low for name in need.names for word in name):
            return False
        bare = _NOT_ALNUM.sub("", low)
        if not all(any(_hint(name) in bare for name in names) for names in need.identifiers):
            return False
    if not need.words:
        return True
    stems = held(_OWNED.sub("", text), language)
    return all(
        stems & one
        or ("phone" in one and sum(map(str.isdigit, text)) >= 7)
        or ("email" in one and _ADDRESSED.search(text) is not None)
        for one in need.words
    )


_ADDRESSED = re.compile(r"@|＠|\bat\b", re.IGNORECASE)
_TYPED = dict.fromkeys(map(ord, "’‘“”‐‑‒–—―…\u00a0"), " ")
_NOT_ALNUM = re.compile(r"[^a-z0-9]")
_OWNED = re.compile(r"['’]s\b")


def _hint(name: str) -> str:
    """A part of an identifier that every spelling of it has."""
    kind, _, rest = name.rpartition(":")
    if kind == "mail":
        rest = rest.partition("@")[0]
    elif kind == "digits":
        rest = rest[-4:]
    elif kind == "date":
        rest = rest[:4]
    return _NOT_ALNUM.sub("", rest)


def _speaks_of(said: str, name: tuple[str, ...]) -> bool:
    """Whether a sentence names somebody or something by that name, and not something else by the same letters."""
    said, name = _bare(said), tuple(map(_bare, name))
    pattern = r"[ \t]+".join(map(_inflected, name))
    for match in re.finditer(rf"(?<![\w@./#-]){pattern}(?![\w@/]|[-.]\w)", said, re.IGNORECASE):
        if _is_the_name(said, match, name):
            return True
    if len(name) == 2:
        reverse = rf"(?<![\w@.-]){re.escape(name[1])},\s+{re.escape(name[0])}(?![\w@-])"
        return re.search(reverse, said, re.IGNORECASE) is not None
    return False


def _bare(text: str) -> str:
    """Without accents, every character in its place."""
    return "".join(unicodedata.normalize("NFD", char)[0] for char in unicodedata.normalize("NFC", text))


def _inflected(word: str) -> str:
    """The word; of a Cyrillic name also its cases."""
    if re.fullmatch(r"[А-Яа-яЁё]+", word):
        stem = re.sub(r"[аяйь]$", "", word)
        return rf"{re.escape(stem)}(?:{_ENDINGS}|[йь])?"
    return "".join(_look_alike(char) for char in word)


def _look_alike(char: str) -> str:
    other = {"a": "а", "e": "е", "o": "о", "p": "р", "c": "с", "x": "х", "y": "у", "i": "і"}.get(char.casefold())
    return re.escape(char) if other is None else f"[{char}{other}{other.upper()}]"


def _is_the_name(said: str, match: re.Match[str], name: tuple[str, ...]) -> bool:
    before = _WORD.findall(said[: match.start()])
    following = said[match.end() :]
    after = _WORD.match(following.lstrip()) if following[:1].isspace() else None
    next_word = "" if after is None else after[0]
    place = next_word[:1].isupper() and next_word.casefold().rstrip(".") in PLACES
    if place and (len(name) == 1 or next_word != "City"):
        return False
    if before and said[: match.start()].endswith(" ") and _given_name(before) and len(name) == 1:
        return False
    if len(name) > 1 or name[0].casefold() not in WORDS_THAT_ARE_NAMES:
        return True
    if not ENGLISH & {word.casefold() for word in _WORD.findall(said)} and match[0][0].isupper():
        return True
    if name[0].casefold() in MONTHS_AND_DAYS and (
        (before and before[-1].casefold() in TIMES) or re.match(r"\s+\d", following)
    ):
        return False
    return _acts(said, match, before, following, next_word)


def _given_name(before: list[str]) -> bool:
    """Whether the word before makes this the second part of another name."""
    word = before[-1]
    if not word[0].isupper() or word.casefold() in TITLES or word.casefold() in VERBS or len(word) < 2:
        return False
    if len(before) == 1:  # it opens the sentence, where every word has a capital
        return word.casefold() not in FILLERS and not re.search(r"(?:ing|ly)$", word) and word.casefold() not in OPENERS
    return not word.isupper()


def _acts(said: str, match: re.Match[str], before: list[str], following: str, next_word: str) -> bool:
    """A name that is a plain word too is one where it stands as people do: with a capital, owning, or doing."""
    possessive = following[:2] in ("'s", "’s")
    rest = _WORD.findall(following)
    third = rest[1].casefold() if len(rest) > 1 else ""
    verb = next_word.casefold() in VERBS or (
        next_word.islower() and next_word.endswith(("s", "ed")) and third not in VERBS and match[0][0].isupper()
    )
    capital = match[0][0].isupper()
    if possessive:
        return capital or bool(before)
    if capital and before and not _begins_sentence(said, match.start()):
        return True
    previous = before[-1].casefold() if before else ""
    described = previous in {"a", "an", "the", "very", "so", "more", "be", "is", "was", "been", "being", "my", "to"}
    if verb and not described:
        return True
    ends = not next_word and not before
    return capital and (ends or following[:1] in ",:" or next_word.casefold() in {"and", "who"})


def _begins_sentence(said: str, at: int) -> bool:
    head = said[:at].rstrip(" \t\"'“‘([*-•")
    return not head or head[-1] in ".!?:\n"


def _holds_uncased(said: str, word: str) -> bool:
    plain, wanted = unmask(said), unmask(word)
    if _NO_SPACES.search(word):
        return wanted in plain
    return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", plain) is not None


def _in_years(said: str, wanted: tuple[tuple[str, int], ...]) -> bool:
    years = [int(year) for year in _YEAR.findall(said)]
    tests = {
        "before": lambda year, limit: year < limit,
        "until": lambda year, limit: year <= limit,
        "after": lambda year, limit: year > limit,
        "since": lambda year, limit: year >= limit,
    }
    return bool(years) and all(any(tests[word](year, limit) for year in years) for word, limit in wanted)


@lru_cache(8192)
def _stems(said: str, language: str) -> frozenset[str]:
    return held(re.sub(r"['’]s\b", "", said), language)


def _kinds_of(said: str) -> frozenset[str]:
    """What an identifier is, where no word says so."""
    known = _identified(said)
    kinds = (("digits:", "phone"), ("mail:", "email"))
    return frozenset(kind for prefix, kind in kinds if any(name.startswith(prefix) for name in known))


@lru_cache(2048)
def _asked(word: str, language: str) -> frozenset[str]:
    """The stems that answer to a word: its own, and those of the things it is a word for."""
    own = frozenset(held(word, language))
    for words in SAME:
        group = frozenset(stem for other in words for stem in held(other, language))
        if own & group:
            own |= group
    for kind, words in KINDS.items():
        if held(kind, language) & frozenset(held(word, language)):
            own |= frozenset(stem for other in words for stem in held(other, language))
    return own


def _of_another(said: str, need: _Need, user: str) -> bool:
    """Whether a statement without "I" or "my" is about somebody by name, when the user's own is meant."""
    if _OWN.search(said) or (user and _speaks_of(said, (user,))):
        return False
    owner = re.search(r"\b([A-Z][\w-]+)['’]s\b", said)
    first = _WORD.match(said)
    second = _WORD.match(said[first.end() :].lstrip()) if first else None
    acts = first is not None and second is not None and second[0].casefold() in VERBS
    named = acts and first is not None and first[0][0].isupper() and not _stems(first[0], "english") & _all(need.words)
    return owner is not None or (named and first is not None and first[0] not in _LOWER)


def _all(groups: tuple[frozenset[str], ...]) -> frozenset[str]:
    return frozenset().union(*groups)


def _is_negative(said: str) -> bool:
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(said)]
    negators: int = sum(word in NEGATORS or word.endswith("n't") for word in words)
    return (negators + bool(DISLIKING & set(words))) % 2 == 1
