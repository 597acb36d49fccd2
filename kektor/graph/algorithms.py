"""Whole-graph algorithms, by networkx, over numbered nodes: components, PageRank, betweenness, communities.

Each step of the work reports the share that is done; what `progress` raises ends it there. networkx is imported by
what uses it: every start would wait for it otherwise.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Literal, NamedTuple

import numpy as np

__all__ = ["Algorithm", "Found", "run"]

Algorithm = Literal["components", "pagerank", "betweenness", "communities"]
Progress = Callable[[float], object]
WeightedEdge = tuple[int, int, float]

_DAMPING = 0.85
_TOLERANCE = 1e-9
_MOST_ROUNDS = 200


class Found(NamedTuple):
    """A score for every node, or the nodes in groups."""

    scores: list[float]
    groups: list[list[int]]


def run(
    algorithm: Algorithm,
    nodes: int,
    edges: Sequence[WeightedEdge],
    *,
    progress: Progress,
    sample: int | None = None,
    seed: int = 0,
) -> Found:
    """Run one over nodes 0 to `nodes`; the same graph and seed give the same answer.

    Parallel edges count together. Direction counts for PageRank alone; weights for PageRank and communities, where an
    edge whose weight is not positive does not count. `sample` is from how many nodes betweenness is estimated.

    >>> run("components", 3, [(0, 2, 1.0)], progress=lambda share: None).groups
    [[0, 2], [1]]
    """
    progress(0.0)
    match algorithm:
        case "components":
            found = Found([], list(_components(nodes, edges, progress)))
        case "pagerank":
            found = Found(_pagerank(nodes, edges, progress), [])
        case "betweenness":
            found = Found(_betweenness(nodes, edges, progress, sample, seed), [])
        case "communities":
            found = Found([], _communities(nodes, edges, progress, seed))
    progress(1.0)
    return found


def _components(nodes: int, edges: Sequence[WeightedEdge], progress: Progress) -> Iterator[list[int]]:
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from((src, dst) for src, dst, _ in edges)
    done = 0
    for component in nx.connected_components(graph):
        yield sorted(component)
        done += len(component)
        progress(done / nodes)


def _pagerank(nodes: int, edges: Sequence[WeightedEdge], progress: Progress) -> list[float]:
    """The power iteration, in numpy: networkx needs scipy for it and cannot be stopped on the way."""
    if nodes == 0:
        return []
    kept = [edge for edge in edges if edge[2] > 0]
    src = np.array([edge[0] for edge in kept], np.int64)
    dst = np.array([edge[1] for edge in kept], np.int64)
    weight = np.array([edge[2] for edge in kept], np.float64)
    leaving = np.bincount(src, weight, nodes) if kept else np.zeros(nodes)
    share = weight / leaving[src]
    ends = leaving == 0
    rank = np.full(nodes, 1.0 / nodes)
    for number in range(_MOST_ROUNDS):
        flowing = np.bincount(dst, share * rank[src], nodes) if kept else np.zeros(nodes)
        after = _DAMPING * (flowing + rank[ends].sum() / nodes) + (1 - _DAMPING) / nodes
        change = float(np.abs(after - rank).sum())
        rank = after
        if change < _TOLERANCE:
            break
        progress(number / _MOST_ROUNDS)
    ranks: list[float] = rank.tolist()
    return ranks


def _betweenness(
    nodes: int, edges: Sequence[WeightedEdge], progress: Progress, sample: int | None, seed: int
) -> list[float]:
    """The share of shortest paths between others that lead through a node, source after source."""
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from((src, dst) for src, dst, _ in edges if src != dst)
    sources = range(nodes) if sample is None or sample >= nodes else random.Random(seed).sample(range(nodes), sample)
    totals = [0.0] * nodes
    for number, source in enumerate(sources, 1):
        reached = nx.betweenness_centrality_subset(graph, [source], graph.nodes)
        for node, score in reached.items():
            totals[node] += score
        progress(number / len(sources))
    # Each pair of ends counts once for either end, halved by networkx, and there are (n - 1)(n - 2) / 2 of them.
    pairs = (nodes - 1) * (nodes - 2) / 2
    scale = nodes / len(sources) / pairs if pairs > 0 else 0.0
    return [total * scale for total in totals]


def _communities(nodes: int, edges: Sequence[WeightedEdge], progress: Progress, seed: int) -> list[list[int]]:
    """Louvain's, level after level."""
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    for src, dst, weight in edges:
        if weight > 0:
            held = graph.get_edge_data(src, dst, {"weight": 0.0})["weight"]
            graph.add_edge(src, dst, weight=held + weight)
    groups: list[set[int]] = [{node} for node in range(nodes)]
    if graph.size() == 0:
        return [sorted(group) for group in groups]
    for level, partition in zip(count(1), nx.community.louvain_partitions(graph, seed=seed)):
        groups = partition
        progress(1 - 0.5**level)
    return [sorted(group) for group in groups]
