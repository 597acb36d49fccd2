"""`db.transaction()`: several writes are one, wholly or not at all, and are seen inside before they are stored."""

import threading
from pathlib import Path

import pytest
from kektor_native import Damage, scan_log

import kektor
from kektor.engine import audit
from kektor.engine import effects as fx
from tests.support.embedders import HashingEmbedder


@pytest.fixture
def db(tmp_path: Path) -> kektor.Database:
    database = kektor.open(tmp_path / "data", embedder=HashingEmbedder())
    database.create_index("raw", dim=4)
    database.memory().remember("The gate has one key", id="gate")
    return database


def _frames(folder: Path) -> list[bytes]:
    return [
        item.payload for _, items in scan_log(str(folder / "log"), 0) for item in items if not isinstance(item, Damage)
    ]


def test_writes_across_indexes_are_one_frame_and_survive_together(db: kektor.Database, tmp_path: Path) -> None:
    before = len(_frames(tmp_path / "data"))
    with db.transaction() as tx:
        mill = tx.memory(user="ann").remember("The mill is for sale").id
        tx.memory(user="ann").remember("The weir is closed", id="weir", idempotency_key="k")
        tx.memory(user="ann").link("weir", "near", mill)
        tx.memory("other").ingest_messages([{"role": "user", "content": "It mills"}], session="s")
        tx.index("raw").upsert(["x"], vectors=[[1, 0, 0, 0]])
        tx.memory().evolve("gate", "The gate has two keys", expected_version=1)
    frames = _frames(tmp_path / "data")[before:]
    assert len(frames) == 1
    entries, _ = fx.decode_audit(frames[0])
    told = [event.operation for event in audit.events([audit.encoded(1, *fx.decode_audit(frames[0]))])]
    assert told == ["remember", "remember", "link", "create_index", "ingest_messages", "upsert", "evolve"]
    assert len(entries) == len(told)
    db.close()
    with kektor.open(tmp_path / "data", embedder=HashingEmbedder()) as again:
        ann = again.memory(user="ann")
        assert {m.text for m in ann.list().items} >= {"The mill is for sale", "The weir is closed"}
        assert [edge.dst for edge in ann.edges("weir")] == [mill]
        assert again.index("raw").count() == 1
        assert again.memory("other").count(kinds=["source"]) == 1
        assert again.memory().get("gate", resolve="head").text == "The gate has two keys"
        assert ann.remember("The weir is closed", id="weir", idempotency_key="k").outcome == "created", "a repeat"
        assert again.verify_audit().ok


def test_what_was_written_is_read_inside_and_not_outside(db: kektor.Database) -> None:
    seen: list[int] = []
    with db.transaction() as tx:
        mine = tx.memory(user="ann")
        new = mine.remember("The mill is for sale", id="mill", tags=["a"])
        assert new.lsn > 0
        assert mine.get("mill").text == "The mill is for sale"
        mine.update("mill", tags=["b"])
        assert mine.get("mill").tags == ["b"]
        assert [m.id for m in mine.list().items] == ["gate", "mill"]
        assert mine.count() == 2
        tx.memory().retract("gate")
        assert [m.id for m in mine.list().items] == ["mill"]
        assert mine.count() == 1
        mine.evolve("mill", "The mill was sold")
        assert [m.text for m in mine.history("mill")] == ["The mill is for sale", "The mill was sold"]
        with pytest.raises(kektor.Invalid, match="inside a transaction"):
            mine.recall("mill")
        reader = threading.Thread(target=lambda: seen.append(db.memory(user="ann").count()))
        reader.start()
        reader.join()
    assert seen == [1], "another reader still finds the gate alone"
    assert [m.text for m in db.memory(user="ann").list().items] == ["The mill was sold"]


def test_an_error_in_the_block_undoes_everything(db: kektor.Database, tmp_path: Path) -> None:
    before = len(_frames(tmp_path / "data"))

    def fails() -> None:
        with db.transaction() as tx:
            tx.memory().remember("The mill is for sale")
            tx.index("raw").upsert(["x"], vectors=[[1, 0, 0, 0]])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert (db.memory().count(), db.index("raw").count()) == (1, 0)
    assert len(_frames(tmp_path / "data")) == before
    assert db.memory().remember("The mill is for sale").outcome == "created", "the control: alone it is stored"


def test_a_failed_write_undoes_everything_even_when_it_is_caught(db: kektor.Database) -> None:
    def catches() -> None:
        with db.transaction() as tx:
            tx.memory().remember("The mill is for sale")
            with pytest.raises(kektor.Conflict, match="version 1, not 7"):
                tx.memory().evolve("gate", "The gate has two keys", expected_version=7)
            with pytest.raises(kektor.Conflict, match="nothing of this transaction"):
                tx.memory().remember("Another")

    with pytest.raises(kektor.Conflict, match="nothing of this transaction was stored"):
        catches()
    assert [m.text for m in db.memory().list().items] == ["The gate has one key"]


def test_a_refused_part_is_audited_and_undoes_the_rest(db: kektor.Database) -> None:
    db.memory().retract("gate")

    def write() -> None:
        with db.transaction() as tx:
            tx.memory().remember("The mill is for sale")
            tx.memory().remember("The gate has one key")

    with pytest.raises(kektor.Blocked):
        write()
    assert db.memory().count() == 0
    assert [event.operation for event in db.audit()][-1] == "refused:remember"


def test_two_transactions_with_one_expected_version(db: kektor.Database) -> None:
    outcomes: list[str] = []

    def change(text: str) -> None:
        try:
            with db.transaction() as tx:
                tx.memory().remember(f"Said with it: {text}")
                tx.memory().evolve("gate", text, expected_version=1)
            outcomes.append("stored")
        except kektor.Conflict:
            outcomes.append("conflict")

    threads = [threading.Thread(target=change, args=(f"The gate has {n} keys",)) for n in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["conflict", "stored"]
    assert db.memory().count() == 2


def test_what_is_read_first_cannot_change_before_it_is_written(db: kektor.Database) -> None:
    """Reading a value and writing the next one, from many threads at once: none is lost."""
    db.index("raw").upsert(["n"], metadata=[{"n": 0}])

    def count() -> None:
        for _ in range(5):
            with db.transaction() as tx:
                (node,) = tx.index("raw").get(["n"])
                assert node is not None
                tx.index("raw").upsert(["n"], metadata=[{"n": node.metadata["n"] + 1}])

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (node,) = db.index("raw").get(["n"])
    assert node is not None
    assert node.metadata == {"n": 20}


def test_writing_past_an_open_transaction_is_refused(db: kektor.Database) -> None:
    def write() -> None:
        with db.transaction() as tx:
            tx.memory().remember("The mill is for sale")
            db.memory().remember("Past it")

    with pytest.raises(kektor.Conflict, match="transaction open"):
        write()
    assert db.memory().count() == 1
    db.memory().remember("Past it")


def test_an_empty_transaction_writes_nothing(db: kektor.Database, tmp_path: Path) -> None:
    before = len(_frames(tmp_path / "data"))
    with db.transaction() as tx:
        assert tx.memory().get("gate").version == 1
    with db.transaction():
        pass
    assert len(_frames(tmp_path / "data")) == before
