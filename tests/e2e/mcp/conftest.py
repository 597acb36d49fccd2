from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.doors import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    machine.halt()
    assert machine.processes() == []


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """One daemon for the tests of a module that need none of their own."""
    machine = Machine(tmp_path_factory.mktemp("shared"))
    yield machine
    machine.halt()
    assert machine.processes() == []
