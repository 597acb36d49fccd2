"""An embedder from any ONNX file of a text encoder with its tokenizer.json beside it."""

from pathlib import Path
from typing import ClassVar

from kektor.errors import NotFound
from kektor.models.files import sha256_of
from kektor.models.onnx_embedder import ModelFiles, OnnxEmbedder
from kektor.models.onnx_encoder import Pooling
from kektor.models.spec import spec_text

__all__ = ["OnnxFileEmbedder"]


class OnnxFileEmbedder(OnnxEmbedder):
    """Runs the model at `path`; `NotFound` if it or its tokenizer is not there.

    `pooling`: `mean` or `cls` over the token states, `model` where the file gives one vector a text itself.
    `max_tokens`: what the model reads at once; longer texts are read in overlapping windows.
    `document_prefix`, `query_prefix`: words some models want before each text ("passage: ", "query: ").
    `threads`: batches run at once (default: all cores this process may use).

    >>> OnnxFileEmbedder("/models/bge/model.onnx", pooling="cls").name  # doctest: +SKIP
    'onnx:/models/bge/model.onnx?pooling=cls'
    """

    spec_options: ClassVar[dict[str, type]] = {
        "pooling": str,
        "max_tokens": int,
        "tokenizer": str,
        "document_prefix": str,
        "query_prefix": str,
    }
    shared: ClassVar[bool] = True

    def __init__(
        self,
        path: str | Path,
        *,
        tokenizer: str | Path | None = None,
        pooling: Pooling = "mean",
        max_tokens: int = 256,
        document_prefix: str = "",
        query_prefix: str = "",
        threads: int | None = None,
        cache_size: int = 1024,
    ) -> None:
        super().__init__(
            model_name="onnx file",  # a file that moved is the same model; its sha256 says which
            pooling=pooling,
            max_tokens=max_tokens,
            threads=threads,
            document_prefix=document_prefix,
            query_prefix=query_prefix,
            cache_size=cache_size,
        )
        self._path = Path(path).expanduser().absolute()
        self._tokenizer_path = Path(tokenizer or self._path.parent / "tokenizer.json").expanduser().absolute()
        for file, what in ((self._path, "ONNX file"), (self._tokenizer_path, "tokenizer of the ONNX file")):
            if not file.is_file():
                raise NotFound(f"there is no {what} at {file}", field="embedder")
        self._name = spec_text(
            "onnx",
            str(self._path),
            {
                "pooling": pooling if pooling != "mean" else None,
                "max_tokens": max_tokens if max_tokens != 256 else None,
                "tokenizer": self._tokenizer_path if tokenizer else None,
                "document_prefix": document_prefix,
                "query_prefix": query_prefix,
            },
        )

    @property
    def name(self) -> str:
        return self._name

    def _find(self) -> ModelFiles:
        return ModelFiles(self._path, self._tokenizer_path, sha256_of(self._path), sha256_of(self._tokenizer_path))
