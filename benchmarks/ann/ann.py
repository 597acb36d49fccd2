"""Recall against speed of the vector index, beside hnswlib, faiss and usearch in the same process and run.

    python benchmarks/ann/ann.py FOLDER [--set glove100] [--rows N] [--peers hnswlib,faiss,usearch] [--out DIR]

FOLDER holds `<set>_base*.npy` (one file or several, in order of their names), `<set>_query*.npy`, float16 or float32;
rows are normalised, the metric is cosine, the truth is computed here by an exact scan. Every engine has m = 16 and
ef_construction = 200 and is visited in turn, round after round; figures are medians of processor time, which a
neighbour on the machine moves less than the clock.
"""

import argparse
import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from kektor_native import Bitmap, VectorIndex
from numpy.typing import NDArray
from pyroaring import BitMap

from kektor import __version__

Floats = NDArray[np.float32]
Slots = NDArray[np.int64]
Search = Callable[[Floats, int], NDArray[Any]]
T = TypeVar("T")

K = 10
M = 16
EF_CONSTRUCTION = 200
EFS = (20, 40, 80, 120, 160, 240, 320, 480, 640)
TARGETS = (0.90, 0.95, 0.98)
SHARES = (0.5, 0.1, 0.01, 0.001, 0.0001)


@dataclass
class Engine:
    """A built index: its search at a given ef, and what it cost."""

    name: str
    search: Search
    build_cpu_s: float
    build_wall_s: float
    bytes_per_vector: float | None = None
    points: list[dict[str, float]] = field(default_factory=list)
    qps_at: dict[str, float] = field(default_factory=dict)


def load(folder: Path, name: str, rows: int | None) -> tuple[Floats, Floats]:
    def read(part: str) -> Floats:
        files = sorted(folder.glob(f"{name}_{part}*.npy"))
        if not files:
            sys.exit(f"ann: {folder} has no {name}_{part}*.npy")
        found = np.concatenate([np.load(file) for file in files]).astype(np.float32)
        return np.ascontiguousarray(found / np.linalg.norm(found, axis=1, keepdims=True))

    return read("base")[:rows], read("query")


def exact(base: Floats, queries: Floats, passing: Slots | None = None) -> Slots:
    """The K best of each query, by products in one type over blocks of queries."""
    rows = base if passing is None else base[passing]
    blocks = (-(block @ rows.T) for block in np.array_split(queries, 20))
    found = np.concatenate([np.argpartition(block, min(K, len(rows)) - 1, axis=1)[:, :K] for block in blocks])
    return found if passing is None else passing[found]


def recall(found: NDArray[Any], truth: Slots) -> float:
    hits = sum(len(set(f.tolist()) & set(t.tolist())) for f, t in zip(found, truth, strict=True))
    return hits / truth.size


