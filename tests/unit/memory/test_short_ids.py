"""A short identifier in a question is looked up as one."""

import kektor
from tests.support.embedders import HashingEmbedder


def test_a_short_id_is_found_by_its_name() -> None:
    with kektor.open(":memory:", embedder=HashingEmbedder()) as db:
        memory = db.memory()
        memory.remember("the pump was replaced", id="A12")
        memory.remember("the valve was painted", id="A13")
        found = memory.recall("what about A12?")
        assert found.hits[0].memory.id == "A12"
        assert "id" in found.hits[0].via
