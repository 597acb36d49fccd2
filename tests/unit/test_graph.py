"""Walks and algorithms over slots, against networkx."""

from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kektor.graph import Adjacency, Step, cheapest_path, shortest_path, traverse
from kektor.graph.algorithms import run

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

    reached = traverse([start], neighbours, depth=depth, limit=1000)
    assert reached.depth == dict(nx.single_source_shortest_path_length(model, start, cutoff=depth))
    assert not reached.truncated
    found = shortest_path(start, goal, neighbours, neighbours, max_depth=depth, limit=1000)
    length = nx.shortest_path_length(model, start, goal) if nx.has_path(model, start, goal) else None
    assert not found.truncated
    if length is None or length > depth:
        assert found.slots == []
        return
    slots, path_edges = found.slots, found.edges
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

    cut = traverse([0], neighbours, depth=2, limit=4)
    assert (len(cut.depth), cut.truncated) == (4, True)
    whole = traverse([0], neighbours, depth=2, limit=6)
    assert (len(whole.depth), whole.truncated) == (6, False)


def test_a_removed_edge_is_gone_from_both_ends() -> None:
    graph = Adjacency()
    graph.add(0, src=1, dst=2)
    graph.add(1, src=1, dst=2)
    graph.remove(0, src=1, dst=2)
    assert (list(graph.leaving(1)), list(graph.entering(2))) == ([1], [1])
    graph.remove(1, src=1, dst=2)
    assert (list(graph.leaving(1)), list(graph.entering(2)), list(graph.between(1, 2))) == ([], [], [])


def test_edges_between_two_slots_and_pages_of_a_slot() -> None:
    graph = Adjacency()
    for number in range(100):
        graph.add(number, src=0, dst=number % 10)
    assert list(graph.between(0, 3)) == list(range(3, 100, 10))
    assert list(graph.leaving(0, after=97)) == [98, 99]
    assert list(graph.entering(3, after=50)) == [53, 63, 73, 83, 93]
    assert list(graph.between(3, 0)) == list(graph.between(0, 77)) == []


def test_an_induced_walk_also_gives_the_edges_at_its_rim() -> None:
    graph = Adjacency()
    ends = dict(enumerate([(0, 1), (0, 2), (1, 2), (2, 3)]))
    for number, (src, dst) in ends.items():
        graph.add(number, src=src, dst=dst)

    def neighbours(slot: int) -> list[Step]:
        return _both(graph, ends, slot)

    assert sorted(traverse([0], neighbours, depth=1, limit=9).edges) == [0, 1]
    whole = traverse([0], neighbours, depth=1, limit=9, induced=True)
    assert (sorted(whole.edges), sorted(whole.depth)) == ([0, 1, 2], [0, 1, 2])
    assert traverse([0, 3], neighbours, depth=0, limit=9, induced=True).edges == []


_weighted = st.lists(
    st.tuples(st.integers(0, 8), st.integers(0, 8), st.sampled_from([0.0, 0.5, 1.0, 1.5, 4.0])), max_size=25
)


@settings(max_examples=300, deadline=None)
@given(edges=_weighted, start=st.integers(0, 8), goal=st.integers(0, 8), depth=st.integers(1, 6))
def test_the_cheapest_path_equals_networkx_also_within_few_hops(
    edges: list[tuple[int, int, float]], start: int, goal: int, depth: int
) -> None:
    """With a bound on hops the model is a graph in layers: a copy of each node for every hop."""
    layers = nx.DiGraph()
    for number in range(9):
        for hop in range(depth):
            layers.add_edge((hop, number), (hop + 1, number), weight=0.0)
    for src, dst, weight in edges:
        for hop in range(depth):
            held = layers.get_edge_data((hop, src), (hop + 1, dst), {"weight": float("inf")})["weight"]
            layers.add_edge((hop, src), (hop + 1, dst), weight=min(held, weight))

    def forward(slot: int) -> list[Step]:
        return [Step(n, dst, weight) for n, (src, dst, weight) in enumerate(edges) if src == slot]

    def backward(slot: int) -> list[Step]:
        return [Step(n, src, weight) for n, (src, dst, weight) in enumerate(edges) if dst == slot]

    found = cheapest_path(start, goal, forward, backward, max_depth=depth, limit=1000)
    try:
        expected = nx.dijkstra_path_length(layers, (0, start), (depth, goal))
    except nx.NetworkXNoPath:
        assert found.slots == []
        return
    assert found.cost == pytest.approx(expected)
    assert (found.slots[0], found.slots[-1]) == (start, goal)
    assert len(found.edges) <= depth
    for (here, there), edge in zip(pairwise(found.slots), found.edges, strict=True):
        assert edges[edge][:2] == (here, there)


