"""durable.torn: what is damaged on disk costs what it hit, is named, and never keeps the rest from being read."""

import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kektor_native import Frame, Segment

import kektor
from kektor.engine.local import LocalEngine
from kektor.engine.records import Node
from kektor.engine.space import IndexSpace
from kektor.storage.checkpoint import FORMAT
from kektor_server.daemon.doctor import examine
from tests.support.embedders import HashingEmbedder

WORDS = [f"Stone {n} weighs {n * n} grams" for n in range(6)]


def _open(folder: Path) -> kektor.Database:
    return kektor.open(folder, embedder=HashingEmbedder(), sync="off")


@pytest.fixture
def twice(tmp_path: Path) -> Path:
    """A directory whose two checkpoints share every heap file, and whose log no longer reaches back."""
    folder = tmp_path / "data"
    with _open(folder) as db:
        memory = db.memory()
        ids = [memory.remember(text, id=f"stone-{n}").id for n, text in enumerate(WORDS)]
        memory.link(ids[0], "near", ids[1])
        memory.link(ids[2], "near", ids[3])
        db.checkpoint()
        for n in range(2):
            db.create_index(f"other{n}", dim=4)
            db.checkpoint()
    newest, older = sorted((folder / "checkpoints").iterdir(), reverse=True)
    heap = "1/nodes/rows-00000000.heap"
    assert (newest / heap).stat().st_ino == (older / heap).stat().st_ino
    return folder


def _newest(folder: Path) -> Path:
    return max((folder / "checkpoints").iterdir())


def _flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0x20
    path.write_bytes(bytes(content))
    # The file is one inode in both checkpoints, and writing keeps it so.


def _findings(db: kektor.Database) -> str:
    assert isinstance(db.engine, LocalEngine)
    return "\n".join(str(finding) for finding in db.engine.findings())


def _texts(db: kektor.Database) -> list[str]:
    return [memory.text for memory in db.memory().list(kinds=["memory"]).items]


def test_a_damaged_record_shared_by_both_checkpoints_costs_that_record_alone(twice: Path) -> None:
    heap = _newest(twice) / "1/nodes/rows-00000000.heap"
    _flip(heap, heap.read_bytes().index(b"Stone 2 weighs"))
    for again in (77, 78):
        with _open(twice) as db:
            assert _texts(db) == [text for text in WORDS if "Stone 2" not in text]
            told = _findings(db)
            assert "node 2" in told
            assert "stone-2" in told, "the id that can still be read is named"
            with pytest.raises(kektor.NotFound):
                db.memory().get("stone-2")
            assert [edge.dst for edge in db.memory().edges("stone-0", direction="out")] == ["stone-1"]
            assert db.memory().edges("stone-3") == []
            assert db.memory().recall("Stone 3 weighs 9 grams").hits[0].memory.id == "stone-3"
            new = db.memory().remember(f"Stone {again} is new").id
            db.checkpoint()
            db.memory().forget(ids=[new], mode="erase")
            db.checkpoint()


def test_a_damaged_edge_costs_that_edge_alone(twice: Path) -> None:
    heap = _newest(twice) / "1/edges/rows-00000000.heap"
    _flip(heap, heap.read_bytes().index(b"stone-2"))
    with _open(twice) as db:
        assert "edge 1" in _findings(db)
        assert _texts(db) == WORDS
        assert [edge.dst for edge in db.memory().edges("stone-0", direction="out")] == ["stone-1"]
        assert db.memory().edges("stone-2") == []
        db.memory().forget(ids=["stone-2"], mode="erase")


@pytest.mark.parametrize("at", [5, 30, 70, 64 + 8 * 2, 64 + 8 * 4096 + 4 * 2])
def test_a_damaged_header_or_table_of_rows_costs_what_it_hit(twice: Path, at: int) -> None:
    """Header, offsets and checksums of the rows: the other rows are there."""
    _flip(_newest(twice) / "1/nodes/rows-00000000.heap", at)
    with _open(twice) as db:
        lost = set(WORDS) - set(_texts(db))
        assert len(lost) <= 2
        assert "rows-00000000.heap" in _findings(db)
        assert set(_texts(db)) <= set(WORDS)


def test_a_cut_heap_keeps_the_rows_before_the_cut(twice: Path) -> None:
    heap = _newest(twice) / "1/nodes/rows-00000000.heap"
    content = heap.read_bytes()
    os.truncate(heap, content.index(b"Stone 4 weighs"))
    with _open(twice) as db:
        assert _texts(db) == WORDS[:4]
        assert "node 4" in _findings(db)
        assert "node 5" in _findings(db)


