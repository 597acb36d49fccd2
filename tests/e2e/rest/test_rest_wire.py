"""HTTP itself: methods, request ids, limits kept while bytes arrive, and what a broken client gets."""

import json
import logging
import socket
from collections.abc import Iterator

import httpx
import pytest

from kektor_server.metrics.logs import Lines
from tests.support.rest import LiveServer, live_server

KIB = 1024


@pytest.fixture(scope="module")
def small() -> Iterator[LiveServer]:
    """A server with narrow limits."""
    with live_server(body_bytes=64 * KIB, buffered_bytes=128 * KIB, header_bytes=8 * KIB) as live:
        yield live


@pytest.fixture(scope="module")
def impatient() -> Iterator[LiveServer]:
    """A server that waits half a second for a request."""
    with live_server(request_seconds=0.5) as live:
        yield live


def connect(live: LiveServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", live.port), timeout=30)


def exchange(live: LiveServer, *parts: bytes) -> httpx.Response | None:
    """Send these bytes, and read until the server closes; None when it said nothing."""
    with connect(live) as wire:
        for part in parts:
            wire.sendall(part)
        received = b""
        while chunk := wire.recv(65536):
            received += chunk
    return parsed(received) if received else None


def parsed(received: bytes) -> httpx.Response:
    head, _, body = received.partition(b"\r\n\r\n")
    status, *lines = head.split(b"\r\n")
    headers = [tuple(line.split(b": ", 1)) for line in lines]
    return httpx.Response(int(status.split()[1]), headers=headers, content=body)  # type: ignore[arg-type]


def test_health_readiness_and_information(shared: LiveServer) -> None:
    assert shared.ok(shared.http.get("/healthz")) == {"status": "ok"}
    assert shared.ok(shared.http.get("/readyz")) == {"status": "ready", "findings": []}
    info = shared.ok(shared.http.get("/v1/info"))
    assert (info["name"], info["api"], info["tokenizer"]) == ("kektor", "v1", "bert-uncased")
    assert info["version"]
    assert info["embedder"]
    limits = {"body": 64 << 20, "headers": 64 << 10, "request_seconds": 30, "text": 1_000_000, "json_depth": 64}
    assert {name: info["limits"][name] for name in limits} == limits


def test_damage_is_named_and_a_database_that_cannot_write_is_not_ready(live: LiveServer) -> None:
    live.database.engine.checkpoint_failure = "no space left on device"
    degraded = live.ok(live.http.get("/readyz"))
    assert degraded["status"] == "degraded"
    assert "no space left" in degraded["findings"][0]["what"]
    live.database.close()
    answer = live.http.get("/readyz")
    live.error(answer, 503, "unavailable")
    assert answer.headers["retry-after"]
    live.ok(live.http.get("/healthz"))


def test_a_checkpoint_is_written_when_asked(live: LiveServer) -> None:
    lsn = live.ok(live.http.post("/v1/memories", json={"text": "kept"}), 201)["lsn"]
    assert live.ok(live.http.post("/v1/admin/checkpoint"))["lsn"] >= lsn
    assert live.ok(live.http.post("/v1/admin/checkpoint", json={}))["lsn"] >= lsn
    live.error(live.http.post("/v1/admin/checkpoint", json={"now": True}), 400, "invalid")


@pytest.mark.parametrize(
    ("path", "method", "allowed"),
    [
        ("/v1/memories", "PUT", "GET, HEAD, POST"),
        ("/v1/memories/x/pin", "GET", "POST"),
        ("/v1/memories/x", "POST", "DELETE, GET, HEAD, PATCH"),
        ("/healthz", "POST", "GET, HEAD"),
        ("/v1/recall", "OPTIONS", "POST"),
        ("/v1/indexes/v/nodes/query", "TRACE", "DELETE, GET, HEAD, PATCH, POST"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(shared: LiveServer, path: str, method: str, allowed: str) -> None:
    answer = shared.http.request(method, path)
    shared.error(answer, 405, "invalid")
    assert answer.headers["allow"] == allowed


def test_an_unknown_path_answers_with_the_error_object(shared: LiveServer) -> None:
    shared.error(shared.http.get("/v2/memories"), 404, "not_found")
    shared.error(shared.http.post("/v1/memory", json={}), 404, "not_found")


def test_head_answers_as_get_does_without_a_body(shared: LiveServer) -> None:
    answer = shared.http.head("/v1/info")
    assert answer.status_code == 200
    assert answer.content == b""
    assert answer.headers["content-length"] == shared.http.get("/v1/info").headers["content-length"]


def test_every_answer_has_a_request_id_the_callers_own_when_it_gave_one(shared: LiveServer) -> None:
    first, second = (shared.http.get("/healthz").headers["x-request-id"] for _ in range(2))
    assert first != second
    given = {"x-request-id": "trace-1:a.b_c"}
    assert shared.http.get("/healthz", headers=given).headers["x-request-id"] == "trace-1:a.b_c"
    assert shared.http.get("/nowhere", headers=given).headers["x-request-id"] == "trace-1:a.b_c"
    for bad in ("x" * 200, "two words", ""):
        assert shared.http.get("/healthz", headers={"x-request-id": bad}).headers["x-request-id"] != bad


def test_answers_are_not_to_be_kept_or_guessed_at(shared: LiveServer) -> None:
    for path in ("/healthz", "/nowhere"):
        headers = shared.http.get(path).headers
        assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")
        assert not [name for name in headers if name.startswith("access-control-")]


def test_an_internal_error_says_only_where_the_log_tells_more(
    live: LiveServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*given: object) -> None:
        raise RuntimeError("the secret of alice")

    monkeypatch.setattr(live.database.operations, "recall", broken)
    with caplog.at_level(logging.ERROR, "kektor.server"):
        answer = live.http.post("/v1/recall", json={"query": "x"}, headers={"x-request-id": "r-17"})
    error = live.error(answer, 500, "internal")
    assert error["details"] == {"request_id": "r-17"}
    assert "secret" not in answer.text
    assert "r-17" in caplog.text
    assert "the secret of alice" in caplog.text
    monkeypatch.undo()
    live.ok(live.http.post("/v1/recall", json={"query": "x"}))


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_may_fill_its_limit_and_not_pass_it(small: LiveServer, chunked: bool) -> None:
    def post(size: int) -> httpx.Response:
        head = b'{"text": "'
        body = head + b"x" * (size - len(head) - 2) + b'"}'
        assert len(body) == size
        content = (body[at : at + 7000] for at in range(0, size, 7000)) if chunked else body
        return small.http.post("/v1/memories", content=content, headers={"content-type": "application/json"})

    assert post(64 * KIB).status_code in (200, 201)
    error = small.error(post(64 * KIB + 1), 413, "too_large")
    assert error["details"] == {"limit": 64 * KIB}
    # The same connection goes on: what was left of the body was taken off it.
    small.ok(small.http.get("/healthz"))
    assert small.app.state.service.intake.held == 0


def test_a_body_far_beyond_the_limit_is_refused_before_it_arrives(small: LiveServer) -> None:
    with connect(small) as wire:
        wire.sendall(b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n")
        small.error(parsed(wire.recv(65536)), 413, "too_large")


def test_a_client_that_waits_to_be_asked_is_asked_once_or_refused(small: LiveServer) -> None:
    head = b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    with connect(small) as wire:
        wire.sendall(head % 99999999)
        small.error(parsed(wire.recv(65536)), 413, "too_large")
    with connect(small) as wire:
        body = b'{"text": "asked for"}'
        wire.sendall(head % len(body))
        assert wire.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        wire.sendall(body)
        assert parsed(wire.recv(65536)).status_code == 201


@pytest.mark.parametrize(
    "head",
    [
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: %s\r\n\r\n" % (b"x" * 9 * KIB),
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n%s\r\n" % (b"X-Many: 1\r\n" * 1000),
        b"GET /v1/memories?filter=%s HTTP/1.1\r\nHost: localhost\r\n\r\n" % (b"x" * 9 * KIB),
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Endless: %s" % (b"x" * 30 * KIB),
    ],
    ids=["one long", "many", "a long path", "one without end"],
)
def test_a_head_beyond_its_limit_is_refused(small: LiveServer, head: bytes) -> None:
    answer = exchange(small, head)
    assert answer is not None
    small.error(answer, 413, "too_large")


def test_a_head_within_its_limit_is_taken_however_large_the_body(small: LiveServer) -> None:
    body = b'{"text": "%s"}' % (b"x" * 40 * KIB)
    head = b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    answer = exchange(small, head, b"X-Long: %s\r\nContent-Length: %d\r\n\r\n" % (b"x" * 7 * KIB, len(body)) + body)
    assert answer is not None
    assert answer.status_code in (200, 201)


@pytest.mark.parametrize(
    "bytes_sent",
    [
        b"HELLO\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost localhost\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nContent-Length: five\r\n\r\n",
        b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
    ids=["no method", "no colon", "not ASCII", "no length", "two lengths", "no chunk", "TLS"],
)
def test_what_is_no_http_is_answered_and_closed(shared: LiveServer, bytes_sent: bytes) -> None:
    answer = exchange(shared, bytes_sent)
    assert answer is not None
    shared.error(answer, 400, "invalid")
    shared.ok(shared.http.get("/healthz"))


@pytest.mark.parametrize(
    "begun",
    [
        b"GET /healthz HTTP/1.1\r\nHost: local",
        b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\n\r\n{",
        b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
    ],
    ids=["head", "body", "chunks"],
)
def test_a_request_that_does_not_arrive_in_time_is_ended(impatient: LiveServer, begun: bytes) -> None:
    answer = exchange(impatient, begun)
    assert answer is not None
    error = impatient.error(answer, 400, "invalid")
    assert "0.5 seconds" in error["message"]
    assert impatient.app.state.service.intake.held == 0


def test_a_connection_on_which_nothing_is_asked_is_closed(impatient: LiveServer) -> None:
    assert exchange(impatient) is None


def test_a_client_that_goes_away_leaves_nothing_behind(live: LiveServer) -> None:
    before = live.stored()
    for begun in (b'{"text": "half', b""):
        with connect(live) as wire:
            wire.sendall(b"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n" + begun)
    live.ok(live.http.post("/v1/recall", json={"query": "anything"}))
    assert live.stored() == before
    assert live.app.state.service.intake.held == 0


def test_requests_sent_at_once_on_one_connection_are_answered_in_turn(shared: LiveServer) -> None:
    one = b"GET /v1/indexes HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: %d\r\n%s\r\n"
    last = b"Connection: close\r\n"
    with connect(shared) as wire:
        wire.sendall(b"".join(one % (n, last if n == 4 else b"") for n in range(5)))
        received = b""
        while chunk := wire.recv(65536):
            received += chunk
    ids = [line.split(b": ")[1] for line in received.split(b"\r\n") if line.startswith(b"x-request-id")]
    assert ids == [b"0", b"1", b"2", b"3", b"4"]


def test_a_request_is_logged_without_what_it_asks_for(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "kektor.access"), live_server(access_log=True) as live:
        live.http.get("/v1/memories", params={"filter": "text = 'my secret'"}, headers={"x-request-id": "log-1"})
        live.http.get("/v1/memories/forged%0aline")
    records = [record for record in caplog.records if record.name == "kektor.access"]
    lines = [Lines().format(record) for record in records]
    assert "GET /v1/memories request_id=log-1 method=GET route=/v1/memories status=200 ms=" in lines[0]
    assert "secret" not in caplog.text
    assert all("\n" not in line for line in lines)


def test_the_contract_is_served(shared: LiveServer) -> None:
    served = shared.ok(shared.http.get("/openapi.json"))
    assert served["openapi"].startswith("3.1")
    assert json.dumps(served)
