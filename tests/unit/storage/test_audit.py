"""The audit: every change is an event in an order nobody can alter unseen; no text is in it, and erasing reaches it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import kektor
from kektor.engine.local import LocalEngine
from kektor.storage.audit import Audited, AuditFiles
from tests.support.embedders import HashingEmbedder


def _open(folder: Path, actor: str = "") -> kektor.Database:
    who = kektor.Actor(kektor.ActorKind.HUMAN, actor) if actor else None
    return kektor.open(folder, embedder=HashingEmbedder(), actor=who)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Some history, closed: its audit lies in files."""
    path = tmp_path / "data"
    with _open(path, "ann") as db:
        memory = db.memory(user="ann")
        memory.remember("The gate has one key", id="gate")
        memory.remember("The mill is for sale", id="mill")
        memory.link("gate", "near", "mill")
        memory.evolve("gate", "The gate has two keys", reason="a new lock")
        memory.forget(ids=["mill"], mode="erase")
    with _open(path, "bob") as db:
        db.memory(user="ann").pin("gate")
    return path


def test_every_change_is_told_with_who_and_what(folder: Path) -> None:
    with _open(folder) as db:
        told = db.audit()
        assert [event.operation for event in told] == [
            "create_index", "remember", "remember", "link", "evolve", "erase", "update",
        ]  # fmt: skip
        assert {event.actor.id for event in told} == {"ann", "bob"}
        assert [event.lsn for event in told] == sorted(event.lsn for event in told)
        assert told[4].reason == "a new lock"
        assert told[4].scope.user == "ann"
        assert [event.operation for event in db.audit(id="gate")] == ["remember", "link", "evolve", "update"]
        assert [event.operation for event in db.audit(actor="bob")] == ["update"]
        assert db.audit(since="2999") == []
        assert len(db.audit(since="2000")) == len(told)
        assert db.verify_audit() == type(db.verify_audit())(True, 7, [])


def test_no_text_of_memories_is_in_its_files(folder: Path) -> None:
    content = b"".join(path.read_bytes() for path in (folder / "audit").iterdir())
    assert b"gate" in content, "the control: an id is"
    assert b"keys" not in content
    assert b"sale" not in content


Change = Callable[[list[Audited]], list[Audited]]


def _edited(field: str, value: object) -> Change:
    def change(records: list[Audited]) -> list[Audited]:
        entries = msgspec.msgpack.decode(records[2].chain)
        entries[0][{"time": 2, "operation": 3}[field]] = value
        return [*records[:2], records[2]._replace(chain=msgspec.msgpack.encode(entries)), *records[3:]]

    return change


def _other_value(records: list[Audited]) -> list[Audited]:
    side = records[4].side
    assert side is not None
    assert b"a new lock" in side
    return [*records[:4], records[4]._replace(side=side.replace(b"a new lock", b"an old key")), *records[5:]]


def _without_value(at: int) -> Change:
    def change(records: list[Audited]) -> list[Audited]:
        sides = msgspec.msgpack.decode(records[1].side or b"")
        sides[0][at] = None
        return [records[0], records[1]._replace(side=msgspec.msgpack.encode(sides)), *records[2:]]

    return change


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("an event removed", lambda r: [*r[:2], *r[3:]]),
        ("the first removed", lambda r: r[1:]),
        ("the last removed", lambda r: r[:-1]),
        ("two in another order", lambda r: [r[0], r[2], r[1], *r[3:]]),
        ("one twice", lambda r: [*r[:3], r[2], *r[3:]]),
        ("one at the end", lambda r: [*r, r[2]._replace(lsn=999)]),
        ("a time edited", _edited("time", 12345)),
        ("an operation edited", _edited("operation", "confirm")),
        ("a reason edited", _other_value),
        ("a name taken out", _without_value(0)),
        ("a reason taken out", _without_value(1)),
        ("what was said of a node taken out", _without_value(2)),
    ],
)
def test_an_altered_history_does_not_verify(folder: Path, what: str, change: Change) -> None:
    """Files rewritten by somebody who knows their format, checksums and all."""
    records = list(AuditFiles(folder / "audit").read())
    shutil.rmtree(folder / "audit")
    shutil.rmtree(folder / "log")  # all of it is in the checkpoint; the log would mend the end of the audit
    AuditFiles(folder / "audit").append(change(records))
    with _open(folder) as db:
        report = db.verify_audit()
        assert not report.ok, what
        assert report.findings


def test_the_same_files_written_again_verify(folder: Path) -> None:
    records = list(AuditFiles(folder / "audit").read())
    shutil.rmtree(folder / "audit")
    AuditFiles(folder / "audit").append(records)
    with _open(folder) as db:
        assert db.verify_audit().ok


def test_files_cut_short_are_completed_from_the_log_or_reported(folder: Path) -> None:
    """What a crash cut off an append is read from the log again; what the log no longer holds is told as missing."""
    with _open(folder) as db:
        db.checkpoint()
        for n in range(3):
            db.memory().remember(f"Fact number {n}")
        assert len(db.audit()) == 10
        for path in (folder / "audit").iterdir():
            shutil.copy(path, folder.parent / path.name)
    (chain,) = folder.glob("audit/*.kaud")
    for cut in (1, 30):
        with chain.open("r+b") as stream:
            stream.truncate(chain.stat().st_size - cut)
        with _open(folder) as db:
            assert len(db.audit()) == 10
            assert db.verify_audit().ok
    with chain.open("r+b") as stream:
        stream.truncate(200)
    with _open(folder) as db:
        report = db.verify_audit()
        assert isinstance(db.engine, LocalEngine)
        assert len(report.findings) > 0 or report.events == 10


def test_it_holds_for_a_database_in_memory() -> None:
    with kektor.open(":memory:", embedder=HashingEmbedder()) as db:
        db.memory().remember("The gate has one key", id="gate")
        assert [event.ids for event in db.audit(id="gate")] == [["gate"]]
        assert db.verify_audit().ok
