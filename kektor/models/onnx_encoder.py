"""Runs a text encoder in an ONNX file: tokens in, one unit vector per text out.

Texts are run together only with texts of the same number of tokens. Nothing is padded, so a vector does not
depend on what else was in the call; and it is as quick as padded batches. One session thread per run and
several runs at a time use the cores better than several threads inside one run (281 against 193 texts a
second on two cores).
"""

import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from kektor.errors import Corrupt, Invalid
from kektor.models.arrays import Vectors, as_vectors, merge_windows, unit
from kektor.models.once import Once
from kektor.models.windows import slices

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["OnnxEncoder", "Pooling", "core_count"]

Pooling: TypeAlias = Literal["mean", "cls", "model"]
"""How token states become one vector: their mean, the first one, or already done in the file."""

_BATCH_TOKENS = 512  # more is no quicker, and its activations fall out of the cache
_OVERLAP = 8  # neighbouring windows share an eighth of a window
_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})


class _Window(NamedTuple):
    ids: list[int]
    text: int


class OnnxEncoder:
    """A loaded model. `encode` may be called from many threads at once.

    `max_tokens` counts the markers around a text; a longer text is read in overlapping windows of that size.
    `alone`: run each window by itself, for a model that rounds by the range of all that is in a run.
    """

    def __init__(
        self,
        model: Path | bytes,
        tokenizer: "Tokenizer",
        *,
        pooling: Pooling,
        max_tokens: int,
        threads: int | None,
        source: str,
        alone: bool = False,
    ) -> None:
        self._source = source
        self._batch_tokens = 0 if alone else _BATCH_TOKENS
        self._pooling = pooling
        self._tokenizer = tokenizer
        self._before, self._after = _markers(tokenizer)
        self._room = max_tokens - len(self._before) - len(self._after)
        if self._room < 8:
            raise Invalid(f"max_tokens of {source} must leave room for text, not {max_tokens}", field="max_tokens")
        self._session = _session(model, source)
        self._inputs = _input_names(self._session, source)
        self._output, self.dim = _output(self._session, pooling, source)
        self._threads = threads or core_count()
        self._pool = Once(lambda: ThreadPoolExecutor(self._threads, thread_name_prefix="kektor-embed"))

    def encode(self, texts: Sequence[str], advance: Callable[[int], None]) -> Vectors:
        """Unit vectors of `texts`, shape (len(texts), dim); `advance(n)` when n more texts are done."""
        windows, counts = self._windows(texts)
        vectors = np.empty((len(windows), self.dim), dtype=np.float32)
        left = list(counts)
        with closing(self._run_all(windows, vectors)) as batches:
            for batch in batches:
                finished = 0
                for window in batch:
                    left[windows[window].text] -= 1
                    finished += not left[windows[window].text]
                advance(finished)
        if len(windows) == len(texts):
            return vectors
        return unit(merge_windows(vectors, counts), source=self._source)

    def _windows(self, texts: Sequence[str]) -> tuple[list[_Window], list[int]]:
        windows: list[_Window] = []
        counts: list[int] = []
        # the batch call lets other Python threads run meanwhile, the single one does not
        for text, encoding in enumerate(self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)):
            ids = encoding.ids
            ranges = slices(len(ids), self._room, self._room // _OVERLAP)
            windows += [_Window([*self._before, *ids[start:end], *self._after], text) for start, end in ranges]
            counts.append(len(ranges))
        return windows, counts

    def _run_all(self, windows: list[_Window], out: Vectors) -> Generator[list[int], None, None]:
        batches = _batches(windows, self._batch_tokens, self._threads)
        if len(batches) == 1 or self._threads == 1:
            for batch in batches:
                self._run(windows, batch, out)
                yield batch
            return
        pool = self._pool.get()
        jobs: dict[Future[None], list[int]] = {}
        try:
            for batch in batches:
                jobs[pool.submit(self._run, windows, batch, out)] = batch
            for job in as_completed(jobs):
                job.result()
                yield jobs[job]
        finally:
            for job in jobs:
                job.cancel()

    def _run(self, windows: list[_Window], batch: list[int], out: Vectors) -> None:
        ids = np.array([windows[window].ids for window in batch], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        try:
            (states,) = self._session.run([self._output], {name: feed[name] for name in self._inputs})
        except Exception as error:
            raise Invalid(
                f"{self._source} cannot read {ids.shape[1]} tokens at once: lower max_tokens ({error})",
                field="max_tokens",
            ) from error
        if self._pooling == "mean":
            states = states.mean(axis=1, dtype=np.float32)
        elif self._pooling == "cls":
            states = states[:, 0]
        vectors = as_vectors(states, count=len(batch), dim=self.dim, source=self._source)
        out[batch] = unit(vectors, source=self._source)


def core_count() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _batches(windows: list[_Window], tokens: int, threads: int) -> list[list[int]]:
    """Indexes of windows, together only with others of the same length; the longest first, to end evenly."""
    by_length: dict[int, list[int]] = {}
    for index, window in enumerate(windows):
        by_length.setdefault(len(window.ids), []).append(index)
    batches = []
    for length in sorted(by_length, reverse=True):
        group = by_length[length]
        step = max(1, min(tokens // length, -(-len(group) // threads)))
        batches += [group[start : start + step] for start in range(0, len(group), step)]
    return batches


def _markers(tokenizer: "Tokenizer") -> tuple[list[int], list[int]]:
    """The ids that this tokenizer puts before and after a text."""
    encoding = tokenizer.encode("a", add_special_tokens=True)
    text = [index for index, special in enumerate(encoding.special_tokens_mask) if not special]
    return encoding.ids[: text[0]], encoding.ids[text[-1] + 1 :]


def _session(model: Path | bytes, source: str) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # the fused kernels of higher levels are slower (8.2 against 7.1 ms a text); the arena never shrinks
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False
    try:
        return onnxruntime.InferenceSession(
            model if isinstance(model, bytes) else str(model), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        raise Corrupt(f"the model of {source} cannot be loaded: {error}") from error


def _input_names(session: Any, source: str) -> list[str]:
    names = [node.name for node in session.get_inputs()]
    unknown = sorted(set(names) - _INPUTS)
    if unknown or "input_ids" not in names:
        raise Invalid(
            f"{source} is not a text encoder that can be run here: its inputs are {', '.join(names)}; "
            f"expected input_ids and, where wanted, attention_mask and token_type_ids",
            field="embedder",
        )
    return names


def _output(session: Any, pooling: Pooling, source: str) -> tuple[str, int]:
    """The output to read, and the size of its last axis."""
    rank = 2 if pooling == "model" else 3
    shapes = {node.name: node.shape for node in session.get_outputs()}
    for name, shape in shapes.items():
        if len(shape) == rank and isinstance(shape[-1], int):
            return name, shape[-1]
    raise Invalid(
        f"{source} has no output that pooling={pooling!r} can use: it gives "
        + ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        + "; use pooling='model' for one vector a text, 'mean' or 'cls' for one a token",
        field="pooling",
    )
