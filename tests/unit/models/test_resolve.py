"""From a spec to an embedder."""

import gc
import importlib.util
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import kektor.models as models
from kektor.errors import Invalid, NotFound, Unavailable
from kektor.models import MiniLMEmbedder, OpenAIEmbedder, resolve
from kektor.models.spec import parse_spec, spec_text
from tests.support.embedders import HashingEmbedder
from tests.unit.models.tiny_onnx import write_model


def test_the_default_is_one_instance_by_all_its_names() -> None:
    assert resolve() is resolve(None) is resolve("default") is resolve("minilm")
    assert isinstance(resolve(), MiniLMEmbedder)
    assert resolve(resolve().name) is resolve()


def test_threads_that_ask_first_get_the_same_instance(tmp_path: Path) -> None:
    path = write_model(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda _: resolve(f"onnx:{path}"), range(32)))
    assert len(set(map(id, got))) == 1


def test_equal_specs_share_a_loaded_model_only_while_someone_uses_it(tmp_path: Path) -> None:
    path = write_model(tmp_path)
    first = resolve(f"onnx:{path}")
    first.warm()
    assert resolve(f"onnx:{path}") is first
    assert resolve(f"onnx:{path}?pooling=cls") is not first
    del first
    gc.collect()
    assert not resolve(f"onnx:{path}").loaded


def test_options_of_this_machine_make_an_instance_of_their_own() -> None:
    assert resolve("minilm", threads=1) is not resolve("minilm")
    assert resolve("minilm", threads=1).name == "minilm"


def test_an_embedder_is_returned_as_it_is() -> None:
    mine = HashingEmbedder()
    assert resolve(mine) is mine


def test_resolving_touches_no_property_of_an_embedder() -> None:
    class Slow(HashingEmbedder):
        @property
        def dim(self) -> int:  # type: ignore[override]
            raise AssertionError("asked for its dimension")

        @dim.setter
        def dim(self, _: int) -> None: ...

    assert isinstance(resolve(Slow()), Slow)


@pytest.mark.parametrize(
    "spec",
    ["", "nope", "nope:x", "openai", "openai:", "minilm:x", "minilm-int8:x", "onnx:", "hub:", ":", "?"],
)
def test_an_unknown_spec_lists_what_exists(spec: str) -> None:
    with pytest.raises(
        Invalid,
        match=r"there are: minilm \(the default\), minilm-int8, openai:MODEL, sentence-transformers:NAME",
    ) as e:
        resolve(spec)
    assert e.value.field == "embedder"


@pytest.mark.parametrize("spec", [7, 1.5, [], {"a": 1}, b"minilm", object()])
def test_what_is_no_spec_at_all_is_refused(spec: object) -> None:
    with pytest.raises(Invalid, match="must be a spec, an embedder or a function"):
        resolve(spec)  # type: ignore[arg-type]


def test_half_an_embedder_is_refused_with_what_it_lacks() -> None:
    class Half:
        def embed(self, texts: list[str]) -> list[str]:
            return texts

    with pytest.raises(Invalid, match="Half has embed but not name, dim, fingerprint, loaded, warm, clear"):
        resolve(Half())  # type: ignore[arg-type]


def test_options_in_the_text_are_read_as_their_types() -> None:
    got = resolve("openai:nomic-embed-text?base_url=http://localhost:11434/v1&dim=768&timeout=2.5", api_key="k")
    assert isinstance(got, OpenAIEmbedder)
    assert got.dim == 768
    assert got.name == "openai:nomic-embed-text?base_url=http://localhost:11434/v1&dim=768&timeout=2.5"


def test_model_names_with_colons_and_slashes_are_kept() -> None:
    got = resolve("openai:BAAI/bge-m3:latest?dim=1024", api_key="k")
    assert got.fingerprint.model == "openai:BAAI/bge-m3:latest"


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ("openai:m?dim=many", {}, "option 'dim' must be a whole number, not 'many'"),
        ("openai:m?timeout=soon", {}, "option 'timeout' must be a number"),
        ("openai:m?colour=red", {}, "no option 'colour' in its spec; it has: base_url, dim"),
        ("openai:m?dim", {}, "option=value"),
        ("openai:m?dim=1&dim=2", {}, "gives an option twice"),
        ("openai:m?dim=8", {"dim": 9}, "dim is given both in the spec and beside it"),
        ("openai:m", {"colour": "red"}, "has no option 'colour'; it has: base_url, api_key"),
        ("openai:m", {"dim": "8"}, "option 'dim' must be int, not '8'"),
        ("openai:m", {"dim": True}, "option 'dim' must be int"),
        ("minilm?pooling=cls", {}, "no option 'pooling' in its spec; it has: none"),
        ("minilm", {"dim": 3}, "has no option 'dim'; it has: threads, cache_size"),
    ],
)
def test_wrong_options_are_named(spec: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        resolve(spec, **options)


def test_a_key_in_a_spec_is_refused_and_not_repeated() -> None:
    for spec in ("openai:m?api_key=sk-secret", "opnai:m?api_key=sk-secret", "openai:m?api_key=sk-secret&x"):
        with pytest.raises(Invalid) as caught:
            resolve(spec)
        assert "sk-secret" not in caught.value.message


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(NotFound, match=r"no ONNX file at /nowhere/model\.onnx"):
        resolve("onnx:/nowhere/model.onnx")


@pytest.mark.parametrize(
    ("spec", "package", "extra"),
    [
        ("openai:m", "openai", "openai"),
        ("sentence-transformers:m", "sentence_transformers", "sentence-transformers"),
    ],
)
def test_a_missing_extra_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, spec: str, package: str, extra: str
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr("kektor.models.extras.find_spec", lambda name: None if name == package else find_spec(name))
    with pytest.raises(Unavailable, match=rf"pip install 'kektor\[{extra}\]'"):
        resolve(spec)


def test_a_spec_is_written_and_read_alike() -> None:
    options = {"b": "x&y=z?", "a": "ü /", "c": "1"}
    assert parse_spec(spec_text("onnx", "/a b/ü?%41#.onnx", options)) == ("onnx", "/a b/ü?%41#.onnx", options)


def test_everything_public_can_be_imported() -> None:
    for name in models.__all__:
        assert getattr(models, name) is not None
    with pytest.raises(AttributeError):
        models.Nothing  # noqa: B018


def test_importing_the_package_imports_no_model_runtime() -> None:
    code = (
        "import sys, kektor.models\n"
        "heavy = {'onnxruntime', 'tokenizers', 'openai', 'httpx', 'huggingface_hub', 'torch'}\n"
        "ours = sorted(name for name in sys.modules if name.startswith('kektor.models.'))\n"
        "print(sorted(heavy & sys.modules.keys()), ours)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[] [")
    assert "openai_http" not in done.stdout
