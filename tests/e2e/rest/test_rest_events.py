"""Live events: everything once, in order, within what the caller sees, and on again after a cut."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from kektor.engine.gateway import Grant, Principal
from kektor.engine.records import Actor
from kektor.engine.view import ScopeRule
from kektor.errors import Unauthenticated
from kektor_server.rest.principal import Headers
from tests.support.rest import LiveServer, live_server


class Stream:
    """A listener: reads one event after the other."""

    def __init__(self, answer: httpx.Response) -> None:
        assert answer.headers["content-type"] == "text/event-stream"
        self._lines = answer.iter_lines()
        assert next(self._lines) == "retry: 1000"  # so the server has us on its list
        assert next(self._lines) == ""

    def block(self) -> dict[str, str]:
        """The next event or comment, by field."""
        lines = list(iter(lambda: next(self._lines), ""))
        return dict(line.split(": ", 1) if not line.startswith(":") else ("comment", line) for line in lines)

    def event(self) -> dict[str, Any]:
        while "comment" in (found := self.block()):
            pass
        assert found["event"] == "write"
        event: dict[str, Any] = json.loads(found["data"])
        assert event["id"] == int(found["id"])
        return event


@contextmanager
def listening(live: LiveServer, query: str = "", **headers: str) -> Iterator[Stream]:
    with live.http.stream("GET", f"/v1/events{query}", headers=headers) as answer:
        yield Stream(answer)


def save(live: LiveServer, text: str, **more: Any) -> Any:
    return live.ok(live.http.post("/v1/memories", json={"text": text, **more}), 201)


def test_a_write_is_told_with_its_ids_and_never_with_its_words(live: LiveServer) -> None:
    save(live, "before anybody listened")
    with listening(live) as stream:
        made = save(live, "zephyrstone is secret", scope={"user": "alice"}, reason="zephyr reason")
        event = stream.event()
        assert (event["operation"], event["outcome"], event["index"]) == ("remember", "created", "default")
        assert (event["ids"], event["id"]) == ([made["id"]], made["lsn"])
        assert (event["scope"], event["actor"]) == ({"user": "alice"}, {"kind": "service", "channel": "rest"})
        live.ok(live.http.post(f"/v1/memories/{made['id']}/archive"))
        archived = stream.event()
        assert (archived["operation"], archived["ids"], archived["scope"]) == (
            "archive",
            [made["id"]],
            {"user": "alice"},
        )
        assert "zephyr" not in str([event, archived])


def test_what_changes_nothing_or_is_refused_is_not_told(live: LiveServer) -> None:
    save(live, "the same")
    with listening(live) as stream:
        live.ok(live.http.post("/v1/memories", json={"text": "the same"}))
        live.http.post("/v1/memories", json={"text": ""})
        live.http.post("/v1/memories/nobody/archive")
        last = save(live, "another")
        assert stream.event()["ids"] == [last["id"]]


def test_indexes_are_chosen(live: LiveServer, vectors: str) -> None:
    save(live, "makes the default index")
    with listening(live, f"?index={vectors}") as stream:
        save(live, "in the default index")
        live.ok(
            live.http.post(f"/v1/indexes/{vectors}/nodes", json={"nodes": [{"id": "new", "vector": [1, 2, 3]}]}), 201
        )
        assert stream.event()["ids"] == ["new"]
    live.error(live.http.get("/v1/events?index=no/name"), 400, "invalid", "index")


def test_a_listener_that_was_cut_off_goes_on_where_it_was(live: LiveServer) -> None:
    first = [save(live, f"fact {n}") for n in range(3)]
    with listening(live, **{"last-event-id": str(first[0]["lsn"])}) as stream:
        assert [stream.event()["id"] for _ in range(2)] == [first[1]["lsn"], first[2]["lsn"]]
    missed = [save(live, f"missed {n}")["lsn"] for n in range(3)]
    with listening(live, f"?after={first[2]['lsn']}") as stream:
        later = save(live, "later")["lsn"]
        assert [stream.event()["id"] for _ in range(4)] == [*missed, later]
    for bad in ("x", "-1", "1.5", str(2**70)):
        answer = live.http.get("/v1/events", headers={"last-event-id": bad})
        live.error(answer, 400, "invalid", "Last-Event-ID")


def test_what_is_no_longer_there_is_a_gap_and_not_silence() -> None:
    with live_server() as live:
        old = save(live, "before the restart")
        save(live, "missed")
        with live_server(live.database) as again, listening(again, **{"last-event-id": str(old["lsn"])}) as stream:
            assert stream.block()["event"] == "gap"
            seen = save(again, "seen")
            assert stream.event()["ids"] == [seen["id"]]


def test_events_come_in_the_order_of_the_log_whoever_writes(live: LiveServer) -> None:
    save(live, "makes the index")
    with listening(live) as stream, ThreadPoolExecutor(8) as pool:
        saved = list(pool.map(lambda n: save(live, f"number {n}")["lsn"], range(60)))
        assert [stream.event()["id"] for _ in range(60)] == sorted(saved)


def test_a_confined_caller_hears_of_what_it_sees_alone() -> None:
    def authenticate(headers: Headers) -> Principal:
        user = headers.get(b"authorization", b"").decode() or None
        return Principal(Actor(), frozenset({"read", "write", "admin"}), (Grant(None, ScopeRule(user=user)),))

    with live_server(authenticate=authenticate) as live:
        alices, bobs = (save(live, f"of {name}", scope={"user": name}) for name in ("alice", "bob"))
        with listening(live, authorization="bob") as bob, listening(live) as operator:
            live.ok(live.http.post(f"/v1/memories/{alices['id']}/evolve", json={"text": "of alice, again"}))
            live.ok(live.http.post(f"/v1/memories/{alices['id']}/reinforce"))
            live.ok(live.http.put("/v1/kv/theme", json={"value": 1, "scope": {"user": "alice"}}))
            live.ok(live.http.post("/v1/forget", json={"ids": [alices["id"], bobs["id"]], "mode": "erase"}))
            his = save(live, "more of bob", scope={"user": "bob"})
            shared = save(live, "of everybody")
            assert [bob.event()["ids"] for _ in range(2)] == [[his["id"]], [shared["id"]]]
            assert [operator.event()["operation"] for _ in range(6)] == [
                "evolve", "reinforce", "put_kv", "erase", "remember", "remember"
            ]  # fmt: skip


def test_who_is_no_longer_welcome_hears_nothing_more() -> None:
    """A token that is revoked while its stream is open ends it; the stream of another goes on."""
    refused: set[bytes] = set()

    def authenticate(headers: Headers) -> Principal:
        token = headers.get(b"authorization", b"")
        if token in refused:
            raise Unauthenticated("this token was revoked")
        return Principal(Actor(), frozenset({"read", "write"}), (Grant(),))

    with live_server(authenticate=authenticate) as live:
        save(live, "before anybody listens")
        with listening(live, authorization="revoked-soon") as gone, listening(live, authorization="kept") as kept:
            first = save(live, "while both are welcome")
            assert gone.event()["ids"] == kept.event()["ids"] == [first["id"]]
            refused.add(b"revoked-soon")
            second = save(live, "when one is not")
            assert kept.event()["ids"] == [second["id"]]
            assert gone.block() == {}, "the stream is over"


def test_the_line_is_kept_open_and_given_up_with_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    with live_server(drain_seconds=20) as live:
        monkeypatch.setattr(live.app.state.service.events, "_beat", 0.05)
        with listening(live) as stream:
            assert stream.block() == {"comment": ": beat"}
            ended = threading.Event()
            threading.Thread(target=lambda: (_read_out(stream), ended.set())).start()
            live.server.should_exit = True
            assert ended.wait(5)


def _read_out(stream: Stream) -> None:
    for _ in stream._lines:
        pass


def test_as_many_listen_as_may_and_a_place_becomes_free() -> None:
    with live_server(streams=1) as live:
        with listening(live) as heard:  # kept: a stream that nobody holds is closed, and its place free
            live.error(live.http.get("/v1/events"), 503, "unavailable")
            assert heard is not None
        for _ in range(100):
            with live.http.stream("GET", "/v1/events") as answer:
                if answer.status_code == 200:
                    return
        pytest.fail("the place of a listener that went is not free")


def test_an_export_streams_what_the_caller_sees_and_says_that_it_ended(live: LiveServer) -> None:
    for n in range(450):
        save(live, f"fact {n}", scope={"user": ("alice", "bob")[n % 2]})
    with live.http.stream("GET", "/v1/export") as answer:
        assert answer.headers["content-type"] == "application/x-ndjson"
        assert "content-length" not in answer.headers
        lines = [json.loads(line) for line in answer.iter_lines()]
    assert [line["type"] for line in lines] == ["kektor", "index", *["node"] * 450, "end"]
    assert {line["text"] for line in lines[2:-1]} == {f"fact {n}" for n in range(450)}
    live.error(live.http.get("/v1/export?index=nowhere"), 404, "not_found", "index")
