"""From a sentence to the statement it makes."""

import re
from functools import lru_cache
from typing import NamedTuple

from kektor.memory.claims.dates import take_dates
from kektor.memory.claims.statement import Statement, words_of
from kektor.memory.claims.tables import default_single_valued, english, negators

__all__ = ["Token", "declared", "head_of_clause", "predicate_of", "statement_of", "tokens_of", "verb_at"]

_LONGEST = 400
_SENTENCE_END = re.compile(r"(?<![A-Z])(?<!\b[A-Z][a-z])(?<!\b(?:Mrs|Inc|Ltd|etc))[.!?]+[\"”’)]*\s+(?=\S)|\n\s*\S")
_CLAUSE_END = re.compile(r";|, (?:and|but|so|yet|which|who|because|although|while)\b| (?:because|although)\b")
_UNKNOWN_WHO = frozenset({
    "he", "she", "it", "they", "you", "this", "that", "these", "those", "there", "one", "who", "someone", "somebody",
    "everyone", "everybody", "nobody", "what",
})  # fmt: skip
_THEIRS = frozenset({"his", "her", "its", "their", "your"})
_SELF = frozenset({"i", "me", "myself", "the user", "user"})
_CANNOT = frozenset({"stand", "bear", "abide"})
_STATES_OF = frozenset({"for", "to", "of", "with", "at", "in", "by", "from", "about", "on"})


class Token(NamedTuple):
    """A word as it compares, as it is written, and where; `ends` when a comma or the like follows."""

    word: str
    raw: str
    start: int
    end: int
    ends: bool


def declared(subject: str, predicate: str, object: str) -> Statement:
    """A claim that a caller took apart, as it compares with what is read from sentences."""
    return Statement(
        subject=_bare(subject),
        predicate=predicate_of(predicate),
        object=_bare(object),
        tail=object,
        past=None,
        named=object[:1].isupper() or object[:1].isdigit(),
    )


def statement_of(text: str) -> Statement | None:
    """What a text of one sentence states; None when it is more than one or the rules do not understand it.

    >>> statement_of("The staging server listens on port 8080.")[:3]
    ('staging server', 'listen on port', '8080')
    >>> statement_of("Dana can't stand coriander")[:3], statement_of("Dana's employer is not Acme").negative
    (('dana', "can't stand", 'coriander'), True)
    """
    sentence = text.strip().rstrip(".!")
    return None if len(sentence) > _LONGEST else _read(sentence)


@lru_cache(4096)
def _read(sentence: str) -> Statement | None:
    if not sentence or sentence.endswith("?") or _SENTENCE_END.search(sentence):
        return None
    return _read_english(sentence) or _read_any(sentence)


def predicate_of(words: str) -> str:
    """How a predicate compares: the verb in its base form, without what only links it to the subject.

    >>> predicate_of("lives in"), predicate_of("is born in"), predicate_of("phone number")
    ('live in', 'born in', 'phone number')
    """
    table = english()
    parts = words_of(words)
    while len(parts) > 1 and parts[0] in table.copula_present | table.determiners | {"be", "has", "was"}:
        parts = parts[1:]
    if len(parts) > 1 and parts[1] in table.prepositions and parts[0] in table.third:
        parts = [table.third[parts[0]], *parts[1:]]
    elif len(parts) == 1 and parts[0] in table.third:
        parts = [table.third[parts[0]]]
    return " ".join(parts)


def tokens_of(sentence: str) -> list[Token]:
    """Words with contractions taken apart: "doesn't" is "does" and "not", "Dana's" is "Dana" and "'s"."""
    found: list[Token] = []
    for match in re.finditer(r"\S+", sentence):
        raw = match[0].replace("’", "'")
        left = len(raw) - len(raw.lstrip("\"'“‘(["))
        kept = raw[left:].rstrip(",;:\"'”)].!?—–")
        if not kept:
            continue
        start = match.start() + left
        ends = raw[left + len(kept) :].strip(".'\"”") != ""
        found += _parts(kept, start, ends)
    return found


def verb_at(tokens: list[Token], at: int, *, inside: bool = False) -> bool:
    """Whether the word at a place can be the verb of a clause; `inside` one that "who" or "that" begins."""
    table = english()
    token, before = tokens[at], tokens[at - 1].word if at else ""
    if not token.raw[:1].islower() and token.raw[:1] != "'":
        return False
    if token.word == "'s":
        return before in ("it", "he", "she", "that", "who", "what", "there")
    if before == "to" or token.word in ("not", "to"):
        return False
    if _helps(token.word):
        return True
    if inside and token.word in table.third.keys() | table.past.keys():
        return True
    if before in table.determiners | table.possessives | table.prepositions | {"'s"}:
        return False
    after = tokens[at + 1].word if at + 1 < len(tokens) else ""
    if _helps(after) and after not in ("have", "has", "had", "do", "does", "did"):
        return False
    if token.word in table.third or token.word in table.past:
        return True
    plural = before in ("i", "you", "we", "they") or before in table.adverbs or before.endswith("s")
    return token.word in table.base and plural


