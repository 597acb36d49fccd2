"""The routes of memories, each on its way to success."""

import pytest

from tests.support.rest import LiveServer

MEMORY_FIELDS = {
    *("id", "lineage", "version", "index", "kind", "text", "metadata", "tags", "layer", "pinned", "scope", "session"),
    *("status", "trust", "validity", "occurred_at", "occurred_label", "recorded_at", "retired_at", "freshness"),
    *("claim", "supersedes"),
    *("superseded_by", "evidence", "actor", "access"),
}


def remember(live: LiveServer, text: str, **fields: object) -> str:
    receipt = live.ok(live.http.post("/v1/memories", json={"text": text, **fields}), 201)
    assert receipt["outcome"] == "created"
    return receipt["id"]


def test_a_memory_is_saved_with_all_its_fields_and_read_back(live: LiveServer) -> None:
    sent = {
        "text": "Dana owns the Henderson account",
        "id": "dana-1",
        "tags": ["crm", "eu"],
        "layer": "procedural",
        "session": "s1",
        "metadata": {"price": 10.5, "owner": {"name": "Dana"}, "none": None},
        "pinned": True,
        "claim": ["Henderson account", "owner", "Dana"],
        "occurred_at": "2024-02-29",
        "valid_from": "2026-06-01",
        "valid_to": "2099",
        "scope": {"user": "alice"},
    }
    receipt = live.ok(live.http.post("/v1/memories", json=sent), 201)
    assert (receipt["outcome"], receipt["id"], receipt["version"]) == ("created", "dana-1", 1)
    memory = live.ok(live.http.get("/v1/memories/dana-1"))
    assert memory.keys() == MEMORY_FIELDS
    for name in ("text", "id", "tags", "layer", "session", "metadata", "pinned"):
        assert memory[name] == sent[name]
    assert memory["scope"] == {"user": "alice", "agent": None, "project": None}
    assert memory["claim"] == {"subject": "Henderson account", "predicate": "owner", "object": "Dana"}
    assert memory["occurred_at"].startswith("2024-02-29")
    assert memory["validity"]["from"].startswith("2026-06-01")
    assert memory["validity"]["to"].startswith("2100-01-01")
    assert memory["actor"] == {"kind": "service", "id": None, "channel": "rest"}
    assert (memory["status"], memory["trust"], memory["kind"], memory["index"]) == (
        "current",
        "accepted",
        "memory",
        "default",
    )


def test_a_claim_may_be_an_object(live: LiveServer) -> None:
    claim = {"subject": "build", "predicate": "port", "object": "8080"}
    memory_id = remember(live, "The build listens on 8080", claim=claim)
    assert live.ok(live.http.get(f"/v1/memories/{memory_id}"))["claim"] == claim


def test_a_duplicate_answers_200_and_names_what_is_there(live: LiveServer) -> None:
    first = remember(live, "Tom likes tea")
    again = live.ok(live.http.post("/v1/memories", json={"text": "Tom likes tea"}), 200)
    assert (again["outcome"], again["id"], again["of"]) == ("duplicate", first, first)


