"""Where a command goes: which flag, variable or file counts, and what it says when there is nothing."""

from pathlib import Path

import kektor
from tests.support.doors import Machine

COMMANDS = (
    *("try", "serve", "mcp", "remember", "recall", "get", "list", "history", "evolve", "correct", "retract"),
    *("forget", "ingest", "export", "doctor", "version"),
)


def remembered(machine: Machine, folder: Path) -> list[str]:
    """What is stored in a directory."""
    return [memory["text"] for memory in machine.json("list", "--data", str(folder))["items"]]


def test_a_flag_counts_before_a_variable_before_a_file_before_the_default(machine: Machine) -> None:
    folders = {name: machine.root / name for name in ("flag", "variable", "file")}
    (machine.root / "kektor.toml").write_text('data = "file"\n')
    nothing = {"KEKTOR_DATA": ""}
    machine.run("remember", "by the file", env=nothing)
    machine.run("remember", "by the variable", env={"KEKTOR_DATA": str(folders["variable"])})
    machine.run(
        "remember", "by the flag", "--data", str(folders["flag"]), env={"KEKTOR_DATA": str(folders["variable"])}
    )
    (machine.root / "kektor.toml").unlink()
    machine.run("remember", "by default", env=nothing)
    for name, folder in folders.items():
        assert remembered(machine, folder) == [f"by the {name}"]
    assert remembered(machine, machine.root / "share" / "kektor" / "default") == ["by default"]


def test_the_file_of_the_user_says_as_whom_and_that_of_the_folder_counts_before_it(machine: Machine) -> None:
    own = machine.root / "config" / "kektor"
    own.mkdir(parents=True)
    (own / "kektor.toml").write_text('[client]\nuser = "alice"\nproject = "home"\nindex = "notes"\n')
    (machine.root / "kektor.toml").write_text('[client]\nproject = "ferries"\n')
    saved = machine.json("remember", "as the files say")
    memory = machine.json("get", saved["id"])
    assert memory["index"] == "notes"
    assert memory["scope"] == {"user": "alice", "agent": None, "project": "ferries"}
    other = machine.json("remember", "as the variable says", env={"KEKTOR_USER": "bob"})
    assert machine.json("get", other["id"], "--user", "bob")["scope"]["user"] == "bob"


def test_a_file_met_in_a_folder_cannot_send_memories_elsewhere(machine: Machine) -> None:
    (machine.root / "kektor.toml").write_text('[client]\nurl = "http://127.0.0.1:1"\n')
    error = machine.json("recall", "who?", code=2)["error"]
    assert "may have come with a repository" in error["message"]


def test_what_a_file_says_wrong_is_named(machine: Machine) -> None:
    for text, words in (
        ('[client]\nusr = "alice"\n', "unknown setting client.usr"),
        ("[client]\nuser = 5\n", "client.user must be a text"),
        ("data = [\n", "cannot be read"),
        ("data = 5\n", "data must be a text"),
    ):
        (machine.root / "kektor.toml").write_text(text)
        assert words in machine.json("recall", "who?", code=2)["error"]["message"]


def test_a_named_file_must_be_there(machine: Machine) -> None:
    error = machine.json("recall", "who?", code=2, env={"KEKTOR_CONFIG": "/nowhere/kektor.toml"})["error"]
    assert "there is no such file" in error["message"]


def test_a_directory_named_by_a_flag_counts_before_a_server_named_by_a_variable(machine: Machine) -> None:
    nowhere = {"KEKTOR_URL": "http://127.0.0.1:1"}
    machine.run("remember", "straight into the directory", "--data", str(machine.data), env=nowhere)
    assert remembered(machine, machine.data) == ["straight into the directory"]
    error = machine.json("recall", "who?", code=2, env={**nowhere, "KEKTOR_DATA": ""})["error"]
    assert error["code"] == "unavailable"
    assert "http://127.0.0.1:1" in error["message"]


def test_both_a_directory_and_a_server_are_one_too_many(machine: Machine) -> None:
    assert (
        machine.json("recall", "who?", "--data", "x", "--url", "http://127.0.0.1:1", code=2)["error"]["field"] == "url"
    )


def test_an_address_that_is_none_is_refused(machine: Machine) -> None:
    for url in ("127.0.0.1:9091", "ftp://127.0.0.1", "http://", "http://127.0.0.1/v1"):
        assert "no server address" in machine.json("recall", "who?", "--url", url, code=2)["error"]["message"]


def test_reading_makes_no_directory(machine: Machine) -> None:
    for arguments in (["recall", "who?"], ["list"], ["get", "x"], ["history", "x"], ["export", "-"], ["doctor"]):
        assert "there is no memory at" in machine.json(*arguments, code=2)["error"]["message"]
    assert not machine.data.exists()


def test_a_command_waits_for_who_holds_the_directory_and_names_who_keeps_it(machine: Machine) -> None:
    with kektor.open(machine.data):
        error = machine.json("list", code=2)["error"]
    assert error["code"] == "unavailable"
    assert "in use by process" in error["message"]
    assert machine.json("list")["items"] == []


def test_wrong_usage_ends_with_two_and_a_sentence(machine: Machine) -> None:
    for arguments in (["nonsense"], ["recall"], ["recall", "x", "--nonsense"], ["recall", "x", "-k", "many"]):
        done = machine.run(*arguments, code=2)
        assert done.stdout == ""
        assert done.stderr.startswith("kektor: ")
        assert machine.json(*arguments, code=2)["error"]["code"] == "invalid"


def test_help_lists_every_command(machine: Machine) -> None:
    text = machine.run("--help").stdout
    for name in COMMANDS:
        assert f"  {name} " in text
        machine.run(name, "--help")


def test_the_version_is_that_of_the_library_and_its_core(machine: Machine) -> None:
    versions = machine.json("version")
    assert versions["version"] == versions["native"] == kektor.__version__
    assert kektor.__version__ in machine.run("version").stdout
