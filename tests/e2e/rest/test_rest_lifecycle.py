"""A server as a process: it says when it is ready, serves several sockets, and ends gracefully."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import kektor

PROGRAM = """
import socket, sys, time
import numpy as np
import kektor
from kektor_server.rest import bind, serve
from kektor_server.settings import Settings

def embed(texts):
    if any("slowly" in text for text in texts):
        print("embedding", flush=True)
        time.sleep(1)
    return np.ones((len(texts), 4), np.float32)

folder, path, options = sys.argv[1], sys.argv[2], eval(sys.argv[3])
settings = Settings(port=0, idle_exit=1, slow_seconds=0)
unix = socket.socket(socket.AF_UNIX)
unix.bind(path)
with kektor.open(folder, embedder=embed) as database:
    serve(database, settings, sockets=[bind(settings), unix], ready=lambda at: print(*at, flush=True), **options)
print("closed", flush=True)
"""


class Process:
    """The program above, running."""

    def __init__(self, process: "subprocess.Popen[str]", url: str, socket: str) -> None:
        self.process, self.url, self.socket = process, url, socket

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self, how: int | None) -> None:
        """It closed its database and left with 0."""
        if how is not None:
            self.process.send_signal(how)
        out, err = self.process.communicate(timeout=60)
        assert (self.process.returncode, out.split()[-1:], err) == (0, ["closed"], "")


@contextmanager
def running(folder: Path, options: str = "{}") -> Iterator[Process]:
    socket = str(folder / "s.sock")
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder / "data"), socket, options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert process.stdout is not None
        addresses = process.stdout.readline().split()
        assert len(addresses) == 2, process.stderr and process.stderr.read()
        assert addresses[1] == f"unix:{socket}"
        yield Process(process, addresses[0], socket)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT], ids=lambda how: how.name)
def test_a_signal_lets_what_is_under_way_finish_and_keeps_it(tmp_path: Path, how: signal.Signals) -> None:
    with running(tmp_path) as server, ThreadPoolExecutor(1) as pool:
        body = {"text": "saved slowly", "id": "m1"}
        under_way = pool.submit(httpx.post, f"{server.url}/v1/memories", json=body, timeout=30)
        assert server.line() == "embedding"
        server.process.send_signal(how)
        answer = under_way.result()
        assert answer.status_code == 201, answer.text
        server.end(None)
    with kektor.open(tmp_path / "data", embedder=lambda texts: [[1.0] * 4] * len(texts)) as database:
        assert database.memory().get("m1").text == "saved slowly"


def test_one_process_serves_tcp_and_a_unix_socket(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        with httpx.Client(transport=httpx.HTTPTransport(uds=server.socket), base_url="http://kektor") as local:
            assert local.post("/v1/memories", json={"text": "by socket"}).status_code == 201
        listed = httpx.get(f"{server.url}/v1/memories").json()["items"]
        assert [memory["text"] for memory in listed] == ["by socket"]
        server.end(signal.SIGTERM)


def test_an_on_demand_server_leaves_when_its_clients_have(tmp_path: Path) -> None:
    with running(tmp_path, "{'on_demand': True}") as server:
        with httpx.Client(base_url=server.url) as client:
            assert client.get("/healthz").status_code == 200
        server.end(None)


def test_a_connection_that_is_kept_open_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with running(tmp_path) as server, httpx.Client(base_url=server.url) as client:
        assert client.get("/healthz").status_code == 200
        server.end(signal.SIGTERM)
