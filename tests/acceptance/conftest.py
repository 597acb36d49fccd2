"""Every test here is named after a promise of docs/acceptance.md and runs through every door that can keep it."""

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.acceptance import PendingParts, id_of_test
from tests.support.callers import Door, Pending
from tests.support.callers.cli import CliDoor
from tests.support.callers.library import LibraryDoor
from tests.support.callers.mcp import McpDoor
from tests.support.callers.rest import RestDoor
from tests.support.callers.server import ServerMachine
from tests.support.embedders import HashingEmbedder
from tests.support.stage import Stage

DOORS = ("library", "rest", "mcp")
_numbers = count(1)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "doors(*names): the doors a test comes through (default: library, rest, mcp)")
    config.addinivalue_line("markers", "door(name): the one door of a test that has no stage")
    config.addinivalue_line("markers", "index(**settings): how its index is made; meaning=True takes the real embedder")
    config.addinivalue_line("markers", "promise(*ids): the promises kept, where the test's name does not say")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "stage" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker("doors")
        metafunc.parametrize("stage", DOORS if mark is None else mark.args, indirect=True)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Any:
    """A test that meets what a door does not have yet is pending, which the table shows."""
    parts = pyfuncitem.funcargs["pending"]
    assert isinstance(parts, PendingParts)
    try:
        return (yield)
    except Pending as missing:
        parts.lacks(missing)
        pytest.xfail(f"pending: {missing}")
    finally:
        pyfuncitem.user_properties += [("pending", noted) for noted in parts.noted]
        pyfuncitem.user_properties += [("lacks", missing) for missing in parts.lacking]


class Doors:
    """All of them, made when they are first asked for and kept for the session."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._exits = ExitStack()
        self._made: dict[str, Door] = {}
        self._machine: ServerMachine | None = None

    def __getitem__(self, name: str) -> Door:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    @property
    def machine(self) -> ServerMachine:
        """The server that REST, MCP and the command line share."""
        if self._machine is None:
            folder = self._folder / "server"
            folder.mkdir()
            self._machine = ServerMachine(folder)
            self._exits.callback(self._machine.close)
        return self._machine

    def close(self) -> None:
        self._exits.close()

    def _make(self, name: str) -> Door:
        if name == "library":
            library = LibraryDoor(self._folder / "library", HashingEmbedder())
            self._exits.callback(library.close)
            return library
        if name == "mcp":
            mcp = McpDoor(self.machine)
            self._exits.callback(mcp.close)
            return mcp
        return {"rest": RestDoor, "cli": CliDoor}[name](self.machine)


@pytest.fixture(scope="session")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    """Every door by its name."""
    doors = Doors(tmp_path_factory.mktemp("doors"))
    yield doors
    doors.close()


@pytest.fixture(autouse=True)
def pending(request: pytest.FixtureRequest) -> PendingParts:
    """What of a promise has no part to test yet; also notes which promise this is, for the table."""
    mark = request.node.get_closest_marker("promise")
    found = id_of_test(request.node.originalname)
    for promise in mark.args if mark is not None else [found] if found else []:
        request.node.user_properties.append(("promise", promise))
    door = request.node.get_closest_marker("door")
    if door is not None:
        request.node.user_properties.append(("door", door.args[0]))
    return PendingParts()


@pytest.fixture
def stage(request: pytest.FixtureRequest, doors: Doors, pending: PendingParts) -> Iterator[Stage]:
    """One door and a fresh index."""
    request.node.user_properties.append(("door", request.param))
    mark = request.node.get_closest_marker("index")
    settings = {} if mark is None else dict(mark.kwargs)
    if settings.pop("meaning", False):
        settings["embedder"] = "default"
    stage = Stage(doors[request.param], f"stage-{next(_numbers)}", pending)
    stage.open(**settings)
    yield stage
    stage.close()
