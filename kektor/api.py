"""Composes the layers: what `kektor.open` returns."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from msgspec import structs

from kektor import models
from kektor.contract import convert, plain, plain_value, typed
from kektor.engine.gateway import Gateway, Grant, Principal, Unit
from kektor.engine.local import LocalEngine
from kektor.engine.port import Engine
from kektor.engine.records import Actor, IndexSettings
from kektor.engine.view import ScopeRule
from kektor.errors import Invalid, NotFound
from kektor.handles import IndexHandle, MemoryHandle
from kektor.memory.compaction import Compaction, Compactor
from kektor.memory.context import MemoryContext
from kektor.memory.forgetting.gone import BytesGone
from kektor.memory.inputs import read_rule
from kektor.memory.policies import write_policies
from kektor.memory.requests import CreateIndexRequest, ScopeIn
from kektor.models import Embedder
from kektor.operations import Operations
from kektor.operations.admin import CompactRequest
from kektor.operations.audit import AuditItem, AuditReport, AuditRequest
from kektor.storage.store import Durability
from kektor.text import Digester

if TYPE_CHECKING:
    from kektor.storage.keys import KeyRing

__all__ = ["Database", "Transaction", "open"]

_AUDIT_PAGE = 1000
ALL_RIGHTS = frozenset({"read", "write", "review", "admin"})


def open(  # noqa: A001 - read as kektor.open
    path: str | os.PathLike[str],
    *,
    actor: Actor | None = None,
    embedder: str | Embedder | Callable[[list[str]], Any] | None = None,
    sync: str = "always",
) -> "Database":
    """Open a data directory, creating it when it is not there; `":memory:"` keeps nothing.

    `actor` is who the embedded handles act as (default: a service). `embedder` is what new indexes embed with
    (default: the bundled model; see docs/models.md). `sync` says when a write is acknowledged: `always` (after its
    fdatasync), `interval:<ms>` or `off`.

    Raises Locked when another process owns the directory, Corrupt when nothing in it can be trusted.

    >>> db = kektor.open("./data")          # doctest: +SKIP
    >>> mem = db.memory(user="alice")       # doctest: +SKIP
    """
    folder, acting, durability = _folder(path), _actor(actor), Durability.parse(typed(str, sync, field="sync"))
    engine = LocalEngine(folder, durability=durability)
    try:
        return Database(
            engine,
            secret=engine.secret("digest.key"),
            actor=acting,
            embedder=embedder,
            folder=engine.folder,
            keys=lambda: engine.signing_keys,
        )
    except BaseException:
        engine.close()
        raise


def _folder(path: Any) -> Path | None:
    """None for a database that keeps nothing."""
    try:
        given = os.fsdecode(path)
    except TypeError as error:
        raise Invalid(f"path is a {type(path).__name__}: give a folder, or ':memory:'", field="path") from error
    if not given or "\0" in given:
        raise Invalid(f"path {given!r} is no folder: give one, or ':memory:'", field="path")
    return None if given == ":memory:" else Path(given).expanduser()


def _actor(actor: Any) -> Actor:
    """Its kind is one of those there are, also where it was given as text."""
    if actor is None:
        return Actor()
    return typed(Actor, list(structs.astuple(actor)) if isinstance(actor, Actor) else actor, field="actor")


class Database:
    """One open data directory. Thread-safe; close it, or use it as a context manager."""

    def __init__(
        self,
        engine: Engine,
        *,
        secret: bytes,
        actor: Actor,
        embedder: str | Embedder | Callable[[list[str]], Any] | None,
        folder: Path | None = None,
        keys: "Callable[[], KeyRing] | None" = None,
    ) -> None:
        self.engine = engine
        self.actor = actor
        self.folder = folder
        self._models = _Models(embedder)
        self._keys = signing = keys or _keys_in_memory()
        context = MemoryContext(
            engine,
            digester=Digester(secret),
            tokenizer=models.default_tokenizer(),
            embedder_of=self._models.get,
            sign=lambda payload: signing().sign(payload, "receipts"),
            jwks=lambda: signing().jwks(),
        )
        self.gateway = Gateway(engine, write_policies(context))
        self._compactor = Compactor(engine)
        self._compactor.when_gone.append(
            lambda done, at: self._say(BytesGone(context=context, before=done.time, at=at))
        )
        self.gateway.subscribe(self._compactor.noticed)
        if any(erasure.bytes_gone_at is None for erasure in engine.erasures()):
            self._compactor.request()  # the run that was ahead when the database was closed
        self.operations = Operations(
            engine,
            self.gateway,
            context,
            resolve_embedder=self._models.get,
            default_embedder=self._models.default,
            compactor=self._compactor,
        )

    def _say(self, done: BytesGone) -> None:
        by = Principal(Actor(channel="compaction"), ALL_RIGHTS, (Grant(None),))
        self.gateway.submit(done, by)

    @property
    def signing_keys(self) -> "KeyRing":
        """What tokens and receipts are signed with."""
        return self._keys()

    def principal(self, index: str | None = None, rule: ScopeRule = ScopeRule()) -> Principal:
        """Who a handle acts as: this database's actor, confined to a scope."""
        return Principal(self.actor, ALL_RIGHTS, (Grant(index, rule),))

    def memory(
        self,
        index: str = "default",
        *,
        user: str | None = None,
        agent: str | None = None,
        project: str | None = None,
    ) -> MemoryHandle:
        """Memories of an index, seen and written as one user, agent or project; without any, as the operator.

        The index is made with the default embedder at its first write.
        """
        index = typed(str, index, field="index")
        rule = read_rule(convert(ScopeIn, {"user": user, "agent": agent, "project": project}))
        return MemoryHandle(self.operations, self.principal(index, rule), index)

    def create_index(self, name: str, **settings: Any) -> IndexHandle:
        """Make an index. `dim`, `metric` (cosine, l2, dot), `precision`, `m`, `ef_construction`, `embedder`, `text`,
        `policy`, `layers`; Conflict when it exists."""
        model = settings.get("embedder")
        if model is not None and not isinstance(model, str):
            settings["embedder"] = self._models.add(model)
        self.operations.create_index(convert(CreateIndexRequest, plain({"name": name, **settings})), self.principal())
        return self.index(name)

    def index(self, name: str) -> IndexHandle:
        """An index that exists; NotFound otherwise."""
        if self.engine.index(typed(str, name, field="name")) is None:
            raise NotFound(f"there is no index {name!r}", field="index")
        return IndexHandle(self.operations, self.principal(name), name)

    def indexes(self) -> list[IndexSettings]:
        """The settings of every index."""
        return self.operations.list_indexes(self.principal())

    def drop_index(self, name: str) -> None:
        """Drop an index with all it holds."""
        self.operations.drop_index(typed(str, name, field="name"), self.principal())

    @contextmanager
    def transaction(self) -> Iterator["Transaction"]:
        """Several writes as one: all are stored when the block ends, or none of them.

        >>> with db.transaction() as tx:          # doctest: +SKIP
        ...     tx.memory().remember("Dana owns the Henderson account")
        ...     tx.index("docs").delete(["draft"])

        What is read by id, listed or counted through `tx` is what it has written so far; searching sees only what is
        stored. Other writers wait from its first write or read on, so keep it short. A write that fails undoes all.
        """
        with self.gateway.together() as unit:
            yield Transaction(self, unit)

    def audit(
        self,
        *,
        since: str | int | float | datetime | date | None = None,
        id: str | None = None,
        actor: str | None = None,
    ) -> list[AuditItem]:
        """Who did what, oldest first: since a time, to an id, by an actor. No text of memories is in it."""
        asked = {"since": plain_value(since), "id": id, "actor": actor, "limit": _AUDIT_PAGE}
        told: list[AuditItem] = []
        cursor: str | None = None
        while True:
            page = self.operations.audit(convert(AuditRequest, {**asked, "cursor": cursor}), self.principal())
            told += page.items
            if (cursor := page.next_cursor) is None:
                return told

    def verify_audit(self) -> AuditReport:
        """Whether every event is as it was noted, in its place, and none is missing."""
        return self.operations.verify_audit(self.principal())

    def checkpoint(self) -> int:
        """Write a checkpoint of everything committed; returns its log sequence number."""
        return self.engine.checkpoint()

    def compact(self, *, wait: bool = True) -> Compaction:
        """Rid the files of everything erased: log, checkpoints, audit. Erasing asks for it by itself, a minute later.

        Without `wait` it only sees to it that a run is ahead.
        """
        return self.operations.compact(CompactRequest(wait), self.principal())

    def close(self) -> None:
        """Checkpoint what is new and give the directory up; safe to call twice."""
        self._compactor.close()
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Transaction:
    """What `Database.transaction` gives: the handles of a database, whose writes become one."""

    def __init__(self, database: Database, unit: Unit) -> None:
        self._database = database
        self._operations = database.operations.within(unit)

    def memory(
        self,
        index: str = "default",
        *,
        user: str | None = None,
        agent: str | None = None,
        project: str | None = None,
    ) -> MemoryHandle:
        """See `Database.memory`."""
        rule = read_rule(ScopeIn(user=user, agent=agent, project=project))
        return MemoryHandle(self._operations, self._database.principal(index, rule), index)

    def index(self, name: str) -> IndexHandle:
        """See `Database.index`."""
        if self._operations.engine.index(name) is None:
            raise NotFound(f"there is no index {name!r}", field="index")
        return IndexHandle(self._operations, self._database.principal(name), name)


def _keys_in_memory() -> "Callable[[], KeyRing]":
    """Of an engine that keeps none: made at the first signature, since importing the curves takes its time."""

    @cache
    def made() -> "KeyRing":
        from kektor.storage.keys import KeyRing

        return KeyRing(None)

    return made


class _Models:
    """The embedders of one database, by the name an index keeps."""

    def __init__(self, default: str | Embedder | Callable[[list[str]], Any] | None) -> None:
        self._given: dict[str, Embedder] = {}
        self._lock = threading.Lock()
        self.default = default if isinstance(default, str) else "default"
        if default is not None and not isinstance(default, str):
            self.default = self.add(default)

    def add(self, model: Any) -> str:
        embedder = models.resolve(model)
        with self._lock:
            self._given[embedder.name] = embedder
        return embedder.name

    def get(self, name: str) -> Embedder:
        with self._lock:
            known = self._given.get(name)
        if known is not None:
            return known
        embedder = models.resolve(name)
        with self._lock:
            return self._given.setdefault(name, embedder)
