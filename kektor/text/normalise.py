"""When two texts are the same statement, and when one is the other in disguise."""

import hashlib
import re
import unicodedata

__all__ = ["Digester", "fold", "plain"]

# Letters that look like Latin ones, lower case; capitals reach them through case folding. Only ever used to compare,
# so folding a whole Russian or Greek word into them is harmless as long as it is done on both sides.
_LOOK_ALIKES = str.maketrans(
    "авекмнорстухіјѕһԁԛԝӏαβεζηικμνορτυχɑɡıᴏ",
    "abekmhopctyxijshdqwlabezhikmnoptyxagio",
)
_MARKS = re.compile("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f]")
_SPACES = re.compile(r"\s+")


def plain(text: str) -> str:
    """A text without what nobody means: letter case, compatibility forms, runs of white space, edge punctuation.

    >>> plain("  Dana  OWNS it. ")
    'dana owns it'
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return _trim(_SPACES.sub(" ", folded))


def fold(text: str) -> str:
    """`plain` and also without invisible characters, accents, look-alike letters and white space.

    >>> fold("P\u0430ssw\u200bord: Hunter2!") == fold("password: hunter2")
    True
    """
    visible = "".join(char for char in plain(text) if unicodedata.category(char) not in ("Cf", "Cc", "Co", "Cn"))
    bare = _MARKS.sub("", unicodedata.normalize("NFKD", visible)).translate(_LOOK_ALIKES)
    return _trim(_SPACES.sub("", unicodedata.normalize("NFC", bare)))


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
        joined = "\x1f".join(fold(part) for part in parts)
        return hashlib.blake2b(joined.encode("utf-8", "surrogatepass"), key=self._secret, digest_size=16).digest()

    def exact(self, *parts: str | bytes) -> bytes:
        """16 bytes of parts taken to the letter, for identities."""
        hashed = hashlib.blake2b(key=self._secret, digest_size=16)
        for part in parts:
            encoded = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
            hashed.update(len(encoded).to_bytes(8, "little") + encoded)
        return hashed.digest()
