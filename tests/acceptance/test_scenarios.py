"""The scenarios of the text files, through library, REST and MCP alike."""

from pathlib import Path

import pytest

from tests.support.acceptance import promises
from tests.support.scenarios import Scenario, play, read_scenarios
from tests.support.stage import Stage

SCENARIOS = read_scenarios(Path(__file__).parent / "scenarios")


@pytest.mark.index(meaning=True)
@pytest.mark.parametrize(
    "scenario",
    [pytest.param(scenario, id=scenario.name, marks=pytest.mark.promise(*scenario.promises)) for scenario in SCENARIOS],
)
def test_scenario(scenario: Scenario, stage: Stage) -> None:
    """What the file says comes true."""
    play(scenario, stage)


def test_scenarios_name_promises_that_exist() -> None:
    assert {name for scenario in SCENARIOS for name in scenario.promises} <= promises().keys()
