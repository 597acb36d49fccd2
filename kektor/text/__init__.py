"""Text as the database compares it. Analysis and BM25 are native (`kektor_native.TextIndex`)."""

from kektor.text.distinctive import content_terms, held, telling
from kektor.text.languages import languages
from kektor.text.normalise import Digester, fold, plain, readings, unmask
from kektor.text.sentences import CUT, Span, blank, sentences, touched
from kektor.text.words import has_beginning, holds_phrase

__all__ = [
    "CUT",
    "Digester",
    "Span",
    "blank",
    "content_terms",
    "fold",
    "has_beginning",
    "held",
    "holds_phrase",
    "languages",
    "plain",
    "readings",
    "sentences",
    "telling",
    "touched",
    "unmask",
]
