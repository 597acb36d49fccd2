"""The native core of Kektor: loops over vectors, postings, ordered keys and log frames.

Everything speaks dense `u32` slots. Arrays are numpy; calls that loop release the GIL. Scores are always
"larger is better", and exact.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

__version__: str

Metric = Literal["cosine", "l2", "dot"]

class CorruptFile(Exception):
    """A file of the database is damaged, cut short, of another kind, or of a newer format."""

class NewerFile(CorruptFile):
    """A file of the database is sound and of a newer format than this program reads."""

@final
class Bitmap:
    """An immutable set of slots, parsed once and shared by every search under one View."""

    def __new__(cls, data: bytes) -> Bitmap:
        """Parse the portable roaring format (`pyroaring.BitMap.serialize()`); ValueError when it is not."""
    def __len__(self) -> int: ...
    def __contains__(self, slot: int) -> bool: ...
    def serialize(self) -> bytes: ...

@final
class Chunk:
    """One file of a frozen structure: its name, and whether it differs from the last written checkpoint."""

    name: str
    dirty: bool
    def __new__(cls, name: str, dirty: bool) -> Chunk: ...

CHUNK_HEADER_BYTES: int
"""Where the payload of a chunk file begins."""

def write_chunk(path: str, kind: str, lsn: int, payload: bytes) -> tuple[int, str]:
    """Write and sync a new chunk file for a structure that lives in Python; returns (length, sha256 hex)."""

def check_chunk(path: str, kind: str) -> tuple[int, int]:
    """Check a chunk file's header against its kind and length; returns (lsn, payload length). CorruptFile."""

@final
class OrderedIndex:
    """Byte keys to slots, ordered: equality and ranges whose cost grows with the answer."""

    def __new__(cls) -> OrderedIndex: ...
    def __len__(self) -> int:
        """Number of distinct keys."""
    def insert(self, key: bytes, slot: int) -> bool: ...
    def remove(self, key: bytes, slot: int) -> bool: ...
    def get(self, key: bytes) -> bytes:
        """The slots of one key as a serialized roaring bitmap."""
    def range(
        self,
        low: bytes | None = None,
        high: bytes | None = None,
        *,
        low_inclusive: bool = True,
        high_inclusive: bool = True,
    ) -> bytes:
        """The slots of all keys within the bounds (None is open) as a serialized roaring bitmap."""
    def next_key(self, key: bytes, *, inclusive: bool = True) -> bytes | None:
        """The smallest key at or above `key` (above, when exclusive)."""

