"""What embedded callers hold: a scoped view of memories, and a raw index."""

import builtins
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kektor.contract import convert, plain, plain_value, typed
from kektor.engine.gateway import Principal
from kektor.engine.records import IndexSettings, Node, NodeKey, Receipt
from kektor.engine.view import View
from kektor.errors import Invalid
from kektor.ingest import IngestMessagesRequest
from kektor.memory import requests as rq
from kektor.memory.commands.base import one_of
from kektor.memory.inputs import read_rule
from kektor.memory.objects import (
    Analysis,
    Edge,
    Evidence,
    ForgetReceipt,
    Forgotten,
    Hit,
    IndexStats,
    KvEntry,
    Memory,
    MemoryPage,
    NeighbourPage,
    Path,
    Recall,
    Review,
    SessionPage,
    Subgraph,
    Tombstone,
)
from kektor.memory.presenting import memory_of
from kektor.memory.reading import only_by_id
from kektor.operations import Operations
from kektor.operations.graph import Progress

__all__ = ["IndexHandle", "KvHandle", "MemoryHandle", "SessionHandle"]

Time = str | int | float | datetime | date
Filter = str | Mapping[str, Any]


class MemoryHandle:
    """Memories of one index in one scope, which acts as its grant. Thread-safe.

    Times are RFC 3339 text, partial dates (`2026-06`), epoch seconds, `datetime` or `date`. Every method raises a
    subclass of `kektor.KektorError`; a call that raises has changed nothing.
    """

    def __init__(self, operations: Operations, principal: Principal, index: str) -> None:
        self._operations = operations
        self._principal = principal
        self._index = index

    def remember(self, text: str, **fields: Any) -> Receipt:
        """Save a statement. Fields: `id, tags, layer, session, metadata, pinned, claim, evidence, keys, occurred_at,
        valid_from, valid_to, idempotency_key, reason, tz`.

        `outcome` is `created`, `duplicate` (then `of` names the one there is) or `proposed`; Blocked when the
        statement was rejected or erased before.

        >>> mem.remember("Dana owns the Henderson account", tags=["crm"]).outcome
        'created'
        """
        return self._operations.remember(self._request(rq.RememberRequest, text=text, **fields), self._principal)

    def recall(self, query: str, **fields: Any) -> Recall:
        """Answer a question. Fields: `k, budget_tokens, filter, layers, tags, kinds, as_of, known_at, include,
        history, mode, explain, now, tz`.

        >>> mem.recall("who owns Henderson?", k=3).hits[0].memory.text
        'Dana owns the Henderson account'
        """
        return self._operations.recall(self._request(rq.RecallRequest, query=query, **fields), self._principal)

    def get(
        self, id: str, *, resolve: str | None = None, scope: Mapping[str, Any] | None = None, **when: Any
    ) -> Memory:
        """That version exactly, whatever its state; `resolve="head"` its newest successor.

        With `as_of` the version of the same statement that held then, with `known_at` what the database then knew.
        Where an id stands in several scopes that this handle sees, `scope` says which: `{"user": "alice"}`,
        `{"shared": True}`. Every method that takes an id takes it.
        """
        known = typed(str | None, resolve, field="resolve")  # type: ignore[arg-type]
        return self._operations.get(
            self._index, _id(id), self._principal, resolve=known, scope=_scope(scope), **_when(when)
        )

    def count(self, **fields: Any) -> int:
        """How many `list` would give in all."""
        return self._operations.count(self._request(rq.ListRequest, **fields), self._principal)

    def history(self, id: str, *, scope: Mapping[str, Any] | None = None) -> list[Memory]:
        """Every version of the lineage, oldest first."""
        return self._operations.history(self._index, _id(id), self._principal, scope=_scope(scope))

    def evidence(self, id: str, *, scope: Mapping[str, Any] | None = None) -> list[Evidence]:
        """The spans a memory rests on."""
        return self._operations.evidence(self._index, _id(id), self._principal, scope=_scope(scope))

    def evolve(self, id: str, text: str, **fields: Any) -> Receipt:
        """The world changed: `text` holds from `valid_from` (default now) on. Also `claim, evidence,
        reason, expected_version, idempotency_key, tz`."""
        return self._operations.evolve(_id(id), self._request(rq.EvolveRequest, text=text, **fields), self._principal)

    def correct(self, id: str, text: str, **fields: Any) -> Receipt:
        """It was never true: `text` takes its whole interval and the old value cannot come back."""
        return self._operations.correct(_id(id), self._request(rq.EvolveRequest, text=text, **fields), self._principal)

    def retract(self, id: str, **fields: Any) -> Receipt:
        """It was never true and nothing replaces it: rejected by value."""
        return self._verb("retract", id, fields)

    def archive(self, id: str, **fields: Any) -> Receipt:
        """Out of sight; `restore` brings it back."""
        return self._verb("archive", id, fields)

    def restore(self, id: str, **fields: Any) -> Receipt:
        return self._verb("restore", id, fields)

    def pin(self, id: str, **fields: Any) -> Receipt:
        return self._operations.pin(_id(id), self._request(rq.VerbRequest, **fields), self._principal, pinned=True)

    def unpin(self, id: str, **fields: Any) -> Receipt:
        return self._operations.pin(_id(id), self._request(rq.VerbRequest, **fields), self._principal, pinned=False)

    def update(self, id: str, **fields: Any) -> Receipt:
        """Replace `tags`, `metadata`, `layer` or `pinned`; the statement and its version stay."""
        return self._operations.update(_id(id), self._request(rq.UpdateRequest, **fields), self._principal)

    def confirm(self, id: str, *, evidence: str | None = None, **fields: Any) -> Receipt:
        """It was seen to hold again, by a source said since."""
        request = self._request(rq.ConfirmRequest, evidence=evidence, **fields)
        return self._operations.confirm(_id(id), request, self._principal)

    def dismiss(self, id: str, key: str, **fields: Any) -> Receipt:
        """A key led to a memory wrongly: that way counts for less from now on, and the memory stays."""
        return self._operations.dismiss(_id(id), self._request(rq.DismissRequest, key=key, **fields), self._principal)

    def reinforce(self, ids: Sequence[str], **fields: Any) -> Receipt:
        """Count a use of some memories; reading never does."""
        request = self._request(rq.ReinforceRequest, ids=ids, **fields)
        return self._operations.reinforce(request, self._principal)

    def forget(self, *, ids: Sequence[str] | None = None, **fields: Any) -> Forgotten:
        """Forget by `ids`, `query`, `filter`, `preview` or `expired=True`; one of them.

        `mode` is `retract` (default), `archive` or `erase`. By query, filter or age it is a preview unless
        `dry_run=False`; `forget(preview=shown.preview)` does exactly what was shown. Also `reason, idempotency_key,
        now, tz`.
        """
        given = fields if ids is None else {"ids": ids, **fields}
        return self._operations.forget(self._request(rq.ForgetRequest, **given), self._principal)

    def erasures(self) -> list[ForgetReceipt]:
        """The receipts of what was erased, oldest first."""
        found: list[ForgetReceipt] = []
        cursor: str | None = None
        while True:
            page = self._operations.erasures(self._principal, limit=1000, cursor=cursor)
            found += page.items
            if (cursor := page.next_cursor) is None:
                return found

    def erasure(self, id: str) -> ForgetReceipt:
        """One receipt."""
        return self._operations.erasure(_id(id), self._principal)

    def share(self, id: str, *, to: Mapping[str, Any], **fields: Any) -> Receipt:
        """Copy a memory to another scope or index: `to={"index"?, "scope"?: {"user", "agent", "project"}}`.

        The copy knows what it is a copy of, so that erasing the original reaches it. `move=True` archives the original.
        """
        return self._operations.share(_id(id), self._request(rq.ShareRequest, to=to, **fields), self._principal)

    def start_session(self, id: str | None = None, **fields: Any) -> Receipt:
        """Begin a session; `title` is optional. The receipt's id is its name."""
        return self._operations.start_session(self._request(rq.StartSessionRequest, id=id, **fields), self._principal)

    def end_session(self, session: str, **fields: Any) -> Receipt:
        """Summarise a session in its own words; `of` is the summary's id. Its messages are recalled as before."""
        return self._operations.end_session(
            typed(str, session, field="session"), self._request(rq.EndSessionRequest, **fields), self._principal
        )

    @contextmanager
    def session(self, id: str | None = None, *, title: str | None = None) -> Iterator["SessionHandle"]:
        """A session for the length of a block, which ends it.

        >>> with mem.session("monday") as talk:
        ...     talk.say("user", "I moved to Oslo in May.")  # doctest: +SKIP
        """
        name = str(self.start_session(id, title=title).id)
        yield SessionHandle(self, name)
        self.end_session(name)

    def sessions(self, **fields: Any) -> SessionPage:
        """A page of sessions in the order in which they began. Fields: `limit, cursor`."""
        return self._operations.sessions(self._index, self._principal, **_page(fields))

    def tombstones(self) -> list[Tombstone]:
        """What must not come back, oldest first: `class_` is `value` (rejected) or `erasure`."""
        found: list[Tombstone] = []
        cursor: str | None = None
        while True:
            page = self._operations.tombstones(self._index, self._principal, limit=1000, cursor=cursor)
            found += page.items
            if (cursor := page.next_cursor) is None:
                return found

    def reviews(self, *, status: str = "open") -> list[Review]:
        """What waits for a decision, oldest first: contested, proposed, imported, asked about. `status` is `open`,
        `asked`, `decided` or `all`."""
        known = typed(str, status, field="status")
        reviews: list[Review] = []
        cursor: str | None = None
        while True:
            page = self._operations.reviews(self._index, self._principal, status=known, limit=1000, cursor=cursor)
            reviews += page.items
            if (cursor := page.next_cursor) is None:
                return reviews

    def review(self, id: str, *, decision: str, **fields: Any) -> Receipt:
        """Decide a review, in one transaction: `accept`, `reject`, `edit`, `merge`, `ask`; `undo` takes the last
        decision back. Fields: `note, text, into, keep, how, propose, reason, idempotency_key`."""
        request = self._request(rq.ReviewRequest, decision=decision, **fields)
        return self._operations.review(_id(id), request, self._principal)

    def lift(self, id: str, **fields: Any) -> Receipt:
        """Take a tombstone away, so that its value may be told again."""
        return self._operations.lift(_id(id), self._request(rq.LiftRequest, **fields), self._principal)

    @property
    def kv(self) -> "KvHandle":
        """Values under keys of one's own, beside the memories of this index and scope."""
        return KvHandle(self._operations, self._principal, self._index)

    def ingest_messages(self, messages: Sequence[Mapping[str, Any]], *, session: str, **fields: Any) -> Receipt:
        """Keep a conversation verbatim: `[{"role", "content", "at"?, "speaker"?, "id"?, "metadata"?}]`.

        `ids` of the receipt are in the order sent. Sending a conversation again changes nothing.
        """
        whole = plain_value(messages)
        listed = [plain(m) if isinstance(m, Mapping) else m for m in whole] if isinstance(whole, list) else whole
        request = self._request(IngestMessagesRequest, messages=listed, session=session, **fields)
        return self._operations.ingest_messages(request, self._principal)

    def link(self, src: str, rel: str, dst: str, **fields: Any) -> Receipt:
        """Join two nodes. Fields: `weight, props, valid_from, valid_to`."""
        edge = plain({"src": src, "rel": rel, "dst": dst, **fields})
        request = convert(rq.LinkRequest, {"edges": [edge]})
        return self._operations.link(self._index, request, self._principal)

    def unlink(self, src: str, rel: str, dst: str) -> Receipt:
        """End an edge; `known_at` still shows it."""
        request = convert(rq.UnlinkRequest, {"src": src, "rel": rel, "dst": dst})
        return self._operations.unlink(self._index, request, self._principal)

    def edges(self, id: str, **fields: Any) -> builtins.list[Edge]:
        """Every edge at a node, oldest first. Fields: `direction` (out, in, both), `rel` or `rels, filter,
        edge_filter, as_of, known_at`."""
        found: builtins.list[Edge] = []
        cursor: str | None = None
        while True:
            request = convert(rq.EdgesRequest, plain({"limit": 10_000, "cursor": cursor, **fields}))
            page = self._operations.edges(self._index, _id(id), request, self._principal)
            found += page.items
            if (cursor := page.next_cursor) is None or "limit" in fields:
                return found

    def neighbours(self, id: str, **fields: Any) -> NeighbourPage:
        """A page of what is joined to a node, with the edges. Fields as of `edges`, and `limit, cursor`."""
        request = convert(rq.EdgesRequest, plain(fields))
        return self._operations.neighbours(self._index, _id(id), request, self._principal)

    def traverse(self, root: str, **fields: Any) -> Subgraph:
        """What a walk reaches. Fields: `rels, depth, direction, filter, edge_filter, as_of, known_at, limit`."""
        request = convert(rq.TraverseRequest, plain({"root": root, **fields}))
        return self._operations.traverse(self._index, request, self._principal)

    def subgraph(self, *roots: str, **fields: Any) -> Subgraph:
        """What walks from some roots reach, with every edge between the nodes met. Fields as of `traverse`."""
        request = convert(rq.SubgraphRequest, plain({"roots": builtins.list(roots), **fields}))
        return self._operations.subgraph(self._index, request, self._principal)

    def path(self, src: str, dst: str, **fields: Any) -> Path:
        """The path with the fewest hops, or of least `cost` (weight, inverse). Fields: `max_depth, rels, direction,
        filter, edge_filter, as_of, known_at, limit`."""
        request = convert(rq.PathRequest, plain({"src": src, "dst": dst, **fields}))
        return self._operations.path(self._index, request, self._principal)

    def analyse(self, algorithm: str, *, progress: Progress | None = None, **fields: Any) -> Analysis:
        """`components`, `pagerank`, `betweenness` or `communities` of all that is visible. Fields: `rels, filter,
        edge_filter, as_of, known_at, limit, top, sample, seed`. What `progress(share)` raises ends the work."""
        request = convert(rq.AnalyseRequest, plain({"algorithm": algorithm, **fields}))
        return self._operations.analyse(self._index, request, self._principal, progress=progress)

    def list(self, **fields: Any) -> MemoryPage:
        """A page of memories as recorded. Fields: `filter, include, kinds, limit, cursor, as_of, known_at`."""
        return self._operations.list_memories(self._request(rq.ListRequest, **fields), self._principal)

    def _verb(self, verb: str, node_id: str, fields: Mapping[str, Any]) -> Receipt:
        request = self._request(rq.VerbRequest, **fields)
        return self._operations.change_state(verb, _id(node_id), request, self._principal)

    def _request(self, kind: type[Any], **fields: Any) -> Any:
        if "index" in fields:
            raise Invalid("this handle is of one index: open another with db.memory(index)", field="index")
        return convert(kind, {"index": self._index, **plain(fields)})


