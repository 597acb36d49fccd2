"""Every command, through each of its three ways: the directory itself, its daemon's socket, a server's address."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.doors import Machine

Cli = Any


class Door:
    """A machine and the flags that make commands go one way."""

    def __init__(self, machine: Machine, flags: list[str]) -> None:
        self.machine = machine
        self.flags = flags

    def __call__(self, *arguments: str, code: int = 0, **others: Any) -> Any:
        return self.machine.json(*arguments, *self.flags, code=code, **others)


@pytest.fixture(params=["directory", "socket", "address"])
def kektor(machine: Machine, request: pytest.FixtureRequest) -> Iterator[Door]:
    if request.param == "directory":
        yield Door(machine, [])
        return
    with machine.server("serve", "--port", "0") as server:
        yield Door(machine, ["--url", server["url"]] if request.param == "address" else [])


def test_a_memory_from_its_saving_to_its_end(kektor: Door) -> None:
    saved = kektor(
        "remember", "Dana owns the Henderson account", "--tag", "crm", "--valid-from", "2026-01", "--user", "alice"
    )
    assert saved["outcome"] == "created"
    assert (
        kektor("remember", "Dana owns the Henderson account", "--valid-from", "2026-01", "--user", "alice")["outcome"]
        == "duplicate"
    )

    found = kektor("recall", "Who owns the Henderson account?", "--user", "alice")
    assert found["status"] == "ok"
    assert [hit["memory"]["id"] for hit in found["hits"]] == [saved["id"]]
    assert "Dana owns" in found["context"]

    memory = kektor("get", saved["id"])
    assert memory["tags"] == ["crm"]
    assert memory["scope"]["user"] == "alice"
    assert memory["validity"]["from"] == "2026-01-01T00:00:00Z"

    changed = kektor("evolve", saved["id"], "Erik owns the Henderson account", "--reason", "handed over")
    assert changed["version"] == 2
    assert kektor("get", saved["id"], "--head")["id"] == changed["id"]
    versions = kektor("history", changed["id"])["items"]
    assert [version["text"].split()[0] for version in versions] == ["Dana", "Erik"]

    right = kektor("correct", changed["id"], "Priya owns the Henderson account")
    assert kektor("get", changed["id"])["trust"] == "rejected"
    blocked = kektor("remember", "Erik owns the Henderson account", "--user", "alice", code=1)
    assert blocked["error"]["code"] == "blocked"

    other = kektor("remember", "Tomás has a sister in Bergen")
    assert kektor("retract", other["id"], "--reason", "misheard")["id"] == other["id"]
    listed = kektor("list")["items"]
    assert [memory["id"] for memory in listed] == [right["id"]]
    everything = kektor("list", "--include", "superseded", "--include", "rejected")["items"]
    assert len(everything) == 4

    preview = kektor("forget", right["id"], "--mode", "erase", "--dry-run")
    assert len(preview["matched"]) == 3
    assert preview["dry_run"]
    assert kektor("get", right["id"])
    erased = kektor("forget", right["id"], "--mode", "erase", "--yes")
    assert erased["matched"] == preview["matched"]
    assert kektor("get", right["id"], code=1)["error"]["code"] == "not_found"
    assert kektor("get", other["id"])["trust"] == "rejected"


def test_a_list_goes_on_where_it_ended_and_takes_a_filter(kektor: Door) -> None:
    for number in range(5):
        kektor("remember", f"Fact number {number}", "--tag", "even" if number % 2 == 0 else "odd")
    first = kektor("list", "--limit", "3")
    assert len(first["items"]) == 3
    rest = kektor("list", "--limit", "3", "--cursor", first["next_cursor"])
    assert rest["next_cursor"] is None
    assert [memory["text"] for memory in first["items"] + rest["items"]] == [f"Fact number {n}" for n in range(5)]
    odd = kektor("list", "--filter", "tags CONTAINS 'odd'")["items"]
    assert [memory["text"] for memory in odd] == ["Fact number 1", "Fact number 3"]


def test_a_conversation_is_kept_once_however_often_it_is_sent(kektor: Door, tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": f"Line {n // 2}", "speaker": "Dana", "at": "2026-03-02T09:00:00Z"}
        for n in range(230)
    ]
    file = tmp_path / "handover.jsonl"
    file.write_text("".join(json.dumps(message) + "\n" for message in messages))
    first = kektor("ingest", str(file))
    assert (first["messages"], first["created"], first["duplicate"]) == (230, 230, 0)
    assert first["files"][0]["session"] == "handover"
    again = kektor("ingest", str(file))
    assert (again["created"], again["duplicate"]) == (0, 230)
    other = kektor("ingest", str(file), "--session", "another")
    assert other["created"] == 230
    found = kektor("recall", "What did Dana say in line 77?", "--kind", "source")
    assert found["hits"][0]["memory"]["metadata"]["speaker"] == "Dana"


def test_what_may_happen_to_a_memory_besides_its_statement(kektor: Door) -> None:
    saved = kektor("remember", "Dana owns the Henderson account", "--tag", "crm")["id"]
    assert kektor("archive", saved, "--reason", "closed")["outcome"] == "archived"
    assert kektor("list")["items"] == []
    kektor("restore-memory", saved)
    kektor("pin", saved)
    kektor("update", saved, "--tag", "sales", "--layer", "episodic", "--metadata", '{"ticket": 12}')
    memory = kektor("get", saved)
    assert (memory["tags"], memory["layer"], memory["metadata"], memory["pinned"], memory["version"]) == (
        ["sales"], "episodic", {"ticket": 12}, True, 1,
    )  # fmt: skip
    kektor("unpin", saved)
    kektor("update", saved, "--no-tags")
    memory = kektor("get", saved)
    assert (memory["tags"], memory["pinned"]) == ([], False)
    assert kektor("confirm", saved)["id"] == saved
    assert kektor("evidence", saved) == {"items": [], "next_cursor": None}
    copy = kektor("share", saved, "--to-project", "ferries")["id"]
    assert kektor("get", copy)["scope"]["project"] == "ferries"
    for arguments in (["--tag", "x", "--no-tags"], ["--metadata", "{"], ["--metadata", "[]"]):
        assert kektor("update", saved, *arguments, code=2)["error"]["code"] == "invalid"


def test_the_shell_is_told_how_a_word_goes_on(machine: Machine) -> None:
    env = {"_KEKTOR_COMPLETE": "complete_bash", "COMP_WORDS": "kektor re", "COMP_CWORD": "1"}
    assert {"remember", "recall", "retract", "restore-memory", "review"} <= set(machine.run(env=env).stdout.split())


def test_memories_are_linked_and_the_links_walked(kektor: Door) -> None:
    ids = [kektor("remember", f"{name} works at the ferry")["id"] for name in ("Ana", "Ben", "Cleo")]
    kektor("link", ids[0], "trained", ids[1], "--weight", "0.5", "--valid-from", "2026-01")
    kektor("link", ids[1], "trained", ids[2])
    found = kektor("edges", ids[1], "--direction", "in")["items"]
    assert [(edge["src"], edge["weight"]) for edge in found] == [(ids[0], 0.5)]
    page = kektor("edges", ids[1], "--limit", "1")
    assert len(kektor("edges", ids[1], "--cursor", page["next_cursor"])["items"]) == 1
    assert [memory["id"] for memory in kektor("path", ids[0], ids[2])["nodes"]] == ids
    kektor("unlink", ids[1], "trained", ids[2])
    assert kektor("path", ids[0], ids[2])["nodes"] == []
    assert kektor("unlink", ids[1], "trained", ids[2], code=1)["error"]["code"] == "not_found"
    said = kektor.machine.run("edges", ids[0], *kektor.flags).stdout
    assert said == f"{ids[0]} trained {ids[1]}\n"


def test_an_index_from_its_making_to_its_end(kektor: Door) -> None:
    made = kektor("index", "create", "ledger", "--dim", "3", "--metric", "l2", "--policy", "write=gated")
    assert (made["name"], made["dim"], made["metric"], made["policy"]["write"]) == ("ledger", 3, "l2", "gated")
    assert kektor("index", "create", "ledger", "--dim", "3", code=1)["error"]["code"] == "conflict"
    assert [each["name"] for each in kektor("index", "list")["items"]] == ["ledger"]
    kektor("index", "configure", "ledger", "--policy", "write=open")
    shown = kektor("index", "show", "ledger")
    assert (shown["policy"]["write"], shown["stats"]["nodes"]) == ("open", 0)
    for arguments in (["--policy", "write"], ["--policy", "write=shut"], []):
        assert kektor("index", "configure", "ledger", *arguments, code=2)["error"]["code"] == "invalid"
    assert kektor("index", "delete", "ledger", code=2)["error"]["field"] == "yes"
    kektor("index", "delete", "ledger", "--yes", "--reason", "no longer kept")
    assert kektor("index", "show", "ledger", code=1)["error"]["code"] == "not_found"


REFUSED = (
    (["archive", "nobody"], 1, "not_found"),
    (["confirm", "nobody"], 1, "not_found"),
    (["edges", "nobody"], 1, "not_found"),
    (["link", "nobody", "knows", "nobody"], 1, "not_found"),
    (["index", "show", "nowhere"], 1, "not_found"),
    (["recall", " "], 2, "invalid"),
    (["recall", "x", "-k", "0"], 2, "invalid"),
    (["recall", "x", "--mode", "psychic"], 2, "invalid"),
    (["list", "--filter", "tags CONTAINS"], 2, "invalid"),
    (["list", "--include", "everything"], 2, "invalid"),
    (["list", "--as-of", "someday"], 2, "invalid"),
    (["get", "nobody"], 1, "not_found"),
    (["get", "a/b"], 2, "invalid"),
    (["history", "nobody"], 1, "not_found"),
    (["evolve", "nobody", "x"], 1, "not_found"),
    (["retract", "nobody"], 1, "not_found"),
    (["forget", "nobody", "--yes"], 1, "not_found"),
    (["forget", "nobody", "--mode", "obliterate"], 2, "invalid"),
    (["recall", "x", "--index", "nowhere"], 1, "not_found"),
    (["remember", "x", "--index", "no/where"], 2, "invalid"),
    (["remember", "x", "--user", " "], 2, "invalid"),
    (["remember", "x", "--valid-from", "2026-05", "--valid-to", "2026-01"], 2, "invalid"),
)


def test_what_cannot_be_done_is_one_error_with_its_exit_code(kektor: Door) -> None:
    kektor("remember", "something, so that there is a memory")
    for arguments, code, name in REFUSED:
        error = kektor(*arguments, code=code)["error"]
        assert (arguments, error["code"]) == (arguments, name)
        assert error["message"]
    said = kektor.machine.run("get", "nobody", *kektor.flags, code=1)
    assert (said.stdout, said.stderr) == ("", "kektor: there is no 'nobody' in index 'default'\n")
    assert len(kektor("list")["items"]) == 1


def test_people_read_lines_and_programs_json(kektor: Door) -> None:
    run = kektor.machine.run
    saved = kektor("remember", "Dana owns the \x1b[31mHenderson\x1b[0m account")
    for arguments in (
        ["recall", "Who owns the Henderson account?"],
        ["recall", "Who owns the Henderson account?", "--context"],
        ["get", saved["id"]],
        ["list"],
        ["history", saved["id"]],
        ["forget", saved["id"], "--dry-run"],
    ):
        text = run(*arguments, *kektor.flags).stdout
        assert "Henderson" in text
        assert "\x1b" not in text
    assert run("recall", "zzyzx qwfp?", *kektor.flags).stdout == "no_match: no memory answers this\n"


def test_an_export_holds_everything_and_doctor_finds_nothing(kektor: Door, tmp_path: Path) -> None:
    saved = kektor("remember", "Dana owns the Henderson account")
    kektor("evolve", saved["id"], "Erik owns the Henderson account")
    file = tmp_path / "all.jsonl"
    if kektor.flags:
        for command in (["export", str(file)], ["doctor"]):
            assert "own machine" in kektor(*command, code=2)["error"]["message"]
        assert not file.exists()
        return
    assert kektor("export", str(file)) == {"file": str(file), "indexes": 1, "nodes": 2, "edges": 1}
    assert [json.loads(line)["type"] for line in file.read_text().splitlines()] == [
        "kektor",
        "index",
        "node",
        "node",
        "edge",
        "end",
    ]
    assert kektor.machine.run("export", "-").stdout.splitlines()[1:] == file.read_text().splitlines()[1:]
    assert kektor("doctor") == {"ok": True, "findings": []}
    assert kektor("export", str(file), "--index", "nowhere", code=1)["error"]["code"] == "not_found"
    assert file.stat().st_mode & 0o777 == 0o600
