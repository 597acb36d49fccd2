"""Keys: short named concepts with aliases that route to memories.

A key is a node of its own. It leads to a memory by a `routes_to` edge, whose weight falls when somebody says that the
way was wrong.
"""

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import structs

from kektor.engine.edges import EdgeRule
from kektor.engine.port import Engine
from kektor.engine.records import Kind, Node, NodeKey
from kektor.engine.view import View
from kektor.errors import Invalid
from kektor.memory import requests as rq
from kektor.text import fold

__all__ = ["FLOOR", "LIMIT", "ROUTES", "Key", "check_keys", "connected", "known_key", "names_of", "nearest", "routed"]

ROUTES = "routes_to"
FLOOR = 0.1
"""A way that was dismissed is never severed."""

LIMIT = 32
_LONGEST = 80
_MOST_WORDS = 8
_MATCHED = 20


class Key(NamedTuple):
    """A key as a caller names it."""

    concept: str
    type: str
    aliases: tuple[str, ...]


def check_keys(given: Iterable[str | rq.KeyIn]) -> list[Key]:
    """Keys that may be: short names, each once, that are more than a number or punctuation."""
    found: dict[str, Key] = {}
    for number, each in enumerate(given):
        key = rq.KeyIn(concept=each) if isinstance(each, str) else each
        concept = _name(key.concept, f"keys[{number}]")
        aliases = [_name(alias, f"keys[{number}].aliases") for alias in key.aliases]
        found.setdefault(fold(concept), Key(concept, key.type.strip(), tuple(dict.fromkeys(aliases))))
    if len(found) > LIMIT:
        raise Invalid(f"{len(found)} keys; a memory has at most {LIMIT}", field="keys")
    return list(found.values())


def names_of(key: Node) -> set[str]:
    """The concept and the aliases of a key, folded."""
    return {fold(key.text), *map(fold, key.tags)}


def known_key(nodes: Iterable[Node], concept: str) -> Node | None:
    """The key that a name means."""
    wanted = fold(concept)
    return next((node for node in nodes if node.kind is Kind.KEY and wanted in names_of(node)), None)


def connected(engine: Engine, view: View, node: Node) -> list[str]:
    """The keys that lead to a memory, the strongest first."""
    whole = _keys_view(view)
    rule = EdgeRule(frozenset([ROUTES]), "in")
    found = engine.edges(whole, NodeKey(node.scope, node.id), rule, limit=4 * LIMIT).edges
    keys = engine.fetch(whole, [at.src for at in found])
    weighed = [(-at.edge.weight, key.text) for at, key in zip(found, keys, strict=True) if key is not None]
    return list(dict.fromkeys(text for _, text in sorted(weighed)))


def nearest(engine: Engine, view: View, question: str, k: int = 5) -> list[str]:
    """The keys whose names share most with a question; they are no answer."""
    keys = structs.replace(_keys_view(view), kinds=frozenset({Kind.KEY}))
    found = engine.fetch(keys, [scored.key for scored in engine.match_text(keys, question, k)])
    return list(dict.fromkeys(node.text for node in found if node is not None and _leads_somewhere(engine, view, node)))


def _leads_somewhere(engine: Engine, view: View, key: Node) -> bool:
    """Whether the caller sees a memory that it leads to: of others its name says too much."""
    rule = EdgeRule(frozenset([ROUTES]), "out")
    return bool(engine.edges(_keys_view(view), NodeKey(key.scope, key.id), rule, limit=1).edges)


def routed(engine: Engine, view: View, question: str) -> dict[NodeKey, float]:
    """The memories that keys named in a question lead to, with the weight of the best way."""
    keys = structs.replace(_keys_view(view), kinds=frozenset({Kind.KEY}))
    asked = fold(question)
    ways: dict[NodeKey, float] = {}
    matched = engine.fetch(keys, [scored.key for scored in engine.match_text(keys, question, _MATCHED)])
    for key in matched:
        if key is None or not any(name in asked for name in names_of(key)):
            continue
        rule = EdgeRule(frozenset([ROUTES]), "out")
        for at in engine.edges(_keys_view(view), NodeKey(key.scope, key.id), rule, limit=1000).edges:
            ways[at.dst] = max(at.edge.weight, ways.get(at.dst, 0.0))
    return ways


def _keys_view(view: View) -> View:
    """Keys are found whatever the answer is narrowed to, by their present links."""
    return structs.replace(view, kinds=None, layers=None, tags=None, filter=None, as_of=None)


def _name(text: str, field: str) -> str:
    name = " ".join(text.split())
    if not name or len(name) > _LONGEST or len(name.split()) > _MOST_WORDS:
        raise Invalid(f"a key is a name of 1 to {_LONGEST} characters and at most {_MOST_WORDS} words", field=field)
    if not any(char.isalpha() for char in name):
        raise Invalid(f"a key is a name, not a number such as {name!r}", field=field)
    return name
