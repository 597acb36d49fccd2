"""Embeddings from any server that speaks OpenAI's HTTP interface (OpenAI, Ollama, vLLM, LM Studio, …)."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

import numpy as np

from kektor.errors import Invalid, KektorError, Unavailable
from kektor.models.arrays import Vectors, as_vectors, merge_windows, unit
from kektor.models.base import EmbedderBase, Fingerprint, Kind
from kektor.models.extras import require
from kektor.models.once import Once
from kektor.models.remote_windows import pieces
from kektor.models.spec import spec_text

if TYPE_CHECKING:
    from openai import OpenAI

__all__ = ["OpenAIEmbedder"]

_KNOWN_DIMS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
_REQUEST_BYTES = 500_000  # of text in one request; OpenAI takes 300,000 tokens


class OpenAIEmbedder(EmbedderBase):
    """Asks `model` at `base_url` (default: OpenAI, or OPENAI_BASE_URL); vectors are normalised.

    `api_key`: default OPENAI_API_KEY; a server of your own may need none. It is never shown nor stored.
    `dim`: the size to expect, found with one request if not given and not known. `dimensions`: ask the server
    to shorten its vectors to this size. `max_tokens`: what the model reads at once; a server of your own that
    cuts longer texts in silence needs it set to its own limit, then they are read in overlapping windows.
    `timeout`: seconds for one attempt; `retries`: further attempts after 408, 409, 429, 5xx and lost
    connections, with growing pauses or as the server's Retry-After says. `concurrency`: requests at once.

    >>> OpenAIEmbedder("nomic-embed-text", base_url="http://localhost:11434/v1", dim=768).name
    'openai:nomic-embed-text?base_url=http://localhost:11434/v1&dim=768'
    """

    spec_options: ClassVar[dict[str, type]] = {
        "base_url": str,
        "dim": int,
        "dimensions": int,
        "max_tokens": int,
        "batch_size": int,
        "timeout": float,
        "retries": int,
        "document_prefix": str,
        "query_prefix": str,
    }
    shared: ClassVar[bool] = False

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        dim: int | None = None,
        dimensions: int | None = None,
        max_tokens: int = 8191,
        batch_size: int = 128,
        timeout: float = 30.0,
        retries: int = 3,
        concurrency: int = 4,
        document_prefix: str = "",
        query_prefix: str = "",
        cache_size: int = 1024,
    ) -> None:
        super().__init__(document_prefix=document_prefix, query_prefix=query_prefix, cache_size=cache_size)
        require("openai", extra="openai")
        _check_numbers(
            dim=dim,
            dimensions=dimensions,
            max_tokens=max_tokens,
            batch_size=batch_size,
            timeout=timeout,
            concurrency=concurrency,
        )
        if retries < 0:
            raise Invalid(f"retries must be 0 or more, not {retries}", field="retries")
        self._model = model
        self._base_url = _checked_url(base_url or os.environ.get("OPENAI_BASE_URL") or None)
        self._api_key = _checked_key(api_key)
        self._dimensions = dimensions
        self._max_tokens = max_tokens
        self._batch_size = batch_size
        self._timeout = timeout
        self._retries = retries
        self._concurrency = concurrency
        self._expected_dim = dim or dimensions or _KNOWN_DIMS.get(model)
        self._client = Once(self._connect)
        self._dim = Once(lambda: self._expected_dim or self._request(["dimension"], None).shape[1])
        self._name = spec_text(
            "openai",
            model,
            {
                "base_url": base_url,
                "dim": dim,
                "dimensions": dimensions,
                "max_tokens": max_tokens if max_tokens != 8191 else None,
                "batch_size": batch_size if batch_size != 128 else None,
                "timeout": timeout if timeout != 30.0 else None,
                "retries": retries if retries != 3 else None,
                "document_prefix": document_prefix,
                "query_prefix": query_prefix,
            },
        )

    @property
    def name(self) -> str:
        return self._name

    @property
    def dim(self) -> int:
        """Asks the server once if nothing else says it."""
        return self._dim.get()

    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint(
            model=f"openai:{self._model}",
            dim=self.dim,
            pooling="model",
            normalized=True,
            max_tokens=self._max_tokens,
            document_prefix=self._prefixes["document"],
            query_prefix=self._prefixes["query"],
        )

    @property
    def loaded(self) -> bool:
        return self._client.ready and self._dim.ready

    def warm(self) -> None:
        """Import the client and find the dimension."""
        self._client.get()
        self._dim.get()

    def _embed(self, texts: list[str], _kind: Kind, advance: Callable[[int], None], /) -> Vectors:
        dim = self.dim
        parts = [pieces(text, self._max_tokens) for text in texts]
        counts = [len(part) for part in parts]
        batches = list(_batches([piece for part in parts for piece in part], self._batch_size))
        done = _Texts(counts, advance)
        vectors = []
        for batch in self._request_all(batches, dim):
            vectors.append(batch)
            done.advance(len(batch))
        return unit(merge_windows(np.concatenate(vectors), counts), source=self._where)

    def _request_all(self, batches: list[list[str]], dim: int) -> Iterator[Vectors]:
        if len(batches) == 1:
            yield self._request(batches[0], dim)
            return
        pool = ThreadPoolExecutor(min(self._concurrency, len(batches)), "kektor-openai")
        try:
            yield from pool.map(self._request, batches, repeat(dim))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    @property
    def _where(self) -> str:
        return f"the embedding server at {self._base_url or 'https://api.openai.com/v1'}"

    def _connect(self) -> "OpenAI":
        from openai import OpenAI

        key = self._api_key or _checked_key(os.environ.get("OPENAI_API_KEY"))
        if not key and not self._base_url:
            raise Unavailable("no API key for the embedder: set OPENAI_API_KEY or pass api_key=…")
        return OpenAI(
            api_key=key or "none",  # the client insists on one, a server of one's own does not
            base_url=self._base_url,
            timeout=self._timeout,
            max_retries=self._retries,
        )

    def _request(self, texts: list[str], dim: int | None) -> Vectors:
        from openai import omit

        client = self._client.get()
        try:
            answer = client.embeddings.create(input=texts, model=self._model, dimensions=self._dimensions or omit)
            rows = _in_order(answer.data, len(texts), self._where)
        except KektorError:
            raise
        except Exception as error:  # noqa: BLE001 - a wrong body surfaces as whatever the parser trips over
            # not chained: the client's own errors can hold the key
            raise self._explained(error, client.api_key) from None
        return unit(as_vectors(rows, count=len(texts), dim=dim, source=self._where), source=self._where)

    def _explained(self, error: Exception, key: str) -> Unavailable:
        import openai

        details: dict[str, Any] = {}
        if isinstance(error, openai.APITimeoutError):
            said = f"did not answer within {self._timeout:g} s"
        elif isinstance(error, openai.APIConnectionError):
            said = f"cannot be reached ({type(error.__cause__ or error).__name__})"
        elif isinstance(error, openai.APIStatusError):
            said = _said(error, self._model, key)
            details["status"] = error.status_code
            if retry_after := error.response.headers.get("retry-after"):
                details["retry_after"] = retry_after
        else:
            said = f"answered with something that is not an embeddings response ({type(error).__name__})"
        return Unavailable(f"{self._where} {said}", details=details)


class _Texts:
    """Turns windows done, in order, into texts done."""

    def __init__(self, counts: list[int], advance: Callable[[int], None]) -> None:
        self._ends, self._advance = np.cumsum(counts), advance
        self._windows = self._texts = 0

    def advance(self, windows: int) -> None:
        self._windows += windows
        texts = int(np.searchsorted(self._ends, self._windows, side="right"))
        self._advance(texts - self._texts)
        self._texts = texts


def _batches(texts: list[str], most: int) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        length = len(text.encode())
        if batch and (len(batch) == most or size + length > _REQUEST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += length
    if batch:
        yield batch


def _in_order(data: list[Any], count: int, where: str) -> list[Any]:
    """The vectors by their `index`: servers may answer in any order."""
    rows = {item.index: item.embedding for item in data}
    if sorted(rows) != list(range(count)) or len(data) != count:
        raise Unavailable(f"{where} returned {len(data)} vectors for {count} texts, or numbered them wrongly")
    return [rows[index] for index in range(count)]


def _said(error: Any, model: str, key: str) -> str:
    status = error.status_code
    if status in (401, 403):
        return f"refused the API key ({status})"
    if status == 429:
        return "refuses more requests for now (429), also after waiting"
    if status == 404:
        return f"does not know the model {model!r}, or there is no embeddings interface at that address (404)"
    if status >= 500:
        return f"failed ({status})"
    body = error.body if isinstance(error.body, dict) else {}
    reason = str(body.get("message") or "no reason given").replace(key, "…")
    return f"refused the request ({status}): {reason[:200]}"


def _checked_url(base_url: str | None) -> str | None:
    if base_url is None:
        return None
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Invalid("base_url must read http(s)://host/path", field="base_url")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise Invalid(
            "base_url must not hold a user, a password or a query: it is stored and shown; pass api_key=… instead",
            field="base_url",
        )
    return base_url


def _checked_key(key: str | None) -> str:
    key = (key or "").strip()
    if not key.isascii() or not key.isprintable():
        raise Invalid("api_key holds characters that cannot be sent", field="api_key")
    return key


def _check_numbers(**values: float | None) -> None:
    for name, value in values.items():
        if value is not None and value <= 0:
            raise Invalid(f"{name} must be more than 0, not {value}", field=name)
