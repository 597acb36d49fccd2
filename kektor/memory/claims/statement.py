"""What one sentence says, in parts that can be compared."""

import re
import unicodedata
from typing import NamedTuple

__all__ = ["Statement", "words_of"]

_WORD = re.compile(r"[^\W_]+(?:[^\s\w,;()\"“”!?]+[^\W_]+)*", re.UNICODE)


class Statement(NamedTuple):
    """Subject, predicate and object as they compare: folded, without articles, the verb in its base form.

    `tail` is the object with all that followed it in the sentence. `since` and `until` are microseconds from the
    dates that the sentence names.
    """

    subject: str
    predicate: str
    object: str
    tail: str = ""
    negative: bool = False
    event: bool = False
    past: bool | None = False
    """Whether it tells of a state that was, as "was born in" does; None when nothing says."""
    named: bool = False
    """Whether the object begins with a name."""
    since: int | None = None
    until: int | None = None


def words_of(text: str) -> list[str]:
    """The words of a text as they compare: case, width and accents folded; identifiers and numbers whole.

    >>> words_of("The Städel, v1.2 (a.b@c.io)!")
    ['the', 'stadel', 'v1.2', 'a.b@c.io']
    """
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    bare = "".join(char for char in folded if unicodedata.category(char) not in ("Mn", "Cf"))
    return _WORD.findall(unicodedata.normalize("NFC", bare).replace("’", "'"))
