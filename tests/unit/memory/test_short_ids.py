"""Short identifiers are looked up as such in a question; ordinary short words are not."""

import kektor
from kektor.memory.recall.question import read
from tests.support.embedders import HashingEmbedder


def test_what_could_be_an_id() -> None:
    assert read("is TKT-1 like A12, or a_b?").possible_ids == ("TKT-1", "A12", "a_b")
    assert read("is it in the box or not").possible_ids == ()
    assert read("status of invoice-2024.").possible_ids == ("status", "invoice-2024")


def test_a_short_id_is_found_by_its_name() -> None:
    with kektor.open(":memory:", embedder=HashingEmbedder()) as db:
        memory = db.memory()
        memory.remember("the pump was replaced", id="A12")
        memory.remember("the valve was painted", id="A13")
        found = memory.recall("what about A12?")
        assert found.hits[0].memory.id == "A12"
        assert "id" in found.hits[0].via
