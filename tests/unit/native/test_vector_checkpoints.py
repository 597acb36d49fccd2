"""The checkpoints of VectorIndex: exact at one moment, incremental, and honest about damage."""

import contextlib
import os
from pathlib import Path

import numpy as np
import pytest
from kektor_native import Chunk, CorruptFile, VectorIndex

from tests.support.vector_samples import Floats, bitmap, checkpoint, clustered, figure, filled, slots_of, wait_until


@pytest.fixture(scope="module")
def data() -> Floats:
    return clustered(6_000, 32)


@pytest.fixture(scope="module")
def queries() -> Floats:
    return clustered(60, 32, seed=5)


# ---------------------------------------------------------------- checkpoints


@pytest.fixture
def saved(data: Floats, tmp_path: Path) -> tuple[VectorIndex, Path]:
    index = filled(data[:5_000])
    index.add(np.arange(5_000, 6_000, dtype=np.uint32), data[5_000:], lsn=7)
    index.remove(slots_of([10, 5_500]), lsn=8)
    checkpoint(index, tmp_path / "first", 8)
    return index, tmp_path / "first"


def test_an_opened_checkpoint_answers_as_what_was_frozen(
    saved: tuple[VectorIndex, Path], data: Floats, queries: Floats
) -> None:
    index, folder = saved
    opened = VectorIndex.open(str(folder))
    assert opened.validate() == []
    assert (len(opened), opened.applied_lsn, opened.dim, opened.metric) == (5_998, 8, 32, "cosine")
    assert (opened.m, opened.ef_construction, opened.precision) == (16, 200, "f32")
    index.link()
    checkpoint(index, folder.parent / "linked", 8)
    opened = VectorIndex.open(str(folder.parent / "linked"))
    for ef in (1, 40, 200):
        for before, after in zip(
            index.search_batch(queries, 10, ef=ef), opened.search_batch(queries, 10, ef=ef), strict=True
        ):
            assert before.tobytes() == after.tobytes()
    assert opened.search(data[5_700], 1)[0].tolist() == [5_700]
    assert opened.vectors(slots_of([5_999, 0])).tobytes() == data[[5_999, 0]].tobytes()
    assert 10 not in opened


def test_an_opened_index_stays_mutable_and_leaves_its_files_alone(
    saved: tuple[VectorIndex, Path], data: Floats, tmp_path: Path
) -> None:
    _, folder = saved
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    opened = VectorIndex.open(str(folder))
    opened.add(np.arange(6_000, 40_000, dtype=np.uint32), clustered(34_000, 32, seed=1), lsn=9, throttle=False)
    opened.remove(np.arange(100, 200, dtype=np.uint32), lsn=10, erase=True)
    opened.link()
    assert opened.validate() == []
    assert len(opened) == 5_998 + 34_000 - 100
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}
    checkpoint(opened, tmp_path / "second", 10)
    again = VectorIndex.open(str(tmp_path / "second"))
    assert again.validate() == []
    assert len(again) == len(opened)
    assert again.applied_lsn == 10
    np.testing.assert_array_equal(again.search(data[3], 20)[0], opened.search(data[3], 20)[0])


def test_a_checkpoint_holds_the_moment_of_its_freeze_whatever_is_written_after(
    data: Floats, queries: Floats, tmp_path: Path
) -> None:
    index = filled(data[:4_000])
    expected = index.search_batch(queries, 10, ef=50)
    folder = tmp_path / "c"
    folder.mkdir()
    chunks = index.freeze(5)
    index.add(np.arange(4_000, 6_000, dtype=np.uint32), data[4_000:], lsn=6)
    index.write(chunks[0], str(folder / chunks[0].name))
    index.link()
    index.remove(np.arange(0, 1_000, dtype=np.uint32), lsn=7, erase=True)
    for chunk in chunks[1:]:
        index.write(chunk, str(folder / chunk.name))
    index.release(True)
    opened = VectorIndex.open(str(folder))
    assert opened.validate() == []
    assert (len(opened), opened.applied_lsn) == (4_000, 1)
    for before, after in zip(expected, opened.search_batch(queries, 10, ef=50), strict=True):
        assert before.tobytes() == after.tobytes()
    assert len(index) == 5_000
    assert index.validate() == []


def dirty(chunks: list[Chunk]) -> set[str]:
    return {chunk.name for chunk in chunks if chunk.dirty}