@final
class VectorIndex:
    """An HNSW graph over vectors by slot.

    `cosine` scores are the cosine (vectors are normalised on the way in), `dot` the inner product, `l2` the
    negated squared distance. A slot is written once: adding a taken slot is a ValueError, and so are a NaN, an
    infinity, a wrong dimension and, under cosine, a zero vector; a refused call changes nothing.

    >>> index = VectorIndex(2, metric="cosine")
    >>> index.add(np.array([7], np.uint32), np.array([[1.0, 0.0]], np.float32), lsn=1)
    >>> index.search(np.array([1.0, 0.0], np.float32), 1)[0]
    array([7], dtype=uint32)
    """

    def __new__(
        cls,
        dim: int,
        *,
        metric: Metric = "cosine",
        precision: Literal["f32"] = "f32",
        m: int = 16,
        ef_construction: int = 200,
    ) -> VectorIndex: ...
    @property
    def dim(self) -> int: ...
    @property
    def metric(self) -> Metric: ...
    @property
    def precision(self) -> str: ...
    @property
    def m(self) -> int: ...
    @property
    def ef_construction(self) -> int: ...
    @property
    def applied_lsn(self) -> int:
        """Highest LSN given to `add` or `remove`; the owner skips frames at or below it."""
    def __len__(self) -> int:
        """Live vectors."""
    def __contains__(self, slot: int) -> bool: ...
    def add(self, slots: NDArray[np.uint32], vectors: NDArray[np.float32], *, lsn: int, throttle: bool = True) -> None:
        """Store `vectors` (n, dim) under `slots` (n,); searchable when the call returns.

        Rows are linked into the graph in the background. While more than 32,768 wait, the call links one row for
        each it adds, unless `throttle` is false (replay appends and does not wait).
        """
    def remove(self, slots: NDArray[np.uint32], *, lsn: int, erase: bool = False) -> int:
        """Make slots unreachable at once; returns how many were live. `erase` also zeroes their bytes."""
    def vectors(self, slots: NDArray[np.uint32]) -> NDArray[np.float32]:
        """The stored vectors (n, dim), exactly the bits given to `add` (not the normalised ones); KeyError names a slot that is not live."""
    def scores(self, query: NDArray[np.float32], slots: NDArray[np.uint32]) -> NDArray[np.float32]:
        """Exact scores of `query` (dim,) against live slots."""
    def search(
        self, query: NDArray[np.float32], k: int, *, ef: int | None = None, filter: Bitmap | None = None
    ) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        """Slots and scores of the k best, best first; k results whenever k live slots pass the filter."""
    def search_batch(
        self,
        queries: NDArray[np.float32],
        k: int,
        *,
        ef: int | None = None,
        filter: Bitmap | None = None,
        threads: int | None = None,
    ) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        """The same for (n, dim) queries on all cores; missing places hold slot 0xFFFFFFFF and score NaN."""
    def link(self, *, threads: int | None = None) -> None:
        """Link every waiting row now (`threads`: all cores), however small the index; returns when it is done."""
    def vacuum(self, *, milliseconds: int = 5) -> tuple[int, int]:
        """One step of taking removed nodes out of the graph and zeroing their bytes: (done, total), over when equal.

        Nodes that linked to them get neighbours from behind them. Stop after any step: the next call goes on.
        """
    def refine(self, *, ef: int, milliseconds: int = 5) -> tuple[int, int]:
        """One step of looking for better neighbours of every node with a walk of breadth `ef`: (done, total)."""
    def stats(self) -> dict[str, int | float | list[int]]:
        """Counts (`live removed erased linked dead unlinked slots`), `levels` (nodes on each, from 0), `max_level`, `entry`,
        `mean_degree`, and bytes of address space by arena (`bytes_rows`, …, of which `bytes_mapped` from files)."""
    # The chunk protocol (see src/chunks.rs).
    def freeze(self, lsn: int) -> list[Chunk]: ...
    def write(self, chunk: Chunk, path: str) -> tuple[int, str]:
        """Write one frozen chunk to a new file and sync it; returns (length, sha256 hex)."""
    def release(self, written: bool) -> None:
        """End the freeze; `written` says that every chunk reached a checkpoint."""
    @staticmethod
    def open(folder: str) -> VectorIndex:
        """Map what `write` left in a folder; CorruptFile when it cannot be trusted."""
    def validate(self) -> list[str]:
        """Every broken invariant in words; empty when sound. Never raises on damaged bytes."""

