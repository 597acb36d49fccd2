"""Records by number: what was put is read, before and after checkpoints, and damage costs one record."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kektor_native import CHUNK_HEADER_BYTES, CorruptFile

from kektor.errors import Corrupt
from kektor.storage.heap import ROWS, RecordHeap


def _checkpoint(heap: RecordHeap, folder: Path, lsn: int) -> None:
    folder.mkdir()
    for chunk in heap.freeze(lsn):
        heap.write(chunk, str(folder / chunk.name))
    heap.release(True)


@settings(max_examples=30, deadline=None)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.sampled_from([0, 1, ROWS - 1, ROWS, 3 * ROWS + 7]), st.binary(min_size=1)),
            st.tuples(st.just("drop"), st.sampled_from([0, 1, ROWS - 1, ROWS, 3 * ROWS + 7]), st.just(b"")),
            st.tuples(st.just("checkpoint"), st.just(0), st.just(b"")),
        ),
        max_size=25,
    )
)
def test_equals_a_dictionary_through_checkpoints_and_reopening(
    steps: list[tuple[str, int, bytes]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("heap")
    heap, model = RecordHeap("nodes"), {}
    for at, (what, number, record) in enumerate(steps):
        if what == "put":
            heap.put(number, record)
            model[number] = record
        elif what == "drop":
            heap.drop(number)
            model.pop(number, None)
        else:
            _checkpoint(heap, root / str(at), at)
        assert list(heap.numbers()) == sorted(model)
        assert {number: heap.get(number) for number in model} == model
    _checkpoint(heap, root / "last", 99)
    reopened = RecordHeap.open(root / "last", "nodes")
    assert {number: reopened.get(number) for number in reopened.numbers()} == model
    assert reopened.validate() == []


def test_a_change_during_a_checkpoint_stays_and_the_file_holds_the_frozen_value(tmp_path: Path) -> None:
    heap = RecordHeap("nodes")
    heap.put(1, b"old")
    chunks = heap.freeze(5)
    heap.put(1, b"new")
    heap.put(2, b"later")
    heap.write(chunks[0], str(tmp_path / chunks[0].name))
    heap.release(True)
    assert (heap.get(1), heap.get(2)) == (b"new", b"later")
    assert RecordHeap.open(tmp_path, "nodes").get(1) == b"old"
    assert heap.freeze(6)[0].dirty


def test_an_unchanged_chunk_is_clean_after_a_written_checkpoint_and_dirty_after_a_failed_one(tmp_path: Path) -> None:
    heap = RecordHeap("nodes")
    heap.put(1, b"a")
    assert heap.freeze(1)[0].dirty
    heap.release(False)
    _checkpoint(heap, tmp_path / "a", 2)
    assert not heap.freeze(3)[0].dirty
    heap.release(False)


def test_a_flipped_byte_costs_that_record_only_and_is_named(tmp_path: Path) -> None:
    heap = RecordHeap("nodes")
    heap.put(1, b"first record")
    heap.put(2, b"second record")
    _checkpoint(heap, tmp_path / "c", 1)
    path = tmp_path / "c" / "rows-00000000.heap"
    data = bytearray(path.read_bytes())
    data[data.index(b"first record")] ^= 1
    path.write_bytes(data)
    damaged = RecordHeap.open(tmp_path / "c", "nodes")
    with pytest.raises(Corrupt, match="row 1 is damaged"):
        damaged.get(1)
    assert damaged.get(2) == b"second record"
    assert len(damaged.validate()) == 1
    damaged.put(3, b"third")
    _checkpoint(damaged, tmp_path / "d", 2)
    copied = RecordHeap.open(tmp_path / "d", "nodes")
    with pytest.raises(Corrupt):
        copied.get(1)
    assert (copied.get(2), copied.get(3)) == (b"second record", b"third")


@pytest.mark.parametrize("length", [0, 10, CHUNK_HEADER_BYTES, CHUNK_HEADER_BYTES + 100])
def test_a_short_file_is_refused_by_name(length: int, tmp_path: Path) -> None:
    heap = RecordHeap("nodes")
    heap.put(1, b"x" * 100)
    _checkpoint(heap, tmp_path / "c", 1)
    path = tmp_path / "c" / "rows-00000000.heap"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(CorruptFile, match="rows-00000000"):
        RecordHeap.open(tmp_path / "c", "nodes")


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    heap = RecordHeap("edges")
    heap.put(1, b"x")
    _checkpoint(heap, tmp_path / "c", 1)
    with pytest.raises(CorruptFile, match="edges"):
        RecordHeap.open(tmp_path / "c", "nodes")