def test_only_what_changed_is_dirty(data: Floats, tmp_path: Path) -> None:
    index = filled(clustered(20_000, 200, seed=2), link=False)
    index.link()
    assert dirty(checkpoint(index, tmp_path / "a", 1)) == {p.name for p in (tmp_path / "a").iterdir()}
    assert dirty(checkpoint(index, tmp_path / "b", 2)) == set()
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
    index.remove(slots_of([19_999]), lsn=3)
    chunks = index.freeze(3)
    assert dirty(chunks) == {"head.chunk", "states-00000.chunk"}
    index.release(False)
    assert dirty(index.freeze(4)) == {"head.chunk", "states-00000.chunk"}
    index.release(False)
    assert dirty(checkpoint(index, tmp_path / "c", 4)) == {"head.chunk", "states-00000.chunk"}
    index.add(slots_of([20_000]), clustered(1, 200), lsn=5)
    changed = dirty(checkpoint(index, tmp_path / "d", 5))
    assert {"head.chunk", "states-00000.chunk"} < changed
    assert len([name for name in changed if name.startswith("rows")]) == 1
    opened = VectorIndex.open(str(tmp_path / "d"))
    assert opened.validate() == []
    assert dirty(opened.freeze(6)) == set()


def test_unchanged_chunks_may_come_from_an_older_checkpoint(data: Floats, tmp_path: Path) -> None:
    index = filled(clustered(9_000, 500, seed=2), "l2", link=False)
    checkpoint(index, tmp_path / "a", 1)
    index.add(slots_of(range(9_000, 9_050)), clustered(50, 500, seed=3), lsn=2)
    (tmp_path / "b").mkdir()
    linked = 0
    for chunk in index.freeze(2):
        if chunk.dirty:
            index.write(chunk, str(tmp_path / "b" / chunk.name))
        else:
            linked += 1
            os.link(tmp_path / "a" / chunk.name, tmp_path / "b" / chunk.name)
    index.release(True)
    assert linked > 0
    opened = VectorIndex.open(str(tmp_path / "b"))
    assert opened.validate() == []
    assert len(opened) == 9_050


def test_what_was_not_linked_at_the_freeze_is_found_after_opening(tmp_path: Path) -> None:
    vectors = clustered(12_000, 16)
    index = filled(vectors, link=False)
    checkpoint(index, tmp_path / "c", 1)
    opened = VectorIndex.open(str(tmp_path / "c"))
    for slot in range(0, 12_000, 500):
        assert opened.search(vectors[slot], 1)[0].tolist() == [slot]
    # A linker takes a row off the tail before it counts it as linked.
    wait_until(lambda: figure(opened, "linked") == 12_000)
    assert figure(opened, "unlinked") == 0
    assert opened.validate() == []


def test_the_order_of_the_protocol_is_held(data: Floats, tmp_path: Path) -> None:
    index = filled(data[:10])
    with pytest.raises(RuntimeError, match="not frozen"):
        index.release(True)
    chunks = index.freeze(1)
    with pytest.raises(RuntimeError, match="frozen already"):
        index.freeze(2)
    with pytest.raises(ValueError, match="no chunk of this index"):
        index.write(Chunk("other-00000.chunk", True), str(tmp_path / "x"))
    with pytest.raises(ValueError, match="no chunk of this freeze"):
        index.write(Chunk("rows-00009.chunk", True), str(tmp_path / "x"))
    rows = next(c for c in chunks if c.name.startswith("rows"))
    index.write(rows, str(tmp_path / "rows"))
    with pytest.raises(ValueError, match="already written"):
        index.write(rows, str(tmp_path / "again"))
    with pytest.raises(OSError, match="rows"):
        index.write(chunks[0], str(tmp_path / "rows"))
    index.write(chunks[0], str(tmp_path / "head"))
    index.release(False)
    assert all(chunk.dirty for chunk in index.freeze(3))
    index.release(False)


def test_an_empty_index_survives_a_checkpoint(tmp_path: Path) -> None:
    checkpoint(VectorIndex(3, metric="dot", m=8), tmp_path / "c")
    opened = VectorIndex.open(str(tmp_path / "c"))
    assert (len(opened), opened.dim, opened.metric, opened.m) == (0, 3, "dot", 8)
    opened.add(slots_of([0]), np.ones((1, 3), np.float32), lsn=1)
    assert opened.search(np.ones(3, np.float32), 5)[0].tolist() == [0]


# ---------------------------------------------------------------- damage


