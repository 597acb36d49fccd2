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
