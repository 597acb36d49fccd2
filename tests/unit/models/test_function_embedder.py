"""A function of the user's as an embedder."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kektor.errors import Blocked, Invalid, Unavailable
from kektor.models import FunctionEmbedder, resolve


def lengths(texts: list[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0] for text in texts]


def test_a_function_is_an_embedder() -> None:
    embedder = resolve(lengths)
    got = embedder.embed(["four", "sixsix"])
    assert got.tolist() == [[4, 1], [6, 1]]
    assert got.dtype == np.float32
    assert embedder.dim == 2
    assert embedder.name == "custom"


def test_the_fingerprint_has_the_given_name_else_the_functions_own() -> None:
    assert resolve(lengths).fingerprint.model == f"{__name__}.lengths"
    assert resolve(lengths, name="acme-v2").fingerprint.model == "acme-v2"
    assert resolve(lambda texts: lengths(texts)).fingerprint.model.endswith("<lambda>")

    class Model:
        def __call__(self, texts: list[str]) -> list[list[float]]:
            return lengths(texts)

    assert resolve(Model()).fingerprint.model.endswith("Model")


def test_the_dimension_is_found_with_one_call_or_given() -> None:
    calls: list[int] = []

    def counted(texts: list[str]) -> list[list[float]]:
        calls.append(len(texts))
        return lengths(texts)

    given = FunctionEmbedder(counted, dim=2)
    assert given.loaded
    assert given.dim == 2
    assert given.fingerprint.dim == 2
    assert calls == []
    found = FunctionEmbedder(counted)
    assert not found.loaded
    found.warm()
    assert found.loaded
    assert found.dim == found.dim == 2
    assert calls == [1]


def test_texts_go_in_batches_in_order() -> None:
    batches: list[list[str]] = []

    def keep(texts: list[str]) -> np.ndarray:
        batches.append(texts)
        return np.array(lengths(texts))

    seen: list[tuple[int, int]] = []
    texts = ["x" * (index + 1) for index in range(25)]
    got = FunctionEmbedder(keep, dim=2, batch_size=10).embed(texts, progress=lambda *step: seen.append(step))
    assert [len(batch) for batch in batches] == [10, 10, 5]
    assert got[:, 0].tolist() == [float(index + 1) for index in range(25)]
    assert seen == [(10, 25), (20, 25), (25, 25)]


def test_it_normalises_only_when_asked() -> None:
    assert resolve(lengths, normalize=True).embed(["xxx"]).tolist() == [pytest.approx([0.9486833, 0.3162278])]
    assert resolve(lengths, normalize=True).fingerprint.normalized
    assert not resolve(lengths).fingerprint.normalized


def test_the_users_own_array_is_not_written_to() -> None:
    mine = np.array([[3.0, 4.0]], dtype=np.float32)
    got = FunctionEmbedder(lambda _: mine, dim=2, normalize=True).embed(["a"])
    assert got.tolist() == [pytest.approx([0.6, 0.8])]
    assert mine.tolist() == [[3, 4]]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([[1.0, 2.0]], "shape"),
        ([1.0, 2.0], "shape"),
        ([[1.0], [2.0, 3.0]], "not an array of numbers"),
        ([[1.0, float("nan")]] * 2, "NaN or infinite"),
        ([[1e300, 1.0]] * 2, "NaN or infinite"),
        ([["a", "b"]] * 2, "not an array of numbers"),
        ([[1.0, 2.0, 3.0]] * 2, "3 dimensions, expected 2"),
        ([[], []], "shape"),
        (None, "shape|not an array"),
        (7, "shape"),
    ],
)
def test_what_is_no_array_of_vectors_is_refused(answer: object, message: str) -> None:
    with pytest.raises(Unavailable, match=message):
        FunctionEmbedder(lambda _: answer, name="mine", dim=2).embed(["one", "two"])


def test_what_the_function_raises_is_said_with_its_name() -> None:
    def broken(_: list[str]) -> None:
        raise ConnectionError("no route")

    with pytest.raises(Unavailable, match=r"mine failed: ConnectionError: no route") as caught:
        FunctionEmbedder(broken, name="mine", dim=2).embed(["one"])
    assert isinstance(caught.value.__cause__, ConnectionError)


def test_an_error_of_ours_passes_unchanged() -> None:
    def refuses(_: list[str]) -> None:
        raise Blocked("not this text")

    with pytest.raises(Blocked):
        FunctionEmbedder(refuses, dim=2).embed(["one"])


def test_calls_take_turns_unless_the_function_is_said_to_be_safe() -> None:
    inside, most = [0], [0]
    met = threading.Barrier(4)

    def watched(texts: list[str]) -> list[list[float]]:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        threading.Event().wait(0.005)
        inside[0] -= 1
        return lengths(texts)

    def together(texts: list[str]) -> list[list[float]]:
        met.wait(30)  # passes only when four calls are inside at once
        return lengths(texts)

    alone = FunctionEmbedder(watched, dim=2)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda index: alone.embed([f"text {index}"]), range(12)))
    assert most == [1]
    many = FunctionEmbedder(together, dim=2, concurrent=True)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda index: many.embed([f"text {index}"]), range(4)))


def test_prefixes_reach_the_function() -> None:
    seen: list[str] = []

    def keep(texts: list[str]) -> list[list[float]]:
        seen.extend(texts)
        return lengths(texts)

    embedder = FunctionEmbedder(keep, dim=2, document_prefix="d: ", query_prefix="q: ")
    embedder.embed(["x"])
    embedder.embed(["x"], kind="query")
    assert seen == ["d: x", "q: x"]


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(Invalid, match="batch_size"):
        resolve(lengths, batch_size=0)
    with pytest.raises(Invalid, match="has no option 'dimension'; it has: name, dim"):
        resolve(lengths, dimension=2)
