"""An embedder from the model hub (huggingface.co or a mirror): files pinned by commit, cached on disk."""

import re
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from kektor.errors import Corrupt, Invalid, NotFound, Unavailable
from kektor.models.extras import require
from kektor.models.files import sha256_of
from kektor.models.onnx_embedder import ModelFiles, OnnxEmbedder
from kektor.models.onnx_encoder import Pooling
from kektor.models.spec import spec_text

__all__ = ["HubEmbedder"]

_MODEL = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)@(?P<revision>[0-9a-f]{40})")


class HubEmbedder(OnnxEmbedder):
    """Runs `file` of `ORG/NAME@COMMIT`, fetched at first use and then read from the cache, also offline.

    The commit is all 40 digits: a branch or tag can move, and stored vectors would silently stop fitting.
    `sha256`: refuse the model file unless it has this digest. `tokenizer`: the tokenizer's file in the
    repository. `endpoint`, `cache_dir`, `token`: as huggingface-hub takes them, which reads HF_ENDPOINT,
    HF_HOME and HF_TOKEN; the token is never shown nor stored. The rest as for `OnnxFileEmbedder`.

    >>> HubEmbedder("BAAI/bge-small-en-v1.5@5c38ec7c405ec4b44b94cc5a9bb96e735b38267a", pooling="cls").name
    'hub:BAAI/bge-small-en-v1.5@5c38ec7c405ec4b44b94cc5a9bb96e735b38267a?pooling=cls'
    """

    spec_options: ClassVar[dict[str, type]] = {
        "file": str,
        "tokenizer": str,
        "sha256": str,
        "pooling": str,
        "max_tokens": int,
        "document_prefix": str,
        "query_prefix": str,
    }
    shared: ClassVar[bool] = True

    def __init__(
        self,
        model: str,
        *,
        file: str = "onnx/model.onnx",
        tokenizer: str = "tokenizer.json",
        sha256: str | None = None,
        pooling: Pooling = "mean",
        max_tokens: int = 256,
        document_prefix: str = "",
        query_prefix: str = "",
        threads: int | None = None,
        endpoint: str | None = None,
        cache_dir: str | Path | None = None,
        token: str | None = None,
        cache_size: int = 1024,
    ) -> None:
        require("huggingface_hub", extra="hub")
        parts = _MODEL.fullmatch(model)
        if parts is None:
            raise Invalid(
                f"a hub model must read ORG/NAME@COMMIT with the commit's 40 hexadecimal digits, "
                f"not {model!r}: "
                "a branch or tag can move (the commit stands under 'Files and versions', 'History')",
                field="embedder",
            )
        if sha256 is not None and not re.fullmatch(r"[0-9a-f]{64}", sha256):
            raise Invalid(f"sha256 must be 64 hexadecimal digits in lower case, not {sha256!r}", field="sha256")
        super().__init__(
            model_name=f"hub:{parts['repo']}",
            pooling=pooling,
            max_tokens=max_tokens,
            threads=threads,
            document_prefix=document_prefix,
            query_prefix=query_prefix,
            cache_size=cache_size,
        )
        self._repo, self._revision = parts["repo"], parts["revision"]
        self._file, self._tokenizer_file, self._sha256 = file, tokenizer, sha256
        self._endpoint, self._cache_dir, self._token = endpoint, cache_dir, token
        self._name = spec_text(
            "hub",
            model,
            {
                "file": file if file != "onnx/model.onnx" else None,
                "tokenizer": tokenizer if tokenizer != "tokenizer.json" else None,
                "sha256": sha256,
                "pooling": pooling if pooling != "mean" else None,
                "max_tokens": max_tokens if max_tokens != 256 else None,
                "document_prefix": document_prefix,
                "query_prefix": query_prefix,
            },
        )

    @property
    def name(self) -> str:
        return self._name

    def _find(self) -> ModelFiles:
        model, tokenizer = self._fetch(self._file), self._fetch(self._tokenizer_file)
        digest = sha256_of(model)
        if self._sha256 is not None and digest != self._sha256:
            raise Corrupt(
                f"{self._file} of {self._repo} has sha256 {digest}, pinned is {self._sha256}; the file is at {model}"
            )
        return ModelFiles(model, tokenizer, digest, sha256_of(tokenizer))

    def _fetch(self, file: str) -> Path:
        from huggingface_hub import errors, get_hf_file_metadata, hf_hub_download, hf_hub_url

        fetch = partial(
            hf_hub_download,
            self._repo,
            file,
            revision=self._revision,
            endpoint=self._endpoint,
            cache_dir=self._cache_dir,
            token=self._token,
        )
        try:
            return Path(fetch(local_files_only=True))
        except errors.LocalEntryNotFoundError:
            pass
        at = f"{self._repo} at {self._revision[:12]}"
        try:
            # asked first because the download itself would try for half a minute before it says so
            url = hf_hub_url(self._repo, file, revision=self._revision, endpoint=self._endpoint)
            get_hf_file_metadata(url, token=self._token, endpoint=self._endpoint)
            return Path(fetch(tqdm_class=_silent_progress()))
        except (
            errors.RepositoryNotFoundError,
            errors.RevisionNotFoundError,
            errors.EntryNotFoundError,
        ) as error:
            raise NotFound(
                f"the model hub has no {file} of {at} ({type(error).__name__}); "
                "a private model needs HF_TOKEN or token=…",
                field="embedder",
            ) from error
        except Exception as error:
            raise Unavailable(
                f"{file} of {at} is not in the local cache and could not be fetched from the model hub "
                f"({type(error).__name__}); fetch it once while online, or use a copy: embedder='onnx:PATH'"
            ) from error


def _silent_progress() -> type[Any]:
    from huggingface_hub.utils.tqdm import tqdm

    class Silent(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            kwargs["disable"] = True
            super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]

    return Silent
