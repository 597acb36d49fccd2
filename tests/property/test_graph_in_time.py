"""The graph at any two times is the one a networkx model holds, after any history of links, ends and hidden nodes."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import networkx as nx
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

import kektor
from kektor import clock
from kektor.api import Database
from kektor.engine.local import LocalEngine
from kektor.engine.records import Actor
from kektor.storage.store import Durability
from tests.support.databases import SECRET
from tests.support.embedders import HashingEmbedder

NODES = [f"n{number}" for number in range(7)]
YEARS = [None, 2020, 2021, 2022, 2023]
START = 1_790_000_000
ends = st.sampled_from(NODES)
years = st.sampled_from(YEARS)


class GraphInTime(RuleBasedStateMachine):
    folder: Path

    @initialize()
    def begin(self) -> None:
        GraphInTime.number = getattr(GraphInTime, "number", 0) + 1
        self.path = self.folder / str(GraphInTime.number)
        self.at = START
        self._held = clock.fixed(clock.Clock(lambda: self.at * 1_000_000, os.urandom))
        self._held.__enter__()
        self.db = self.open()
        self.edges: list[dict[str, Any]] = []
        self.hidden: dict[str, list[tuple[int, bool]]] = {node: [] for node in NODES}
        for node in NODES:
            self.db.memory("g").remember(f"about {node}", id=node)
        self.at += 1

    def open(self) -> Database:
        engine = LocalEngine(self.path, durability=Durability("off"))
        db = Database(engine, secret=SECRET, actor=Actor(), embedder=HashingEmbedder())
        if engine.index("g") is None:
            db.create_index("g", embedder=HashingEmbedder())
        return db

    def teardown(self) -> None:
        if hasattr(self, "db"):
            self.db.close()
            self._held.__exit__(None, None, None)

    @rule(src=ends, dst=ends, rel=st.sampled_from("ab"), weight=st.sampled_from([0.5, 1.0, 2.0, 5.0]), data=st.data())
    def link(self, src: str, dst: str, rel: str, weight: float, data: Any) -> None:
        start, end = sorted([data.draw(years) or 0, data.draw(years) or 9999])
        self.at += 1
        for edge in self.edges:
            if edge["ends"] == (src, rel, dst) and edge["deleted"] is None:
                edge["deleted"] = self.at
        self.edges.append(
            {"ends": (src, rel, dst), "weight": weight, "valid": (start, end), "created": self.at, "deleted": None}
        )
        self.db.memory("g").link(
            src, rel, dst, weight=weight, valid_from=str(start) if start else None, valid_to=_until(end)
        )

    @rule(src=ends, dst=ends, rel=st.sampled_from("ab"))
    def unlink(self, src: str, dst: str, rel: str) -> None:
        self.at += 1
        standing = [e for e in self.edges if e["ends"] == (src, rel, dst) and e["deleted"] is None]
        if not standing:
            with pytest.raises(kektor.NotFound):
                self.db.memory("g").unlink(src, rel, dst)
            return
        standing[0]["deleted"] = self.at
        self.db.memory("g").unlink(src, rel, dst)

    @rule(node=ends)
    def hide_or_show(self, node: str) -> None:
        hide = not _is_hidden(self.hidden[node], self.at)
        self.at += 1
        self.hidden[node].append((self.at, hide))
        (self.db.memory("g").archive if hide else self.db.memory("g").restore)(node)

    @rule(restart=st.booleans())
    def save(self, restart: bool) -> None:
        self.db.checkpoint()
        if restart:
            self.db.close()
            self.db = self.open()

    @rule(src=ends, dst=ends, data=st.data(), year=years, depth=st.integers(1, 4), rels=st.sampled_from([None, ["a"]]))
    def read(self, src: str, dst: str, data: Any, year: int | None, depth: int, rels: list[str] | None) -> None:
        known = data.draw(st.one_of(st.none(), st.integers(START + 1, self.at)))
        direction = data.draw(st.sampled_from(["out", "both"]))
        strong = data.draw(st.booleans())
        model = self.model(year, known, rels, strong)
        if direction == "both":
            model = model.to_undirected(as_view=True)
        memory = self.db.memory("g")
        asked: dict[str, Any] = {
            "rels": rels,
            "direction": direction,
            "as_of": None if year is None else f"{year}-06-01",
            "known_at": known,
            "edge_filter": "weight >= 2" if strong else None,
        }
        if src not in model:
            with pytest.raises(kektor.NotFound):
                memory.traverse(src, **asked)
            return
        found = memory.traverse(src, depth=depth, **asked)
        reached = nx.single_source_shortest_path_length(model, src, cutoff=depth)
        assert {node.memory.id: node.depth for node in found.nodes} == dict(reached)
        induced = memory.subgraph(src, depth=depth, **asked)
        assert {node.memory.id for node in induced.nodes} == set(reached)
        assert len(induced.edges) == model.subgraph(reached).number_of_edges()
        if dst not in model:
            with pytest.raises(kektor.NotFound):
                memory.path(src, dst, **asked)
            return
        path = memory.path(src, dst, max_depth=20, cost="weight", **asked)
        try:
            assert path.cost == pytest.approx(nx.dijkstra_path_length(model, src, dst))
        except nx.NetworkXNoPath:
            assert path.nodes == []
        groups = memory.analyse("components", **asked).groups
        weak = nx.connected_components(model if direction == "both" else model.to_undirected(as_view=True))
        assert sorted(map(sorted, groups)) == sorted(map(sorted, weak))

    def model(self, year: int | None, known: int | None, rels: list[str] | None, strong: bool) -> nx.MultiDiGraph:
        """Half of the year, as the database held it at `known`."""
        graph = nx.MultiDiGraph()
        now = known or self.at
        graph.add_nodes_from(node for node in NODES if not _is_hidden(self.hidden[node], now))
        at = _seconds(year) if year else None
        for edge in self.edges:
            src, rel, dst = edge["ends"]
            start, end = edge["valid"]
            stands = edge["created"] <= now and (edge["deleted"] is None or edge["deleted"] > now)
            holds = start <= year <= end if at and year else end == 9999 or _seconds(end + 1, month=1) > now
            if (
                stands
                and holds
                and src in graph
                and dst in graph
                and (rels is None or rel in rels)
                and (not strong or edge["weight"] >= 2)
            ):
                graph.add_edge(src, dst, weight=edge["weight"])
        return graph


def _is_hidden(changes: list[tuple[int, bool]], now: int) -> bool:
    return next((hidden for at, hidden in reversed(changes) if at <= now), False)


def _until(end: int) -> str | None:
    """A year as an end holds through its last day."""
    return None if end == 9999 else str(end)


def _seconds(year: int, month: int = 6) -> int:
    return int(datetime(year, month, 1, tzinfo=UTC).timestamp())


def test_the_graph_in_time_is_the_model(tmp_path: Path) -> None:
    GraphInTime.folder = tmp_path
    run_state_machine_as_test(
        GraphInTime,
        settings=settings(
            max_examples=int(os.environ.get("KEKTOR_PROPERTY_EXAMPLES", "20")),
            stateful_step_count=30,
            deadline=None,
            report_multiple_bugs=False,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
