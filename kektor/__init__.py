"""Kektor: a vector-plus-graph memory database for AI agents.

>>> import kektor
>>> db = kektor.open(":memory:")
>>> mem = db.memory(user="alice")
>>> receipt = mem.remember("Dana owns the Henderson account")
>>> mem.recall("who owns the Henderson account?").hits[0].memory.text
'Dana owns the Henderson account'
>>> db.close()
"""

from kektor import errors
from kektor.api import Database, open
from kektor.engine.records import Actor, ActorKind
from kektor.errors import (
    Blocked,
    Conflict,
    Corrupt,
    Forbidden,
    Internal,
    Invalid,
    KektorError,
    Locked,
    NewerFormat,
    NotFound,
    RateLimited,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
from kektor.version import __version__

__all__ = [
    "Actor",
    "ActorKind",
    "Blocked",
    "Conflict",
    "Corrupt",
    "Database",
    "Forbidden",
    "Internal",
    "Invalid",
    "KektorError",
    "Locked",
    "NewerFormat",
    "NotFound",
    "RateLimited",
    "TooLarge",
    "Unauthenticated",
    "Unavailable",
    "__version__",
    "errors",
    "open",
]
