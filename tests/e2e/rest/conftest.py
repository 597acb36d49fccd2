"""Every test here speaks HTTP over a socket."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.rest import LiveServer, live_server


@pytest.fixture(scope="module")
def shared() -> Iterator[LiveServer]:
    """One server for a module whose tests use names of their own, or change nothing."""
    with live_server() as live:
        yield live


@pytest.fixture
def live() -> Iterator[LiveServer]:
    """A server with an empty database."""
    with live_server() as server:
        yield server


@pytest.fixture
def vectors(live: LiveServer) -> str:
    """The name of an index over three dimensions with four nodes."""
    live.ok(live.http.post("/v1/indexes", json={"name": "v", "dim": 3}), 201)
    nodes: list[dict[str, Any]] = [
        {"id": "x", "vector": [1, 0, 0], "text": "alpha ray", "metadata": {"n": 1}, "tags": ["axis"]},
        {"id": "y", "vector": [0, 1, 0], "text": "beta ray", "metadata": {"n": 2}, "tags": ["axis"]},
        {"id": "z", "vector": [0, 0, 1], "text": "gamma ray", "metadata": {"n": 3}, "tags": ["axis"]},
        {"id": "xy", "vector": [1, 1, 0], "text": "delta wave", "metadata": {"n": 4, "deep": {"a": 1}}},
    ]
    live.ok(live.http.post("/v1/indexes/v/nodes", json={"nodes": nodes}), 201)
    return "v"