def test_damaged_cut_and_foreign_files_are_refused_by_name(
    saved: tuple[VectorIndex, Path], data: Floats, tmp_path: Path
) -> None:
    _, folder = saved
    other = VectorIndex(33)
    other.add(slots_of(range(100)), clustered(100, 33), lsn=8)
    checkpoint(other, tmp_path / "other", 8)
    for path in sorted(folder.iterdir()):
        good = path.read_bytes()
        foreign = next(p for p in (tmp_path / "other").iterdir() if p.name.split("-")[0] == path.name.split("-")[0])
        damaged = {
            "cut": good[:-1],
            "longer": good + b"\0",
            "empty": b"",
            "header": good[:30] + bytes([good[30] ^ 1]) + good[31:],
            "foreign": foreign.read_bytes(),
            "kind": (folder / "head.chunk").read_bytes() if path.name != "head.chunk" else b"KEKCHUNK" + bytes(200),
        }
        for name, content in damaged.items():
            if name == "foreign" and path.name == "head.chunk":
                continue
            path.write_bytes(content)
            with pytest.raises(CorruptFile, match=path.name):
                VectorIndex.open(str(folder))
        path.unlink()
        with pytest.raises(CorruptFile, match=path.name):
            VectorIndex.open(str(folder))
        path.write_bytes(good)
    assert VectorIndex.open(str(folder)).validate() == []


def test_a_chunk_of_another_checkpoint_is_noticed(saved: tuple[VectorIndex, Path], tmp_path: Path) -> None:
    index, folder = saved
    index.add(slots_of([6_000]), clustered(1, 32), lsn=9)
    index.link()
    checkpoint(index, tmp_path / "second", 9)
    (folder / "states-00000.chunk").replace(tmp_path / "second" / "states-00000.chunk")
    with pytest.raises(CorruptFile, match="states-00000"):
        VectorIndex.open(str(tmp_path / "second"))


def test_any_flipped_byte_is_refused_or_found_and_never_crashes(saved: tuple[VectorIndex, Path], data: Floats) -> None:
    _, folder = saved
    rng = np.random.default_rng(4)
    found_any = 0
    for path in sorted(folder.iterdir()):
        good = path.read_bytes()
        for _ in range(12):
            content = bytearray(good)
            for at in rng.integers(0, len(good), size=int(rng.integers(1, 40))):
                content[at] ^= int(rng.integers(1, 256))
            path.write_bytes(bytes(content))
            opened, refusal = try_open(folder)
            if opened is None:
                assert path.name in refusal
                continue
            found_any += bool(opened.validate())
            exercise(opened, data)
        path.write_bytes(good)
    assert found_any > 0


@pytest.mark.parametrize("arena", ["links", "upper", "states", "rows", "codes"])
def test_chunks_full_of_noise_never_crash_a_search(arena: str, saved: tuple[VectorIndex, Path], data: Floats) -> None:
    _, folder = saved
    rng = np.random.default_rng(6)
    for path in folder.glob(f"{arena}-*"):
        good = path.read_bytes()
        path.write_bytes(good[:64] + rng.integers(0, 256, len(good) - 64, np.uint8).tobytes())
    opened = VectorIndex.open(str(folder))
    assert opened.validate() != []
    exercise(opened, data)


def try_open(folder: Path) -> tuple[VectorIndex | None, str]:
    try:
        return VectorIndex.open(str(folder)), ""
    except CorruptFile as error:
        return None, str(error)


def exercise(index: VectorIndex, data: Floats) -> None:
    """Everything that reads what may be damaged."""
    for i in range(0, 6_000, 600):
        index.search(data[i], 10)
        index.search(data[i], 5, ef=30, filter=bitmap(range(0, 6_000, 2)))
    with contextlib.suppress(CorruptFile, KeyError):
        index.vectors(np.arange(0, 6_000, 7, dtype=np.uint32))
    index.remove(slots_of(range(200)), lsn=50, erase=True)
    with contextlib.suppress(ValueError):
        index.add(slots_of(range(7_000, 7_100)), data[:100], lsn=51)
    index.link()
    index.search_batch(data[:20], 3)
    index.stats()
    index.validate()


def test_a_damaged_vector_is_named_when_it_is_read_and_its_neighbours_are_not_lost(
    saved: tuple[VectorIndex, Path], data: Floats
) -> None:
    _, folder = saved
    path = folder / "rows-00000.chunk"
    content = bytearray(path.read_bytes())
    at = bytes(content).index(data[42].tobytes())
    content[at + 5] ^= 0x10
    path.write_bytes(bytes(content))
    opened = VectorIndex.open(str(folder))
    with pytest.raises(CorruptFile, match="slot 42 does not match its checksum"):
        opened.vectors(slots_of([42]))
    assert opened.vectors(slots_of([41, 43])).tobytes() == data[[41, 43]].tobytes()
    assert opened.validate() == ["slot 42: the vector does not match its checksum", *opened.validate()[1:]]
