"""Databases for tests: the real engine and the plain one, composed the same way."""

from kektor.api import Database
from kektor.engine.plain import PlainEngine
from kektor.engine.records import Actor
from tests.support.embedders import HashingEmbedder

SECRET = b"a secret of the tests, always the same"


def plain_database(actor: Actor | None = None) -> Database:
    """A database over plain dictionaries."""
    return Database(PlainEngine(), secret=SECRET, actor=actor or Actor(), embedder=HashingEmbedder())
