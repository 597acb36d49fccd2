"""Conditional requests: an ETag changes with what it stands for, and If-Match keeps two writers from each other."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.support.rest import LiveServer


def etag(live: LiveServer, path: str) -> str:
    answer = live.http.get(path)
    live.ok(answer)
    return str(answer.headers["etag"])


def test_an_etag_changes_with_the_memory_and_with_nothing_else(live: LiveServer) -> None:
    made = live.ok(live.http.post("/v1/memories", json={"text": "Dana owns the weir"}), 201)
    path = f"/v1/memories/{made['id']}"
    seen = [etag(live, path)]
    live.ok(live.http.post(f"{path}/reinforce"))
    live.ok(live.http.post("/v1/recall", json={"query": "Who owns the weir?"}))
    assert etag(live, path) == seen[0]
    for method, where, body in (
        ("PATCH", path, {"tags": ["a"]}),
        ("PATCH", path, {"metadata": {"a": 1}}),
        ("POST", f"{path}/pin", {}),
        ("POST", f"{path}/confirm", {}),
        ("POST", f"{path}/archive", {}),
    ):
        live.ok(live.http.request(method, where, json=body))
        seen.append(etag(live, path))
    assert len(set(seen)) == len(seen)
    assert all(tag[0] == tag[-1] == '"' for tag in seen)


def test_a_change_of_what_has_changed_meanwhile_is_a_conflict(live: LiveServer) -> None:
    made = live.ok(live.http.post("/v1/memories", json={"text": "Dana owns the weir"}), 201)
    path = f"/v1/memories/{made['id']}"
    read = etag(live, path)
    live.ok(live.http.patch(path, json={"tags": ["mine"]}, headers={"if-match": read}))
    for method, where, body in (
        ("PATCH", path, {"tags": ["theirs"]}),
        ("POST", f"{path}/evolve", {"text": "Priya owns the weir"}),
        ("POST", f"{path}/archive", {}),
    ):
        refused = live.error(
            live.http.request(method, where, json=body, headers={"if-match": read}), 409, "conflict", "if_match"
        )
        assert refused["details"]["etag"] == etag(live, path).strip('"')
    assert live.ok(live.http.get(path))["tags"] == ["mine"]
    fresh = {"if-match": etag(live, path)}
    live.ok(live.http.post(f"{path}/evolve", json={"text": "Priya owns the weir"}, headers=fresh))
    assert live.ok(live.http.get(f"{path}?resolve=head"))["text"] == "Priya owns the weir"


def test_a_node_is_conditional_too(live: LiveServer, vectors: str) -> None:
    path = f"/v1/indexes/{vectors}/nodes/x"
    read = {"if-match": etag(live, path)}
    live.ok(live.http.patch(path, json={"vector": [0.5, 0.5, 0]}, headers=read))
    live.error(live.http.patch(path, json={"tags": ["late"]}, headers=read), 409, "conflict", "if_match")
    live.ok(live.http.patch(path, json={"tags": ["any"]}, headers={"if-match": "*"}))


def test_of_many_writers_with_one_etag_one_wins(live: LiveServer) -> None:
    made = live.ok(live.http.post("/v1/memories", json={"text": "Dana owns the weir"}), 201)
    path = f"{live.url}/v1/memories/{made['id']}".replace("//v1", "/v1")
    read = {"if-match": etag(live, f"/v1/memories/{made['id']}")}

    def write(number: int) -> int:
        return httpx.patch(path, json={"tags": [f"writer {number}"]}, headers=read).status_code

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(write, range(8))) == [200] + [409] * 7


@pytest.mark.parametrize("given", ["x", '"x', 'W/"x"', '"a", "b"', '""', "**", '"\u00e9"'])
def test_an_if_match_that_is_no_etag_is_refused(shared: LiveServer, given: str) -> None:
    answer = shared.http.patch("/v1/memories/any", json={}, headers=[(b"if-match", given.encode("latin-1"))])
    shared.error(answer, 400, "invalid", "if_match")


def test_an_if_match_where_nothing_is_conditional_is_refused_and_not_ignored(shared: LiveServer) -> None:
    for method, path, body in (
        ("POST", "/v1/memories", {"text": "planted"}),
        ("POST", "/v1/recall", {"query": "x"}),
        ("GET", "/v1/memories", None),
    ):
        answer = shared.http.request(method, path, json=body, headers={"if-match": '"x"'})
        shared.error(answer, 400, "invalid", "if_match")


def test_values_under_keys_are_kept_with_their_version(live: LiveServer) -> None:
    value: dict[str, Any] = {"deep": [1, 2.5, None, True, {"text": "é"}]}
    put = live.http.put("/v1/kv/my%20key", json={"value": value})
    live.error(put, 400, "invalid", "key")
    put = live.http.put("/v1/kv/my-key", json={"value": value})
    shared = {"user": None, "agent": None, "project": None}
    assert live.ok(put) == {"key": "my-key", "value": value, "version": 1, "scope": shared}
    got = live.http.get("/v1/kv/my-key")
    assert (live.ok(got)["value"], got.headers["etag"]) == (value, '"1"')
    for other in (None, 0, "", [], {"a": 1}):
        live.ok(live.http.put("/v1/kv/my-key", json={"value": other}))
        assert live.ok(live.http.get("/v1/kv/my-key"))["value"] == other
    assert live.ok(live.http.get("/v1/kv/my-key"))["version"] == 6
    live.error(
        live.http.put("/v1/kv/my-key", json={"value": 1}, headers={"if-match": '"5"'}), 409, "conflict", "if_match"
    )
    live.error(live.http.put("/v1/kv/my-key", json={"value": 1, "only_new": True}), 409, "conflict", "only_new")
    live.error(live.http.put("/v1/kv/none", json={"value": 1}, headers={"if-match": "*"}), 409, "conflict", "if_match")
    assert live.ok(live.http.put("/v1/kv/my-key", json={"value": 1}, headers={"if-match": '"6"'}))["version"] == 7
    live.error(live.http.delete("/v1/kv/my-key", headers={"if-match": '"6"'}), 409, "conflict", "if_match")
    live.ok(live.http.delete("/v1/kv/my-key", headers={"if-match": '"7"'}))
    live.error(live.http.get("/v1/kv/my-key"), 404, "not_found", "key")
    live.error(live.http.delete("/v1/kv/my-key"), 404, "not_found", "key")
    live.error(live.http.put("/v1/kv/k", json={}), 400, "invalid", "value")


def test_a_key_belongs_to_its_scope(live: LiveServer) -> None:
    for user in ("alice", "bob"):
        live.ok(live.http.put("/v1/kv/theme", json={"value": user, "scope": {"user": user}}))
    assert live.ok(live.http.get("/v1/kv/theme?user=alice"))["value"] == "alice"
    assert live.ok(live.http.get("/v1/kv/theme?user=bob"))["value"] == "bob"
    refused = live.error(live.http.get("/v1/kv/theme"), 409, "conflict", "scope")
    assert refused["details"] == {"scopes": [{"user": "alice"}, {"user": "bob"}]}
    live.ok(live.http.delete("/v1/kv/theme?user=bob"))
    assert live.ok(live.http.get("/v1/kv/theme"))["value"] == "alice"
    live.ok(live.http.put("/v1/kv/theme", json={"value": "shared"}))
    assert live.ok(live.http.get("/v1/kv/theme?user=alice"))["value"] == "alice"
    assert live.ok(live.http.get("/v1/kv/theme?user=carol"))["value"] == "shared"
