"""Resources: a memory by its id, and the map of an index, as texts that a client may show or attach."""

import hashlib
import re
from typing import Any
from urllib.parse import unquote

from kektor import times
from kektor.engine.gateway import Principal
from kektor.engine.records import Kind
from kektor.errors import Invalid, NotFound
from kektor.memory import requests as rq
from kektor.memory.objects import Memory
from kektor.operations import Operations
from kektor_server.mcp import render

__all__ = ["LISTED", "TEMPLATES", "read_resource", "stamp"]

_TYPE = "text/markdown"
_MEMORY = re.compile(r"kektor://(?P<index>[^/]+)/memory/(?P<id>[^/]+)")
_MAP = re.compile(r"kektor://(?P<index>[^/]+)/map")
_PINNED = 20
_LATEST = 20
_TOKENS = 2000

_MAP_ABOUT = "What is in the memory: how much of which kind, what is pinned, what came last."

LISTED: list[dict[str, Any]] = [
    {"uri": "kektor://default/map", "name": "map", "title": "Map of the memory", "description": _MAP_ABOUT,
     "mimeType": _TYPE},
]  # fmt: skip

TEMPLATES: list[dict[str, Any]] = [
    {"uriTemplate": "kektor://{index}/memory/{id}", "name": "memory", "title": "A memory",
     "description": "One memory, in the version that the id names, with its labels.", "mimeType": _TYPE},
    {"uriTemplate": "kektor://{index}/map", "name": "map of an index", "title": "Map of an index",
     "description": _MAP_ABOUT, "mimeType": _TYPE},
]  # fmt: skip


def read_resource(operations: Operations, principal: Principal, uri: str) -> dict[str, Any]:
    """The contents of a resource. Raises NotFound for one that is not there, or not the caller's to see."""
    text = _text(operations, principal, uri)
    return {"contents": [{"uri": uri, "mimeType": _TYPE, "text": text}], "_meta": {"kektor/stamp": _digest(text)}}


def stamp(operations: Operations, principal: Principal, uri: str) -> str:
    """What changes when the resource does; the same for all that are not there."""
    try:
        return _digest(_text(operations, principal, uri))
    except (NotFound, Invalid):
        return ""


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _text(operations: Operations, principal: Principal, uri: str) -> str:
    if found := _MEMORY.fullmatch(uri):
        memory = operations.get(unquote(found["index"]), unquote(found["id"]), principal)
        return _fenced(operations, [memory], whole=True)
    if found := _MAP.fullmatch(uri):
        return _map(operations, principal, unquote(found["index"]))
    raise NotFound(
        f"there is no resource {uri!r}: a memory is kektor://INDEX/memory/ID, a map kektor://INDEX/map", field="uri"
    )


def _map(operations: Operations, principal: Principal, index: str) -> str:
    def count(kind: Kind) -> int:
        return operations.count(rq.ListRequest(index=index, kinds=[kind]), principal)

    counts = {kind.value: number for kind in Kind if (number := count(kind))}
    sections = [f"# What is in the memory (index {index})", _words(counts)]
    pinned = rq.ListRequest(index=index, filter={"eq": ["pinned", True]}, limit=_PINNED)
    for title, memories in (
        ("Pinned", operations.list_memories(pinned, principal).items),
        ("Latest", _latest(operations, principal, index)),
    ):
        if memories:
            sections += [f"## {title}", _fenced(operations, memories, whole=False)]
    return "\n\n".join(sections) + "\n"


def _words(counts: dict[str, int]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in counts.items()) or "nothing yet"


def _latest(operations: Operations, principal: Principal, index: str) -> list[Memory]:
    """The memories recorded last: a list goes forward in time, so where to begin is found by counting."""
    first = operations.list_memories(rq.ListRequest(index=index, limit=1), principal).items
    if not first:
        return []
    total = operations.count(rq.ListRequest(index=index), principal)
    begin, low, high = 0.0, 0.0, float(2**32)
    while total > _LATEST * 2 and high - low > 1e-3:
        middle = (low + high) / 2
        later = rq.ListRequest(index=index, filter=_since(middle))
        number = operations.count(later, principal)
        if number >= _LATEST:
            begin = low = middle
            if number <= _LATEST * 2:
                break
        else:
            high = middle
    request = rq.ListRequest(index=index, filter=_since(begin), limit=1000)
    return operations.list_memories(request, principal).items[-_LATEST:]


def _since(seconds: float) -> dict[str, Any]:
    return {"gte": ["recorded_at", times.format(int(seconds * 1_000_000))]}


def _fenced(operations: Operations, memories: list[Memory], *, whole: bool) -> str:
    if whole:
        return render.fenced(memories, 0, lambda texts: [0] * len(texts))[0]
    return render.listed(memories, _TOKENS, operations.context.tokenizer.counts)[0]
