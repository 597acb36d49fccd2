"""The runtime folder is the user's alone, and everyone who means a directory meets in the same place."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kektor_server.daemon import places as module
from kektor_server.daemon.places import UnsafeFolder, find_places, runtime_folder
from tests.support.doors import Machine


@pytest.fixture
def session(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(machine.runtime))
    return machine.runtime


def test_every_spelling_of_a_directory_leads_to_one_socket(session: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    spellings = (tmp_path / "data", tmp_path / "link", tmp_path / "data" / ".." / "data", f"{tmp_path}/data/")
    assert len({find_places(str(spelling)) for spelling in spellings}) == 1
    assert find_places(str(tmp_path / "other")).socket != find_places(str(tmp_path / "data")).socket


def test_the_folder_is_made_for_its_owner_alone(session: Path) -> None:
    assert os.stat(runtime_folder()).st_mode & 0o777 == 0o700


def test_a_folder_of_somebody_else_is_refused(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime_folder()
    monkeypatch.setattr(module.os, "getuid", lambda: os.stat(session).st_uid + 1)
    with pytest.raises(UnsafeFolder, match="belongs to user"):
        runtime_folder()


def test_a_link_in_the_place_of_the_folder_is_refused(session: Path, tmp_path: Path) -> None:
    (session / "kektor").symlink_to(tmp_path)
    with pytest.raises(UnsafeFolder, match="is no folder"):
        runtime_folder()


def test_a_socket_path_that_no_system_takes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    with pytest.raises(UnsafeFolder, match="too long"):
        find_places("/data")


def test_a_stale_socket_is_nobody(machine: Machine, session: Path) -> None:
    path = find_places(str(machine.data)).socket
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)
    machine.run("remember", "opened directly, since nobody answers")
    with machine.server("serve", "--port", "0") as server:
        assert server["socket"] == path
        assert len(machine.json("list")["items"]) == 1


@pytest.mark.parametrize("arguments", [["recall", "x"], ["serve"], ["try"]])
@pytest.mark.parametrize("missing", ["typer", "uvicorn"])
def test_without_the_extra_a_command_says_how_to_get_it(machine: Machine, arguments: list[str], missing: str) -> None:
    if missing == "uvicorn" and arguments[0] == "recall":
        return  # which needs no server
    code = (
        f"import sys; sys.modules[{missing!r}] = None; sys.argv = ['kektor', *{arguments!r}]\n"
        "from kektor_server.main import main\nsys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], env=machine.env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"kektor: this needs {missing}: pip install 'kektor[server]'\n"
