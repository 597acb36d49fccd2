"""Windows over a text for a model whose own tokenizer is not at hand."""

from kektor.models.tokenizer import token_spans
from kektor.models.windows import split

__all__ = ["pieces"]


def pieces(text: str, max_tokens: int) -> list[str]:
    """`text`, or overlapping pieces of it that a model reading `max_tokens` at once should take whole.

    Counted with the bundled vocabulary, and a quarter is kept free because the model's own will count
    otherwise.

    >>> pieces("a short text", 512)
    ['a short text']
    """
    if len(text.encode()) <= max_tokens:  # no vocabulary makes more tokens than bytes
        return [text]
    size = max(max_tokens * 3 // 4, 2)
    return split(text, token_spans(text), size, size // 8)