@final
class TextIndex:
    """BM25 over weighted fields by slot, incrementally maintained.

    `fields` are (name, weight) pairs; a document gives one string per field. Term frequency and length are
    the weighted sums over the fields (BM25F with one b). idf = ln(1 + (N - df + 0.5) / (df + 0.5)) over live
    documents; the score of a term is idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean length)).

    >>> index = TextIndex()
    >>> index.add(7, ["Ticket TKT-100 is about the heating."], lsn=1)
    >>> index.search("what about tkt-100?", 10)[0]
    array([7], dtype=uint32)
    """

    def __new__(
        cls,
        *,
        fields: Sequence[tuple[str, float]] = ...,
        language: str = "english",
        k1: float = 1.2,
        b: float = 0.75,
    ) -> TextIndex:
        """`fields` defaults to [("text", 1.0)]. ValueError for an unknown language lists the known ones."""
    @property
    def language(self) -> str: ...
    @property
    def applied_lsn(self) -> int:
        """Highest LSN given to `add` or `remove`; the owner skips frames at or below it."""
    def __len__(self) -> int:
        """Live documents."""
    def __contains__(self, slot: int) -> bool: ...
    def add(self, slot: int, texts: Sequence[str], *, lsn: int) -> None:
        """Index a document; searchable when the call returns.

        ValueError when the slot is taken or 0xFFFFFFFF, the number of texts is not that of fields, or they
        are over 256 MiB together.
        """
    def remove(self, slot: int, *, lsn: int, erase: bool = False) -> bool:
        """Take a document out; false when it was not there. Its terms leave every statistic at once.

        With `erase` the next checkpoint rewrites the segment that holds it; else its terms stay in that file
        until a merge drops them.
        """
    def search(
        self, query: str, k: int, *, filter: Bitmap | None = None
    ) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        """Slots and scores of the k best documents that hold any of `query_terms(query)`, best first.

        Of equal scores the lower slot comes first. A term that the query names twice counts twice.
        """
    def scores(self, query: str, slots: NDArray[np.uint32]) -> NDArray[np.float32]:
        """BM25 scores of the query for the given slots; 0 where no term occurs."""
    def analyze(self, text: str) -> list[str]:
        """The terms of a text, in order, as indexed."""
    def query_terms(self, query: str) -> list[str]:
        """The terms that a query asks for; see the function of this name."""
    def document_frequency(self, term: str) -> int:
        """Live documents that hold an (analysed) term."""
    def stats(self) -> dict[str, int | float]:
        """documents, removed (still in segments), growing (in none yet), postings, segments, mean_length."""
    # The chunk protocol (see src/chunks.rs).
    def freeze(self, lsn: int) -> list[Chunk]: ...
    def write(self, chunk: Chunk, path: str) -> tuple[int, str]:
        """Write one frozen chunk to a new file and sync it; returns (length, sha256 hex)."""
    def release(self, written: bool) -> None:
        """End the freeze; `written` says that every chunk reached a checkpoint."""
    @staticmethod
    def open(folder: str) -> TextIndex:
        """Map what `write` left in a folder; CorruptFile when it cannot be trusted."""
    def validate(self) -> list[str]:
        """Every broken invariant in words; empty when sound. Never raises on damaged bytes."""

def analyze(text: str, language: str = "english") -> list[str]:
    """The terms an index of that language would hold for a text: words folded and stemmed, identifiers whole
    and split, runs of scripts without spaces as characters and bigrams.
    """

def query_terms(query: str, language: str = "english") -> list[str]:
    """The terms a query asks for: those that carry meaning, and only if there are none, all of them.

    Function words, the parts of an identifier, and single characters of a longer run carry none alone.

    >>> query_terms("Where is ticket TKT-100?")
    ['ticket', 'tkt-100']
    >>> query_terms("to be or not to be")
    ['to', 'be', 'or', 'not', 'to', 'be']
    """

def languages() -> list[str]:
    """The languages `TextIndex` has an analyzer for."""

def crc32c(data: bytes, seed: int = 0) -> int:
    """CRC-32C of `data`; `seed` continues from the checksum of what came before."""

@final
class Frame:
    """One decoded frame of the log: one transaction."""

    lsn: int
    durable_lsn: int
    type: int
    flags: int
    payload: bytes
    offset: int
    """Where the frame starts in its segment."""

@final
class Damage:
    """Bytes of a segment that are no good frame although an acknowledged one stood there."""

    offset: int
    length: int
    after_lsn: int
    """LSN of the last good frame before them, 0 when there is none."""

