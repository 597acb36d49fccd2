"""Every read path the engine has, in one table made from the code; each is run under a View that hides an answer."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, get_type_hints

import pytest
from msgspec import structs

import kektor
from kektor import clock
from kektor.engine.edges import EdgeRule
from kektor.engine.port import Engine
from kektor.engine.records import Kind, NodeKey, Scope
from kektor.engine.view import ScopeRule, View
from tests.support.databases import plain_database
from tests.support.embedders import HashingEmbedder

ALICE, BOB = Scope(user="alice"), Scope(user="bob")
RULE = EdgeRule()
QUERY = HashingEmbedder().embed(["harbour harbour"])[0]


class Stored(NamedTuple):
    """Bob's node answers everything best, and is the only way to the third of alice's."""

    engine: Engine
    hidden: NodeKey
    seen: list[NodeKey]


Read = Callable[[Stored, View], Any]

READS: dict[str, Read] = {
    "metadata_keys": lambda s, v: s.engine.metadata_keys(v),
    "find": lambda s, v: [s.engine.find(v, s.hidden.id), s.engine.find(v, s.seen[0].id)],
    "fetch": lambda s, v: s.engine.fetch(v, [s.hidden, *s.seen]),
    "admits": lambda s, v: _named(s, s.engine.admits(v, [s.hidden, *s.seen])),
    "page": lambda s, v: s.engine.page(v, limit=10).nodes,
    "count": lambda s, v: _named(s, [s.engine.count(v) > 3, True, True, True]),
    "versions": lambda s, v: [s.engine.versions(v, key.scope, key.id) for key in (s.hidden, *s.seen)],
    "session": lambda s, v: [s.engine.session(v, scope, "s") for scope in (BOB, ALICE)],
    "in_session": lambda s, v: s.engine.in_session(v, "s"),
    "neighbours": lambda s, v: [
        _named(s, [bool(around) for around in s.engine.neighbours(v, [s.hidden, *s.seen], reach=1)]),
        s.engine.neighbours(v, s.seen, reach=2),
    ],
    "vectors": lambda s, v: _named(s, [found is not None for found in s.engine.vectors(v, [s.hidden, *s.seen])]),
    "nearest": lambda s, v: s.engine.nearest(v, QUERY, 4),
    "nearest_batch": lambda s, v: s.engine.nearest_batch(v, QUERY[None], 4)[0],
    "match_text": lambda s, v: s.engine.match_text(v, "harbour", 4),
    "text_scores": lambda s, v: _named(s, [n > 0 for n in s.engine.text_scores(v, "harbour", [s.hidden, *s.seen])]),
    "vector_scores": lambda s, v: _named(
        s, [score is not None for score in s.engine.vector_scores(v, QUERY, [s.hidden, *s.seen])]
    ),
    "edges": lambda s, v: [s.engine.edges(v, key, RULE, limit=10) for key in (s.hidden, *s.seen)],
    "edges_ever": lambda s, v: [s.engine.edges_ever(v, key) for key in (s.hidden, *s.seen)],
    "traverse": lambda s, v: s.engine.traverse(v, [s.seen[0], s.hidden], RULE, depth=3, limit=10),
    "path": lambda s, v: [
        s.engine.path(v, s.seen[0], end, RULE, max_depth=5, limit=10) for end in (s.seen[1], s.seen[2])
    ],
    "graph": lambda s, v: s.engine.graph(v, RULE, limit=10),
}
"""One for every read path, so made that its answer names the hidden node when it is seen, and always one that is."""


def read_paths() -> set[str]:
    """Every operation of the port that takes a View."""
    methods = inspect.getmembers(Engine, inspect.isfunction)
    return {name for name, method in methods if get_type_hints(method).get("view") is View}


def _named(stored: Stored, shown: list[bool]) -> list[NodeKey]:
    return [key for key, yes in zip([stored.hidden, *stored.seen], shown, strict=True) if yes]


@pytest.fixture(scope="module", params=["local", "plain"])
def stored(request: pytest.FixtureRequest) -> Iterator[Stored]:
    db = kektor.open(":memory:", embedder=HashingEmbedder()) if request.param == "local" else plain_database()
    with db:
        keys = []
        for scope, texts in (
            (BOB, ["harbour harbour", "an anchor"]),
            (ALICE, ["the old harbour of the town", "an old harbour wall, and more besides", "harbour dues were paid"]),
        ):
            messages = [{"role": "user", "content": text, "metadata": {scope.user: 1}} for text in texts]
            receipt = db.memory("i", user=scope.user).ingest_messages(messages, session="s")
            keys += [NodeKey(scope, name) for name in receipt.ids or []]
        hidden, _, *seen = keys
        for src, dst in ((seen[0], hidden), (hidden, seen[2]), (seen[0], seen[1])):
            db.memory("i").link(src.id, "near", dst.id)
        yield Stored(db.operations.engine, hidden, seen)


def test_the_table_has_every_read_path() -> None:
    assert set(READS) == read_paths()


@pytest.mark.parametrize("path", sorted(READS))
def test_no_read_path_shows_what_its_view_hides(stored: Stored, path: str) -> None:
    everything = View("i", ((ScopeRule(),),), clock.now(), kinds=frozenset([Kind.SOURCE]))
    confined = structs.replace(everything, scopes=((ScopeRule(user="alice"),),))
    shown, told = str(READS[path](stored, everything)), str(READS[path](stored, confined))
    # The control: whoever may see it gets it, and alice gets what is hers.
    assert stored.hidden.id in shown or "bob" in shown
    assert stored.hidden.id not in told
    assert "bob" not in told
    assert any(key.id in told for key in stored.seen) or "alice" in told


@pytest.mark.parametrize("path", ["traverse", "path"])
def test_what_is_hidden_is_not_walked_through(stored: Stored, path: str) -> None:
    everything = View("i", ((ScopeRule(),),), clock.now())
    confined = structs.replace(everything, scopes=((ScopeRule(user="alice"),),))
    assert stored.seen[2].id in str(READS[path](stored, everything))
    assert stored.seen[2].id not in str(READS[path](stored, confined))
