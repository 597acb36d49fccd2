"""Memories of other systems come in through the one gate, once, with a report of what was left and why."""

import json
import shutil
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kektor_server.importers.items import Change, Conversation, Left, Link, Statement, Unreadable
from kektor_server.importers.readers import READERS
from tests.support.doors import Machine

SAMPLES = Path(__file__).with_name("imports")


def history(folder: Path) -> Path:
    """mem0's database, made of its rows."""
    path = folder / "history.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript((SAMPLES / "mem0_history.sql").read_text())
    return path


def take_in(machine: Machine, source: str, path: Path, *flags: str, code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = machine.json("import", str(path), "--from", source, *flags, code=code)
    return found


def texts(machine: Machine, *flags: str) -> list[str]:
    return sorted(memory["text"] for memory in machine.json("list", *flags)["items"])


def test_the_graph_of_the_well_known_server_becomes_memories_and_links(machine: Machine) -> None:
    told = take_in(machine, "mcp-memory", SAMPLES / "memory.jsonl", "--project", "pier")
    assert told["counts"] == {"created": 4, "links": 3, "left": 2}
    assert [each["why"] for each in told["left"]] == [
        "there is no entity 'Nobody'",
        "a record of type 'colour' is neither an entity nor a relation",
    ]
    assert texts(machine) == [
        "Dana_Ito (person)",
        "Dana_Ito: Owns the Henderson account",
        "Dana_Ito: Speaks Japanese",
        "Pier 7 (place)",
    ]
    found = machine.json("recall", "Who owns the Henderson account?", "--project", "pier")
    assert found["hits"][0]["memory"]["text"] == "Dana_Ito: Owns the Henderson account"
    again = take_in(machine, "mcp-memory", SAMPLES / "memory.jsonl", "--project", "pier")
    assert again["counts"] == {"duplicate": 4, "links": 3, "left": 2}
    assert len(texts(machine)) == 4
    dana = next(m["id"] for m in machine.json("list")["items"] if m["text"].startswith("Dana_Ito ("))
    assert [edge["rel"] for edge in machine.json("edges", dana, "--direction", "out")["items"]] == ["works_at"]


def test_what_was_changed_archived_or_forgotten_here_is_not_brought_back(machine: Machine) -> None:
    take_in(machine, "mcp-memory", SAMPLES / "memory.jsonl")
    ids = {memory["text"]: memory["id"] for memory in machine.json("list")["items"]}
    machine.json("correct", ids["Dana_Ito: Speaks Japanese"], "Dana_Ito: Speaks Korean")
    machine.json("archive", ids["Pier 7 (place)"])
    again = take_in(machine, "mcp-memory", SAMPLES / "memory.jsonl", code=1)
    assert (again["counts"]["refused"], again["counts"]["duplicate"]) == (1, 3)
    assert any(each["why"].startswith("blocked:") for each in again["left"])
    assert texts(machine) == ["Dana_Ito (person)", "Dana_Ito: Owns the Henderson account", "Dana_Ito: Speaks Korean"]


def test_mem0_comes_with_its_versions_and_its_users(machine: Machine, tmp_path: Path) -> None:
    path = history(tmp_path)
    for counts in ({"created": 3, "changed": 1, "archived": 1}, {"duplicate": 3, "changed": 1, "archived": 1}):
        assert take_in(machine, "mem0", path)["counts"] == counts
        assert texts(machine) == ["Has a cat called Moss", "Works at the ferry company"]
    work = next(m for m in machine.json("list")["items"] if m["text"].startswith("Works"))
    versions = machine.json("history", work["id"])["items"]
    assert [(v["text"], v["validity"]["from"]) for v in versions] == [
        ("Works at the bakery", "2025-01-05T08:00:00Z"),
        ("Works at the ferry company", "2025-06-01T08:00:00Z"),
    ]
    told = take_in(machine, "mem0", SAMPLES / "mem0_points.json")
    assert (told["counts"]["created"], told["left"][0]["why"]) == (2, "it has no text (payload.data)")
    found = machine.json("recall", "What does she prefer, tea or coffee?", "--user", "alice")
    assert found["hits"][0]["memory"]["metadata"] == {"category": "food"}
    assert "Prefers tea over coffee" not in texts(machine, "--user", "bob")
    assert "Lives near the harbour" in texts(machine, "--user", "bob")


def test_notes_become_memories_and_their_links_links(machine: Machine) -> None:
    told = take_in(machine, "basic-memory", SAMPLES / "notes")
    assert told["counts"] == {"created": 4, "links": 3, "left": 1}
    assert "there is no note 'Tide tables'" in str(told["left"])
    items = {memory["metadata"].get("observation", memory["metadata"]["entity"]): memory
             for memory in machine.json("list")["items"]}  # fmt: skip
    ferry = items["Ferry timetable"]
    assert "rebuilt every night" in ferry["text"]
    assert "[x] write the parser" in ferry["text"]
    assert ferry["tags"] == ["entity", "transport", "public"]
    polled = items["The feed is polled every five minutes #polling (agreed in March)"]
    assert polled["tags"] == ["observation", "decision", "polling"]
    edges = machine.json("edges", ferry["id"], "--direction", "out")["items"]
    assert [(edge["rel"], edge["dst"]) for edge in edges] == [("maintained_by", items["Erik Solberg"]["id"])]
    assert take_in(machine, "basic-memory", SAMPLES / "notes")["counts"]["duplicate"] == 4


def test_kektordb_comes_without_what_it_had_replaced_or_made_itself(machine: Machine) -> None:
    told = take_in(machine, "kektordb", SAMPLES / "kektordb.json")
    assert told["counts"] == {"created": 2, "left": 4}
    assert texts(machine) == ["The staging server", "The staging server is called Rowan"]
    (rowan,) = machine.json("list", "--user", "alice", "--filter", "text CONTAINS 'Rowan'")["items"]
    assert (rowan["tags"], rowan["pinned"], rowan["scope"]["user"]) == (["ops"], True, "alice")
    assert rowan["validity"]["from"] == "2025-01-01T00:00:00Z"
    assert take_in(machine, "kektordb", SAMPLES / "kektordb.json")["counts"] == {"duplicate": 2, "left": 4}


def test_conversations_come_word_for_word_along_the_branch_that_was_shown(machine: Machine, tmp_path: Path) -> None:
    archive = tmp_path / "export.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.write(SAMPLES / "chatgpt.json", "export/conversations.json")
    for path in (SAMPLES / "chatgpt.json", archive):
        take_in(machine, "chatgpt", path)
        sources = machine.json("list", "--kind", "source")["items"]
        assert [source["text"] for source in sources] == [
            "What shall we call the boat?",
            "What about Halcyon?",
            "Halcyon it is.",
        ]
    assert sources[0]["occurred_at"] == "2024-06-01T10:00:01Z"
    told = take_in(machine, "claude", SAMPLES / "claude.json")
    assert told["counts"] == {"messages_created": 2, "conversations": 1}
    found = machine.json("recall", "Where do we plant the quinces?", "--kind", "source")
    assert found["hits"][0]["memory"]["session"] == "claude:k-1"


def test_a_dry_run_says_what_would_come_and_makes_nothing(machine: Machine) -> None:
    told = take_in(machine, "mcp-memory", SAMPLES / "memory.jsonl", "--dry-run")
    assert told["found"] == {"statement": 4, "link": 3, "left": 2}
    assert not machine.data.exists()
    assert (
        "4 statement"
        in machine.run("import", str(SAMPLES / "memory.jsonl"), "--from", "mcp-memory", "--dry-run").stdout
    )
    assert machine.json("import", "x", "--from", "notion", code=2)["error"]["field"] == "from"


KINDS = {
    "mcp-memory": ("memory.jsonl", {Statement, Link, Left}),
    "mem0": ("mem0_points.json", {Statement, Left}),
    "basic-memory": ("notes", {Statement, Link, Left}),
    "kektordb": ("kektordb.json", {Statement, Left}),
    "chatgpt": ("chatgpt.json", {Conversation, Left}),
    "claude": ("claude.json", {Conversation}),
}


@pytest.mark.parametrize("source", READERS)
def test_a_reader_finds_the_same_each_time(source: str, tmp_path: Path) -> None:
    name, kinds = KINDS[source]
    first, second = (list(READERS[source](SAMPLES / name)) for _ in range(2))
    assert first == second
    assert {type(item) for item in first} == kinds
    keys = [item.key for item in first if isinstance(item, Statement)]
    assert len(keys) == len(set(keys))
    if source == "mem0":
        assert sum(isinstance(item, Change) for item in READERS[source](history(tmp_path))) == 2


SPOILT: dict[str, Callable[[Path], None]] = {
    "nothing": lambda path: None,
    "a folder without notes": lambda path: path.mkdir(),
    "no JSON": lambda path: path.write_text('{"a": ') and None,
    "another JSON": lambda path: path.write_text('[{"some": "thing"}]') and None,
    "another encoding": lambda path: path.write_bytes(b'\xff\xfe{"a"') and None,
    "an empty zip": lambda path: zipfile.ZipFile(path, "w").close(),
}


@pytest.mark.parametrize("source", [source for source in READERS if source != "basic-memory"])
@pytest.mark.parametrize("spoilt", SPOILT)
def test_a_file_that_is_none_of_its_format_is_refused_before_anything_is_stored(
    tmp_path: Path, source: str, spoilt: str
) -> None:
    path = tmp_path / "export.json"
    SPOILT[spoilt](path)
    with pytest.raises(Unreadable, match=str(tmp_path)):
        list(READERS[source](path))


def test_a_note_whose_head_is_broken_and_a_folder_without_notes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="holds no Markdown"):
        list(READERS["basic-memory"](tmp_path))
    shutil.copytree(SAMPLES / "notes", tmp_path / "notes")
    (tmp_path / "notes" / "bad.md").write_text("---\ntitle: [\n---\n")
    with pytest.raises(Unreadable, match=r"bad\.md"):
        list(READERS["basic-memory"](tmp_path / "notes"))


def test_one_object_of_entities_and_relations_is_read_like_its_lines(tmp_path: Path) -> None:
    records = [json.loads(line) for line in (SAMPLES / "memory.jsonl").read_text().splitlines()]
    whole = {
        "entities": [{k: v for k, v in r.items() if k != "type"} for r in records if r["type"] == "entity"],
        "relations": [{k: v for k, v in r.items() if k != "type"} for r in records if r["type"] == "relation"],
    }
    lines = [item for item in READERS["mcp-memory"](SAMPLES / "memory.jsonl") if not isinstance(item, Left)]
    for indent in (None, 2):
        path = tmp_path / "memory.json"
        path.write_text(json.dumps(whole, indent=indent))
        assert [item for item in READERS["mcp-memory"](path) if not isinstance(item, Left)] == lines
