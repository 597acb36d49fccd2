"""Models from the hub: a server that speaks its protocol, the cache, and no network at all."""

import hashlib
import importlib.util
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kektor.errors import Corrupt, Invalid, NotFound, Unavailable
from kektor.models import HubEmbedder, OnnxFileEmbedder, resolve
from tests.unit.models.scripted_server import Reply, Request, serving
from tests.unit.models.tiny_onnx import write_model

COMMIT = "5c38ec7c405ec4b44b94cc5a9bb96e735b38267a"
TOKEN = "hf_secret"
MODEL = f"acme/tiny@{COMMIT}"


@pytest.fixture
def published(tmp_path: Path) -> Path:
    folder = tmp_path / "published"
    folder.mkdir()
    return write_model(folder)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def hub(published: Path) -> Callable[[Request], Reply]:
    files = {
        "onnx/model.onnx": published.read_bytes(),
        "tokenizer.json": (published.parent / "tokenizer.json").read_bytes(),
    }

    def answer(request: Request) -> Reply:
        for name, content in files.items():
            if request.path == f"/acme/tiny/resolve/{COMMIT}/{name}":
                etag = hashlib.sha256(content).hexdigest()
                return Reply(body=content, headers={"etag": f'"{etag}"', "x-repo-commit": COMMIT})
        return Reply(status=404, body={}, headers={"x-error-code": "EntryNotFound"})

    return answer


def test_a_model_is_fetched_once_and_then_works_without_the_network(published: Path, cache: Path) -> None:
    with serving(hub(published)) as server:
        online = HubEmbedder(MODEL, endpoint=server.url, cache_dir=cache)
        assert server.requests == []
        first = online.embed(["dana owns the account"])
        asked = len(server.requests)
        again = HubEmbedder(MODEL, endpoint=server.url, cache_dir=cache)
        np.testing.assert_array_equal(again.embed(["dana owns the account"]), first)
        assert len(server.requests) == asked
    offline = HubEmbedder(MODEL, endpoint=server.url, cache_dir=cache)
    np.testing.assert_array_equal(offline.embed(["dana owns the account"]), first)
    assert offline.fingerprint == online.fingerprint
    np.testing.assert_array_equal(OnnxFileEmbedder(published).embed(["dana owns the account"]), first)


def test_nothing_is_printed_while_fetching(published: Path, cache: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with serving(hub(published)) as server:
        HubEmbedder(MODEL, endpoint=server.url, cache_dir=cache).warm()
    assert capfd.readouterr() == ("", "")


def test_the_fingerprint_pins_the_files(published: Path, cache: Path) -> None:
    with serving(hub(published)) as server:
        got = HubEmbedder(MODEL, endpoint=server.url, cache_dir=cache).fingerprint
    assert got.model == "hub:acme/tiny"
    assert got.file_sha256 == hashlib.sha256(published.read_bytes()).hexdigest()


def test_a_pinned_digest_is_held(published: Path, cache: Path) -> None:
    digest = hashlib.sha256(published.read_bytes()).hexdigest()
    with serving(hub(published)) as server:
        HubEmbedder(MODEL, sha256=digest, endpoint=server.url, cache_dir=cache).warm()
        with pytest.raises(Corrupt, match=f"has sha256 {digest}, pinned is {'0' * 64}"):
            HubEmbedder(MODEL, sha256="0" * 64, endpoint=server.url, cache_dir=cache).warm()


def test_a_hub_that_cannot_be_reached_is_said_with_a_way_out(published: Path, cache: Path) -> None:
    with serving(hub(published)) as server:
        url = server.url
    with pytest.raises(Unavailable, match=r"not in the local cache and could not be fetched .* embedder='onnx:PATH'"):
        HubEmbedder(MODEL, endpoint=url, cache_dir=cache).embed(["a"])


def test_a_failing_hub_is_unavailable(cache: Path) -> None:
    with serving(lambda _: Reply(status=503, body={})) as server, pytest.raises(Unavailable):
        HubEmbedder(MODEL, endpoint=server.url, cache_dir=cache).warm()


def test_a_file_that_the_repository_lacks_is_not_found(published: Path, cache: Path) -> None:
    with serving(hub(published)) as server, pytest.raises(NotFound, match=r"no other\.onnx of acme/tiny"):
        HubEmbedder(MODEL, file="other.onnx", endpoint=server.url, cache_dir=cache).warm()


def test_an_unknown_repository_is_not_found(cache: Path) -> None:
    headers = {"x-error-code": "RepoNotFound"}
    with serving(lambda _: Reply(status=404, body={}, headers=headers)) as server, pytest.raises(NotFound):
        HubEmbedder(MODEL, endpoint=server.url, cache_dir=cache).warm()


def test_a_download_cut_short_is_not_taken_for_the_model(published: Path, cache: Path) -> None:
    whole = hub(published)

    def cut(request: Request) -> Reply:
        reply = whole(request)
        if request.method == "GET" and request.path.endswith("model.onnx"):
            kept = len(reply.body) // 2
            return Reply(body=reply.body[:kept], headers=reply.headers, promise=len(reply.body) - kept)
        return reply

    with serving(cut) as server:
        embedder = HubEmbedder(MODEL, endpoint=server.url, cache_dir=cache)
        with pytest.raises(Unavailable):
            embedder.warm()
        server.answer = whole
        assert embedder.embed(["a"]).shape == (1, 4)


def test_the_token_is_sent_and_never_shown(published: Path, cache: Path) -> None:
    with serving(hub(published)) as server:
        embedder = HubEmbedder(MODEL, token=TOKEN, endpoint=server.url, cache_dir=cache)
        embedder.warm()
        assert server.requests[0].headers["authorization"] == f"Bearer {TOKEN}"
        assert TOKEN not in repr(embedder) + embedder.name + repr(embedder.fingerprint)
    with pytest.raises(Unavailable) as caught:
        HubEmbedder(MODEL, token=TOKEN, endpoint=server.url, cache_dir=cache / "other").warm()
    assert TOKEN not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "model",
    ["acme/tiny", "acme/tiny@main", "tiny@" + COMMIT, "acme/tiny@" + COMMIT[:12], f"a/b/c@{COMMIT}", ""],
)
def test_a_model_without_its_whole_commit_is_refused(model: str) -> None:
    with pytest.raises(Invalid, match="ORG/NAME@COMMIT"):
        HubEmbedder(model)


def test_a_digest_that_is_none_is_refused() -> None:
    with pytest.raises(Invalid, match="64 hexadecimal digits"):
        HubEmbedder(MODEL, sha256="abc")


def test_the_name_makes_the_same_embedder_again() -> None:
    made = HubEmbedder(MODEL, pooling="cls", sha256="ab" * 32, file="model_q8.onnx", max_tokens=512)
    assert resolve(made.name).name == made.name


def test_without_its_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        "kektor.models.extras.find_spec",
        lambda name: None if name == "huggingface_hub" else find_spec(name),
    )
    with pytest.raises(Unavailable, match=r"pip install 'kektor\[hub\]'"):
        resolve(f"hub:{MODEL}")
