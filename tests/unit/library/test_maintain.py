"""Upkeep of an index through the library: by whom, until when, and what it leaves."""

from pathlib import Path

import numpy as np
import pytest

import kektor
from tests.support.embedders import HashingEmbedder
from tests.support.vector_samples import clustered


def test_a_vacuum_takes_deleted_nodes_out_and_survives_reopening(tmp_path: Path) -> None:
    vectors = clustered(5_000, 32)
    ids = [f"n{i}" for i in range(len(vectors))]
    with kektor.open(tmp_path, embedder=HashingEmbedder()) as db:
        index = db.create_index("docs", dim=32)
        index.upsert(ids, vectors)
        index.maintain("refine")
        index.delete(ids[::2])
        shares: list[float] = []
        index.maintain("vacuum", progress=shares.append)
        assert shares == sorted(shares)
        assert shares[-1] == 1.0
        figures = index.stats().vector
        assert (figures["dead"], figures["live"]) == (0, 2_500)
        assert index.search(vectors[1], k=1)[0].memory.id == "n1"
        index.maintain("vacuum")
    with kektor.open(tmp_path, embedder=HashingEmbedder()) as db:
        index = db.index("docs")
        assert index.stats().vector["live"] == 2_500
        assert index.search(vectors[1], k=1)[0].memory.id == "n1"
        assert index.get(["n0"]) == [None]


def test_what_progress_raises_stops_the_work_and_the_next_call_goes_on() -> None:
    class Enough(Exception):
        pass

    def stop(share: float) -> None:
        raise Enough

    vectors = clustered(5_000, 32)
    with kektor.open(":memory:", embedder=HashingEmbedder()) as db:
        index = db.create_index("docs", dim=32)
        index.upsert([f"n{i}" for i in range(len(vectors))], vectors)
        with pytest.raises(Enough):
            index.maintain("vacuum", progress=stop)
        index.maintain("vacuum")
        assert len(index.search(np.ones(32, np.float32), k=5)) == 5


def test_an_unknown_action_is_refused_by_name() -> None:
    with kektor.open(":memory:", embedder=HashingEmbedder()) as db:
        index = db.create_index("docs", dim=3)
        with pytest.raises(kektor.Invalid, match="vacuum, refine"):
            index.maintain("polish")
