"""Filters over bitmaps and ordered indexes match what `filters.matches` says, in every logic value and at any size."""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from kektor.engine import evaluate as evaluating
from kektor.engine.effects import PutNode
from kektor.engine.evaluate import evaluate
from kektor.engine.filters import Filter, Not, matches
from kektor.engine.records import IndexSettings, Kind, Moment, Node, Scope, State
from kektor.engine.space import IndexSpace
from kektor.engine.view import lookup
from tests.property.test_filters import filters, records

START = 1_700_000_000_000_000
cases = filters.flatmap(lambda f: st.tuples(st.just(f), st.lists(records(f), min_size=1, max_size=12)))


def node_of(slot: int, record: dict[str, Any]) -> Node:
    """As much of a record as a node can hold; what it cannot is left out."""
    metadata = record.get("metadata")
    validity = record.get("validity") or {}
    scope = record.get("scope") or {}

    def moment(value: Any) -> Moment | None:
        return Moment(value) if isinstance(value, int) and not isinstance(value, bool) else None

    def text(value: Any) -> str:
        return value if isinstance(value, str) else ""

    return Node(
        id=f"n{slot}",
        kind=Kind.MEMORY,
        text=text(record.get("text")),
        scope=Scope(text(scope.get("user")), text(scope.get("agent")), text(scope.get("project"))),
        lineage=f"n{slot}",
        version=1,
        states=(State(START + slot, valid_from=moment(validity.get("from")), valid_to=moment(validity.get("to"))),),
        metadata=_storable(metadata) if isinstance(metadata, dict) else {},
        tags=tuple(dict.fromkeys(tag for tag in record.get("tags") or () if isinstance(tag, str))),
        layer=text(record.get("layer")),
        pinned=record.get("pinned") is True,
        session=text(record.get("session")),
        occurred=moment(record.get("occurred_at")),
    )


def _storable(value: Any) -> Any:
    """Whole numbers beyond 64 bits are refused by every door, so no node holds one."""
    if isinstance(value, dict):
        return {key: _storable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_storable(inner) for inner in value]
    return 5 if isinstance(value, int) and not -(2**63) <= value < 2**64 else value


@pytest.mark.parametrize("few", [0, 32])
@settings(
    max_examples=int(os.environ.get("KEKTOR_PROPERTY_EXAMPLES", "100")),
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(case=cases)
def test_columns_agree_with_the_definition(
    few: int, case: tuple[Filter, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluating, "_FEW", few)
    expression, people = case
    space = IndexSpace(IndexSettings("i", 1, 2))
    nodes = [node_of(slot, record) for slot, record in enumerate(people)]
    for slot, node in enumerate(nodes):
        space.put_nodes([PutNode(1, slot, node)], slot + 1)
    everyone = BitMap(range(len(nodes)))
    says = [matches(expression, lookup(n, space.settings, n.state, START * 2)) for n in nodes]
    assert list(evaluate(expression, space, everyone, START * 2)) == [i for i, v in enumerate(says) if v is True]
    assert list(evaluate(Not(expression), space, everyone, START * 2)) == [i for i, v in enumerate(says) if v is False]
    odd = BitMap(range(1, len(nodes), 2))
    assert list(evaluate(expression, space, odd, START * 2)) == [i for i in odd if says[i] is True]
