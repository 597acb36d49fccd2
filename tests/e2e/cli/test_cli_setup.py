"""`kektor setup`: into each client's own files, beside everything that is there, and out again without a trace."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from kektor_server.setup import plan
from kektor_server.setup.clients import CLIENTS, Folders, Launch, folders
from kektor_server.setup.edits import Uneditable
from kektor_server.setup.files import read_text, write_text
from kektor_server.setup.hook import EVENTS
from tests.support.doors import Machine

GOLDEN = Path(__file__).with_name("setup")
COMMAND = "/opt/kektor/bin/kektor"
WITH_FILES = [name for name, client in CLIENTS.items() if client.servers is not None]


def launches(name: str) -> tuple[Launch, Launch | None]:
    hook = Launch(COMMAND, ("hook", name, "--user", "dana")) if name in EVENTS else None
    return Launch(COMMAND, ("mcp", "--user", "dana")), hook


def home_of(tmp_path: Path, name: str) -> Folders:
    """A home with what the client's user had before."""
    home = tmp_path / "home"
    shutil.copytree(GOLDEN / name / "before", home)
    return folders(home, tmp_path / "repository", {})


def contents(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_bytes().decode() for path in root.rglob("*") if path.is_file()}


def apply(changes: list[plan.Change]) -> None:
    for change in changes:
        if change.before != change.after:
            write_text(change.path, change.after)


@pytest.mark.parametrize("name", WITH_FILES)
def test_an_entry_goes_beside_what_is_there_and_out_again_to_the_byte(tmp_path: Path, name: str) -> None:
    client, where = CLIENTS[name], home_of(tmp_path, name)
    launch, hook = launches(name)
    changes = plan.changes(client, launch, hook, where, project=False)
    before = contents(where.home)
    apply(changes)
    written = contents(where.home)
    after = {path: text for path, text in written.items() if not path.endswith(".kektor-backup")}
    assert after == contents(GOLDEN / name / "after")
    kept = {path: text for path, text in written.items() if path.endswith(".kektor-backup")}
    assert sorted(kept.values()) == sorted(before[path] for path in before if before[path] != after[path])

    assert all(c.before == c.after for c in plan.changes(client, launch, hook, where, project=False))
    assert {state.state for state in plan.states(client, launch, hook, where, project=False)} == {"current"}
    moved = Launch("/usr/local/bin/kektor", launch.arguments)
    servers = [s for s in plan.states(client, moved, hook, where, project=False) if s.what == "server"]
    assert [state.state for state in servers] == ["different"]
    apply(plan.changes(client, moved, hook, where, project=False))
    apply(plan.changes(client, launch, hook, where, project=False))
    entry = plan.configured(client, where, project=False)
    assert entry is not None
    assert COMMAND in (entry["command"] if isinstance(entry["command"], list) else [entry["command"]])

    for path in where.home.rglob("*.kektor-backup"):
        path.unlink()
    apply(plan.undoing(client, launch, hook, where, project=False))
    left = {path: text for path, text in contents(where.home).items() if not path.endswith(".kektor-backup")}
    assert left == before


@pytest.mark.parametrize("name", WITH_FILES)
def test_a_client_that_was_never_configured_is_set_up_and_nothing_is_left_of_it(tmp_path: Path, name: str) -> None:
    client, where = CLIENTS[name], folders(tmp_path / "home", tmp_path / "repository", {})
    launch, hook = launches(name)
    for project in (False, True):
        changes = plan.changes(client, launch, hook, where, project=project)
        apply(changes)
        assert {s.state for s in plan.states(client, launch, hook, where, project=project)} <= {"current"}
        assert bool(changes) == (not project or (client.servers is not None and client.servers.project is not None))
        apply(plan.undoing(client, launch, hook, where, project=project))
        assert contents(tmp_path) == {} or all(path.endswith(".kektor-backup") for path in contents(tmp_path))


BROKEN = {
    "jsonc": ('{"mcpServers": {', "line 1"),
    "toml": ("[mcp_servers", "Expected"),
    "yaml": ("mcp_servers: [1, 2", "line 1"),
}
IN_THE_WAY = {
    "jsonc": '{"mcpServers": 1, "servers": 1, "mcp": 1, "context_servers": 1}',
    "toml": "mcp_servers = 1\n",
    "yaml": "mcp_servers: 1\n",
}