class KvHandle:
    """Key-values of one index and scope: any JSON, counted in versions. Thread-safe.

    >>> mem.kv.put("theme", {"dark": True}).version
    1
    """

    def __init__(self, operations: Operations, principal: Principal, index: str) -> None:
        self._operations = operations
        self._principal = principal
        self._index = index

    def get(self, key: str) -> KvEntry:
        """`value` and `version`; NotFound when there is none."""
        return self._operations.kv_get(self._index, typed(str, key, field="key"), self._principal)

    def put(self, key: str, value: Any, **fields: Any) -> KvEntry:
        """Store a value. Fields: `if_match` (the version that must be there, as text), `only_new, idempotency_key,
        reason`."""
        request = convert(rq.PutKvRequest, {"index": self._index, "value": value, **plain(fields)})
        return self._operations.kv_put(typed(str, key, field="key"), request, self._principal)

    def delete(self, key: str, **fields: Any) -> Receipt:
        """Take a value away; NotFound when there is none."""
        request = convert(rq.DropKvRequest, {"index": self._index, **plain(fields)})
        return self._operations.kv_delete(typed(str, key, field="key"), request, self._principal)


class SessionHandle:
    """One session of a memory handle."""

    def __init__(self, memory: MemoryHandle, name: str) -> None:
        self._memory = memory
        self.name = name

    def say(self, role: str, content: str, **fields: Any) -> str:
        """Keep one message; returns its id. Fields: `at, speaker, id, metadata`."""
        message = {"role": role, "content": content, **fields}
        receipt = self._memory.ingest_messages([message], session=self.name)
        return str((receipt.ids or [""])[0])

    def ingest(self, messages: Sequence[Mapping[str, Any]], **fields: Any) -> Receipt:
        """Keep several messages."""
        return self._memory.ingest_messages(messages, session=self.name, **fields)


