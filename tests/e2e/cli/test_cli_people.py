"""A person at a terminal: named as the one who acts, and asked before anything goes."""

import os
import pty
import subprocess

from tests.support.doors import Machine


def at_terminal(machine: Machine, *arguments: str, typed: str = "") -> tuple[int, str]:
    """Run a command with a terminal as its input; returns the exit code and all it printed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*machine.command, *arguments, "--data", str(machine.data)],
        env=machine.env,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    printed, _ = process.communicate(timeout=60)
    os.close(ours)
    return process.returncode, printed


def test_a_person_at_a_terminal_is_a_human_and_a_program_a_service(machine: Machine) -> None:
    assert at_terminal(machine, "remember", "typed by somebody", "--id", "typed")[0] == 0
    machine.run("remember", "said by a program", "--id", "said")
    kinds = {name: machine.json("get", name)["actor"]["kind"] for name in ("typed", "said")}
    assert kinds == {"typed": "human", "said": "service"}
    with machine.server("serve", "--port", "0"):
        assert at_terminal(machine, "remember", "typed while a server runs", "--id", "served")[0] == 0
        assert machine.json("get", "served")["actor"] == {"kind": "human", "id": None, "channel": "cli"}


def test_forgetting_asks_and_does_what_it_is_told(machine: Machine) -> None:
    machine.run("remember", "Frank likes sailing", "--id", "frank")
    code, printed = at_terminal(machine, "forget", "frank", "--mode", "erase", typed="n\n")
    assert code == 1
    assert "about to erase" in printed
    assert "Frank likes sailing" in printed
    assert machine.json("get", "frank")
    code, printed = at_terminal(machine, "forget", "frank", "--mode", "erase", typed="y\n")
    assert code == 0, printed
    machine.json("get", "frank", code=1)


def test_forgetting_with_nobody_to_ask_needs_a_word(machine: Machine) -> None:
    machine.run("remember", "Frank likes sailing", "--id", "frank")
    assert "--yes" in machine.json("forget", "frank", code=2)["error"]["message"]
    assert machine.json("get", "frank")["trust"] == "accepted"
    machine.run("forget", "frank", "--yes")
    assert machine.json("get", "frank")["trust"] == "rejected"


def test_a_dash_reads_the_statement_from_standard_input(machine: Machine) -> None:
    saved = machine.json("remember", "-", stdin="Piped in by somebody")
    assert machine.json("get", saved["id"])["text"] == "Piped in by somebody"
