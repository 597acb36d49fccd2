"""Single-vector search over HTTP beside the same search in one process, and beside the Chroma server.

The server has one core and the load generator another. A machine that does other work meanwhile makes every figure by
the wall clock smaller, so the processor time that one search takes in the server, and in the process without one, is
measured too: a core that does nothing else gives 1 / that many a second.

    KEKTOR_BENCH_DATA=… python benchmarks/http/search.py [--vectors N] [--chroma PYTHON] [--out benchmarks/http/results]

`--chroma` names a Python that has chromadb; without it that row is left out.
"""

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

import kektor
from kektor.memory.requests import SearchRequest

FILES = ("glove100_base_p0.f16.npy", "glove100_query.f16.npy")
K = 10
BATCH = 100
HERE = Path(__file__).parent
SERVER_CORE, LOAD_CORE = 0, 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=int, default=100_000)
    parser.add_argument("--ef", type=int, default=64)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--patience", type=float, default=3600, help="seconds that linking the graph may take")
    parser.add_argument("--chroma", help="a Python with chromadb")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    data = Path(os.environ["KEKTOR_BENCH_DATA"])
    base = np.concatenate([np.load(path) for path in sorted(data.glob("glove100_base_p*.f16.npy"))])[: given.vectors]
    base, queries = base.astype(np.float32), np.load(data / FILES[1]).astype(np.float32)[:1000]
    truth = nearest(base, queries[:500])
    with tempfile.TemporaryDirectory(prefix="kektor-bench-") as folder:
        rows = []
        for measure in (of_kektor, of_chroma) if given.chroma else (of_kektor,):
            for row in measure(Path(folder), base, queries, truth, given):
                print(json.dumps(row), file=sys.stderr)  # it takes minutes: say what is known
                rows.append(row)
    show(rows, given)
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        path = given.out / f"search-{time.strftime('%Y%m%d')}.json"
        path.write_text(json.dumps({**about(given), "rows": rows}, indent=1) + "\n")
        print(f"written: {path}")


