"""Repeats under an idempotency key, and concurrent writers."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.rest import LiveServer

WRITES: list[tuple[str, str, dict[str, Any] | None]] = [
    ("POST", "/v1/memories", {"text": "a fact said once"}),
    ("PATCH", "/v1/memories/m1", {"tags": ["new"]}),
    ("POST", "/v1/memories/m1/evolve", {"text": "it changed"}),
    ("POST", "/v1/memories/m1/reinforce", None),
    ("POST", "/v1/memories/m1/confirm", {}),
    ("DELETE", "/v1/memories/m1", None),
    ("POST", "/v1/forget", {"ids": ["m1"], "mode": "erase"}),
    ("POST", "/v1/forget", {"ids": ["m1"], "mode": "archive"}),
    ("POST", "/v1/ingest/messages", {"session": "s", "messages": [{"role": "user", "content": "hi"}]}),
    ("POST", "/v1/indexes", {"name": "new", "dim": 2}),
    ("PATCH", "/v1/indexes/v", {"layers": {"x": {"half_life_days": 1}}}),
    ("DELETE", "/v1/indexes/v", None),
    ("POST", "/v1/indexes/v/nodes", {"nodes": [{"id": "n", "vector": [1, 0, 0]}]}),
    ("PATCH", "/v1/indexes/v/nodes/x", {"metadata": {"k": 1}}),
    ("DELETE", "/v1/indexes/v/nodes/x", None),
    ("POST", "/v1/indexes/v/edges", {"edges": [{"src": "x", "rel": "r", "dst": "y"}]}),
]


@pytest.mark.parametrize(("method", "path", "body"), WRITES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_repeat_under_its_key_answers_the_same_and_changes_nothing(
    live: LiveServer, vectors: str, method: str, path: str, body: dict[str, Any] | None
) -> None:
    live.ok(live.http.post("/v1/memories", json={"id": "m1", "text": "the first fact"}), 201)
    headers = {"idempotency-key": "key 1"}
    before = live.stored()
    first = live.http.request(method, path, json=body, headers=headers)
    assert first.status_code in (200, 201), first.text
    after = live.stored()
    assert after != before
    again = live.http.request(method, path, json=body, headers=headers)
    assert (again.status_code, receipt_of(again.json())) == (first.status_code, receipt_of(first.json()))
    assert live.stored() == after


def receipt_of(answer: dict[str, Any]) -> Any:
    """Of forgetting, the receipt: what was erased is not told twice."""
    return answer.get("receipt", answer)


def test_a_key_may_stand_in_the_header_or_the_body_but_not_differ(live: LiveServer) -> None:
    first = live.ok(live.http.post("/v1/memories", json={"text": "one", "idempotency_key": "k"}), 201)
    again = live.http.post("/v1/memories", json={"text": "one"}, headers={"idempotency-key": "k"})
    assert live.ok(again, 201) == first
    both = live.http.post(
        "/v1/memories", json={"text": "one", "idempotency_key": "k"}, headers={"idempotency-key": "k"}
    )
    assert live.ok(both, 201) == first
    before = live.stored()
    differing = live.http.post(
        "/v1/memories", json={"text": "two", "idempotency_key": "k"}, headers={"idempotency-key": "l"}
    )
    live.error(differing, 400, "invalid", "idempotency_key")
    other = live.http.post("/v1/memories", json={"text": "another"}, headers={"idempotency-key": "k"})
    live.error(other, 409, "conflict", "idempotency_key")
    assert live.stored() == before


def test_of_writers_who_expect_one_version_one_wins(live: LiveServer) -> None:
    live.ok(live.http.post("/v1/memories", json={"id": "m1", "text": "the port is 1"}), 201)

    def evolve(number: int) -> int:
        body = {"text": f"the port is {number}", "expected_version": 1}
        return live.http.post("/v1/memories/m1/evolve", json=body).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(evolve, range(2, 10)))
    assert statuses == [200] + [409] * 7


def test_concurrent_writers_and_readers_lose_nothing(live: LiveServer) -> None:
    def write(number: int) -> str:
        return live.ok(live.http.post("/v1/memories", json={"text": f"fact {number}"}), 201)["id"]

    def read(number: int) -> int:
        return live.http.post("/v1/recall", json={"query": f"fact {number}"}).status_code

    with ThreadPoolExecutor(16) as pool:
        written = [pool.submit(write, number) for number in range(60)]
        reads = [pool.submit(read, number) for number in range(60)]
        ids = {future.result() for future in written}
        assert {future.result() for future in reads} == {200}
    listed = live.ok(live.http.get("/v1/memories", params={"limit": 1000}))["items"]
    assert {memory["id"] for memory in listed} == ids
    assert len(ids) == 60
