"""Text as the database compares it. Analysis and BM25 are native (`kektor_native.TextIndex`)."""

from kektor.text.distinctive import content_terms, held, telling
from kektor.text.languages import languages
from kektor.text.normalise import Digester, fold, plain, readings, unmask
from kektor.text.sentences import CUT, Span, blank, sentences, touched

__all__ = [
    "CUT",
    "Digester",
    "Span",
    "blank",
    "content_terms",
    "fold",
    "held",
    "languages",
    "plain",
    "readings",
    "sentences",
    "telling",
    "touched",
    "unmask",
]
