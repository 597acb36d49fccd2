"""Counting tokens: the bundled vocabulary of BERT (uncased), which the default embedder reads with too."""

import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kektor.models.once import Once

if TYPE_CHECKING:
    from tokenizers import Encoding
    from tokenizers import Tokenizer as WordPieces

__all__ = ["VOCABULARY", "BertTokenizer", "Tokenizer", "default_tokenizer", "token_spans", "word_pieces"]

VOCABULARY = Path(__file__).parent / "data" / "bert-uncased-vocab.txt"
_UNKNOWN = 100  # the id of [UNK] in that file
_STRIPPED = frozenset({"Mn", "Cc", "Cf", "Co"})  # categories the normaliser drops from a text


class Tokenizer(Protocol):
    """Counts tokens, for budgets; safe for many threads at once."""

    @property
    def name(self) -> str:
        """What it is called in `/v1/info`."""

    def count(self, text: str) -> int:
        """How many tokens `text` has."""

    def counts(self, texts: Sequence[str]) -> list[int]:
        """`count` of each."""


class BertTokenizer:
    """Word pieces of the uncased BERT vocabulary, without the markers around a text.

    A budget must hold for a reader with another vocabulary too, so what this one cannot see still counts: a
    word it does not know is one token per character, and so is every mark and invisible character that it
    would drop.

    >>> BertTokenizer().count("Dana owns the Henderson account.")
    6
    """

    name = "bert-uncased"

    def count(self, text: str) -> int:
        """How many tokens `text` has; 0 for white space."""
        return self.counts([text])[0]

    def counts(self, texts: Sequence[str]) -> list[int]:
        """`count` of each, on all cores when there are many."""
        encodings = word_pieces().encode_batch(list(texts), add_special_tokens=False)
        return [_count(text, encoding) for text, encoding in zip(texts, encodings, strict=True)]


def default_tokenizer() -> Tokenizer:
    """The tokenizer that budgets are counted with unless another is configured; one per process."""
    return _DEFAULT


def word_pieces() -> "WordPieces":
    """The vocabulary as a tokenizer, markers [CLS] and [SEP] included on request; loaded at first use.

    Markers written in a text are text: nobody can put a real one in by typing it.
    """
    return _WORD_PIECES.get()


def token_spans(text: str) -> list[tuple[int, int]]:
    """Where each token stands in `text`, as (start, end) in characters; an unknown word is one per character.

    >>> token_spans("to be")
    [(0, 2), (3, 5)]
    """
    (encoding,) = word_pieces().encode_batch([text], add_special_tokens=False)
    spans: list[tuple[int, int]] = []
    for id_, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
        spans += [(at, at + 1) for at in range(start, end)] if id_ == _UNKNOWN else [(start, end)]
    return spans


def _count(text: str, encoding: "Encoding") -> int:
    ids = encoding.ids
    count = len(ids)
    if _UNKNOWN in ids:
        spans = zip(ids, encoding.offsets, strict=True)
        count += sum(end - start - 1 for id_, (start, end) in spans if id_ == _UNKNOWN)
    if not text.isascii():
        count += sum(unicodedata.category(char) in _STRIPPED for char in text if char > "\x7f")
    return count


def _load() -> "WordPieces":
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    words = VOCABULARY.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    pieces = models.WordPiece({word: id_ for id_, word in enumerate(words)}, unk_token="[UNK]")
    tokenizer = Tokenizer(pieces)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 101), ("[SEP]", 102)]
    )
    return tokenizer


_WORD_PIECES = Once(_load)
_DEFAULT = BertTokenizer()
