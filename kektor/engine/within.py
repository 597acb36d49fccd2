"""An engine as it is read inside a transaction: what is applied, with what was staged on top.

Reading by id, lists, counts, edges and values see both. Searching and walking do not: their structures hold what is
applied, and saying so is better than an answer that misses half.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

from msgspec import structs

from kektor.engine.edges import EdgeRule
from kektor.engine.filters import Filter, conjunction
from kektor.engine.port import EdgeAt, EdgePage, Engine, Page, Transaction, Vector
from kektor.engine.records import IndexSettings, Node, NodeKey, Scope
from kektor.engine.view import View
from kektor.errors import Invalid, NotFound

__all__ = ["within"]


def within(engine: Engine, begin: Callable[[], Transaction]) -> Engine:
    """`begin` gives the transaction, and takes the commit lock when it is first called."""
    return cast(Engine, _Within(engine, begin))


class _Within:
    def __init__(self, engine: Engine, begin: Callable[[], Transaction]) -> None:
        self._engine = engine
        self._begin = begin

    def __getattr__(self, name: str) -> Any:
        raise Invalid(
            f"{name} sees only what is stored: inside a transaction read by id, by list, edges or values, "
            "and search before it or after it"
        )

    def indexes(self) -> list[IndexSettings]:
        return sorted(self._begin().indexes(), key=lambda settings: settings.name)

    def index(self, name: str) -> IndexSettings | None:
        return self._begin().index(name)

    def metadata_keys(self, view: View) -> set[str]:
        keys = self._engine.metadata_keys(view) if self._engine.index(view.index) is not None else set()
        return keys | {key for node in self._touched(view).values() if node for key in node.metadata}

    def holds(self, index: str, key: NodeKey) -> bool:
        return self._begin().node(index, key) is not None

    def find(self, view: View, node_id: str) -> list[Node]:
        return self._seen(view, self._begin().nodes_of_id(view.index, node_id))

    def fetch(self, view: View, keys: Sequence[NodeKey]) -> list[Node | None]:
        tx, settings = self._begin(), self._settings(view)
        nodes = [tx.node(view.index, key) for key in keys]
        return [node if node is not None and view.admits(node, settings) else None for node in nodes]

    def admits(self, view: View, keys: Sequence[NodeKey]) -> list[bool]:
        return [node is not None for node in self.fetch(view, keys)]

    def versions(self, view: View, scope: Scope, lineage: str) -> list[Node]:
        return self._seen(view, self._begin().lineage(view.index, scope, lineage))

    def page(self, view: View, *, limit: int, cursor: str | None = None) -> Page:
        """What is staged comes behind all that is stored."""
        touched = self._touched(view)
        stored = Page([], None)
        if self._engine.index(view.index) is not None:
            stored = self._engine.page(view, limit=limit, cursor=cursor)
        nodes = self._seen(view, [touched.get(_key(node), node) for node in stored.nodes])
        return Page(nodes if stored.cursor is not None else nodes + self._added(view), stored.cursor)

    def count(self, view: View) -> int:
        touched = self._touched(view)
        if self._engine.index(view.index) is None:
            return len(self._added(view))
        gone = zip(touched.values(), self._engine.admits(view, list(touched)), strict=True)
        settings = self._settings(view)
        lost = sum(was and (node is None or not view.admits(node, settings)) for node, was in gone)
        return self._engine.count(view) - lost + len(self._added(view))

    def session(self, view: View, scope: Scope, session: str) -> list[Node]:
        touched = self._touched(view)
        stored = self._engine.session(view, scope, session) if self._engine.index(view.index) is not None else []
        nodes = self._seen(view, [touched.get(_key(node), node) for node in stored])
        return nodes + [n for n in self._added(view) if (n.session, n.scope) == (session, scope)]

    def vectors(self, view: View, keys: Sequence[NodeKey]) -> list[Vector | None]:
        tx = self._begin()
        seen = self.admits(view, keys)
        return [tx.vector(view.index, key) if admitted else None for key, admitted in zip(keys, seen, strict=True)]

    def edges(
        self,
        view: View,
        key: NodeKey,
        rule: EdgeRule,
        *,
        limit: int,
        cursor: str | None = None,
        through: Filter | None = None,
    ) -> EdgePage:
        tx, whole = self._begin(), structs.replace(view, filter=conjunction([view.filter, through]))
        if not self.admits(view, [key])[0]:
            return EdgePage([], None)
        found = [
            EdgeAt(edge, src, dst)
            for edge, src, dst in tx.edges(view.index, key, rule.direction)
            if rule.admits(edge, view) and self.admits(whole, [dst if src == key else src])[0]
        ]
        if len(found) > limit:
            raise Invalid(f"{len(found)} edges are more than the limit of {limit}: inside a transaction ask for all")
        return EdgePage(found, None)

    def kv(self, index: str, scope: Scope, key: str) -> tuple[Any, int] | None:
        return self._begin().kv(index, scope, key)

    def _added(self, view: View) -> list[Node]:
        """What is seen within and not outside."""
        touched = self._touched(view)
        there = self._engine.index(view.index) is not None
        before = self._engine.admits(view, list(touched)) if there else [False] * len(touched)
        return self._seen(view, [node for node, was in zip(touched.values(), before, strict=True) if not was])

    def _seen(self, view: View, nodes: Sequence[Node | None]) -> list[Node]:
        settings = self._settings(view)
        return [node for node in nodes if node is not None and view.admits(node, settings)]

    def _touched(self, view: View) -> dict[NodeKey, Node | None]:
        self._settings(view)
        return self._begin().touched(view.index)

    def _settings(self, view: View) -> IndexSettings:
        settings = self._begin().index(view.index)
        if settings is None:
            raise NotFound(f"there is no index {view.index!r}", field="index")
        return settings


def _key(node: Node) -> NodeKey:
    return NodeKey(node.scope, node.id)
