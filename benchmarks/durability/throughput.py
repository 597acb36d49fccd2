"""How fast writes become durable: the log against a bare append and fdatasync, nodes against SQLite, the one pause.

Everything is measured on one folder in one run, side by side and in turns, since disks change their mind.
"""

import argparse
import json
import os
import platform
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from kektor_native import Log

import kektor
from kektor.engine.local import LocalEngine
from kektor.version import __version__

BATCHES = (1, 16, 256, 1024)
THREADS = (16, 64)
FRAME = 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where to write (default: a temporary folder)")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each figure")
    parser.add_argument("--turns", type=int, default=3, help="of which the median counts")
    parser.add_argument("--pause-vectors", type=int, default=10_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as work:
        result = {
            "version": __version__,
            "commit": _commit(),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "load": os.getloadavg()[0],
            "file_system": _file_system(Path(work)),
            "seconds": given.seconds,
            "turns": given.turns,
            "log": _log(Path(work), given),
            "nodes": _nodes(Path(work), given),
            "pause": _pause(Path(work), given.pause_vectors),
        }
    _print(result)
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        target = given.out / f"throughput-{__version__}.json"
        target.write_text(json.dumps(result, indent=1) + "\n")
        print(f"written to {target}")


def _log(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Ready frames of 1 kB a second: a batch is appended, then waited for."""
    payload = os.urandom(FRAME)
    table: dict[str, Any] = {}
    for batch in BATCHES:
        bare: list[float] = []
        ours: list[float] = []
        for turn in range(given.turns):
            bare.append(_bare(folder / f"bare-{batch}-{turn}", payload, batch, given.seconds))
            ours.append(_native(folder / f"log-{batch}-{turn}", payload, batch, given.seconds))
        table[str(batch)] = _side_by_side(ours, bare)
    return table


def _bare(path: Path, payload: bytes, batch: int, seconds: float) -> float:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, 64 << 20)

        def once() -> None:
            os.write(descriptor, payload * batch)
            os.fdatasync(descriptor)

        return _rate(once, seconds) * batch
    finally:
        os.close(descriptor)
        path.unlink()


def _native(folder: Path, payload: bytes, batch: int, seconds: float) -> float:
    folder.mkdir()
    log = Log(str(folder), next_lsn=1)
    lsn = 0

    def once() -> None:
        nonlocal lsn
        for _ in range(batch):
            lsn += 1
            log.append(lsn, payload)
        log.wait(lsn)

    try:
        return _rate(once, seconds) * batch
    finally:
        log.close()
        for path in folder.iterdir():
            path.unlink()


def _nodes(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Nodes of 1 kB, without text or vector, each durable when its call returns."""
    metadata = {"value": "x" * 900}
    table: dict[str, Any] = {}
    with kektor.open(folder / "data") as db:
        index = db.create_index("raw", dim=4)
        for threads in THREADS:
            sqlite: list[float] = []
            ours: list[float] = []
            for turn in range(given.turns):
                sqlite.append(_sqlite(folder / f"sqlite-{threads}-{turn}.db", threads, given.seconds))
                names = iter(f"t{threads}-{turn}-{n}" for n in range(1 << 30))
                lock = threading.Lock()

                def once(names: Any = names, lock: threading.Lock = lock) -> None:
                    with lock:
                        name = next(names)
                    index.upsert([name], metadata=[metadata])

                ours.append(_rate_of_many(once, threads, given.seconds))
            table[f"{threads} threads"] = _side_by_side(ours, sqlite)
        rates = []
        for call in range(given.turns * 3):
            ids = [f"batch-{call}-{n}" for n in range(1024)]
            started = time.perf_counter()
            index.upsert(ids, metadata=[metadata] * len(ids))
            rates.append(len(ids) / (time.perf_counter() - started))
        table["one call of 1,024"] = {"kektor": round(statistics.median(rates))}
        memory = db.memory()
        memory.remember("The first embeds the model's own start", id="warm")
        numbers = iter(range(1 << 30))
        table["remember, one thread"] = {
            "kektor": round(_rate(lambda: memory.remember(f"Fact number {next(numbers)}"), given.seconds))
        }
    return table


def _sqlite(path: Path, threads: int, seconds: float) -> float:
    """WAL, synchronous=FULL, one insert a transaction; one connection, which is its fastest way to write."""
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE nodes (id TEXT PRIMARY KEY, body TEXT)")
    lock = threading.Lock()
    numbers = iter(range(1 << 30))
    body = json.dumps({"value": "x" * 900})

    def once() -> None:
        with lock:
            connection.execute("INSERT INTO nodes VALUES (?, ?)", (str(next(numbers)), body))

    try:
        return _rate_of_many(once, threads, seconds)
    finally:
        connection.close()


def _pause(folder: Path, count: int) -> dict[str, Any]:
    """How long a checkpoint keeps writers waiting: quiet, and while vectors are being inserted."""
    vectors = np.random.default_rng(7).standard_normal((count, 384), dtype=np.float32)
    with kektor.open(folder / "pause") as db:
        assert isinstance(db.engine, LocalEngine)
        index = db.create_index("vectors", dim=384)
        index.upsert([f"v{n}" for n in range(count)], vectors=vectors)
        pauses: dict[str, float] = {}
        for name, busy in (("quiet", False), ("inserting", True)):
            stop = threading.Event()
            writer = threading.Thread(target=_insert, args=(index, vectors, name, stop)) if busy else None
            if writer is not None:
                writer.start()
            longest = 0.0
            for turn in range(3):
                index.upsert([f"{name}-{turn}"], vectors=vectors[:1])
                db.checkpoint()
                longest = max(longest, db.engine.checkpoint_pause)
            stop.set()
            if writer is not None:
                writer.join()
            pauses[name] = round(longest * 1000, 2)
    return {"vectors": count, "dim": 384, "longest_ms": pauses}


def _insert(index: Any, vectors: Any, name: str, stop: threading.Event) -> None:
    at = 0
    while not stop.is_set():
        part = vectors[at % len(vectors) : at % len(vectors) + 100]
        index.upsert([f"{name}-busy-{at + n}" for n in range(len(part))], vectors=part)
        at += len(part)


def _rate(once: Callable[[], Any], seconds: float) -> float:
    done, started = 0, time.perf_counter()
    while (now := time.perf_counter()) - started < seconds:
        once()
        done += 1
    return done / (now - started)


def _rate_of_many(once: Callable[[], Any], threads: int, seconds: float) -> float:
    counts = [0] * threads
    stop = threading.Event()

    def work(at: int) -> None:
        while not stop.is_set():
            once()
            counts[at] += 1

    workers = [threading.Thread(target=work, args=(at,)) for at in range(threads)]
    started = time.perf_counter()
    for worker in workers:
        worker.start()
    time.sleep(seconds)
    stop.set()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - started)


def _side_by_side(ours: list[float], other: list[float]) -> dict[str, Any]:
    mine, theirs = statistics.median(ours), statistics.median(other)
    return {"kektor": round(mine), "other": round(theirs), "ratio": round(mine / theirs, 2)}


def _print(result: dict[str, Any]) -> None:
    print(f"load {result['load']:.1f} on {result['cores']} cores, {result['file_system']}")
    print(f"{'frames of 1 kB a second, in batches of':45} {'log':>10} {'bare':>10} {'ratio':>6}")
    for batch, row in result["log"].items():
        print(f"{batch:45} {row['kektor']:10,} {row['other']:10,} {row['ratio']:6}")
    print(f"{'nodes of 1 kB a second':45} {'kektor':>10} {'SQLite':>10} {'ratio':>6}")
    for name, row in result["nodes"].items():
        other = f"{row['other']:10,} {row['ratio']:6}" if "other" in row else ""
        print(f"{name:45} {row['kektor']:10,} {other}")
    print(f"a checkpoint's pause, ms: {result['pause']['longest_ms']}")


def _commit() -> str:
    asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return asked.stdout.strip()


def _file_system(folder: Path) -> str:
    asked = subprocess.run(["stat", "-f", "-c", "%T", str(folder)], capture_output=True, text=True, check=False)
    return asked.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
