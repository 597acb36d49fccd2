"""The cache of recent vectors holds what it says and no more."""

import threading

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kektor.models.cache import VectorCache
from kektor.models.once import Once

keys = st.integers(0, 12).map(lambda number: bytes([number]))


def row(key: bytes) -> np.ndarray:
    return np.full(2, key[0], dtype=np.float32)


@given(
    st.integers(0, 6),
    st.lists(st.one_of(st.tuples(st.just("put"), keys), st.tuples(st.just("find"), keys)), max_size=60),
)
def test_it_keeps_the_most_recent_like_a_plain_list(capacity: int, steps: list[tuple[str, bytes]]) -> None:
    cache, recent = VectorCache(capacity), list[bytes]()
    for step, key in steps:
        if step == "put":
            cache.put([(key, row(key))])
            recent = [*(k for k in recent if k != key), key][-capacity:] if capacity else []
        else:
            found = cache.find([key])
            assert (key in found) == (key in recent)
            if key in recent:
                np.testing.assert_array_equal(found[key], row(key))
                recent = [*(k for k in recent if k != key), key]
        assert len(cache) == len(recent)


def test_a_kept_row_does_not_hold_its_batch_in_memory() -> None:
    cache, batch = VectorCache(4), np.ones((1000, 8), dtype=np.float32)
    cache.put([(b"a", batch[3])])
    assert cache.find([b"a"])[b"a"].base is None


def test_clearing_forgets_all() -> None:
    cache = VectorCache(4)
    cache.put([(b"a", row(b"a")), (b"b", row(b"b"))])
    assert len(cache.find([b"a", b"b"])) == 2
    cache.clear()
    assert cache.find([b"a", b"b"]) == {}


def test_threads_never_see_another_key_s_row() -> None:
    cache, wrong = VectorCache(8), list[bytes]()

    def work(seed: int) -> None:
        for step in range(2000):
            key = bytes([(step * seed) % 16])
            cache.put([(key, row(key))])
            for found, value in cache.find([key]).items():
                if value[0] != found[0]:
                    wrong.append(found)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 3, 5, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(cache) == 8


def test_once_makes_its_value_once_for_many_threads() -> None:
    made = []
    barrier = threading.Barrier(8)
    once = Once(lambda: made.append(1) or object())

    def ask() -> None:
        barrier.wait()
        got.append(once.get())

    got: list[object] = []
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert len(set(map(id, got))) == 1