def test_a_damaged_text_index_is_built_anew(twice: Path) -> None:
    for path in (_newest(twice) / "1/texts").iterdir():
        _flip(path, 20)
    with _open(twice) as db:
        assert "built anew" in _findings(db)
        assert [hit.memory.text for hit in db.index("default").search(text="stone 3", k=1)] == [WORDS[3]]
        db.checkpoint()


def test_a_lost_transaction_costs_what_it_wrote_and_what_rests_on_it(tmp_path: Path) -> None:
    """Behind a damaged frame replay goes on; changes of what it made are named, the others are made."""
    live, folder = tmp_path / "live", tmp_path / "data"
    with kektor.open(live, embedder=HashingEmbedder()) as db:
        memory = db.memory()
        memory.remember("The first", id="a")
        memory.remember("The second", id="b")
        memory.update("b", tags=["changed"])
        memory.link("a", "near", "b")
        memory.remember("The third", id="c")
        memory.update("a", tags=["changed"])
        shutil.copytree(live, folder)
    (segment,) = (folder / "log").iterdir()
    content = segment.read_bytes()
    _flip(segment, content.index(b"The second"))
    (folder / "LOCK").unlink()
    with _open(folder) as db:
        told = _findings(db)
        assert "no good frame" in told
        assert "changes a record that is lost (AmendNode)" in told
        assert _texts(db) == ["The first", "The third"]
        assert db.memory().get("a").tags == ["changed"]
        assert db.memory().edges("a") == []
        kept = list((folder / "quarantine").iterdir())
        assert len(kept) == 1
        assert b"he second" in kept[0].read_bytes()
        db.memory().forget(ids=["a"], mode="erase")


STEP = 1 if "KEKTOR_FAULT_ROUNDS" in os.environ else 149


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_a_log_cut_anywhere_in_its_last_frames_holds_what_is_before_the_cut(tmp_path: Path) -> None:
    """At every byte (every 149th by default): whole transactions up to the cut, and nothing of the one it hit."""
    live = tmp_path / "live"
    with kektor.open(live, embedder=HashingEmbedder()) as db:
        for text in WORDS:
            db.memory().remember(text)
        shutil.copytree(live, tmp_path / "copy")
    (tmp_path / "copy" / "LOCK").unlink()
    (path,) = (tmp_path / "copy" / "log").iterdir()
    segment = Segment(str(path))
    offsets = [frame.offset for frame in segment.frames() if isinstance(frame, Frame)]
    for cut in [*offsets[-2:], *range(offsets[-2] + 1, segment.end, STEP)]:
        folder = tmp_path / "cut"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tmp_path / "copy", folder)
        os.truncate(folder / "log" / path.name, cut)
        with _open(folder) as db:
            # The first transaction made the index; a frame is whole without the zeros that pad it to 8 bytes.
            least, most = (sum(end - pad <= cut for end in [*offsets[1:], segment.end]) - 1 for pad in (0, 7))
            assert _texts(db) in (WORDS[:least], WORDS[:most]), cut
            assert db.verify_audit().ok
            db.memory().remember("Said afterwards")
            assert _texts(db)[-1] == "Said afterwards"


def _as_newer_manifest(path: Path) -> None:
    import hashlib

    content: dict[str, Any] = msgspec.json.decode(path.read_bytes())
    content |= {"format": FORMAT + 1, "novelty": [1], "digest": ""}
    encode = msgspec.json.Encoder(order="deterministic").encode
    body = b",".join(encode(key) + b":" + encode(value) for key, value in content.items())
    content["digest"] = hashlib.sha256(b"{" + body + b"}").hexdigest()
    path.write_bytes(msgspec.json.encode(content))


def test_a_newer_checkpoint_is_refused_by_name_and_left_alone(twice: Path) -> None:
    newest = _newest(twice)
    _as_newer_manifest(newest / "manifest.json")
    before = sorted(str(path) for path in twice.rglob("*"))
    with pytest.raises(kektor.NewerFormat, match=newest.name) as refused:
        _open(twice)
    assert "upgrade" in refused.value.message
    assert sorted(str(path) for path in twice.rglob("*")) == before


def test_a_flipped_format_of_a_manifest_is_damage_and_no_newer_version(twice: Path) -> None:
    path = _newest(twice) / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"format": 1', b'"format": 3'))
    with _open(twice) as db:
        assert _texts(db) == WORDS
        assert "its own digest" in _findings(db)