def nearest(base: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """The truth, by looking at everything."""
    unit = base / np.linalg.norm(base, axis=1, keepdims=True)
    return np.stack([np.argpartition(-(unit @ (query / np.linalg.norm(query))), K)[:K] for query in queries])


def recall(found: list[list[int]], truth: np.ndarray) -> float:
    return statistics.mean(len(set(ids) & set(row.tolist())) / K for ids, row in zip(found, truth, strict=True))


def of_kektor(
    folder: Path, base: np.ndarray, queries: np.ndarray, truth: np.ndarray, given: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    with kektor.open(folder / "data") as database:
        index = database.create_index("glove", dim=base.shape[1])
        for start in range(0, len(base), 10_000):
            part = base[start : start + 10_000]
            index.upsert([str(start + n) for n in range(len(part))], vectors=part)
        until = time.monotonic() + given.patience
        while (unlinked := index.stats().vector["unlinked"]) and time.monotonic() < until:
            print(f"linking: {unlinked:,} to go", file=sys.stderr)
            time.sleep(2)
        given.unlinked = unlinked
        principal = database.principal("glove")

        def search(query: np.ndarray) -> list[str]:
            """What the route does, without HTTP and JSON: ids and scores."""
            request = SearchRequest(k=K, ef=given.ef)
            return [hit.id for hit in database.operations.search("glove", request, principal, vector=query)]

        os.sched_setaffinity(0, {SERVER_CORE})
        found = [[int(name) for name in search(query)] for query in queries[:500]]
        yield {"what": "kektor, in the process", "recall": recall(found, truth), **alone(search, queries, given)}
        os.sched_setaffinity(0, {SERVER_CORE, LOAD_CORE})
    with kektor_server(folder / "data") as (url, pid):
        body = [msgspec.json.encode({"vector": query.tolist(), "k": K, "ef": given.ef}) for query in queries]
        path = "/v1/indexes/glove/search"
        with httpx.Client(base_url=url, timeout=60) as http:
            hits = [http.post(path, content=each).json()["hits"] for each in body[:500]]
        share = recall([[int(hit["id"]) for hit in row] for row in hits], truth)
        for connections in given.connections:
            under = loaded(folder, url, path, body, connections, given.seconds, pid)
            yield {"what": "kektor, over HTTP", "connections": connections, "recall": share, **under}
        batches = [
            msgspec.msgpack.encode({"vectors": queries[n : n + BATCH].tolist(), "k": K, "ef": given.ef})
            for n in range(0, len(queries) - BATCH, BATCH)
        ]
        under = loaded(folder, url, f"{path}/batch", batches, 2, given.seconds, pid, "application/x-msgpack")
        under |= {name: under[name] * BATCH for name in ("per_second", "per_core")}
        yield {"what": f"kektor, batches of {BATCH}, MessagePack", "connections": 2, "recall": share, **under}


def alone(search: Callable[[np.ndarray], Any], queries: np.ndarray, given: argparse.Namespace) -> dict[str, Any]:
    """One thread, one search after the other."""
    times = []
    began, spent = time.perf_counter(), time.process_time()
    while time.perf_counter() - began < given.seconds:
        for query in queries[:200]:
            before = time.perf_counter()
            search(query)
            times.append(time.perf_counter() - before)
    took, cpu = time.perf_counter() - began, time.process_time() - spent
    p50, p95, p99 = (float(value) * 1000 for value in np.percentile(times, [50, 95, 99]))
    return {
        "requests": len(times), "per_second": len(times) / took, "p50_ms": p50, "p95_ms": p95, "p99_ms": p99,
        "cpu_us": cpu / len(times) * 1e6, "per_core": len(times) / cpu,
    }  # fmt: skip


def loaded(
    folder: Path, url: str, path: str, bodies: list[bytes], connections: int, seconds: float, pid: int,
    media: str = "application/json",
) -> dict[str, Any]:  # fmt: skip
    """What the load generator sees, and the processor time that the server spends on it."""
    host, port = url.removeprefix("http://").split(":")
    head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: {media}\r\nContent-Length: "
    prepared = folder / "requests"
    prepared.write_bytes(b"\0next\0".join(b"%s%d\r\n\r\n%s" % (head.encode(), len(body), body) for body in bodies))
    command = [sys.executable, str(HERE / "load.py"), host, port, str(prepared), str(connections)]
    subprocess.run(["taskset", "-c", str(LOAD_CORE), *command, "0.5"], check=True, capture_output=True)
    before = cpu_of(pid)
    run = subprocess.run(
        ["taskset", "-c", str(LOAD_CORE), *command, str(seconds)], check=True, capture_output=True, text=True
    )
    spent = cpu_of(pid) - before
    seen: dict[str, Any] = json.loads(run.stdout)
    return {**seen, "cpu_us": spent / seen["requests"] * 1e6, "per_core": seen["requests"] / spent}


def cpu_of(pid: int) -> float:
    """Seconds of processor time that a process has spent."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def kektor_server(data: Path) -> Iterator[tuple[str, int]]:
    command = [sys.executable, "-m", "kektor_server.main", "serve", "--data", str(data), "--port", "0", "--json"]
    environ = {**os.environ, "XDG_RUNTIME_DIR": str(data.parent), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        ["taskset", "-c", str(SERVER_CORE), *command], stdout=subprocess.PIPE, env=environ, text=True
    )
    try:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        yield told["url"], told["pid"]
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


def of_chroma(
    folder: Path, base: np.ndarray, queries: np.ndarray, truth: np.ndarray, given: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Chroma's own server over the same vectors, at the same ef."""
    port = 18_123
    runner = Path(given.chroma).with_name("chroma")
    process = subprocess.Popen(
        ["taskset", "-c", str(SERVER_CORE), str(runner), "run", "--path", str(folder / "chroma"), "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    api = f"{url}/api/v2/tenants/default_tenant/databases/default_database/collections"
    try:
        for _ in range(120):
            try:
                httpx.get(f"{url}/api/v2/heartbeat")
                break
            except httpx.TransportError:
                time.sleep(0.5)
        hnsw = {"space": "cosine", "ef_search": given.ef, "ef_construction": 200, "max_neighbors": 16}
        made = httpx.post(api, json={"name": "glove", "configuration": {"hnsw": hnsw}}, timeout=60)
        made.raise_for_status()
        collection = made.json()["id"]
        for start in range(0, len(base), 1000):
            part = base[start : start + 1000]
            ids = [str(start + n) for n in range(len(part))]
            content = msgspec.json.encode({"ids": ids, "embeddings": part.tolist()})
            httpx.post(f"{api}/{collection}/add", content=content, timeout=600,
                       headers={"content-type": "application/json"}).raise_for_status()  # fmt: skip
        body = [
            msgspec.json.encode({"query_embeddings": [query.tolist()], "n_results": K, "include": ["distances"]})
            for query in queries
        ]
        path = f"{api.removeprefix(url)}/{collection}/query"
        headers = {"content-type": "application/json"}
        with httpx.Client(base_url=url, timeout=60, headers=headers) as http:
            found = [http.post(path, content=each).json()["ids"][0] for each in body[:500]]
        share = recall([[int(name) for name in row] for row in found], truth)
        for connections in given.connections:
            under = loaded(folder, url, path, body, connections, given.seconds, process.pid)
            yield {"what": "Chroma's server", "connections": connections, "recall": share, **under}
    finally:
        process.terminate()
        process.wait()


def about(given: argparse.Namespace) -> dict[str, Any]:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=HERE, capture_output=True, text=True)
    return {
        "version": kektor.__version__, "commit": commit.stdout.strip(), "python": platform.python_version(),
        "cores": os.cpu_count(), "load_average": os.getloadavg(), "vectors": given.vectors, "ef": given.ef,
        "unlinked": given.unlinked, "seconds": given.seconds,
    }  # fmt: skip


def show(rows: list[dict[str, Any]], given: argparse.Namespace) -> None:
    table = Table(title=f"{given.vectors:,} vectors of GloVe-100, k={K}, ef={given.ef}")
    for name in (
        "what",
        "connections",
        "recall",
        "per second",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "CPU µs",
        "per core",
        "share",
    ):
        table.add_column(name, justify="left" if name == "what" else "right")
    whole = rows[0]["per_core"]
    for row in rows:
        table.add_row(
            row["what"], str(row.get("connections", "")), f"{row['recall']:.3f}", f"{row['per_second']:,.0f}",
            f"{row['p50_ms']:.2f}", f"{row['p95_ms']:.2f}", f"{row['p99_ms']:.2f}", f"{row['cpu_us']:.0f}",
            f"{row['per_core']:,.0f}", f"{row['per_core'] / whole:.0%}",
        )  # fmt: skip
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
