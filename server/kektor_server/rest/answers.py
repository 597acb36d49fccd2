"""Answers that only REST has: pages of lists, and what the server says of itself. The rest are the library's own."""

from msgspec import Struct

from kektor.memory.objects import Evidence, Index, Memory, SearchHit
from kektor.operations.admin import Finding

__all__ = [
    "Alive",
    "EvidencePage",
    "IndexPage",
    "Info",
    "Key",
    "KeySet",
    "Limits",
    "MemoryList",
    "Ready",
    "SearchAnswer",
]


class Alive(Struct, frozen=True, forbid_unknown_fields=True):
    status: str = "ok"


class Ready(Struct, frozen=True, forbid_unknown_fields=True):
    """`ready`, or `degraded` with what was found; while nothing can be written the answer is an error."""

    status: str
    findings: list[Finding]


class Key(Struct, frozen=True):
    """A public key as a JWK."""

    kty: str
    crv: str
    x: str
    y: str
    kid: str
    alg: str
    use: str


class KeySet(Struct, frozen=True):
    keys: list[Key]


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    """What a request may not exceed; sizes in bytes."""

    body: int
    headers: int
    request_seconds: float
    requests: int
    rate: float
    streams: int
    text: int
    id: int
    tags: int
    tag: int
    metadata: int
    metadata_keys: int
    json_depth: int
    k: int
    dim: int
    batch: int


class Info(Struct, frozen=True, forbid_unknown_fields=True):
    """What answers here."""

    name: str
    version: str
    api: str
    embedder: str
    tokenizer: str
    limits: Limits


class IndexPage(Struct, frozen=True, forbid_unknown_fields=True):
    items: list[Index]
    next_cursor: str | None


class MemoryList(Struct, frozen=True, forbid_unknown_fields=True):
    """A history, oldest version first."""

    items: list[Memory]
    next_cursor: str | None


class EvidencePage(Struct, frozen=True, forbid_unknown_fields=True):
    items: list[Evidence]
    next_cursor: str | None


class SearchAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """Best first."""

    hits: list[SearchHit]
