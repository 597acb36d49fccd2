"""Token counts that a budget can rely on."""

import hashlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kektor.models import BertTokenizer, Tokenizer, default_tokenizer
from kektor.models.tokenizer import VOCABULARY, token_spans, word_pieces


def reference_count(text: str) -> int:
    """What the published tokenizer makes of a text, without its markers."""
    return len(word_pieces().encode(text, add_special_tokens=False).ids)


def test_the_vocabulary_is_the_published_file_with_its_notice_beside_it() -> None:
    assert hashlib.sha256(VOCABULARY.read_bytes()).hexdigest() == (
        "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
    )
    assert "Apache License" in (VOCABULARY.parent / "NOTICE").read_text()


def test_pieces_have_the_published_ids() -> None:
    ids = word_pieces().encode("Hello, my dog is cute: unaffable naïveté 東京").ids
    assert ids == [
        *(101, 7592, 1010, 2026, 3899, 2003, 10140, 1024),
        *(14477, 20961, 3468, 15743, 2618, 1879, 1755, 102),
    ]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        (" \n\t ", 0),
        ("Dana owns the Henderson account.", 6),
        ("DANA OWNS", 2),
        ("unaffable", 3),
        ("[SEP]", 3),
        ("😀", 1),
        ("ส" * 90, 90),
        ("x" * 300, 300),
        ("\u200b" * 40, 40),
        ("e" + "\u0301" * 30, 31),
    ],
)
def test_counts(text: str, count: int) -> None:
    assert default_tokenizer().count(text) == count


@given(st.text(max_size=200))
def test_a_count_is_never_below_the_published_tokenizers(text: str) -> None:
    assert default_tokenizer().count(text) >= reference_count(text)


@given(st.text(alphabet=st.characters(max_codepoint=126, min_codepoint=32), max_size=90))
def test_plain_english_letters_count_as_published(text: str) -> None:
    assert default_tokenizer().count(text) == reference_count(text)


@given(st.lists(st.text(max_size=40), max_size=8))
def test_counting_many_is_counting_each(texts: list[str]) -> None:
    tokenizer = default_tokenizer()
    assert tokenizer.counts(texts) == [tokenizer.count(text) for text in texts]


@given(st.text(max_size=120))
def test_spans_lie_in_the_text_in_order(text: str) -> None:
    spans = token_spans(text)
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert spans == sorted(spans)


def test_it_has_a_name_and_is_one_per_process() -> None:
    tokenizer: Tokenizer = default_tokenizer()
    assert tokenizer.name == BertTokenizer.name == "bert-uncased"
    assert default_tokenizer() is tokenizer


def test_many_threads_count_alike() -> None:
    texts = [f"memory number {index} of {index * 7}" for index in range(200)]
    expected = default_tokenizer().counts(texts)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(default_tokenizer().count, texts)) == expected
