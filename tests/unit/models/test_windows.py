"""Windows over long texts leave nothing out."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kektor.models.arrays import merge_windows
from kektor.models.remote_windows import pieces
from kektor.models.tokenizer import default_tokenizer
from kektor.models.windows import slices, split

sizes = st.integers(2, 300).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))


@given(st.integers(0, 5000), sizes)
def test_slices_cover_everything_with_the_overlap_and_never_exceed_the_size(
    total: int, size_and_overlap: tuple[int, int]
) -> None:
    size, overlap = size_and_overlap
    got = slices(total, size, overlap)
    assert got[0][0] == 0
    assert got[-1][1] == total
    assert len({end - start for start, end in got}) == 1
    assert all(end - start <= size for start, end in got)
    assert all(before[1] - after[0] >= overlap for before, after in pairwise(got))


@given(st.integers(301, 5000), sizes)
def test_slices_are_as_few_as_will_do(total: int, size_and_overlap: tuple[int, int]) -> None:
    size, overlap = size_and_overlap
    fewer = len(slices(total, size, overlap)) - 1
    assert fewer * size - (fewer - 1) * overlap < total


def test_a_text_that_fits_is_one_window() -> None:
    assert slices(256, 256, 32) == [(0, 256)]
    assert slices(0, 256, 32) == [(0, 0)]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), min_size=1, max_size=80), st.integers(2, 12))
def test_split_pieces_hold_every_token_of_the_text(tokens: list[tuple[int, int]], size: int) -> None:
    spans, end = [], 0
    for gap, length in tokens:
        spans.append((end + gap, end + gap + length))
        end += gap + length
    text = "".join(chr(0x4E00 + index) for index in range(end))  # each character once: a piece has one place
    covered = set("".join(split(text, spans, size, size // 3)))
    assert all(covered >= set(text[start:stop]) for start, stop in spans)


def test_pieces_for_a_remote_model_stay_within_its_limit_by_our_count() -> None:
    text = "The tide table for Bergen lists high water at 04:12 and 16:38. " * 200
    got = pieces(text, 100)
    assert len(got) > 20
    assert all(default_tokenizer().count(piece) <= 75 for piece in got)
    assert text.startswith(got[0])
    assert text.rstrip().endswith(got[-1])


def test_a_text_of_fewer_bytes_than_the_limit_is_left_alone() -> None:
    assert pieces("one two three four", 18) == ["one two three four"]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_merging_is_the_mean_of_each_texts_windows(counts: list[int], random: object) -> None:
    vectors = np.random.default_rng(sum(counts)).normal(size=(sum(counts), 3)).astype(np.float32)
    got = merge_windows(vectors.copy(), counts)
    start = 0
    for row, count in zip(got, counts, strict=True):
        np.testing.assert_allclose(row, vectors[start : start + count].mean(axis=0), rtol=1e-5, atol=1e-6)
        start += count
    assert start == sum(counts)


def test_merging_nothing_long_changes_nothing() -> None:
    vectors = np.float32([[1, 2], [3, 4]])
    assert merge_windows(vectors, [1, 1]) is vectors


@pytest.mark.parametrize("text", ["", "   ", "\u200b" * 500])
def test_a_text_without_tokens_is_one_piece(text: str) -> None:
    assert pieces(text, 4) == [text]
