"""What a server tells of itself: counted, logged and traced by route, and never a word of what was said."""

import gzip
import json
import logging
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from kektor.engine.gateway import Grant, Principal
from kektor.engine.records import Actor
from kektor.engine.view import ScopeRule
from kektor.errors import RateLimited
from kektor_server.metrics.logs import JsonLines, Lines
from kektor_server.rest.rates import Rates
from tests.support.rest import LiveServer, live_server

PAGE = (Path(__file__).parents[3] / "docs" / "operations.md").read_text("utf-8")


def scrape(live: LiveServer) -> dict[str, float]:
    answer = live.http.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_requests_are_counted_by_route_and_status(live: LiveServer) -> None:
    for _ in range(3):
        live.http.get("/v1/memories/nobody-zephyr")
    made = live.ok(live.http.post("/v1/memories", json={"text": "zephyrstone"}), 201)
    found = scrape(live)
    assert found['kektor_requests_total{method="GET",route="/v1/memories/{id}",status="404"}'] == 3
    assert found['kektor_request_seconds_count{method="POST",route="/v1/memories"}'] == 1
    assert found['kektor_index_nodes{index="default"}'] == 1
    assert found["kektor_writable"] == 1
    assert found["kektor_log_position"] >= made["lsn"]
    assert "zephyr" not in str(found)


def test_no_caller_makes_labels_up(live: LiveServer) -> None:
    before = len(scrape(live))
    for n in range(50):
        live.http.get(f"/nowhere-{n}")
        live.http.request(f"METHOD{n}", f"/v1/memories/{n}")
        live.http.get(f"/v1/memories/id-{n}")
    assert len(scrape(live)) - before < 70  # two routes more with their buckets


def test_every_metric_of_the_page_is_there_and_no_other(live: LiveServer) -> None:
    live.http.get("/v1/memories", headers={"origin": "https://evil.example"})
    live.ok(live.http.post("/v1/memories", json={"text": "a"}), 201)
    table = PAGE[PAGE.index("## Metrics") : PAGE.index("## Logs")]
    told = {
        name
        for cell in re.findall(r"^\| (`kektor_.*?) \|", table, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", cell)
    }
    found = {re.sub(r"_(bucket|count|sum|created)$", "", re.split(r"[{ ]", name)[0]) for name in scrape(live)}
    process = {name for name in found if name.startswith("kektor_process_")}
    assert process
    # The counter of slow requests has no sample before the first.
    assert {name.removesuffix("_total") for name in found - process} | {"kektor_slow_requests"} == {
        name.removesuffix("_total") for name in told
    }


def test_metrics_are_for_callers_without_bounds() -> None:
    bounded = Principal(Actor(), frozenset({"read", "admin"}), (Grant(None, ScopeRule(user="alice")),))
    with live_server(authenticate=lambda headers: bounded) as live:
        live.error(live.http.get("/metrics"), 403, "forbidden")


def test_a_slow_request_is_logged_by_route_with_its_id(live: LiveServer, caplog: pytest.LogCaptureFixture) -> None:
    with live_server(slow_seconds=0.000001, access_log=True) as live, caplog.at_level(logging.INFO, "kektor"):
        body = {"query": "where is the zephyrstone?"}
        live.ok(live.http.post("/v1/recall?", json=body, headers={"x-request-id": "me-1"}))
        live.http.get("/v1/memories?filter=text+CONTAINS+'zephyr'")
        assert scrape(live)['kektor_slow_requests_total{method="POST",route="/v1/recall"}'] == 1
    slow = [record for record in caplog.records if record.name == "kektor.slow"]
    fields = slow[0].__dict__["fields"]
    assert (fields["request_id"], fields["route"], fields["status"]) == ("me-1", "/v1/recall", 200)
    for shape in (Lines(), JsonLines()):
        told = [shape.format(record) for record in caplog.records]
        assert any("me-1" in line for line in told)
        assert "zephyr" not in "".join(told)
    assert json.loads(JsonLines().format(slow[0]))["route"] == "/v1/recall"


def test_requests_become_spans_where_there_is_somebody_to_take_them(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[Any, ...]] = []
    with live_server() as live:
        monkeypatch.setattr(live.app.state.service, "spans", lambda *span: taken.append(span))
        live.http.get("/v1/memories/zephyr", headers={"traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01"})
    name, begun, ended, attributes, headers = taken[0]
    assert name == "GET /v1/memories/{id}"
    assert begun <= ended
    assert attributes["http.response.status_code"] == 404
    assert headers[b"traceparent"].startswith(b"00-a")
    assert "zephyr" not in str(attributes)


@pytest.mark.parametrize(
    ("accept", "encoding"),
    [("gzip", "gzip"), ("zstd, gzip", "zstd"), ("gzip;q=0.5, zstd;q=0", "gzip"), ("br", None), ("gzip;q=0", None),
     ("identity", None), ("*", None), ("GZIP", "gzip"), (";;,", None)],
)  # fmt: skip
def test_large_answers_come_smaller_to_who_reads_that(shared: LiveServer, accept: str, encoding: str | None) -> None:
    read: dict[str | None, Callable[[bytes], bytes]] = {
        "gzip": gzip.decompress,
        "zstd": lambda body: zstandard.ZstdDecompressor().decompress(body),
        None: bytes,
    }
    with shared.http.stream("GET", "/openapi.json", headers={"accept-encoding": accept}) as answer:
        body = b"".join(answer.iter_raw())
        assert answer.headers.get("content-encoding") == encoding
        assert answer.headers["vary"] == "accept-encoding"
        assert int(answer.headers["content-length"]) == len(body)
    assert json.loads(read[encoding](body))["openapi"] == "3.1.0"
    small = shared.http.get("/healthz", headers={"accept-encoding": accept})
    assert "content-encoding" not in small.headers


def test_a_caller_has_its_own_bucket_that_fills_with_time() -> None:
    now = 0.0
    rates = Rates(2.0, now=lambda: now)
    for _ in range(10):
        rates.take("alice")
    with pytest.raises(RateLimited) as limited:
        rates.take("alice")
    assert limited.value.details == {"retry_after": 1}
    rates.take("bob")
    now = 0.5
    rates.take("alice")
    with pytest.raises(RateLimited):
        rates.take("alice")
    now = 1000.0
    for _ in range(10):
        rates.take("alice")
    for n in range(20_000):
        rates.take(f"caller {n}")
    assert len(rates._buckets) <= 10_001


def test_too_many_requests_are_told_when_to_come_back() -> None:
    with live_server(rate=0.5) as live:
        answers = [live.http.get("/v1/info") for _ in range(12)]
        assert [answer.status_code for answer in answers[:10]] == [200] * 10
        live.error(answers[-1], 429, "rate_limited")
        assert int(answers[-1].headers["retry-after"]) >= 1
        live.ok(live.http.get("/healthz"))
        assert threading.active_count()