@pytest.mark.parametrize("name", WITH_FILES)
def test_a_file_that_cannot_be_read_is_left_as_it_is_and_named(tmp_path: Path, name: str) -> None:
    client, where = CLIENTS[name], folders(tmp_path / "home", tmp_path / "repository", {})
    assert client.servers is not None
    assert client.servers.user is not None
    path = client.servers.user(where)
    launch, hook = launches(name)
    broken, place = BROKEN[client.servers.kind]
    for text, word in ((broken, place), (IN_THE_WAY[client.servers.kind], "is not a")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        with pytest.raises(Uneditable, match=word) as refusal:
            plan.changes(client, launch, hook, where, project=False)
        assert str(path) in str(refusal.value)
        assert read_text(path) == text
    states = plan.states(client, launch, hook, where, project=False)
    assert next(state.state for state in states if state.what == "server") in ("absent", "unreadable")
    assert COMMAND in plan.snippet(client, launch)


def test_a_link_stays_a_link_and_a_mode_stays(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "mcp.json"
    real.parent.mkdir()
    real.write_text("{}")
    real.chmod(0o600)
    link = tmp_path / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(real)
    where = folders(tmp_path, tmp_path / "repository", {})
    apply(plan.changes(CLIENTS["cursor"], *launches("cursor"), where, project=False))
    assert link.is_symlink()
    assert COMMAND in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o600


def run(machine: Machine, *arguments: str, **others: Any) -> Any:
    return machine.json("setup", *arguments, **others)


def test_the_command_writes_absolute_paths_and_the_scope_of_its_flags(machine: Machine) -> None:
    home = Path(machine.env["HOME"])
    run(machine, "cursor", "--user", "dana", "--tools", "agent")
    entry = json.loads((home / ".cursor" / "mcp.json").read_text())["mcpServers"]["kektor"]
    assert os.path.isabs(entry["command"])
    assert entry["args"][-7:] == ["mcp", "--tools", "agent", "--data", str(machine.data), "--user", "dana"]


def test_a_project_is_named_after_its_repository(machine: Machine) -> None:
    (machine.root / ".git").mkdir()
    run(machine, "claude-code", "--project")
    entry = json.loads((machine.root / ".mcp.json").read_text())["mcpServers"]["kektor"]
    assert entry["args"][-2:] == ["--project", machine.root.name]
    settings = json.loads((machine.root / ".claude" / "settings.local.json").read_text())
    (hook,) = settings["hooks"]["UserPromptSubmit"][0]["hooks"]
    assert hook["command"].endswith(f"--project {machine.root.name}")
    assert not (Path(machine.env["HOME"]) / ".claude.json").exists()
    assert "leave --project out" in run(machine, "hermes", "--project", code=2)["error"]["message"]


def test_print_only_shows_and_writes_nothing(machine: Machine) -> None:
    shown = machine.run("setup", "claude-code", "--print-only").stdout
    assert '+    "kektor": {' in shown
    assert "hook claude-code" in shown
    assert machine.run("setup", "claude-desktop", "--print-only").stdout.count("Recall first") == 1
    assert contents(Path(machine.env["HOME"])) == {}
    assert "/mcp" in machine.run("setup", "open-webui").stdout


def test_status_tells_how_every_client_stands(machine: Machine) -> None:
    assert [each["client"] for each in run(machine)["clients"]] == list(CLIENTS)
    assert run(machine, "zed", "--status", code=1)["files"][0]["state"] == "absent"
    run(machine, "zed")
    assert {each["state"] for each in run(machine, "zed", "--status")["files"]} == {"current"}
    run(machine, "zed", "--uninstall")
    assert {each["state"] for each in run(machine, "zed", "--status", code=1)["files"]} == {"absent"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["emacs"], "there is no client 'emacs'; there are claude-code,"),
        (["zed", "--status", "--uninstall"], "give one of"),
        (["--uninstall"], "name a client"),
        (["zed", "--check"], "is not set up"),
    ],
)
def test_what_cannot_be_meant_is_refused(machine: Machine, arguments: list[str], words: str) -> None:
    assert words in run(machine, *arguments, code=1 if "--check" in arguments else 2)["error"]["message"]


@pytest.mark.parametrize("name", ["claude-code", "opencode", "codex", "hermes"])
def test_what_one_session_saves_the_next_one_knows(machine: Machine, name: str) -> None:
    run(machine, name, "--user", "dana")
    assert run(machine, name, "--check")["ok"]
    machine.halt_daemons()
    assert machine.json("list", "--kind", "memory")["items"] == []  # the check leaves nothing behind
