"""Walks over slots, against networkx."""

from itertools import pairwise

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from kektor.graph import Adjacency, shortest_path, traverse
from kektor.graph.walk import Step

_edges = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=40)


def _both(graph: Adjacency, ends: dict[int, tuple[int, int]], slot: int) -> list[Step]:
    steps = [Step(edge, ends[edge][1]) for edge in graph.leaving(slot)]
    return steps + [Step(edge, ends[edge][0]) for edge in graph.entering(slot)]


@settings(max_examples=200, deadline=None)
@given(edges=_edges, start=st.integers(0, 12), goal=st.integers(0, 12), depth=st.integers(1, 6))
def test_walks_equal_networkx(edges: list[tuple[int, int]], start: int, goal: int, depth: int) -> None:
    graph, ends, model = Adjacency(), dict(enumerate(edges)), nx.Graph()
    model.add_nodes_from(range(13))
    for number, (src, dst) in ends.items():
        graph.add(number, src=src, dst=dst)
        model.add_edge(src, dst)

    def neighbours(slot: int) -> list[Step]:
        return _both(graph, ends, slot)

    reached = traverse(start, neighbours, depth=depth, limit=1000)
    assert reached.depth == dict(nx.single_source_shortest_path_length(model, start, cutoff=depth))
    assert not reached.truncated
    found = shortest_path(start, goal, neighbours, neighbours, max_depth=depth)
    length = nx.shortest_path_length(model, start, goal) if nx.has_path(model, start, goal) else None
    if length is None or length > depth:
        assert found is None
        return
    assert found is not None
    slots, path_edges = found
    assert (slots[0], slots[-1], len(slots), len(path_edges)) == (start, goal, length + 1, length)
    for (here, there), edge in zip(pairwise(slots), path_edges, strict=True):
        assert set(ends[edge]) == {here, there}


def test_a_limit_is_reported_and_an_exact_fit_is_not() -> None:
    graph = Adjacency()
    ends = {number: (0, number + 1) for number in range(5)}
    for number, (src, dst) in ends.items():
        graph.add(number, src=src, dst=dst)

    def neighbours(slot: int) -> list[Step]:
        return _both(graph, ends, slot)

    cut = traverse(0, neighbours, depth=2, limit=4)
    assert (len(cut.depth), cut.truncated) == (4, True)
    whole = traverse(0, neighbours, depth=2, limit=6)
    assert (len(whole.depth), whole.truncated) == (6, False)


def test_a_removed_edge_is_gone_from_both_ends() -> None:
    graph = Adjacency()
    graph.add(0, src=1, dst=2)
    graph.add(1, src=1, dst=2)
    graph.remove(0, src=1, dst=2)
    assert (list(graph.leaving(1)), list(graph.entering(2))) == ([1], [1])