@final
class Segment:
    """A log segment opened for reading: header, then frames.

    Iterating yields `Frame` and `Damage` in file order. A bad frame is damage when a good frame with a
    greater LSN follows whose `durable_lsn` covers it (its bytes were once acknowledged); else the log ends
    there, and `end` and `torn` say where and whether bytes were left over. Changed bytes that cost no frame
    (padding, one of the header's two copies) are damage too.
    """

    path: str
    salt: int
    first_lsn: int
    def __new__(cls, path: str) -> Segment:
        """CorruptFile when the header cannot be trusted or is of a newer format."""
    def __iter__(self) -> Iterator[Frame | Damage]: ...
    def frames(self, after_lsn: int = 0, *, next_lsn: int | None = None) -> list[Frame | Damage]:
        """All frames with a greater LSN and all damage, in order.

        `next_lsn` is the first LSN of the segment that follows: all before it was durable by then, and frames
        here at or above it were given up by a recovery and do not count.
        """
    @property
    def end(self) -> int:
        """Offset behind the last good frame, as the last `frames` found it."""
    @property
    def torn(self) -> int:
        """Bytes that follow `end` and are not zero padding: what a crash left unfinished."""
    @property
    def sealed(self) -> bool:
        """Whether the segment was closed in good order."""

@final
class LogScan:
    """Batches of a log's frames, segment by segment: (path of the segment, its next frames and damage).

    A batch holds about 8 MiB of payload at most, or one larger frame; one segment is in memory at a time.
    """

    def __iter__(self) -> LogScan: ...
    def __next__(self) -> tuple[str, list[Frame | Damage]]: ...
    @property
    def last_lsn(self) -> int:
        """Highest LSN the log is known to have reached; once exhausted, a new log goes on behind it."""
    @property
    def torn(self) -> int:
        """Bytes that a crash left unfinished in the segment read last."""

def scan_log(folder: str, after_lsn: int = 0) -> LogScan:
    """Read the segments of a folder in order, each judged by what the next one says; skips those wholly at or
    below `after_lsn`. A segment whose header is lost is one Damage; CorruptFile for a newer format.

    >>> for path, items in scan_log("data/log", after_lsn=checkpoint_lsn):
    ...     for item in items:
    ...         quarantine(path, item) if isinstance(item, Damage) else apply(item)
    """

@final
class Log:
    """The append-only log of a folder, segment by segment, with group commit.

    Segments are `00000001.klog` and on, preallocated, rolled at `segment_bytes`; a larger frame has its own.
    `append` only queues, in LSN order; `wait` returns when the frame is as durable as `sync` asks, the GIL
    released: of all threads that wait, one writes and syncs for the group.
    """

    def __new__(
        cls,
        folder: str,
        *,
        next_lsn: int,
        sync: Literal["always", "interval", "off"] = "always",
        interval_ms: int = 100,
        segment_bytes: int = 67108864,
    ) -> Log:
        """Start a new segment in `folder` whose first frame will be `next_lsn`."""
    def append(self, lsn: int, payload: bytes, *, type: int = 1, flags: int = 0) -> None:
        """Queue one frame, from one thread at a time. Blocks while the queue is over its bound.

        ValueError when lsn is not greater than the last, the payload is over 1 GiB, or the log is closed.
        LSNs should have no gaps: a scan takes one before a new segment for lost frames. Types are 0 to 65534.
        """
    def wait(self, lsn: int) -> None:
        """Return when the frame is as durable as `sync` asks.

        OSError (the first one, for ever) when a write or sync failed: nothing after `durable_lsn` is kept.
        """
    def flush(self) -> None:
        """Write and sync everything queued."""
    @property
    def durable_lsn(self) -> int: ...
    @property
    def last_lsn(self) -> int:
        """The highest LSN queued."""
    @property
    def failed(self) -> str | None:
        """Why the log is dead, or None."""
    def roll(self) -> None:
        """Seal the current segment and start the next, so that `trim` can drop the old one."""
    def trim(self, lsn: int) -> list[str]:
        """Remove older segments whose frames are all at or below `lsn`; returns their names."""
    def stats(self) -> dict[str, int]:
        """frames, bytes, syncs, groups, segments."""
    def close(self) -> None:
        """Flush, seal and close; idempotent. A log dropped without it is what a crash leaves."""
