"""How a text longer than a model reads at once is divided: overlapping windows, nothing left out."""

from collections.abc import Sequence

__all__ = ["slices", "split"]


def slices(total: int, size: int, overlap: int) -> list[tuple[int, int]]:
    """Half-open ranges of equal length that cover `0..total`, each overlapping the next by `overlap` or more.

    As few as will do, of equal length, so that no short tail weighs as much as a full window.

    >>> slices(10, 6, 2)
    [(0, 6), (4, 10)]
    >>> slices(5, 6, 2)
    [(0, 5)]
    """
    if total <= size:
        return [(0, total)]
    count = -((overlap - total) // (size - overlap))
    length = -((-(total + (count - 1) * overlap)) // count)
    starts = [index * (total - length) // (count - 1) for index in range(count)]
    return [(start, start + length) for start in starts]


def split(text: str, offsets: Sequence[tuple[int, int]], size: int, overlap: int) -> list[str]:
    """`text` as overlapping pieces of at most `size` tokens, given where each token stands in it.

    >>> split("one two three", [(0, 3), (4, 7), (8, 13)], 2, 1)
    ['one two', 'two three']
    """
    if len(offsets) <= size:
        return [text]
    return [text[offsets[start][0] : offsets[end - 1][1]] for start, end in slices(len(offsets), size, overlap)]