def test_lists_page_through_everything_once_in_the_order_recorded(live: LiveServer) -> None:
    ids = [remember(live, f"fact number {n}") for n in range(7)]
    seen: list[str] = []
    cursor = None
    for _ in range(10):
        params = {"limit": 3} if cursor is None else {"limit": 3, "cursor": cursor}
        page = live.ok(live.http.get("/v1/memories", params=params))
        seen += [memory["id"] for memory in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == ids


def test_a_list_is_narrowed_by_filter_scope_and_kinds(live: LiveServer) -> None:
    hers = remember(live, "alice fact", tags=["a"], scope={"user": "alice"})
    his = remember(live, "bob fact", tags=["b"], scope={"user": "bob"})
    shared = remember(live, "shared fact", tags=["a"])

    def listed(**params: str) -> list[str]:
        page = live.ok(live.http.get("/v1/memories", params=params))
        return [memory["id"] for memory in page["items"]]

    assert listed() == [hers, his, shared]
    assert listed(user="alice") == [hers, shared]
    assert listed(filter="tags CONTAINS 'a'") == [hers, shared]
    assert listed(filter='{"eq": ["tags", "b"]}') == [his]
    assert listed(filter="tags CONTAINS 'a'", user="bob") == [shared]
    assert listed(kinds="source") == []
    assert listed(kinds="source,memory") == [hers, his, shared]


@pytest.mark.parametrize("include", [{"include": ["archived", "superseded"]}, {"include": "archived,superseded"}])
def test_include_repeats_or_has_commas(live: LiveServer, include: dict[str, object]) -> None:
    gone = remember(live, "put away")
    old = remember(live, "port is 8080")
    live.ok(live.http.post(f"/v1/memories/{gone}/archive"))
    new = live.ok(live.http.post(f"/v1/memories/{old}/evolve", json={"text": "port is 9090"}))["id"]
    assert [m["id"] for m in live.ok(live.http.get("/v1/memories"))["items"]] == [new]
    page = live.ok(live.http.get("/v1/memories", params=include))
    assert [memory["id"] for memory in page["items"]] == [gone, old, new]


def test_evolving_keeps_history_and_resolves_to_the_head(live: LiveServer) -> None:
    old = remember(live, "Dana owns the Henderson account", valid_from="2024-01-01")
    body = {"text": "Priya owns the Henderson account", "valid_from": "2026-06-01", "expected_version": 1}
    receipt = live.ok(live.http.post(f"/v1/memories/{old}/evolve", json=body))
    new = receipt["id"]
    assert (receipt["outcome"], receipt["of"], receipt["version"]) == ("superseded", old, 2)
    history = live.ok(live.http.get(f"/v1/memories/{new}/history"))
    assert [version["id"] for version in history["items"]] == [old, new]
    assert history["next_cursor"] is None
    exactly = live.ok(live.http.get(f"/v1/memories/{old}"))
    assert (exactly["id"], exactly["status"], exactly["superseded_by"]) == (old, "superseded", new)
    assert live.ok(live.http.get(f"/v1/memories/{old}", params={"resolve": "head"}))["id"] == new
    then = live.ok(live.http.get("/v1/memories", params={"as_of": "2025"}))
    assert [memory["id"] for memory in then["items"]] == [old]
    seconds = live.ok(live.http.get("/v1/memories", params={"as_of": "1735689600"}))
    assert [memory["id"] for memory in seconds["items"]] == [old]


def test_a_corrected_and_a_retracted_value_cannot_come_back(live: LiveServer) -> None:
    wrong = remember(live, "The office is in Rome")
    right = live.ok(live.http.post(f"/v1/memories/{wrong}/correct", json={"text": "The office is in Oslo"}))["id"]
    blocked = live.http.post("/v1/memories", json={"text": "the office is in ROME."})
    assert live.error(blocked, 409, "blocked")["details"]["tombstone"]
    receipt = live.ok(live.http.post(f"/v1/memories/{right}/retract", json={"reason": "misspoke"}))
    assert receipt["id"] == right
    assert live.ok(live.http.get("/v1/memories"))["items"] == []
    live.error(live.http.post("/v1/memories", json={"text": "The office is in Oslo"}), 409, "blocked")
    remember(live, "The office is in Bergen")


def test_verbs_without_a_body_do_what_they_say(live: LiveServer) -> None:
    memory_id = remember(live, "Water boils at 100 degrees")

    def state() -> dict[str, object]:
        memory = live.ok(live.http.get(f"/v1/memories/{memory_id}"))
        return {
            "status": memory["status"],
            "pinned": memory["pinned"],
            "confirmations": memory["freshness"]["confirmations"],
            "access": memory["access"]["count"],
        }

    begun = {"status": "current", "pinned": False, "confirmations": 0, "access": 0}
    assert state() == begun
    for verb, change in (
        ("pin", {"pinned": True}),
        ("unpin", {"pinned": False}),
        ("confirm", {"confirmations": 1}),
        ("reinforce", {"access": 1}),
        ("archive", {"status": "archived"}),
        ("restore", {"status": "current"}),
    ):
        live.ok(live.http.post(f"/v1/memories/{memory_id}/{verb}"))
        begun |= change
        assert state() == begun, verb


def test_patching_replaces_what_belongs_to_today(live: LiveServer) -> None:
    memory_id = remember(live, "The sky is blue", tags=["a"], metadata={"k": 1})
    live.ok(live.http.patch(f"/v1/memories/{memory_id}", json={"tags": ["b"], "layer": "episodic", "pinned": True}))
    memory = live.ok(live.http.get(f"/v1/memories/{memory_id}"))
    assert (memory["tags"], memory["layer"], memory["pinned"]) == (["b"], "episodic", True)
    assert (memory["metadata"], memory["version"]) == ({"k": 1}, 1)


def test_evidence_leads_to_the_sentence_it_rests_on(live: LiveServer) -> None:
    messages = [{"role": "user", "content": "Hi. Dana owns Henderson. Bye."}]
    body = {"session": "s1", "messages": messages}
    source = live.ok(live.http.post("/v1/ingest/messages", json=body), 201)["ids"][0]
    evidence = [{"source": source, "quote": "Dana owns Henderson."}]
    memory_id = remember(live, "Dana owns the Henderson account", evidence=evidence)
    spans = live.ok(live.http.get(f"/v1/memories/{memory_id}/evidence"))
    assert spans["items"] == [
        {"source": source, "start": 4, "end": 24, "quote": "Dana owns Henderson.", "class": "user"}
    ]
    confirmed = live.ok(live.http.get(f"/v1/memories/{memory_id}"))["evidence"]
    assert confirmed == spans["items"]


@pytest.mark.parametrize(
    ("params", "status"), [({}, None), ({"mode": "erase"}, None), ({"mode": "archive"}, "archived")]
)
def test_deleting_erases_unless_told_to_archive(live: LiveServer, params: dict[str, str], status: str | None) -> None:
    memory_id = remember(live, "Frank was born in 1970")
    kept = remember(live, "Grace was born in 1971")
    forgotten = live.ok(live.http.delete(f"/v1/memories/{memory_id}", params=params))
    assert [entry["id"] for entry in forgotten["matched"]] == [memory_id]
    answer = live.http.get(f"/v1/memories/{memory_id}")
    if status is None:
        live.error(answer, 404, "not_found", "id")
    else:
        assert live.ok(answer)["status"] == status
    assert [memory["id"] for memory in live.ok(live.http.get("/v1/memories"))["items"]] == [kept]


def test_forgetting_reports_what_it_takes_and_a_dry_run_takes_nothing(live: LiveServer) -> None:
    ids = [remember(live, f"secret number {n}") for n in range(2)]
    body = {"ids": ids, "mode": "erase"}
    preview = live.ok(live.http.post("/v1/forget", json={**body, "dry_run": True}))
    assert [entry["id"] for entry in preview["matched"]] == ids
    assert (preview["dry_run"], preview["receipt"]) == (True, None)
    assert len(live.ok(live.http.get("/v1/memories"))["items"]) == 2
    done = live.ok(live.http.post("/v1/forget", json=body))
    assert [entry["id"] for entry in done["matched"]] == ids
    assert done["receipt"]["outcome"] == "erased"
    assert live.ok(live.http.get("/v1/memories"))["items"] == []


def test_recall_answers_with_context_and_says_when_it_cannot(live: LiveServer) -> None:
    remember(live, "Dana owns the Henderson account", scope={"user": "alice"})
    remember(live, "The kettle is in the kitchen", scope={"user": "bob"})
    asked = {"query": "who owns the Henderson account?", "k": 3}
    found = live.ok(live.http.post("/v1/recall", json=asked))
    assert found.keys() == {
        *("status", "hits", "context", "tokens", "dropped", "nearest_keys", "near_misses", "premise"),
        *("history_used", "trace_id", "trace", "plan"),
    }
    assert found["hits"][0]["memory"]["text"] == "Dana owns the Henderson account"
    assert "Dana owns the Henderson account" in found["context"]
    assert 0 < found["tokens"] <= 2000
    other = live.ok(live.http.post("/v1/recall", json={**asked, "scope": {"user": "bob"}}))
    assert "Dana" not in other["context"]
    live.error(live.http.post("/v1/recall", json={**asked, "index": "nowhere"}), 404, "not_found", "index")


def test_recall_of_an_empty_database_is_empty(live: LiveServer) -> None:
    found = live.ok(live.http.post("/v1/recall", json={"query": "anything?"}))
    assert (found["status"], found["hits"]) == ("empty", [])


def test_a_conversation_is_kept_once_in_the_order_sent(live: LiveServer) -> None:
    messages = [
        {"role": "user", "content": "yes", "at": "2024-05-01T10:00:00Z", "speaker": "Tom"},
        {"role": "user", "content": "yes", "at": "2024-05-01T10:00:00Z", "speaker": "Tom"},
        {"role": "assistant", "content": "noted", "id": "m-3", "metadata": {"model": "x"}},
    ]
    body = {"session": "s1", "title": "A talk", "messages": messages}
    receipt = live.ok(live.http.post("/v1/ingest/messages", json=body), 201)
    ids = receipt["ids"]
    assert len(set(ids)) == 3
    again = live.ok(live.http.post("/v1/ingest/messages", json=body), 200)
    assert (again["outcome"], again["ids"]) == ("duplicate", ids)
    page = live.ok(live.http.get("/v1/memories", params={"kinds": "source"}))
    assert [memory["id"] for memory in page["items"]] == ids
    assert page["items"][2]["metadata"] == {"model": "x", "role": "assistant", "message_id": "m-3"}


def test_a_batch_of_messages_with_a_blocked_one_is_no_plain_creation(live: LiveServer) -> None:
    lie = remember(live, "the moon is cheese")
    live.ok(live.http.post(f"/v1/memories/{lie}/retract"))
    messages = [{"role": "user", "content": "the moon is cheese"}, {"role": "user", "content": "the moon is rock"}]
    receipt = live.ok(live.http.post("/v1/ingest/messages", json={"session": "s", "messages": messages}), 200)
    assert [item["outcome"] for item in receipt["items"]] == ["blocked", "created"]


def test_a_memory_of_another_index_is_named_by_its_index(live: LiveServer) -> None:
    memory_id = remember(live, "in the other index", index="other")
    live.error(live.http.get(f"/v1/memories/{memory_id}"), 404, "not_found", "id")
    assert live.ok(live.http.get(f"/v1/memories/{memory_id}", params={"index": "other"}))["index"] == "other"


def test_an_id_in_two_scopes_is_told_apart_by_scope(live: LiveServer) -> None:
    for user in ("alice", "bob"):
        remember(live, f"a fact of {user}", id="same", scope={"user": user})
    error = live.error(live.http.get("/v1/memories/same"), 409, "conflict", "scope")
    assert error["details"]["scopes"] == [{"user": "alice"}, {"user": "bob"}]
    assert live.ok(live.http.get("/v1/memories/same", params={"user": "bob"}))["text"] == "a fact of bob"