def head_of_clause(tokens: list[Token]) -> int | None:
    """Where the verb of a clause stands, whose subject comes before it."""
    return _main_verb(tokens)


def _read_english(sentence: str) -> Statement | None:
    sentence, since, until = take_dates(sentence)
    tokens = _without_opening(tokens_of(sentence))
    at = _main_verb(tokens)
    if at is None:
        return None
    table = english()
    head, negative = tokens[:at], False
    while head and (head[-1].word in table.adverbs or head[-1].word in ("never", "longer", "no", "hardly", "not")):
        negative ^= head[-1].word in ("never", "no", "not", "hardly")
        head = head[:-1]
    group = _Group(tokens, at)
    if not head or not group.read():
        return None
    subject = _subject(head, group)
    if subject is None:
        return None
    who, predicate = subject
    rest = sentence[tokens[group.at].start :] if group.at < len(tokens) else ""
    kept = _closing(rest)
    first = kept.split(" ", 1)[0].casefold()
    if first in table.negative_determiners:
        negative, kept = not negative, kept[len(first) :].strip()
    value = _CLAUSE_END.split(kept, maxsplit=1)[0]
    return Statement(
        subject=who,
        predicate=predicate,
        object=_bare(value),
        tail=kept,
        negative=negative ^ group.negative,
        event=group.event,
        past=group.past,
        named=value[:1].isupper() or value[:1].isdigit(),
        since=since,
        until=until,
    )


