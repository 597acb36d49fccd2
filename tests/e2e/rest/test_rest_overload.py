"""Overload is an answer: bounded threads, bounded queues, and an event loop that stays free."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest

from tests.support.rest import LiveServer, live_server


class Gate:
    """Holds every call of an operation until it is opened."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.opened = threading.Event()

    def hold(self, run: object) -> object:
        def held(*given: object, **named: object) -> object:
            self.entered.release()
            assert self.opened.wait(30)
            return run(*given, **named)  # type: ignore[operator]

        return held


@contextmanager
def holding(live: LiveServer, monkeypatch: pytest.MonkeyPatch, operation: str) -> Iterator[Gate]:
    gate = Gate()
    operations = live.database.operations
    with monkeypatch.context() as patch:
        patch.setattr(operations, operation, gate.hold(getattr(operations, operation)))
        try:
            yield gate
        finally:
            gate.opened.set()


def test_when_every_place_is_taken_a_call_is_told_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with live_server(read_threads=1, write_threads=1, queue=1) as live, ThreadPoolExecutor(4) as pool:

        def recall() -> httpx.Response:
            return httpx.post(f"{live.url}/v1/recall", json={"query": "x"}, timeout=30)

        with holding(live, monkeypatch, "recall") as gate:
            running = pool.submit(recall)
            assert gate.entered.acquire(timeout=30)
            waiting = pool.submit(recall)
            while live.app.state.service.reads.busy < 2:
                pass
            refused = recall()
            live.error(refused, 503, "unavailable")
            assert refused.headers["retry-after"] == "1"
            # Neither the loop nor the writers wait for the readers.
            live.ok(live.http.get("/healthz"))
            live.ok(live.http.post("/v1/memories", json={"text": "written meanwhile"}), 201)
            gate.opened.set()
            assert [running.result().status_code, waiting.result().status_code] == [200, 200]
        live.ok(recall())


def test_the_number_of_requests_at_once_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    with live_server(requests=1) as live, ThreadPoolExecutor(1) as pool:
        with holding(live, monkeypatch, "recall") as gate:
            running = pool.submit(httpx.post, f"{live.url}/v1/recall", json={"query": "x"}, timeout=30)
            assert gate.entered.acquire(timeout=30)
            live.error(live.http.get("/healthz"), 503, "unavailable")
            gate.opened.set()
            assert running.result().status_code == 200
        live.ok(live.http.get("/healthz"))


def test_bodies_of_unfinished_requests_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    kib = 1024
    with live_server(body_bytes=16 * kib, buffered_bytes=20 * kib) as live, ThreadPoolExecutor(1) as pool:
        body = {"text": "x" * 15 * kib}
        with holding(live, monkeypatch, "remember") as gate:
            running = pool.submit(httpx.post, f"{live.url}/v1/memories", json=body, timeout=30)
            assert gate.entered.acquire(timeout=30)
            live.error(live.http.post("/v1/memories", json={"text": "y" * 15 * kib}), 503, "unavailable")
            live.ok(live.http.get("/v1/memories"))
            gate.opened.set()
            assert running.result().status_code == 201
        live.ok(live.http.post("/v1/memories", json={"text": "y" * 15 * kib}), 201)
        assert live.app.state.service.intake.held == 0
