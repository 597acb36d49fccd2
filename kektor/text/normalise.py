"""When two texts are the same statement, and when one is the other in disguise."""

import hashlib
import re
import unicodedata

__all__ = ["Digester", "fold", "plain", "readings", "unmask"]

# Letters that look like Latin ones once case is folded; a capital and its small letter fold to one, which is what the
# capital looks like. Only ever used to compare, so folding a whole Russian or Greek word into them is harmless as long
# as it is done on both sides.
_LOOK_ALIKES = str.maketrans(
    "авекмнорстухіјѕһԁԛԝӏѵьαβεζηικμνορτυχϲϳօսհոցյզᎪᏴᏟᎠᎬᏀᎻᎫᏦᏞᎷᏢᎡᏚᎢᏙᎳᏃᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢɑɡıɩøđłħŧƒʋ",
    "abekmhopctyxijshdqwlvbabezhikmnoptyxcjouhngjqabcdeghjklmprstvwzabcdefghijklmnoprstuvwyzagiiodlhtfv",
)
# Small letters that look like another Latin one than their capital does: the second reading of a text.
_SHAPES = str.maketrans("νηυγωσпги", "vnuywonru")
_DASHES = re.compile("[\u2010-\u2015\u2212\u2e3a\u2e3b\ufe58]")
_QUOTES = dict.fromkeys(map(ord, "’‘ʼ′`´‛"), "'") | dict.fromkeys(map(ord, "“”„‟«»″"), '"')
# Marks over and under letters of any script that leave the word what it is; the vowel signs of Indic scripts do not.
_MARKS = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f]"
)
# Characters that show nothing (DerivedCoreProperties: Default_Ignorable_Code_Point), and blanks that are no space.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_TYPED = {**_QUOTES, **dict.fromkeys(map(ord, "‐‑‒–—―−"), "-"), ord("…"): "...", ord("\u00a0"): " "}
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
_SPACES = re.compile(r"\s+")


def plain(text: str) -> str:
    """A text without what nobody means: letter case, compatibility forms, runs of white space, edge punctuation.

    >>> plain("  Dana  OWNS it. ")
    'dana owns it'
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return _trim(_SPACES.sub(" ", folded))


def unmask(text: str) -> str:
    """`plain` and also without invisible characters, accents, look-alike letters and kinds of dashes."""
    typed = _trim(_SPACES.sub(" ", text)).translate(_TYPED)
    if typed.isascii():  # most of it is, but for what an editor made of its quotes, and has nothing to unmask
        return _CONTROLS.sub("", plain(typed))
    shown = plain(_INVISIBLE.sub("", text))
    visible = "".join(char for char in shown if unicodedata.category(char) not in ("Cf", "Cc", "Co", "Cn"))
    bare = _MARKS.sub("", unicodedata.normalize("NFKD", visible)).translate(_LOOK_ALIKES).translate(_QUOTES)
    return unicodedata.normalize("NFC", "".join(map(_digit, _DASHES.sub("-", bare))))


def fold(text: str) -> str:
    """`unmask` and also without white space: equal for a text in any disguise.

    >>> fold("P\u0430ssw\u200bord: Hunter2!") == fold("password: hunter2")
    True
    """
    return _trim(_SPACES.sub("", unmask(text)))


def readings(text: str) -> tuple[str, ...]:
    """`fold`, and where it differs also of the text read by the shape of its small letters.

    A Greek nu is a capital N and a small v to the eye; a text in Greek must still fold to one in either case.

    >>> [fold("vault") in readings(disguise) for disguise in ("\u03bdault", "VAULT")]
    [True, True]
    """
    by_shape = unicodedata.normalize("NFKC", text).translate(_SHAPES)
    return tuple(dict.fromkeys(map(fold, (text, by_shape, _unmarked(text), _unmarked(by_shape)))))


def _unmarked(text: str) -> str:
    """Without what sets a text off: emphasis, headings, bullets, quotation; a sign of a number stays.

    >>> _unmarked("- **Zephyr** rises 5 % /"), _unmarked("-5")
    ('Zephyr rises 5 %', '-5')
    """
    bare = _EMPHASIS.sub("", text).strip()
    start, end = 0, len(bare)
    while start < end and (bare[start] in _SET_OFF or bare[start].isspace()):
        if bare[start] in "-+#" and bare[start + 1 : start + 2].isdigit():
            break
        start += 1
    while end > start and (bare[end - 1] in _SET_OFF or bare[end - 1].isspace()):
        if bare[end - 1] == "%" and bare[start : end - 1].rstrip()[-1:].isdigit():
            break
        end -= 1
    return bare[start:end]


_EMPHASIS = re.compile(r"[*`~]+|(?<!\w)_+|_+(?!\w)")
_SET_OFF = frozenset("-–—•·#>@/\\|=&%+^")


def _digit(char: str) -> str:
    """The digits of every script are digits."""
    return str(unicodedata.decimal(char)) if not char.isascii() and char.isdecimal() else char


def _trim(text: str) -> str:
    start, end = 0, len(text)
    while start < end and _is_edge(text[start]):
        start += 1
    while end > start and _is_edge(text[end - 1]):
        end -= 1
    # A text of nothing but punctuation is its own meaning.
    return text[start:end] or text


# Punctuation that belongs to what it stands at: -5, #tag, @name, /path, 5 %.
_MEANS_SOMETHING = frozenset("-#@/\\_%*&")


def _is_edge(char: str) -> bool:
    if char in _MEANS_SOMETHING:
        return False
    return char.isspace() or unicodedata.category(char)[0] == "P" or unicodedata.category(char) in ("Cf", "Cc")


class Digester:
    """Digests of folded texts, keyed with a secret of the database: nobody can test a guess against them."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def digest(self, *parts: str) -> bytes:
        """16 bytes, equal for texts that fold to the same.

        >>> Digester(b"k").digest("Berlin") == Digester(b"k").digest("BERLIN!")
        True
        """
        return self._hashed("\x1f".join(fold(part) for part in parts))

    def digests(self, text: str) -> tuple[bytes, ...]:
        """`digest` of a text first, then of its other readings."""
        return tuple(map(self._hashed, readings(text)))

    def exact(self, *parts: str | bytes) -> bytes:
        """16 bytes of parts taken to the letter, for identities."""
        hashed = hashlib.blake2b(key=self._secret, digest_size=16)
        for part in parts:
            encoded = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
            hashed.update(len(encoded).to_bytes(8, "little") + encoded)
        return hashed.digest()

    def _hashed(self, folded: str) -> bytes:
        return hashlib.blake2b(folded.encode("utf-8", "surrogatepass"), key=self._secret, digest_size=16).digest()
