"""The embedded library, through the handles that callers of `kektor.open` hold."""

import shutil
from pathlib import Path
from typing import Any

import msgspec

import kektor
from kektor.contract import convert
from kektor.engine.gateway import Grant, Principal
from kektor.engine.records import Actor, ActorKind
from kektor.engine.view import ScopeRule
from kektor.handles import IndexHandle, MemoryHandle
from kektor.memory.requests import ConfigureIndexRequest, PatchNodeRequest
from kektor.models import Embedder
from tests.support.callers.door import Operation, Pending, Refused, Who

__all__ = ["NO_METHOD", "LibraryDoor", "principal_of"]

NO_METHOD = frozenset({"configure_index", "patch", "export"})
"""What the library does and no public method of it offers yet: here for preparing tests alone."""


class LibraryDoor:
    """A database of this process, in a folder that a restart leaves for a copy, as after a power cut."""

    name = "library"

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self._root = folder
        self._embedder = embedder
        self._generation = 0
        self.database = self._open()

    @property
    def data(self) -> Path:
        """The data directory, another one after every restart."""
        return self._root / f"data-{self._generation}"

    def operator(self) -> "LibraryDoor":
        return self

    def restart(self) -> None:
        before = self.data
        self._generation += 1
        shutil.copytree(before, self.data)
        self.database.close()
        shutil.rmtree(before)
        self.database = self._open()

    def settle(self) -> None:
        self.database.checkpoint()

    def log_folder(self) -> str:
        return str(self.data / "log")

    def close(self) -> None:
        self.database.close()

    def call(self, who: Who, operation: Operation, about: str | None, fields: dict[str, Any]) -> Any:
        try:
            return msgspec.to_builtins(self._run(who, operation, about, dict(fields)))
        except kektor.KektorError as error:
            raise Refused(error.as_dict()["error"]) from error

    def _open(self) -> kektor.Database:
        return kektor.open(self.data, embedder=self._embedder)

    def _run(self, who: Who, operation: Operation, about: str | None, fields: dict[str, Any]) -> Any:
        database, index = self.database, fields.pop("index")
        principal = principal_of(who, Actor())
        if operation == "indexes":
            return {"items": database.operations.list_indexes(principal)}
        if operation in ("create_index", "drop_index") and who != Who():
            raise Pending(f"{operation} as anybody but who opened the database")
        if operation == "create_index":
            return database.create_index(index, **fields).settings
        if operation == "jwks":
            return database.operations.jwks()
        if operation == "export":
            return {"items": list(database.operations.export(principal, indexes=[index]))}
        if operation in _OF_THE_INDEX:
            return _OF_THE_INDEX[operation](IndexHandle(database.operations, principal, index), about, fields)
        if operation == "configure_index":
            return database.operations.configure_index(index, convert(ConfigureIndexRequest, fields), principal)
        if operation == "patch":
            return database.operations.patch_node(index, str(about), convert(PatchNodeRequest, fields), principal)
        if operation == "drop_index":
            database.drop_index(index)
            return {}
        memory = MemoryHandle(database.operations, principal, index)
        if operation == "delete_memory":
            raise Pending("no method: delete_memory (forget does it)")
        if operation in _OF_MEMORY:
            return _OF_MEMORY[operation](memory, about, fields)
        method = getattr(memory, operation)
        return method(**fields) if about is None else method(about, **fields)


def principal_of(who: Who, own: Actor) -> Principal:
    """Somebody with the rights and the grant that a token would carry."""
    actor = own if who.kind is None else Actor(ActorKind(who.kind), own.id, own.channel)
    rule = ScopeRule(user=who.user, agent=who.agent, project=who.project)
    return Principal(actor, frozenset(who.rights), (Grant(who.index, rule),))


def _ingest(memory: MemoryHandle, _: str | None, fields: dict[str, Any]) -> Any:
    return memory.ingest_messages(fields.pop("messages"), **fields)


def _link(memory: MemoryHandle, _: str | None, fields: dict[str, Any]) -> Any:
    (edge,) = fields.pop("edges")
    if fields:
        raise Pending(f"no argument: link {', '.join(fields)}")
    return memory.link(**edge)


def _reinforce(memory: MemoryHandle, about: str | None, fields: dict[str, Any]) -> Any:
    if fields:
        raise Pending(f"no argument: reinforce {', '.join(fields)}")
    return memory.reinforce([str(about)])


_OF_MEMORY: dict[str, Any] = {
    "kv_get": lambda memory, about, fields: memory.kv.get(about, **fields),
    "kv_put": lambda memory, about, fields: memory.kv.put(about, **fields),
    "kv_delete": lambda memory, about, fields: memory.kv.delete(about, **fields),
    "ingest": _ingest,
    "link": _link,
    "reinforce": _reinforce,
    "history": lambda memory, about, fields: {"items": memory.history(about, **fields)},
    "evidence": lambda memory, about, fields: {"items": memory.evidence(about, **fields)},
    "sources": lambda memory, about, fields: memory.list(
        kinds=["source"], filter={"eq": ["session", fields.pop("session")]}, **fields
    ),
    "reviews": lambda memory, about, fields: {"items": memory.reviews(**fields)},
    "tombstones": lambda memory, about, fields: {"items": memory.tombstones(**fields)},
    "erasures": lambda memory, about, fields: {"items": memory.erasures(**fields)},
    "edges": lambda memory, about, fields: {"items": memory.edges(about, **fields)},
}


def _upsert(handle: IndexHandle, _: str | None, fields: dict[str, Any]) -> Any:
    nodes = fields.pop("nodes")
    for name in fields:
        if name != "idempotency_key":
            raise Pending(f"no argument: upsert {name}")
    vectors = [node["vector"] for node in nodes if "vector" in node]
    texts = [node["text"] for node in nodes if "text" in node]
    return handle.upsert(
        [node["id"] for node in nodes],
        vectors=vectors or None,
        texts=texts or None,
        metadata=[node.get("metadata", {}) for node in nodes],
        tags=[node.get("tags", []) for node in nodes],
        **fields,
    )


def _node(handle: IndexHandle, about: str | None, _: dict[str, Any]) -> Any:
    (found,) = handle.get([str(about)])
    if found is None:
        raise kektor.NotFound(f"there is no {about!r} in index {handle.name!r}", field="id")
    return found


def _nodes(handle: IndexHandle, _: str | None, fields: dict[str, Any]) -> Any:
    if fields:
        raise Pending(f"no argument: nodes {', '.join(fields)}")
    return {"items": list(handle), "next_cursor": None}


def _delete(handle: IndexHandle, about: str | None, fields: dict[str, Any]) -> Any:
    if fields:
        raise Pending(f"no argument: delete {', '.join(fields)}")
    return handle.delete([str(about)])


def _search(handle: IndexHandle, _: str | None, fields: dict[str, Any]) -> Any:
    fields.pop("with_memories", None)
    hits = handle.search(**fields)
    return {
        "hits": [{"id": hit.memory.id, "score": hit.score, "scores": hit.scores, "memory": hit.memory} for hit in hits]
    }


def _search_batch(handle: IndexHandle, _: str | None, fields: dict[str, Any]) -> Any:
    ids, scores = handle.search_batch(**fields)
    rows = [[name for name in row if name] for row in ids.tolist()]
    return {"ids": rows, "scores": scores.tolist()}


_OF_THE_INDEX: dict[str, Any] = {
    "upsert": _upsert,
    "node": _node,
    "nodes": _nodes,
    "delete": _delete,
    "search": _search,
    "search_batch": _search_batch,
    "stats": lambda handle, about, fields: handle.stats(),
}
