"""The examples of the pages on the doors do what the pages say."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from kektor_server.mcp.profiles import REGISTRY
from tests.support.doors import Machine

DOCS = Path(__file__).parents[3] / "docs"


def examples(page: str) -> list[tuple[str, str]]:
    """Commands and what they print, in the order of the page. A command goes on in lines that begin with `> `."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"^```console\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            lines = part.splitlines()
            more = [line.removeprefix("> ") for line in lines[1:] if line.startswith("> ")]
            printed = [line for line in lines[1:] if not line.startswith("> ")]
            found.append(("\n".join([lines[0], *more]), "\n".join(printed)))
    return found


def pattern(printed: str) -> str:
    """A regular expression in which three dots stand for anything, further lines included."""
    return ".*".join(map(re.escape, printed.split("...")))


@pytest.mark.parametrize("page", ["cli.md", "mcp.md", "daemon.md", "auth.md"])
def test_the_examples_of_a_page_print_what_it_says(machine: Machine, page: str) -> None:
    env = {"KEKTOR_DATA": str(machine.data), **machine.env}
    env["PATH"] = f"{Path(machine.command[0]).parent}{os.pathsep}{env['PATH']}"
    script = "\n".join(
        f"{command}\nended=$?; printf '\\n-- %s\\n' \"$ended\"; (exit $ended)" for command, _ in examples(page)
    )
    done = subprocess.run(
        ["bash", "-c", f"exec 2>&1\n{script}"], env=env, cwd=machine.root, capture_output=True, text=True, timeout=240
    )
    outputs = re.split(r"\n-- \d+\n", done.stdout)
    assert len(outputs) == len(examples(page)) + 1, done.stdout
    for (command, printed), output in zip(examples(page), outputs, strict=False):
        assert re.fullmatch(pattern(printed), output.strip("\n"), re.S), (
            f"$ {command}\n{output}\n-- expected\n{printed}"
        )


def test_the_page_on_mcp_lists_every_tool_with_its_arguments() -> None:
    text = (DOCS / "mcp.md").read_text(encoding="utf-8")
    rows = {name: re.findall(r"\w+", cells) for name, cells in re.findall(r"^\| `(\w+)` \|(.*?)\|", text, re.M)}
    for tool in REGISTRY.tools.values():
        assert set(tool.arguments) - {"index"} == set(rows[tool.name]) - {"or"}


def test_the_page_on_the_command_line_names_every_command() -> None:
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    from kektor_server.cli.app import app

    names = [command.name for command in app.registered_commands]
    assert names
    for name in names:
        assert re.search(rf"`(kektor )?{name}\b", text), name
