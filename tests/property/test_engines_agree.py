"""The local engine and the plain one answer every read alike, through any history, checkpoints and restarts."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec import structs

import kektor
from kektor import clock
from kektor.api import Database
from kektor.engine.local import LocalEngine
from kektor.engine.records import Actor
from kektor.errors import KektorError
from kektor.storage.store import Durability
from tests.support.databases import SECRET, plain_database
from tests.support.embedders import HashingEmbedder

_WORDS = st.sampled_from(["dana", "owns", "henderson", "lives", "in", "berlin", "lisbon", "port", "8080", "frank"])
_TEXTS = st.lists(_WORDS, min_size=1, max_size=5).map(" ".join)
_USERS = st.sampled_from([None, "alice", "bob"])
_TAGS = st.lists(st.sampled_from(["crm", "draft", "old"]), max_size=2, unique=True)
_METADATA = st.dictionaries(
    st.sampled_from(["price", "stage", "nested"]),
    st.one_of(
        st.integers(-3, 12),
        st.sampled_from([0.5, 2**53 + 1, "draft", "", None, True, "x" * 400]),
        st.lists(st.sampled_from([1, "draft", 2.5]), max_size=2),
        st.just({"inner": 1}),
    ),
    max_size=2,
)
_PROPS = st.sampled_from([{}, {"why": "x"}, {"why": 3}])
_TIMES = st.sampled_from([None, "2014", "2024-06", "2026-06-01", "2027-01-01T00:00:00Z"])
_FILTERS = st.sampled_from(
    [
        None,
        "tags CONTAINS 'crm'",
        "metadata.price >= 1",
        "NOT metadata.stage = 'draft'",
        "metadata.price = 9007199254740993 OR metadata.nested.inner = 1",
        "metadata.stage IN ('draft', 1) AND NOT tags = 'old'",
        "EXISTS(metadata.price) AND text CONTAINS 'in'",
        "metadata.stage LIKE 'x%'",
        "valid_from >= '2024' OR NOT EXISTS(valid_to)",
        "occurred_at > '2020' AND layer = 'semantic'",
        "pinned = true OR freshness.state = 'fresh'",
        "version > 1 OR supersedes != 'none'",
        "scope.user = 'alice'",
        "metadata.price != 3 AND metadata.price < 2.5",
    ]
)
_INCLUDE = st.lists(st.sampled_from(["superseded", "archived", "proposed", "rejected"]), max_size=2, unique=True)


class _Clock:
    """One clock for both engines: every call of an operation happens at one moment."""

    def __init__(self) -> None:
        self.at = 1_790_000_000_000_000
        self.random = 0

    def now(self) -> int:
        return self.at

    def random_bytes(self, count: int) -> bytes:
        self.random += 1
        return self.random.to_bytes(count, "big")


class EnginesAgree(RuleBasedStateMachine):
    root: Path

    @initialize()
    def start(self) -> None:
        EnginesAgree.number = getattr(EnginesAgree, "number", 0) + 1
        self.folder = self.root / str(EnginesAgree.number)
        self.clock = _Clock()
        self._held = clock.fixed(clock.Clock(self.clock.now, self.clock.random_bytes))
        self._held.__enter__()
        self.local = self._open()
        self.plain = plain_database()
        self.ids: list[str] = []
        self.moments: list[int] = [self.clock.at]

    def _open(self) -> Database:
        engine = LocalEngine(self.folder, durability=Durability("off"))
        return Database(engine, secret=SECRET, actor=Actor(), embedder=HashingEmbedder())

    def teardown(self) -> None:
        if hasattr(self, "local"):
            self.local.close()
            self._held.__exit__(None, None, None)

    def both(self, act: Callable[[Database], Any]) -> Any:
        """Run on both at the same moment with the same random source; outcomes and errors must be equal."""
        self.clock.at += 1_000_003
        outcomes = []
        seed = self.clock.random
        for db in (self.local, self.plain):
            self.clock.random = seed
            with clock.fixed(clock.Clock(self.clock.now, self.clock.random_bytes)):
                try:
                    outcomes.append(act(db))
                except KektorError as error:
                    outcomes.append((error.code, error.message, error.field))
        assert outcomes[0] == outcomes[1]
        self.moments.append(self.clock.at)
        return outcomes[0]

    @rule(
        text=_TEXTS,
        user=_USERS,
        tags=_TAGS,
        metadata=_METADATA,
        valid_from=_TIMES,
        valid_to=_TIMES,
        occurred=_TIMES,
        own=st.sampled_from([None, None, "one", "two"]),
        layer=st.sampled_from(["semantic", "episodic"]),
    )
    def remember(self, text: str, user: str | None, own: str | None, **fields: Any) -> None:
        fields = {
            "tags": fields["tags"], "metadata": fields["metadata"], "layer": fields["layer"], "id": own,
            "valid_from": fields["valid_from"], "valid_to": fields["valid_to"], "occurred_at": fields["occurred"],
        }  # fmt: skip
        receipt = self.both(lambda db: db.memory(user=user).remember(text, **fields))
        if isinstance(receipt, kektor.engine.records.Receipt) and receipt.id:
            self.ids.append(receipt.id)

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), text=_TEXTS, user=_USERS, when=_TIMES, verb=st.sampled_from(["evolve", "correct"]))
    def replace(self, data: Any, text: str, user: str | None, when: str | None, verb: str) -> None:
        node = data.draw(st.sampled_from(self.ids))
        receipt = self.both(lambda db: getattr(db.memory(user=user), verb)(node, text, valid_from=when))
        if not isinstance(receipt, tuple):
            self.ids.append(receipt.id)

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), user=_USERS, verb=st.sampled_from(["retract", "archive", "restore", "pin", "unpin"]))
    def change(self, data: Any, user: str | None, verb: str) -> None:
        node = data.draw(st.sampled_from(self.ids))
        self.both(lambda db: getattr(db.memory(user=user), verb)(node))

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), user=_USERS, tags=_TAGS, metadata=_METADATA)
    def update(self, data: Any, user: str | None, tags: list[str], metadata: dict[str, Any]) -> None:
        node = data.draw(st.sampled_from(self.ids))
        self.both(lambda db: db.memory(user=user).update(node, tags=tags, metadata=metadata))

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), user=_USERS)
    def erase(self, data: Any, user: str | None) -> None:
        node = data.draw(st.sampled_from(self.ids))

        def forget(db: Database) -> Any:
            done = db.memory(user=user).forget(ids=[node], mode="erase")
            # Each signs with a key of its own.
            return structs.replace(done, receipt=structs.replace(done.receipt, signature=None))

        self.both(forget)

    @precondition(lambda self: len(self.ids) > 1)
    @rule(data=st.data(), user=_USERS, rel=st.sampled_from(["knows", "near"]), when=_TIMES, end=st.booleans())
    def link(self, data: Any, user: str | None, rel: str, when: str | None, end: bool) -> None:
        src, dst = (data.draw(st.sampled_from(self.ids)) for _ in range(2))
        if end:
            self.both(lambda db: db.memory(user=user).unlink(src, rel, dst))
        else:
            said = {"weight": data.draw(st.sampled_from([0.5, 1.0, 3.0])), "props": data.draw(_PROPS)}
            until = data.draw(st.sampled_from([None, None, "2024-07", "2028"]))
            self.both(lambda db: db.memory(user=user).link(src, rel, dst, valid_from=when, valid_to=until, **said))

    @rule(texts=st.lists(_TEXTS, min_size=1, max_size=3), user=_USERS, session=st.sampled_from(["s", "t"]))
    def ingest(self, texts: list[str], user: str | None, session: str) -> None:
        messages = [{"role": "user", "content": text, "speaker": "Dana"} for text in texts]
        receipt = self.both(lambda db: db.memory(user=user).ingest_messages(messages, session=session))
        self.ids += [i for i in receipt.ids if i not in self.ids]

    @rule(user=_USERS, filter=_FILTERS, include=_INCLUDE, as_of=_TIMES, past=st.booleans(), data=st.data())
    def read(
        self, user: str | None, filter: str | None, include: list[str], as_of: str | None, past: bool, data: Any
    ) -> None:
        known_at = data.draw(st.sampled_from(self.moments)) / 1e6 if past else None
        kinds = data.draw(st.sampled_from([None, ["memory", "source", "session"]]))
        fields = {"filter": filter, "include": include, "as_of": as_of, "known_at": known_at, "kinds": kinds}
        self.both(lambda db: db.memory(user=user).list(limit=1000, **fields).items)
        self.both(lambda db: db.memory(user=user).count(**fields))

    @rule(user=_USERS, query=_TEXTS, as_of=_TIMES, history=st.sampled_from(["never", "auto", "always"]))
    def recall(self, user: str | None, query: str, as_of: str | None, history: str) -> None:
        def ask(db: Database) -> Any:
            found = db.memory(user=user).recall(query, as_of=as_of, history=history, k=50)
            return found.status, _Ranking([(h.score, h.memory.id, h.memory, h.resolved_from) for h in found])

        self.both(ask)

    @precondition(lambda self: self.ids)
    @rule(
        data=st.data(),
        user=_USERS,
        as_of=_TIMES,
        past=st.booleans(),
        direction=st.sampled_from(["out", "in", "both"]),
        edge_filter=st.sampled_from([None, "weight > 1", "rel = 'knows' OR props.why = 'x'", "valid_from < '2026'"]),
        cost=st.sampled_from(["hops", "weight", "inverse"]),
        limit=st.sampled_from([1, 2, 1000]),
    )
    def walk(
        self, data: Any, user: str | None, as_of: str | None, past: bool, cost: str, limit: int, **asked: Any
    ) -> None:
        src, dst = (data.draw(st.sampled_from(self.ids)) for _ in range(2))
        asked |= {"as_of": as_of, "known_at": data.draw(st.sampled_from(self.moments)) / 1e6 if past else None}
        asked["filter"] = data.draw(_FILTERS)
        self.both(lambda db: _unordered(db.memory(user=user).traverse(src, **asked)))
        self.both(lambda db: _unordered(db.memory(user=user).subgraph(src, dst, **asked)))
        self.both(lambda db: len(db.memory(user=user).traverse(src, limit=limit, **asked).nodes))
        self.both(lambda db: db.memory(user=user).path(src, dst, cost=cost, **asked).cost)
        self.both(lambda db: db.memory(user=user).edges(src, **asked))
        self.both(lambda db: _paged(db.memory(user=user), src, asked))
        self.both(lambda db: db.memory(user=user).analyse("components", **asked))
        self.both(lambda db: db.memory(user=user).history(src))

    @rule()
    def checkpoint(self) -> None:
        self.local.checkpoint()

    @rule()
    def restart(self) -> None:
        self.local.close()
        self.local = self._open()

    @invariant()
    def sound(self) -> None:
        if hasattr(self, "local"):
            assert isinstance(self.local.engine, LocalEngine)
            assert self.local.engine.validate() == []
            assert self.local.engine.findings() == []


class _Ranking:
    """Hits whose order counts where their scores differ: the native sums are rounded to a grid, the plain ones not."""

    def __init__(self, hits: list[tuple[float, str, Any, str | None]]) -> None:
        self._hits = hits

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Ranking) or len(self._hits) != len(other._hits):
            return False
        pairs = zip(self._tidied(), other._tidied(), strict=True)
        return all(a[1:] == b[1:] and abs(a[0] - b[0]) < 1e-3 for a, b in pairs)

    def __repr__(self) -> str:
        return "\n".join(f"{score:.6f} {node} from {origin}" for score, node, _, origin in self._hits)

    def _tidied(self) -> list[tuple[float, str, Any, str | None]]:
        """Runs of scores that nothing tells apart, each sorted by id."""
        runs: list[list[tuple[float, str, Any, str | None]]] = []
        for hit in self._hits:
            if runs and abs(runs[-1][-1][0] - hit[0]) < 1e-4:
                runs[-1].append(hit)
            else:
                runs.append([hit])
        return [hit for run in runs for hit in sorted(run, key=lambda h: (h[1], str(h[2].scope)))]


def _paged(memory: Any, node: str, asked: dict[str, Any]) -> list[Any]:
    """Neighbours by pages of two, which must be those of one page."""
    items, cursor = [], None
    while True:
        page = memory.neighbours(node, limit=2, cursor=cursor, **asked)
        items += page.items
        if (cursor := page.next_cursor) is None:
            assert items == memory.neighbours(node, **asked).items
            return items


def _unordered(found: Any) -> Any:
    if isinstance(found, tuple):
        return found
    nodes = sorted((node.memory.id, str(node.memory.scope), node.depth) for node in found.nodes)
    return nodes, sorted((e.src, e.rel, e.dst, e.created_at) for e in found.edges)


def test_engines_agree(tmp_path: Path) -> None:
    EnginesAgree.root = tmp_path
    run_state_machine_as_test(
        EnginesAgree,
        settings=settings(
            max_examples=int(os.environ.get("KEKTOR_PROPERTY_EXAMPLES", "25")),
            stateful_step_count=20,
            deadline=None,
            report_multiple_bugs=False,
            phases=[Phase.explicit, Phase.generate, Phase.shrink],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