class _Group:
    """The words from the verb to the object: what is said of the subject, and how."""

    def __init__(self, tokens: list[Token], at: int) -> None:
        self.tokens = tokens
        self.at = at
        self.predicate = ""
        self.negative = self.event = self.past = self.links = False

    def read(self) -> bool:
        """Take the group in; False when it is none the rules know."""
        table = english()
        word = self._word()
        if self._stopped():
            return True
        if word in table.copula_present | table.copula_past:
            self.past = word in table.copula_past
            self._step()
            return self._state()
        if word in ("do", "does", "did") and self._helps_another():
            self.event = word == "did"
            return self._lexical(table.base)
        if word in ("have", "has", "had", "'ve"):
            return self._having()
        if word in table.modals:
            return self._modal(word)
        if word == "used" and self._word(1) == "to":
            self.event = True
            self._step(2)
            return self._lexical(table.base)
        self.event = word in table.past
        return self._lexical({**table.base, **table.past, **table.third})

    def _state(self) -> bool:
        """After "is": what the subject is, is doing, or is to something."""
        table = english()
        self._skip()
        word, after = self._word(), self._word(1)
        if not word:
            return False
        if word in table.progressive and not self.tokens[self.at].ends and self.tokens[self.at].raw.islower():
            self.event = self.past
            return self._lexical(table.progressive)
        joined = after in table.prepositions and not self.tokens[self.at].ends
        if word in table.participle and joined:
            self.predicate = f"{word} {after}"
            self._step(2)
        elif (of := self._role()) is not None:
            self.predicate, self.at = of
        elif joined and after in _STATES_OF and self._describes(word):
            self.predicate = f"{word} {after}"
            self._step(2)
        if not self.predicate and word in table.prepositions:
            self.predicate = f"be {word}"
            self._step()
        if not self.predicate:
            self.predicate, self.links = "be", True
        return True

    def _describes(self, word: str) -> bool:
        """Whether a word may be an adjective."""
        return self.tokens[self.at].raw.islower() and word not in english().determiners | english().prepositions

    def _role(self) -> tuple[str, int] | None:
        """ "(the) owner of" and where its object begins."""
        at = self.at + (self._word() in english().determiners)
        for end in range(at + 1, min(at + 4, len(self.tokens) - 1)):
            words = self.tokens[at:end]
            if not all(token.raw.islower() and not token.ends for token in words):
                return None
            if self.tokens[end].word == "of":
                return " ".join(token.word for token in words) + " of", end + 1
        return None

    def _having(self) -> bool:
        """ "has lived in" tells of the past, "has been" of a state, "has" alone of what somebody has."""
        table = english()
        had = self._word() == "had"
        self._step()
        self._skip()
        if self._word() == "been":
            self._step()
            self.past = had
            return self._state()
        if self._word() in table.participle and self._word() != "got" and self.tokens[self.at].raw.islower():
            self.event = True
            return self._lexical(table.participle)
        if self._word() == "got":
            self._step()
        self.event = had
        at = self.at + (self._word() in table.determiners)
        noun = _noun_at(self.tokens, at)
        if noun:
            self.predicate = noun
            self.at = at + len(noun.split()) + (self._at(at + len(noun.split())) == "of")
        else:
            self.predicate = "have"
        return self.at < len(self.tokens)

    def _modal(self, modal: str) -> bool:
        table = english()
        self._step()
        self._skip()
        if modal in ("can", "could") and self.negative and self._word() in _CANNOT:
            self.predicate, self.negative = f"can't {self._word()}", False
            self._step()
            return True
        if self._word() == "be":
            self.event = modal not in ("can", "must")
            self._step()
            done = self._state()
        else:
            self.event = modal not in ("can", "must")
            done = self._lexical(table.base)
        if modal in ("can", "must") and done:
            self.predicate = f"{modal} {self.predicate}"
        return done

    def _lexical(self, forms: dict[str, str]) -> bool:
        """A verb with its preposition, and with the noun that the object is a value of."""
        self._skip()
        if self._word() not in forms:
            return False
        token = self.tokens[self.at]
        self.predicate = forms[token.word]
        self._step()
        if not token.ends:
            self._skip()
            if self._word() in english().prepositions:
                self.predicate += f" {self._word()}"
                self._step()
            noun = _noun_at(self.tokens, self.at)
            if noun:
                self.predicate += f" {noun}"
                self._step(len(noun.split()))
        return True

    def _stopped(self) -> bool:
        """ "stopped eating meat" denies "eats meat"; "stopped the server" does not."""
        table = english()
        for phrase in table.negators:
            if self.tokens[self.at].word == phrase[0] and self._phrase(phrase):
                following = self._word(len(phrase))
                forms = table.base if phrase[-1] == "to" else table.progressive
                if following in forms:
                    self._step(len(phrase))
                    self.negative = True
                    return self._lexical(forms)
        return False

    def _skip(self) -> None:
        """Over adverbs and negators, which are noted."""
        table = english()
        while self.at < len(self.tokens):
            for phrase in table.negators:
                if self._phrase(phrase) and phrase[0] in ("not", "never", "no", "hardly", "neither", "cannot"):
                    self.negative = not self.negative
                    self._step(len(phrase))
                    break
            else:
                word = self._word()
                if word not in table.adverbs or self.at + 1 >= len(self.tokens):
                    return
                self._step()

    def _helps_another(self) -> bool:
        """Whether "does" stands before another verb, past negators and adverbs."""
        before = self.at
        self._step()
        self._skip()
        if self._word() in english().base:
            return True
        self.at, self.negative = before, False
        return False

    def _phrase(self, words: tuple[str, ...]) -> bool:
        return all(self._word(offset) == word for offset, word in enumerate(words))

    def _step(self, count: int = 1) -> None:
        self.at += count

    def _word(self, offset: int = 0) -> str:
        return self._at(self.at + offset)

    def _at(self, place: int) -> str:
        return self.tokens[place].word if 0 <= place < len(self.tokens) else ""


def _main_verb(tokens: list[Token]) -> int | None:
    """The verb of the main clause: what follows "who", "which" or "where" in the subject has a verb of its own."""
    table = english()
    at, inside = 1, False
    while at < len(tokens):
        if tokens[at].word in table.relative and not verb_at(tokens, at):
            inside = True
        elif verb_at(tokens, at, inside=inside):
            if not inside:
                return at
            inside = False
            at = _group_end(tokens, at)
        at += 1
    # Without another verb "Dana's" may be "Dana is".
    bare = [at for at in range(1, len(tokens) - 1) if tokens[at].word == "'s"]
    return bare[0] if bare and not inside else None


def _group_end(tokens: list[Token], at: int) -> int:
    """The last word of the verb that begins at a place."""
    table = english()
    while at + 1 < len(tokens) and (
        tokens[at + 1].word in table.participle
        or tokens[at + 1].word in ("not", "been")
        or tokens[at + 1].word in table.base
    ):
        at += 1
    return at