def test_a_search_that_gives_up_says_so() -> None:
    def chain(slot: int) -> list[Step]:
        return [Step(slot, slot + 1), Step(slot - 1, slot - 1)]

    for search in (shortest_path, cheapest_path):
        assert search(0, 1000, chain, chain, max_depth=2000, limit=50).truncated
        assert not search(0, 10, chain, chain, max_depth=2000, limit=50).truncated


def _silent(share: float) -> None:
    assert 0 <= share <= 1


@settings(max_examples=60, deadline=None)
@given(edges=_weighted, size=st.integers(9, 12))
def test_algorithms_equal_networkx(edges: list[tuple[int, int, float]], size: int) -> None:
    plain = nx.Graph()
    plain.add_nodes_from(range(size))
    plain.add_edges_from((src, dst) for src, dst, _ in edges if src != dst)
    groups = run("components", size, edges, progress=_silent).groups
    assert sorted(groups) == sorted(sorted(group) for group in nx.connected_components(plain))
    between = run("betweenness", size, edges, progress=_silent).scores
    assert between == pytest.approx([nx.betweenness_centrality(plain)[node] for node in range(size)])
    directed = nx.MultiDiGraph()
    directed.add_nodes_from(range(size))
    directed.add_weighted_edges_from(edge for edge in edges if edge[2] > 0)
    ranks = run("pagerank", size, edges, progress=_silent).scores
    assert sum(ranks) == pytest.approx(1)
    assert ranks == pytest.approx(_power_iteration(directed), abs=1e-7)
    shared = run("communities", size, edges, progress=_silent, seed=3).groups
    assert sorted(node for group in shared for node in group) == list(range(size))
    assert shared == run("communities", size, edges, progress=_silent, seed=3).groups


def _power_iteration(graph: nx.MultiDiGraph) -> list[float]:
    """As the definition has it: follow an edge by its share of the weight, or jump anywhere."""
    count = len(graph)
    rank = dict.fromkeys(graph, 1 / count)
    for _ in range(300):
        after = dict.fromkeys(graph, 0.15 / count)
        for node in graph:
            out = graph.out_degree(node, weight="weight")
            if out == 0:
                for other in graph:
                    after[other] += 0.85 * rank[node] / count
            for _, other, weight in graph.out_edges(node, data="weight"):
                after[other] += 0.85 * rank[node] * weight / out
        rank = after
    return [rank[node] for node in range(count)]


@pytest.mark.parametrize("algorithm", ["components", "pagerank", "betweenness", "communities"])
def test_an_algorithm_reports_progress_and_stops_when_told(algorithm: str) -> None:
    edges = [(n, n // 2, 1.0) for n in range(60)] + [(n, n * n % 60, 2.0) for n in range(60)]
    told: list[float] = []
    run(algorithm, 70, edges, progress=told.append)  # type: ignore[arg-type]
    assert told[0] == 0
    assert told[-1] == 1
    assert len(told) > 2
    assert told == sorted(told)

    def stop(share: float) -> None:
        if share > 0:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        run(algorithm, 70, edges, progress=stop)  # type: ignore[arg-type]
