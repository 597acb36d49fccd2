"""The page on REST says what is so: its commands are run, its tables are complete."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kektor_server.rest.errors import STATUS
from kektor_server.rest.routes import all_routes
from kektor_server.settings import Settings
from tests.support.rest import LiveServer

PAGE = (Path(__file__).parents[3] / "docs" / "rest.md").read_text("utf-8")


def commands() -> list[tuple[str, Any]]:
    """Every command of the page in order, with the answer that stands below it."""
    blocks = re.findall(r"^```console\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines()]
    assert len(lines) % 2 == 0
    return [
        (command.removeprefix("$ "), json.loads(answer))
        for command, answer in zip(lines[::2], lines[1::2], strict=True)
    ]


def holds(answer: Any, shown: Any) -> bool:
    """Whether the answer says all that is shown of it."""
    if isinstance(shown, dict):
        return isinstance(answer, dict) and all(name in answer and holds(answer[name], shown[name]) for name in shown)
    if isinstance(shown, list):
        return (
            isinstance(answer, list)
            and len(answer) == len(shown)
            and all(holds(one, other) for one, other in zip(answer, shown, strict=True))
        )
    return bool(answer == shown)


@pytest.mark.skipif(shutil.which("curl") is None, reason="the examples are curl's")
def test_the_commands_of_the_page_answer_as_shown(live: LiveServer) -> None:
    run = commands()
    assert len(run) > 25
    for command, shown in run:
        assert command.startswith("curl ")
        here = command.replace("http://127.0.0.1:9091", live.url.rstrip("/")).replace("curl ", "curl -sS ", 1)
        done = subprocess.run(here, shell=True, capture_output=True, text=True, check=True)
        assert holds(json.loads(done.stdout), shown), f"{command}\n{done.stdout}"


def test_the_page_names_every_route_and_no_other() -> None:
    table = PAGE[PAGE.index("## Routes") : PAGE.index("## Requests")]
    listed = [words.split() for words in re.findall(r"`([A-Z ]+ /[^`]*)`", table)]
    named = {(method, words[-1]) for words in listed for method in words[:-1]}
    assert named == {(route.method, route.path) for route in all_routes()} | {("GET", "/openapi.json")}


def test_the_page_names_every_setting_with_its_default() -> None:
    table = PAGE[PAGE.index("## Settings") : PAGE.index("## In your own program")]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", table, re.MULTILINE))
    assert list(rows) == [name for name, _ in Settings.names()]
    for name, shown in rows.items():
        default = getattr(Settings(), name)
        if name != "data":
            expected = {False: "off", (): "none"}.get(
                default, f"`{default:g}`" if isinstance(default, float) else f"`{default}`"
            )
            assert shown == expected, name


def test_the_page_names_every_error_with_its_status() -> None:
    table = PAGE[PAGE.index("## Errors") : PAGE.index("## Who may call")]
    rows = re.findall(r"^\| (`[a-z_` ]+`) \| (\d+) \|", table, re.MULTILINE)
    named = {code: int(status) for codes, status in rows for code in codes.replace("`", "").split()}
    assert named == dict(STATUS)
