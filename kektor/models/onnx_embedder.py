"""What the embedders that run an ONNX file share; where the file comes from is theirs to say."""

from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple, get_args

from kektor.errors import Corrupt, Invalid, Unavailable
from kektor.models.arrays import Vectors
from kektor.models.base import EmbedderBase, Fingerprint, Kind
from kektor.models.files import sha256_of
from kektor.models.once import Once
from kektor.models.onnx_encoder import OnnxEncoder, Pooling

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["ModelFiles", "OnnxEmbedder"]


class ModelFiles(NamedTuple):
    """A model on disk, and what its files hold."""

    model: Path
    tokenizer: Path
    model_sha256: str
    tokenizer_sha256: str


class OnnxEmbedder(EmbedderBase):
    """Loads at first use, once; the vectors are normalised."""

    _alone: ClassVar[bool] = False

    def __init__(
        self,
        *,
        model_name: str,
        pooling: Pooling,
        max_tokens: int,
        threads: int | None,
        document_prefix: str = "",
        query_prefix: str = "",
        cache_size: int = 1024,
    ) -> None:
        super().__init__(document_prefix=document_prefix, query_prefix=query_prefix, cache_size=cache_size)
        if pooling not in get_args(Pooling):
            raise Invalid(f"pooling must be mean, cls or model, not {pooling!r}", field="pooling")
        if threads is not None and threads < 1:
            raise Invalid(f"threads must be 1 or more, not {threads}", field="threads")
        self._model_name = model_name
        self._pooling = pooling
        self._max_tokens = max_tokens
        self._threads = threads
        self._files = Once(self._find)
        self._encoder = Once(self._load)

    @abstractmethod
    def _find(self) -> ModelFiles:
        """Where the files are; may fetch them."""

    @property
    def dim(self) -> int:
        return self._encoder.get().dim

    @property
    def fingerprint(self) -> Fingerprint:
        files = self._files.get()
        return Fingerprint(
            model=self._model_name,
            dim=self.dim,
            pooling=self._pooling,
            normalized=True,
            max_tokens=self._max_tokens,
            file_sha256=files.model_sha256,
            tokenizer_sha256=files.tokenizer_sha256,
            document_prefix=self._prefixes["document"],
            query_prefix=self._prefixes["query"],
        )

    @property
    def loaded(self) -> bool:
        return self._encoder.ready

    def warm(self) -> None:
        """Load the model now."""
        self._encoder.get()

    def _embed(self, texts: list[str], _kind: Kind, advance: Callable[[int], None], /) -> Vectors:
        return self._encoder.get().encode(texts, advance)

    def _load(self) -> OnnxEncoder:
        files = self._files.get()
        encoder = OnnxEncoder(
            self._model(files.model),
            self._tokenizer(files.tokenizer),
            pooling=self._pooling,
            max_tokens=self._max_tokens,
            threads=self._threads,
            source=f"the embedder {self.name}",
            alone=self._alone,
        )
        # what was loaded must be what the fingerprint says, also if the file was replaced in between
        if sha256_of(files.model) != files.model_sha256 or sha256_of(files.tokenizer) != files.tokenizer_sha256:
            raise Unavailable(f"the files of the embedder {self.name} changed while in use; open it again")
        return encoder

    def _model(self, path: Path, /) -> Path | bytes:
        return path

    def _tokenizer(self, path: Path, /) -> "Tokenizer":
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:
            raise Corrupt(f"the tokenizer {path} cannot be read: {error}") from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True  # a marker typed in a text is text
        return tokenizer
