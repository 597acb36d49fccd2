"""Columns forget a metadata path with the last node that has it."""

from typing import Any

from kektor.engine.columns import Columns
from kektor.engine.records import Kind, Node, Scope, State


def node(metadata: dict[str, Any]) -> Node:
    return Node("n1", Kind.MEMORY, "text", Scope(), "n1", 1, (State(1),), metadata=metadata)


def test_the_last_node_takes_its_paths_along() -> None:
    # A path has several parts, which come out in the order of their hashes: many paths, so that every order occurs.
    rich: dict[str, Any] = {f"k{n}": {"a": n, "b": [n, "x", {}], "c": None} for n in range(50)}
    columns = Columns()
    columns.add(0, node({**rich, "t": "text"}))
    columns.add(1, node({"t": "other"}))
    assert ("k7", "b") in columns.metadata
    columns.change(0, node({**rich, "t": "text"}), node({"t": "text", "k7": 1}))
    assert set(columns.metadata) == {("t",), ("k7",)}
    columns.remove(0, node({"t": "text", "k7": 1}))
    assert set(columns.metadata) == {("t",)}
