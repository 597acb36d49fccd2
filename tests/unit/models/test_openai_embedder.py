"""The OpenAI-compatible adapter against a server that answers well, badly, late and not at all."""

import base64
import json
import traceback
from collections.abc import Callable

import numpy as np
import pytest

from kektor.errors import Invalid, KektorError, Unavailable
from kektor.models import OpenAIEmbedder, resolve
from tests.unit.models.scripted_server import Reply, Request, serving

KEY = "sk-very-secret-0123456789"


def vector_of(text: str, dim: int = 8) -> list[float]:
    """What the scripted model answers: not unit length, and telling apart every text used here."""
    rng = np.random.default_rng(sum(text.encode()) + len(text))
    return [float(x) for x in rng.normal(size=dim) * 3]


def unit(values: list[float]) -> np.ndarray:
    array = np.asarray(values, dtype=np.float32)
    return array / np.linalg.norm(array)


def embeddings(request: Request, dim: int = 8) -> Reply:
    data = [
        {"object": "embedding", "index": index, "embedding": vector_of(text, dim)}
        for index, text in enumerate(request.body["input"])
    ]
    return Reply(body={"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}})


def embedder(url: str, **options: object) -> OpenAIEmbedder:
    defaults = {"base_url": f"{url}/v1", "api_key": KEY, "dim": 8, "retries": 0, "timeout": 20.0}
    return OpenAIEmbedder("m", **{**defaults, **options})


def refusal(make: Callable[[Request], Reply], **options: object) -> Unavailable:
    with serving(make) as server, pytest.raises(Unavailable) as caught:
        embedder(server.url, **options).embed(["one", "two"])
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value.as_dict())
    assert KEY not in shown
    assert server.url in caught.value.message
    return caught.value


def test_texts_come_back_in_order_and_normalised() -> None:
    with serving(embeddings) as server:
        got = embedder(server.url).embed(["alpha", "beta", "gamma"])
    assert got.dtype == np.float32
    assert got.shape == (3, 8)
    for row, text in zip(got, ["alpha", "beta", "gamma"], strict=True):
        np.testing.assert_allclose(row, unit(vector_of(text)), atol=1e-6)


def test_the_request_names_the_model_and_carries_the_key_and_the_wanted_size() -> None:
    with serving(embeddings) as server:
        embedder(server.url, dim=None, dimensions=8).embed(["alpha"])
    (request,) = server.requests
    assert request.path == "/v1/embeddings"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body["model"] == "m"
    assert request.body["dimensions"] == 8


def test_base64_vectors_are_read_too() -> None:
    def answer(request: Request) -> Reply:
        reply = embeddings(request)
        for item in reply.body["data"]:
            item["embedding"] = base64.b64encode(np.float32(item["embedding"]).tobytes()).decode()
        return reply

    with serving(answer) as server:
        got = embedder(server.url).embed(["alpha"])
    np.testing.assert_allclose(got[0], unit(vector_of("alpha")), atol=1e-6)


def test_shuffled_indices_are_put_in_order() -> None:
    def answer(request: Request) -> Reply:
        reply = embeddings(request)
        reply.body["data"].reverse()
        return reply

    with serving(answer) as server:
        got = embedder(server.url).embed(["alpha", "beta", "gamma"])
    np.testing.assert_allclose(got[0], unit(vector_of("alpha")), atol=1e-6)
    np.testing.assert_allclose(got[2], unit(vector_of("gamma")), atol=1e-6)


def test_many_texts_go_in_batches_at_once_and_keep_their_order() -> None:
    texts = [f"text number {index}" for index in range(57)]
    seen: list[tuple[int, int]] = []
    with serving(embeddings) as server:
        got = embedder(server.url, batch_size=10).embed(texts, progress=lambda *step: seen.append(step))
    assert sorted(len(request.body["input"]) for request in server.requests) == [7, 10, 10, 10, 10, 10]
    np.testing.assert_allclose(got, [unit(vector_of(text)) for text in texts], atol=1e-6)
    assert [done for done, _ in seen] == [10, 20, 30, 40, 50, 57]
    assert {total for _, total in seen} == {57}


def test_one_request_never_holds_more_text_than_servers_take() -> None:
    texts = [f"{index} " + "word " * 19_999 for index in range(12)]
    with serving(embeddings) as server:
        embedder(server.url, max_tokens=200_000).embed(texts)
    assert len(server.requests) > 1
    assert all(sum(map(len, request.body["input"])) <= 500_000 for request in server.requests)
    assert sum(len(request.body["input"]) for request in server.requests) == 12


def test_a_text_longer_than_the_model_reads_is_sent_whole_in_pieces() -> None:
    words = [f"w{index}" for index in range(3000)]
    with serving(embeddings) as server:
        got = embedder(server.url, max_tokens=400).embed([" ".join(words), "short"])
    sent = [text for request in server.requests for text in request.body["input"]]
    assert len(sent) > 10
    assert {word for text in sent for word in text.split()} >= set(words)
    assert got.shape == (2, 8)
    np.testing.assert_allclose(np.linalg.norm(got, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(got[1], unit(vector_of("short")), atol=1e-6)


def test_one_endless_word_is_divided_too() -> None:
    blob = base64.b64encode(np.random.default_rng(0).bytes(6000)).decode().replace("+", "x").replace("/", "y")
    with serving(embeddings) as server:
        embedder(server.url, max_tokens=400).embed([blob])
    sent = [text for request in server.requests for text in request.body["input"]]
    assert all(len(text) <= 400 for text in sent)
    assert sent[0] == blob[: len(sent[0])]
    assert sent[-1] == blob[-len(sent[-1]) :]


@pytest.mark.parametrize("header", ["retry-after", "retry-after-ms"])
def test_after_429_it_waits_as_told_and_tries_again(header: str) -> None:
    turns = iter([Reply(status=429, body={}, headers={header: "0.01"}), None])

    def answer(request: Request) -> Reply:
        return next(turns) or embeddings(request)

    with serving(answer) as server:
        got = embedder(server.url, retries=1).embed(["alpha"])
    assert len(server.requests) == 2
    np.testing.assert_allclose(got[0], unit(vector_of("alpha")), atol=1e-6)


def test_after_500_it_tries_again() -> None:
    turns = iter([Reply(status=500, body={}, headers={"retry-after": "0.01"}), None])

    def answer(request: Request) -> Reply:
        return next(turns) or embeddings(request)

    with serving(answer) as server:
        assert embedder(server.url, retries=1).embed(["alpha"]).shape == (1, 8)
    assert len(server.requests) == 2


def test_a_server_that_keeps_failing_is_unavailable_after_the_retries() -> None:
    with serving(lambda _: Reply(status=500, body={}, headers={"retry-after": "0.01"})) as server:
        with pytest.raises(Unavailable, match=r"failed \(500\)") as caught:
            embedder(server.url, retries=2).embed(["alpha"])
        assert len(server.requests) == 3
    assert caught.value.details == {"status": 500, "retry_after": "0.01"}


def test_a_refused_key_is_said_without_the_key() -> None:
    body = {"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}}
    error = refusal(lambda _: Reply(status=401, body=body))
    assert "refused the API key (401)" in error.message


def test_a_refused_request_gives_the_servers_reason_without_the_key() -> None:
    body = {"error": {"message": f"input too long for {KEY}"}}
    error = refusal(lambda _: Reply(status=400, body=body))
    assert "refused the request (400): input too long for …" in error.message


def test_an_unknown_model_is_named() -> None:
    error = refusal(lambda _: Reply(status=404, body={"error": {"message": "no"}}))
    assert "does not know the model 'm'" in error.message


def test_429_without_retries_says_so_and_when_to_come_back() -> None:
    error = refusal(lambda _: Reply(status=429, body={}, headers={"retry-after": "17"}))
    assert "refuses more requests for now (429)" in error.message
    assert error.details == {"status": 429, "retry_after": "17"}


def test_a_stalling_server_is_given_up_after_the_timeout() -> None:
    error = refusal(lambda _: Reply(stall=30), timeout=0.2)
    assert "did not answer within 0.2 s" in error.message


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with serving(embeddings) as server:
        url = server.url
    with pytest.raises(Unavailable, match="cannot be reached"):
        embedder(url).embed(["alpha"])


@pytest.mark.parametrize(
    "body",
    [
        b'{"object": "list", "data": [{"object": "embedding", "index": 0, "embed',
        b"<html>Bad gateway</html>",
        b"",
        b"null",
        b"[]",
        b'{"data": null}',
        b'{"data": []}',
        b'{"data": [{"index": 0}, {"index": 1}]}',
        b'{"data": [{"index": 0, "embedding": "not base64!"}, {"index": 1, "embedding": "x"}]}',
        b'{"data": [{"index": 0, "embedding": {"a": 1}}, {"index": 1, "embedding": {"a": 1}}]}',
    ],
)
def test_what_is_no_embeddings_response_is_unavailable(body: bytes) -> None:
    refusal(lambda _: Reply(body=body))


def test_a_connection_cut_in_the_middle_is_unavailable() -> None:
    refusal(lambda request: Reply(body=embeddings(request).content[:40], promise=1000))


def test_wrong_dimensions_are_refused_with_both_sizes() -> None:
    error = refusal(lambda request: embeddings(request, dim=9))
    assert "9 dimensions, expected 8" in error.message


def test_rows_of_different_sizes_are_refused() -> None:
    def answer(request: Request) -> Reply:
        reply = embeddings(request)
        reply.body["data"][1]["embedding"].append(1.0)
        return reply

    refusal(answer)


def test_a_wrong_number_of_vectors_is_refused() -> None:
    def answer(request: Request) -> Reply:
        reply = embeddings(request)
        reply.body["data"].pop()
        return reply

    assert "1 vectors for 2 texts" in refusal(answer).message


@pytest.mark.parametrize("indices", [[0, 0], [1, 2], [-1, 0], [0, None]])
def test_indices_that_do_not_name_each_text_once_are_refused(indices: list[object]) -> None:
    def answer(request: Request) -> Reply:
        reply = embeddings(request)
        for item, index in zip(reply.body["data"], indices, strict=True):
            item["index"] = index
        return reply

    refusal(answer)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e400", '"3"x', "null"])
def test_values_that_are_no_finite_numbers_are_refused(value: str) -> None:
    def answer(request: Request) -> Reply:
        reply = embeddings(request)
        marked = json.dumps(reply.body).replace(str(reply.body["data"][1]["embedding"][3]), value)
        return Reply(body=marked.encode())

    refusal(answer)


def test_a_zero_vector_is_refused() -> None:
    def answer(request: Request) -> Reply:
        reply = embeddings(request)
        reply.body["data"][0]["embedding"] = [0.0] * 8
        return reply

    assert "zero vector" in refusal(answer).message


def test_a_failed_batch_fails_the_call_and_stores_nothing() -> None:
    def answer(request: Request) -> Reply:
        return Reply(status=500, body={}) if "text 35" in request.body["input"] else embeddings(request)

    with serving(answer) as server:
        broken = embedder(server.url, batch_size=10)
        with pytest.raises(Unavailable):
            broken.embed([f"text {index}" for index in range(60)])
        server.answer = embeddings
        assert broken.embed([f"text {index}" for index in range(60)]).shape == (60, 8)


def test_the_dimension_is_asked_for_when_nobody_says_it() -> None:
    with serving(embeddings) as server:
        asked = embedder(server.url, dim=None)
        assert server.requests == []
        assert not asked.loaded
        assert asked.dim == 8
        assert asked.fingerprint.dim == 8
        assert asked.loaded
        assert len(server.requests) == 1


def test_known_models_need_no_request_for_their_dimension() -> None:
    assert OpenAIEmbedder("text-embedding-3-small", api_key=KEY).dim == 1536
    assert OpenAIEmbedder("text-embedding-3-large", api_key=KEY, dimensions=256).dim == 256


def test_the_key_is_nowhere_to_be_seen() -> None:
    shown = embedder("http://127.0.0.1:9")
    text = repr(shown) + str(shown) + shown.name + shown.fingerprint.text + repr(shown.fingerprint)
    assert KEY not in text
    assert "127.0.0.1:9" in shown.name


def test_the_environment_gives_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    with serving(embeddings) as server:
        embedder(server.url, api_key=None).embed(["alpha"])
    assert server.requests[0].headers["authorization"] == "Bearer sk-from-the-environment"


def test_without_a_key_openai_itself_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(Unavailable, match="set OPENAI_API_KEY or pass api_key"):
        OpenAIEmbedder("text-embedding-3-small").embed(["alpha"])


def test_a_server_of_ones_own_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with serving(embeddings) as server:
        assert embedder(server.url, api_key=None).embed(["alpha"]).shape == (1, 8)


def test_prefixes_stand_before_the_texts_and_in_the_fingerprint() -> None:
    with serving(embeddings) as server:
        prefixed = embedder(server.url, document_prefix="passage: ", query_prefix="query: ")
        prefixed.embed(["alpha"])
        prefixed.embed(["alpha"], kind="query")
    assert [request.body["input"] for request in server.requests] == [["passage: alpha"], ["query: alpha"]]
    assert "passage: " in prefixed.fingerprint.text


def test_the_name_makes_the_same_embedder_again() -> None:
    made = embedder("http://127.0.0.1:9", max_tokens=512, query_prefix="query: & more? ", retries=1)
    again = resolve(made.name)
    assert again.name == made.name
    assert again.fingerprint == made.fingerprint


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"base_url": "ftp://host/v1"}, "base_url"),
        ({"base_url": "host/v1"}, "base_url"),
        ({"base_url": f"https://user:{KEY}@host/v1"}, "base_url"),
        ({"base_url": f"https://host/v1?key={KEY}"}, "base_url"),
        ({"api_key": f"{KEY}\r\nx: y"}, "api_key"),
        ({"api_key": f"{KEY}é"}, "api_key"),
        ({"dim": 0}, "dim"),
        ({"dimensions": -1}, "dimensions"),
        ({"batch_size": 0}, "batch_size"),
        ({"timeout": 0}, "timeout"),
        ({"retries": -1}, "retries"),
        ({"max_tokens": 0}, "max_tokens"),
    ],
)
def test_wrong_settings_are_refused_by_name_without_the_key(options: dict[str, object], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        OpenAIEmbedder("m", **options)  # type: ignore[arg-type]
    assert caught.value.field == field
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_every_error_is_one_of_ours() -> None:
    with serving(lambda _: Reply(status=418, body=b"teapot")) as server, pytest.raises(KektorError):
        embedder(server.url).embed(["alpha"])
