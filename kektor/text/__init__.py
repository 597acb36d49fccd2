"""Text as the database compares it. Analysis and BM25 are native (`kektor_native.TextIndex`)."""

from kektor.text.normalise import Digester, fold, plain

__all__ = ["Digester", "fold", "plain"]
