"""Conversations from files: what is read, and that sending them in parts is sending them whole."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kektor
from kektor_server.cli.conversations import parts, read_conversation
from kektor_server.cli.faults import Fault
from tests.support.embedders import HashingEmbedder


def _each_id_once(sent: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One id for two messages of a call is an error, which is tested elsewhere."""
    given: set[str] = set()
    return [
        {name: value for name, value in one.items() if name != "id" or not (value in given or given.add(value))}
        for one in sent
    ]


messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant"]), "content": st.sampled_from(["yes", "no", "well"])},
        optional={
            "speaker": st.sampled_from(["Dana", "Erik"]),
            "at": st.sampled_from(["2026-03-02T09:00:00Z", "2026-03-02T10:00:00+01:00", "2026-03-03"]),
            "id": st.sampled_from(["m1", "m2"]),
        },
    ),
    min_size=1,
    max_size=40,
).map(_each_id_once)


@settings(max_examples=60, deadline=None)
@given(messages, st.integers(1, 12))
def test_a_conversation_sent_in_parts_is_the_conversation_sent_whole(sent: list[dict[str, Any]], size: int) -> None:
    stored = []
    for batches in ([sent], [[*part.repeated, *part.new] for part in parts(sent, size)]):
        with kektor.open(":memory:", embedder=HashingEmbedder()) as db:
            memory = db.memory()
            for batch in batches:
                memory.ingest_messages(batch, session="s")
            items = memory.list(kinds=["source"], limit=1000).items
            stored.append([(m.text, m.metadata, m.occurred_at) for m in items])
    assert stored[0] == stored[1]


def read(tmp_path: Path, text: str, name: str = "talk.jsonl") -> list[dict[str, Any]]:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_conversation(path)


def test_lines_and_arrays_are_read_alike(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "Line\u2028one\n"}, {"role": "assistant", "content": "two", "at": 5, "id": "x"}]
    lines = "\n\n".join(json.dumps(message, ensure_ascii=False) for message in said)
    assert read(tmp_path, lines) == read(tmp_path, json.dumps(said), "talk.json") == said


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ('{"role": "user"}\n', "a.jsonl", "line 1: content must be a text"),
        (
            '{"role": "user", "content": "x"}\n{"role": "user", "content": "x", "tone": 1}\n',
            "a.jsonl",
            "line 2: unknown",
        ),
        ('{"role": "user", "content": "x", "at": NaN}\n', "a.jsonl", "line 1"),
        ('{"role": "user", "content": "x"\n', "a.jsonl", "line 1"),
        ("[1]", "a.json", "message 1: a message is an object"),
        ("", "a.jsonl", "holds no message"),
        ("[]", "a.json", "holds no message"),
        ("# Notes", "notes.md", ".md files cannot be ingested yet; supported now are"),
        ("notes", "notes.txt", ".txt files cannot be ingested yet"),
        ("notes", "notes", "files without an ending"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_line(tmp_path: Path, text: str, name: str, words: str) -> None:
    with pytest.raises(Fault, match=words.replace(".", r"\.")):
        read(tmp_path, text, name)


def test_a_file_that_is_not_there_a_folder_and_other_encodings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.jsonl").write_bytes('{"role": "user", "content": "Tomás"}'.encode("latin-1"))
    for path, words in (
        (tmp_path / "none.jsonl", "there is no file"),
        (tmp_path, "is a folder"),
        (tmp_path / "latin.jsonl", "is not UTF-8"),
    ):
        with pytest.raises(Fault, match=words):
            read_conversation(path)


def test_a_bad_line_late_in_a_file_stores_nothing_of_it(machine: Any, tmp_path: Path) -> None:
    good = '{"role": "user", "content": "fine"}\n'
    (tmp_path / "a.jsonl").write_text(good * 3)
    (tmp_path / "b.jsonl").write_text(good * 250 + '{"role": "user"}\n')
    done = machine.run("ingest", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl"), code=2)
    assert "b.jsonl, line 251" in done.stderr
    assert not machine.data.exists()


def test_two_conversations_of_one_name_are_refused(machine: Any, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "talk.json").write_text('[{"role": "user", "content": "x"}]')
    files = [str(tmp_path / folder / "talk.json") for folder in ("one", "two")]
    assert "both named 'talk'" in machine.json("ingest", *files, code=2)["error"]["message"]
    assert machine.json("ingest", *files, "--session", "s", code=2)["error"]["field"] == "session"