class IndexHandle:
    """The raw plane of one index: ids, vectors, texts, metadata; replaced in place, unversioned. Thread-safe."""

    def __init__(self, operations: Operations, principal: Principal, name: str) -> None:
        self._operations = operations
        self._principal = principal
        self.name = name

    @property
    def settings(self) -> IndexSettings:
        return self._operations.get_index(self.name, self._principal)

    def upsert(
        self,
        ids: Sequence[str],
        vectors: ArrayLike | None = None,
        texts: Sequence[str] | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
        tags: Sequence[Sequence[str]] | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Store nodes, all or nothing; each part has one entry an id. `vectors` is (n, dim).

        Texts without vectors are embedded when the index has an embedder.
        """
        array = None if vectors is None else self._matrix(vectors)
        ids = typed(list[str], ids, field="ids")
        said = typed(list[str | None] | None, texts, field="texts")  # type: ignore[arg-type]
        rows = typed(list[dict[str, Any]] | None, metadata, field="metadata")  # type: ignore[arg-type]
        tagged = typed(list[list[str]] | None, tags, field="tags")  # type: ignore[arg-type]
        for name, part in (("vectors", array), ("texts", said), ("metadata", rows), ("tags", tagged)):
            if part is not None and len(part) != len(ids):
                raise Invalid(f"{name} has {len(part)} entries for {len(ids)} ids", field=name)
        nodes = [
            {
                "id": node_id,
                "text": None if said is None else said[at],
                "metadata": {} if rows is None else rows[at],
                "tags": [] if tagged is None else tagged[at],
            }
            for at, node_id in enumerate(ids)
        ]
        request = convert(rq.UpsertRequest, {"nodes": nodes, "idempotency_key": idempotency_key})
        return self._operations.upsert(self.name, request, self._principal, vectors=array)

    def delete(
        self, ids: Sequence[str], *, missing_ok: bool = False, scope: Mapping[str, Any] | None = None
    ) -> Receipt:
        """Remove nodes and free their ids, all or nothing."""
        named = typed(list[str], ids, field="ids")
        missing_ok = typed(bool, missing_ok, field="missing_ok")
        return self._operations.delete_nodes(
            self.name, named, self._principal, missing_ok=missing_ok, scope=_scope(scope)
        )

    def get(self, ids: Sequence[str], *, scope: Mapping[str, Any] | None = None) -> list[Memory | None]:
        """The nodes of some ids, None where there is none; Conflict where `scope` must say which."""
        view, found = self._find(ids, scope)
        settings = self.settings
        return [None if node is None else memory_of(node, settings, now=view.now) for node in found]

    def vectors(
        self, ids: Sequence[str], *, scope: Mapping[str, Any] | None = None
    ) -> list[NDArray[np.float32] | None]:
        """The stored vectors of some ids, exactly as given, None where there is none."""
        view, found = self._find(ids, scope)
        keys = [NodeKey(node.scope, node.id) for node in found if node is not None]
        known = iter(self._operations.engine.vectors(view, keys))
        return [None if node is None else next(known) for node in found]

    def count(self, filter: Filter | None = None) -> int:
        request = convert(rq.ListRequest, {"index": self.name, "filter": plain_value(filter)})
        return self._operations.count(request, self._principal)

    def search(self, vector: ArrayLike | None = None, text: str | None = None, **fields: Any) -> list[Hit]:
        """The k best by vector, by text, or by both. Fields: `k, ef, filter, alpha, include, kinds`."""
        query = None if vector is None else self._row(vector)
        request = convert(rq.SearchRequest, plain({"text": text, "with_memories": True, **fields}))
        hits = self._operations.search(self.name, request, self._principal, vector=query)
        return [Hit(hit.memory, hit.score, hit.scores, list(hit.scores)) for hit in hits if hit.memory is not None]

    def search_batch(
        self,
        vectors: ArrayLike,
        k: int = 10,
        ef: int | None = None,
        filter: Filter | None = None,
        threads: int | None = None,
    ) -> tuple[NDArray[np.str_], NDArray[np.float32]]:
        """Ids (n, k) and exact scores (n, k) of the k best for every row of (n, dim) queries.

        Where fewer than k exist the id is "" and the score NaN.
        """
        asked = convert(rq.SearchBatchRequest, {"vectors": [], "k": k, "ef": ef, "filter": filter})
        ids, scores = self._operations.search_batch(
            self.name,
            self._matrix(vectors),
            self._principal,
            k=asked.k,
            ef=asked.ef,
            filter=asked.filter,
            threads=typed(int | None, threads, field="threads"),  # type: ignore[arg-type]
        )
        table = np.full(scores.shape, "", dtype=f"<U{max((len(i) for row in ids for i in row), default=1)}")
        for at, row in enumerate(ids):
            table[at, : len(row)] = row
        return table, scores

    def stats(
        self, *, as_of: str | float | None = None, known_at: str | float | None = None, tz: str = "UTC"
    ) -> IndexStats:
        """Sizes of the index, and in `shown` how many nodes of each kind a read shows, now or at the times given."""
        return self._operations.index_stats(self.name, self._principal, as_of=as_of, known_at=known_at, tz=tz)

    def maintain(self, action: str, *, progress: Progress | None = None) -> None:
        """`vacuum` takes removed nodes out of the vector index and zeroes their bytes; `refine` finds its nodes better
        neighbours. Both work in short steps beside reads and writes; `progress` is called after each with the
        share that is done, and may raise to stop there: the next call goes on.
        """
        self._operations.maintain_index(self.name, action, self._principal, progress=progress)

    def __iter__(self) -> Iterator[Memory]:
        """Every node, in the order recorded."""
        cursor: str | None = None
        while True:
            request = rq.ListRequest(index=self.name, limit=1000, cursor=cursor)
            page = self._operations.list_memories(request, self._principal)
            yield from page.items
            if (cursor := page.next_cursor) is None:
                return

    def _find(self, ids: Sequence[str], scope: Mapping[str, Any] | None) -> tuple[View, list[Node | None]]:
        named = typed(list[str], ids, field="ids")
        asked = _scope(scope)
        engine = self._operations.engine
        view = only_by_id(engine, self._principal, self.name, scope=asked)
        found = (engine.find(view, node_id) for node_id in named)
        return view, [one_of(nodes, read_rule(asked)) if nodes else None for nodes in found]

    def _matrix(self, vectors: ArrayLike) -> NDArray[np.float32]:
        array = _floats(vectors, "vectors")
        if array.ndim != 2 or array.shape[1] != self.settings.dim:
            raise Invalid(
                f"vectors has shape {array.shape}; index {self.name!r} takes (n, {self.settings.dim})",
                field="vectors",
            )
        return array

    def _row(self, vector: ArrayLike) -> NDArray[np.float32]:
        return _floats(vector, "vector")


def _floats(values: ArrayLike, field: str) -> NDArray[np.float32]:
    try:
        return np.ascontiguousarray(values, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise Invalid(f"{field} is no array of numbers: {error}", field=field) from error


def _id(value: Any) -> str:
    return typed(str, value, field="id")


def _when(fields: Mapping[str, Any]) -> dict[str, Any]:
    kinds: dict[str, Any] = {"as_of": rq.TimeIn | None, "known_at": rq.TimeIn | None, "tz": str}
    for name in fields:
        if name not in kinds:
            raise Invalid(f"unknown field {name!r}: as_of, known_at and tz say when", field=name)
    return {name: typed(kinds[name], value, field=name) for name, value in fields.items()}


def _scope(value: Mapping[str, Any] | None) -> rq.ScopeIn | None:
    return typed(rq.ScopeIn | None, value, field="scope")  # type: ignore[arg-type]


def _page(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What a page is asked for with, each of its type."""
    kinds: dict[str, Any] = {"limit": int, "cursor": str | None}
    for name in fields:
        if name not in kinds:
            raise Invalid(f"a page takes limit and cursor, not {name!r}", field=name)
    return {name: typed(kinds[name], value, field=name) for name, value in fields.items()}
