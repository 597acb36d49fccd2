"""The recall at every prompt: quick, labelled, and never in the prompt's way."""

import json
import time
from typing import Any

import pytest

from kektor_server.setup.hook import EVENTS
from tests.support.doors import Machine


def prompt(machine: Machine, client: str, said: Any, *flags: str) -> str:
    stdin = said if isinstance(said, str) else json.dumps(said)
    return machine.run("hook", client, *flags, stdin=stdin).stdout


@pytest.mark.parametrize("client", EVENTS)
def test_what_is_known_is_put_before_the_model(machine: Machine, client: str) -> None:
    with machine.server("serve", "--port", "0"):
        machine.json("remember", "Dana owns the Henderson account", "--user", "alice")
        answer = json.loads(prompt(machine, client, {"prompt": "Who owns the Henderson account?"}, "--user", "alice"))
        told = answer["hookSpecificOutput"]
        assert told["hookEventName"] == EVENTS[client]
        assert "Dana owns the Henderson account" in told["additionalContext"]
        assert "<memories>" in told["additionalContext"]
        assert "Previews" in told["additionalContext"]
        assert prompt(machine, client, {"prompt": "Who owns the Henderson account?"}, "--user", "bob") == ""
        assert prompt(machine, client, {"prompt": "zzyzx qwfp"}, "--user", "alice") == ""


@pytest.mark.parametrize("said", ["", "no JSON", "[]", "{}", '{"prompt": null}', '{"prompt": "  "}'])
def test_what_is_no_prompt_is_no_trouble(machine: Machine, said: str) -> None:
    assert prompt(machine, "claude-code", said) == ""


def test_a_prompt_waits_for_no_daemon(machine: Machine) -> None:
    machine.json("remember", "Dana owns the Henderson account")
    begun = time.monotonic()
    assert prompt(machine, "claude-code", {"prompt": "Who owns the Henderson account?"}) == ""
    assert time.monotonic() - begun < 10  # the process itself, on a loaded machine
    assert machine.processes() == []


def test_a_server_with_authentication_still_tells_its_own_user(machine: Machine) -> None:
    with machine.server("serve", "--port", "0", "--auth"):
        machine.json("remember", "Dana owns the Henderson account")
        answer = prompt(machine, "claude-code", {"prompt": "Who owns the Henderson account?"})
        assert "Dana owns the Henderson account" in json.loads(answer)["hookSpecificOutput"]["additionalContext"]