def _subject(head: list[Token], group: _Group) -> tuple[str, str] | None:
    """Who or what it is about, and the predicate: an attribute of something is said of that thing."""
    words = [token.word for token in head]
    table = english()
    if words[0] in _THEIRS or (len(words) == 1 and words[0] in _UNKNOWN_WHO):
        return None
    if not group.links:
        return _who(words), group.predicate
    if words[0] == "my" and len(words) > 1:
        return "i", " ".join(words[1:])
    if "'s" in words[1:-1]:
        at = words.index("'s")
        return _who(words[:at]), " ".join(words[at + 1 :])
    start = int(words[0] in table.determiners)
    if "of" in words[start + 1 : start + 4]:
        at = words.index("of", start)
        if all(token.raw.islower() for token in head[start:at]) and at + 1 < len(words):
            return _who(words[at + 1 :]), " ".join(words[start:at])
    noun = next((noun for noun in _nouns() if words[-len(noun) :] == list(noun)), None)
    if noun is not None and len(words) - len(noun) > start:
        return _who(words[: -len(noun)]), " ".join(noun)
    return _who(words), group.predicate


def _who(words: list[str]) -> str:
    joined = " ".join(words)
    return "i" if joined in _SELF else _bare(joined)


def _nouns() -> list[tuple[str, ...]]:
    """Nouns that name an attribute, longest first."""
    table = english()
    split = [tuple(entry.split()) for entry in default_single_valued()]
    nouns = [words for words in split if words[0] not in table.third and words[0] != "is" and words[-1] not in ("of",)]
    return sorted(nouns, key=len, reverse=True)


def _noun_at(tokens: list[Token], at: int) -> str:
    """The attribute named at a place whose value follows."""
    for noun in _nouns():
        end = at + len(noun)
        if tuple(token.word for token in tokens[at:end]) == noun and end < len(tokens) and not tokens[end - 1].ends:
            return " ".join(noun)
    return ""


def _without_opening(tokens: list[Token]) -> list[Token]:
    """Without what only introduces the sentence: "Currently", "As of today,"."""
    table = english()
    while len(tokens) > 2 and (tokens[0].word in table.adverbs or tokens[0].word in ("and", "but", "so", "well")):
        tokens = tokens[1:]
    if tokens and tokens[0].word in table.prepositions:
        for at, token in enumerate(tokens[:6]):
            if token.ends and len(tokens) - at > 2:
                return tokens[at + 1 :]
    return tokens


def _closing(rest: str) -> str:
    """The object without closing words that say no more: the "not" of "not any more" stands at the verb."""
    kept = rest.strip().rstrip(".!")
    for words in (*english().closing_negators, "now", "currently", "today", "nowadays", "these days", "too"):
        if f" {kept.casefold()}".endswith(f" {words}"):
            kept = kept[: len(kept) - len(words)].strip().rstrip(",")
    return kept


def _bare(text: str) -> str:
    """Words that compare, without the article in front."""
    words = words_of(text)
    if len(words) > 1 and words[0] in ("the", "a", "an"):
        words = words[1:]
    return " ".join(words)


def _read_any(sentence: str) -> Statement | None:
    """A sentence of any language: all of it, without what negates it."""
    table = negators()
    text = " ".join(words_of(sentence)) if " " in sentence else sentence.strip("。！.! ")
    count = 0
    for ending, other in table.endings.items():
        if text.endswith(ending):
            text, count = text[: -len(ending)] + other, 1
            break
    for part in table.inside:
        if part in text:
            text, count = text.replace(part, ""), count + text.count(part)
    padded = f" {text} "
    for words in table.words:
        found = padded.count(f" {words} ")
        if found:
            padded, count = padded.replace(f" {words} ", " "), 1
    kept = []
    for word in padded.split():
        count += word in table.instead
        kept.append(table.instead.get(word, word))
    joined = " ".join(kept)
    return Statement(joined, "", "", negative=count % 2 == 1) if joined else None


def _helps(word: str) -> bool:
    table = english()
    return (
        word in table.copula_present
        or word in table.copula_past
        or word in table.modals
        or word in ("do", "does", "did", "have", "has", "had", "'ve")
    )


def _parts(kept: str, start: int, ends: bool) -> list[Token]:
    lower = kept.casefold()
    whole = {"can't": ("can", "not"), "won't": ("will", "not"), "cannot": ("can", "not"), "shan't": ("shall", "not")}
    if lower in whole:
        return [Token(word, word, start, start + len(kept), ends) for word in whole[lower]]
    for clitic in ("n't", "'s", "'m", "'re", "'ve", "'ll", "'d"):
        if lower.endswith(clitic) and len(lower) > len(clitic):
            cut = len(kept) - len(clitic)
            second = "not" if clitic == "n't" else clitic
            return [
                Token(_folded(kept[:cut]), kept[:cut], start, start + cut, False),
                Token(second, second, start + cut, start + len(kept), ends),
            ]
    return [Token(_folded(kept), kept, start, start + len(kept), ends)]


def _folded(word: str) -> str:
    words = words_of(word)
    return " ".join(words) if words else word.casefold()
