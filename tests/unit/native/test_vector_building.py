"""How VectorIndex grows: any batch size, background threads, many callers at once."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from kektor_native import VectorIndex

from tests.support.vector_samples import (
    Floats,
    bitmap,
    checkpoint,
    clustered,
    exact_scores,
    figure,
    filled,
    recall,
    slots_of,
    wait_until,
)


@pytest.fixture(scope="module")
def data() -> Floats:
    return clustered(6_000, 32)


@pytest.fixture(scope="module")
def queries() -> Floats:
    return clustered(60, 32, seed=5)


# ---------------------------------------------------------------- building


def test_any_batch_size_gives_the_recall_of_one_by_one() -> None:
    vectors, probes = clustered(10_000, 32, intrinsic=24), clustered(200, 32, seed=4, intrinsic=24)
    expected = exact_scores("cosine", probes, vectors)
    recalls = []
    for first, step in [(10_000, 1), (300, 9_700), (0, 10_000), (0, 700)]:
        index = VectorIndex(32)
        for slot in range(0, first, 1 if step == 1 else first or 1):
            size = 1 if step == 1 else first
            index.add(np.arange(slot, slot + size, dtype=np.uint32), vectors[slot : slot + size], lsn=1)
            if step == 1 and slot % 1_000 == 999:
                index.link()
        index.link()
        for slot in range(first, 10_000, step):
            part = vectors[slot : slot + step]
            index.add(np.arange(slot, slot + len(part), dtype=np.uint32), part, lsn=2)
        index.link()
        assert len(index) == 10_000
        assert index.validate() == []
        recalls.append(recall(index.search_batch(probes, 10, ef=40)[0], expected))
    assert max(recalls) - min(recalls) <= 0.005


def test_a_rebuild_on_one_thread_has_the_same_links(data: Floats, tmp_path: Path) -> None:
    for name in ("a", "b"):
        checkpoint(filled(data[:4_000], link=False), tmp_path / f"unlinked-{name}")
        index = VectorIndex.open(str(tmp_path / f"unlinked-{name}"))
        index.link(threads=1)
        checkpoint(index, tmp_path / name)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert any(name.startswith("links") for name in files)
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_small_index_needs_no_graph_and_a_larger_one_links_in_the_background() -> None:
    vectors = clustered(12_000, 8)
    index = filled(vectors[:4_000], link=False)
    assert figure(index, "linked") == 0
    index.add(np.arange(4_000, 12_000, dtype=np.uint32), vectors[4_000:], lsn=2)
    wait_until(lambda: figure(index, "linked") == 12_000)
    assert index.validate() == []


def test_a_long_tail_makes_add_link_what_it_adds() -> None:
    vectors = clustered(40_000, 4)
    index = VectorIndex(4, metric="l2", ef_construction=10, m=4)
    for start in range(0, 40_000, 1_000):
        index.add(np.arange(start, start + 1_000, dtype=np.uint32), vectors[start : start + 1_000], lsn=1)
        assert figure(index, "unlinked") <= figure(index, "long_tail")
    assert len(index) == 40_000


# ---------------------------------------------------------------- threads


def test_adds_removes_and_searches_from_many_threads(tmp_path: Path) -> None:
    vectors = clustered(16_000, 16)
    index = filled(vectors[:9_000])
    failures: list[str] = []
    stop = threading.Event()
    removed: set[int] = set()
    locked = threading.Lock()

    def adder(part: int) -> None:
        for slot in range(9_000 + part * 3_500, 9_000 + (part + 1) * 3_500, 50):
            index.add(np.arange(slot, slot + 50, dtype=np.uint32), vectors[slot : slot + 50], lsn=slot)
            found, _ = index.search(vectors[slot + 7], 1)
            if found.tolist() != [slot + 7]:
                failures.append(f"{slot + 7} not found right after it was added")

    def remover() -> None:
        for slot in range(0, 4_000, 4):
            index.remove(slots_of([slot]), lsn=slot, erase=slot % 8 == 0)
            with locked:
                removed.add(slot)

    def searcher(seed: int) -> None:
        rng = np.random.default_rng(seed)
        passing = bitmap(range(0, 16_000, 3))
        while not stop.is_set():
            with locked:
                gone = set(removed)
            query = vectors[rng.integers(9_000)]
            found, scores = index.search(query, 10, filter=passing if rng.random() < 0.3 else None)
            if gone & set(found.tolist()):
                failures.append("a removed slot was found")
            if len(found) != 10 or np.isnan(scores).any() or (np.diff(scores) > 0).any():
                failures.append(f"a wrong answer: {found} {scores}")

    def checkpointer() -> None:
        number = 0
        while not stop.is_set():
            folder = tmp_path / str(number)
            checkpoint(index, folder, number)
            problems = VectorIndex.open(str(folder)).validate()
            if problems:
                failures.append(f"checkpoint {number}: {problems[:3]}")
            number += 1

    readers = [threading.Thread(target=searcher, args=(i,)) for i in range(3)]
    readers.append(threading.Thread(target=checkpointer))
    writers = [threading.Thread(target=adder, args=(i,)) for i in range(2)] + [threading.Thread(target=remover)]
    for thread in readers + writers:
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    for thread in readers:
        thread.join()
    assert failures == []
    assert len(index) == 16_000 - 1_000
    index.link()
    assert index.validate() == []


def thread_names() -> list[str]:
    names = []
    for task in Path("/proc/self/task").iterdir():
        try:
            names.append((task / "comm").read_text().strip())
        except OSError:
            continue
    return names


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads Linux's list of threads")
def test_background_threads_end_with_the_index_and_with_the_work() -> None:
    vectors = clustered(30_000, 64)
    index = filled(vectors, link=False)
    wait_until(lambda: "kektor-link" in thread_names())
    del index
    wait_until(lambda: "kektor-link" not in thread_names(), 10)
    index = filled(vectors[:9_000, :4].copy(), "l2", link=False)
    wait_until(lambda: figure(index, "unlinked") == 0)
    wait_until(lambda: "kektor-link" not in thread_names(), 10)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_forked_child_is_told_to_open_the_index_itself_and_can_make_its_own(data: Floats) -> None:
    index = filled(clustered(20_000, 32), link=False)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            index.search(data[0], 1)
        except RuntimeError as error:
            own = filled(clustered(9_000, 8), link=False)
            while figure(own, "unlinked"):
                time.sleep(0.01)
            code = 0 if "fork" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert len(index.search(data[0], 5)[0]) == 5


def test_the_interpreter_exits_while_rows_wait_to_be_linked() -> None:
    program = """
import numpy as np, kektor_native
index = kektor_native.VectorIndex(64)
vectors = np.random.default_rng(0).standard_normal((30_000, 64)).astype(np.float32)
index.add(np.arange(30_000, dtype=np.uint32), vectors, lsn=1)
print(index.stats()["unlinked"] > 20_000)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=True)
    assert done.stdout.split() == [b"True"]