def timed(work: Callable[[], T]) -> tuple[T, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    answer = work()
    return answer, time.process_time() - cpu, time.perf_counter() - wall


# ---------------------------------------------------------------- engines


def kektor(base: Floats, threads: int) -> tuple[Engine, VectorIndex]:
    index = VectorIndex(base.shape[1], m=M, ef_construction=EF_CONSTRUCTION)

    def build() -> None:
        index.add(np.arange(len(base), dtype=np.uint32), base, lsn=1, throttle=False)
        index.link(threads=threads)

    _, cpu, wall = timed(build)
    stats = index.stats()
    walked = sum(stats[f"bytes_{arena}"] for arena in ("codes", "links", "upper", "states"))  # type: ignore[misc]

    def search(queries: Floats, ef: int) -> NDArray[Any]:
        return index.search_batch(queries, K, ef=ef, threads=1)[0]

    return Engine("kektor", search, cpu, wall, walked / len(base)), index


def hnswlib(base: Floats, threads: int) -> Engine:
    import hnswlib as library

    index = library.Index("ip", base.shape[1])
    index.init_index(len(base), M=M, ef_construction=EF_CONSTRUCTION)
    _, cpu, wall = timed(lambda: index.add_items(base, np.arange(len(base)), num_threads=threads))

    def search(queries: Floats, ef: int) -> NDArray[Any]:
        index.set_ef(max(ef, K))
        return np.asarray(index.knn_query(queries, K, num_threads=1)[0])

    return Engine("hnswlib", search, cpu, wall)


def faiss(base: Floats, threads: int) -> Engine:
    import faiss as library

    library.omp_set_num_threads(threads)
    index = library.IndexHNSWFlat(base.shape[1], M, library.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = EF_CONSTRUCTION
    _, cpu, wall = timed(lambda: index.add(base))

    def search(queries: Floats, ef: int) -> NDArray[Any]:
        library.omp_set_num_threads(1)
        index.hnsw.efSearch = ef
        return np.asarray(index.search(queries, K)[1])

    return Engine("faiss", search, cpu, wall)


def usearch(base: Floats, threads: int) -> Engine:
    from usearch.index import Index

    index = Index(ndim=base.shape[1], metric="ip", dtype="bf16", connectivity=M, expansion_add=EF_CONSTRUCTION)
    _, cpu, wall = timed(lambda: index.add(np.arange(len(base)), base, threads=threads))

    def search(queries: Floats, ef: int) -> NDArray[Any]:
        index.expansion_search = ef
        return np.asarray(index.search(queries, K, threads=1).keys)

    return Engine("usearch", search, cpu, wall)


PEERS: dict[str, Callable[[Floats, int], Engine]] = {"hnswlib": hnswlib, "faiss": faiss, "usearch": usearch}


# ---------------------------------------------------------------- measurements


def curves(engines: list[Engine], queries: Floats, truth: Slots, rounds: int) -> None:
    """Fill in recall and queries a second (by processor time) at every ef, engines in turn."""
    seconds: dict[tuple[str, int], list[float]] = {}
    recalls: dict[tuple[str, int], float] = {}
    for engine in engines:
        engine.search(queries, EFS[0])
    for _ in range(rounds):
        for ef in EFS:
            for engine in engines:
                found, cpu, _ = timed(lambda engine=engine, ef=ef: engine.search(queries, ef))  # type: ignore[misc]
                seconds.setdefault((engine.name, ef), []).append(cpu)
                recalls[engine.name, ef] = recall(found, truth)
    for engine in engines:
        for ef in EFS:
            rate = len(queries) / statistics.median(seconds[engine.name, ef])
            engine.points.append({"ef": ef, "recall": round(recalls[engine.name, ef], 4), "qps": round(rate)})
        reached = [point["recall"] for point in engine.points]
        rates = np.log([point["qps"] for point in engine.points])
        for target in TARGETS:
            if reached[-1] >= target:
                engine.qps_at[f"{target:.2f}"] = round(float(np.exp(np.interp(target, reached, rates))))


def filters(index: VectorIndex, base: Floats, queries: Floats, rounds: int) -> list[dict[str, Any]]:
    """Recall and milliseconds under masks that lie anywhere, and that lie together."""
    rng = np.random.default_rng(3)
    near_one = np.argsort(-(base @ base[11]))
    results = []
    for kind in ("random", "clustered"):
        for share in SHARES:
            count = max(K, int(len(base) * share))
            passing = np.sort(rng.choice(len(base), count, replace=False) if kind == "random" else near_one[:count])
            bitmap = Bitmap(BitMap(passing.tolist()).serialize())
            truth = exact(base, queries, passing)
            times: list[float] = []
            found: NDArray[Any] = truth
            for _round in range(rounds):
                answer, cpu, _ = timed(lambda bitmap=bitmap: index.search_batch(queries, K, filter=bitmap, threads=1))  # type: ignore[misc]
                found = answer[0]
                times.append(cpu)
            milliseconds = statistics.median(times) / len(queries) * 1000
            reached = round(recall(found, truth), 4)
            results.append({"mask": kind, "share": share, "recall": reached, "ms": round(milliseconds, 4)})
    return results


def opening(index: VectorIndex, query: Floats) -> float:
    """Milliseconds from a checkpoint in the page cache to the first answer."""
    with tempfile.TemporaryDirectory() as folder:
        for chunk in index.freeze(1):
            index.write(chunk, f"{folder}/{chunk.name}")
        index.release(True)
        times = [timed(lambda: VectorIndex.open(folder).search(query, K))[2] for _ in range(5)]
    return round(statistics.median(times) * 1000, 2)


def waiting(index: VectorIndex, queries: Floats, extra: Floats) -> dict[str, float]:
    """The 99th percentile of a search alone, and while another thread adds rows that are linked in the background."""
    import threading

    def p99(until: Callable[[], bool]) -> float:
        times = []
        while len(times) < len(queries) or not until():
            start = time.perf_counter()
            index.search(queries[len(times) % len(queries)], K, ef=80)
            times.append(time.perf_counter() - start)
        return float(np.percentile(times, 99) * 1000)

    idle = p99(lambda: True)
    first = index.stats()["slots"]
    assert isinstance(first, int)

    def write() -> None:
        for at in range(len(extra)):
            index.add(np.array([first + at], np.uint32), extra[at : at + 1], lsn=2)

    writer = threading.Thread(target=write)
    writer.start()
    busy = p99(lambda: not writer.is_alive())
    writer.join()
    return {"idle_p99_ms": round(idle, 3), "inserting_p99_ms": round(busy, 3)}


def machine() -> dict[str, Any]:
    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    fields = dict(line.split(":", 1) for line in info.splitlines() if ":" in line)
    found = {name.strip(): value.strip() for name, value in fields.items()}
    flags = [flag for flag in found.get("flags", "").split() if flag.startswith(("avx", "fma", "f16c", "amx"))]
    return {
        "processor": found.get("model name", platform.machine()),
        "flags": flags,
        "python": platform.python_version(),
    }


# ---------------------------------------------------------------- the command


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", default="glove100")
    parser.add_argument("--rows", type=int, help="only the first so many")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2, help="of the build; searches have one")
    parser.add_argument("--peers", default=",".join(PEERS), help="comma-separated; empty for none")
    parser.add_argument("--out", type=Path, help="folder for the result as JSON")
    arguments = parser.parse_args()
    unknown = set(filter(None, arguments.peers.split(","))) - set(PEERS)
    if unknown:
        parser.error(f"unknown peers {sorted(unknown)}; known are {sorted(PEERS)}")
    return arguments


def main() -> None:
    arguments = parse()
    base, queries = load(arguments.folder, arguments.set, arguments.rows)
    held = base[-2000:]
    own, index = kektor(base, arguments.threads)
    engines = [own, *(PEERS[name](base, arguments.threads) for name in arguments.peers.split(",") if name)]
    curves(engines, queries, exact(base, queries), arguments.rounds)
    print(f"{arguments.set}: {len(base)} x {base.shape[1]}, cosine, m {M}; queries a second of processor time")
    print(f"{'engine':10}{'build CPU s':>12}" + "".join(f"{'at ' + f'{t:.2f}':>10}" for t in TARGETS))
    for engine in engines:
        rates = "".join(f"{engine.qps_at.get(f'{t:.2f}', 0) or '-':>10}" for t in TARGETS)
        print(f"{engine.name:10}{engine.build_cpu_s:>12.1f}{rates}")
    masks = filters(index, base, queries[::3], arguments.rounds)
    for row in masks:
        print(f"filter {row['mask']:10}{row['share']:>8.2%}  recall {row['recall']:.3f}  {row['ms']:.3f} ms")
    opened = opening(index, queries[0])
    waits = waiting(index, queries, held)
    print(f"open to first answer {opened} ms; p99 {waits['idle_p99_ms']} ms, inserting {waits['inserting_p99_ms']} ms")
    if arguments.out:
        described = [{key: value for key, value in vars(engine).items() if key != "search"} for engine in engines]
        result = {
            "version": __version__,
            "set": arguments.set,
            "rows": len(base),
            "dim": base.shape[1],
            "rounds": arguments.rounds,
            "machine": machine(),
            "engines": described,
            "filters": masks,
            "open_ms": opened,
            **waits,
        }
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / f"{arguments.set}-{len(base)}.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