def test_newer_chunks_and_log_segments_are_refused_by_name(twice: Path, tmp_path: Path) -> None:
    from kektor_native import crc32c

    for number, name in enumerate(["1/nodes/rows-00000000.heap", "1/vectors/head.chunk", "1/texts/index", "log"]):
        folder = tmp_path / str(number)
        shutil.copytree(twice, folder)
        if name == "log":
            with _open(folder) as db:
                db.memory().remember("One more")
            path = max((folder / "log").iterdir())
        else:
            path = next(
                p
                for p in _newest(folder).rglob("*")
                if str(p).endswith(name.split("/", 1)[1]) or (name.startswith("1/texts") and p.parent.name == "texts")
            )
        content = bytearray(path.read_bytes())
        for at in (0, 4096) if name == "log" else (0,):
            content[at + 8 : at + 10] = b"\x63\x00"
            content[at + 60 : at + 64] = crc32c(bytes(content[at : at + 60])).to_bytes(4, "little")
        path.write_bytes(bytes(content))
        with pytest.raises(kektor.NewerFormat, match="upgrade"):
            _open(folder)


def test_a_transaction_that_cannot_be_applied_is_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect while applying costs that write: memory is as before it, later writes work, and so does opening."""
    with kektor.open(tmp_path / "data", embedder=HashingEmbedder()) as db:
        db.memory().remember("The first", id="a")
        with monkeypatch.context() as patch:
            patch.setattr(IndexSpace, "_index_text", _fails)
            with pytest.raises(kektor.Internal, match="not stored"):
                db.memory().remember("The second", id="b")
        assert _texts(db) == ["The first"]
        db.memory().remember("The third", id="c")
    with _open(tmp_path / "data") as db:
        assert _texts(db) == ["The first", "The third"]
        assert _findings(db) == ""
        assert db.verify_audit().ok


def test_a_logged_transaction_that_cannot_be_applied_costs_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening goes on behind it, says so, and keeps its bytes."""
    live, folder = tmp_path / "live", tmp_path / "data"
    with kektor.open(live, embedder=HashingEmbedder()) as db:
        for text in ("The first", "The second", "The third"):
            db.memory().remember(text)
        db.memory().link(*_ends(db))
        shutil.copytree(live, folder)
    (folder / "LOCK").unlink()
    real = IndexSpace._index_text

    def fails_for_one(space: IndexSpace, slot: int, node: Node, lsn: int) -> None:
        if node.text == "The second":
            raise ValueError("no such language")
        real(space, slot, node, lsn)

    monkeypatch.setattr(IndexSpace, "_index_text", fails_for_one)
    for _ in range(2):
        with _open(folder) as db:
            assert _texts(db) == ["The first", "The third"]
            assert db.memory().edges(db.memory().list().items[1].id) == []
            if "cannot be applied" in _findings(db):
                kept = list((folder / "quarantine").iterdir())
                assert any(b"The second" in path.read_bytes() for path in kept)
            assert db.verify_audit().ok


def _ends(db: kektor.Database) -> tuple[str, str, str]:
    listed = db.memory().list().items
    return listed[1].id, "near", listed[2].id


def _fails(*_: Any) -> None:
    raise ValueError("a defect")


def test_repair_sets_damaged_records_aside_and_builds_the_derived_anew(twice: Path) -> None:
    """Afterwards nothing is found, what was sound is as it was, and the damaged bytes are kept."""
    heap = _newest(twice) / "1/nodes/rows-00000000.heap"
    _flip(heap, heap.read_bytes().index(b"Stone 2 weighs"))
    edges = _newest(twice) / "1/edges/rows-00000000.heap"
    _flip(edges, edges.read_bytes().index(b"stone-0"))
    for path in (_newest(twice) / "1/texts").iterdir():
        _flip(path, 20)
    with _open(twice) as db:
        assert isinstance(db.engine, LocalEngine)
        done = db.engine.repair()
        assert any("node 2" in what for what in done)
        assert any("edge 0" in what for what in done)
    sound = [text for text in WORDS if "Stone 2" not in text]
    with _open(twice) as db:
        assert examine(db.engine).findings == []
        assert isinstance(db.engine, LocalEngine)
        assert db.engine.repair() == [], "there is nothing left to do"
        assert _texts(db) == sound
        assert [hit.memory.text for hit in db.index("default").search(text="stone 3", k=1)] == [WORDS[3]]
        assert db.memory().recall("Stone 3 weighs 9 grams").hits[0].memory.id == "stone-3"
        assert db.memory().remember(WORDS[2], id="stone-2").outcome == "created"
    kept = b"".join(path.read_bytes() for path in (twice / "quarantine").iterdir())
    assert b"weighs 4 grams" in kept
