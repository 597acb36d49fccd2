"""Tokens on the command line: made, listed and taken back, with a server and without one."""

import re
import signal
import subprocess

from tests.support.doors import Machine


def test_a_token_made_without_a_server_opens_the_one_that_comes(machine: Machine) -> None:
    made = machine.run("token", "create", "--role", "write", "--user", "alice", "--expires", "1h")
    token = made.stdout.strip()
    assert re.fullmatch(r"[\w-]+\.[\w-]+\.[\w-]+", token)
    assert token not in made.stderr
    with machine.server("serve", "--auth", "--port", "0") as server:
        where = {"KEKTOR_URL": server["url"], "KEKTOR_DATA": ""}
        machine.run("remember", "Alice likes tea", env={**where, "KEKTOR_TOKEN": token})
        listed = machine.json("list", env={**where, "KEKTOR_TOKEN": token})["items"]
        assert [(item["text"], item["scope"]["user"]) for item in listed] == [("Alice likes tea", "alice")]
        for bad in ("", "none", token[:-2]):
            refused = machine.json("list", env={**where, "KEKTOR_TOKEN": bad}, code=2)
            assert refused["error"]["code"] == "unauthenticated"
        # This machine's user needs none: whoever opens the socket could read the directory as well.
        assert [item["text"] for item in machine.json("list")["items"]] == ["Alice likes tea"]
        jti = machine.json("token", "list")["items"][0]["jti"]
        machine.run("token", "revoke", jti)
        assert machine.json("list", env={**where, "KEKTOR_TOKEN": token}, code=2)["error"]["details"] == {
            "reason": "revoked"
        }
    tokens = machine.json("token", "list")["items"]
    assert [(item["jti"], bool(item["revoked_at"])) for item in tokens] == [(jti, True)]


def test_the_first_server_that_asks_for_tokens_shows_one_with_all_rights_once(machine: Machine) -> None:
    token = _first_token(machine, env={})
    assert token is not None
    with machine.server("serve", "--auth", "--port", "0") as server:
        where = {"KEKTOR_URL": server["url"], "KEKTOR_DATA": ""}
        root = {**where, "KEKTOR_TOKEN": token}
        reader = machine.json("token", "create", "--role", "read", env=root)
        assert machine.json("token", "rotate", env=root)["others_retire_at"]
        assert machine.json("token", "list", env=root)["items"][1]["roles"] == ["read"]
        denied = machine.json("token", "list", env={**where, "KEKTOR_TOKEN": reader["token"]}, code=1)
        assert denied["error"]["code"] == "forbidden"
    assert _first_token(machine, env={}) is None


def test_a_server_that_asks_for_no_tokens_makes_none(machine: Machine) -> None:
    assert _first_token(machine, env={"KEKTOR_AUTH": "off"}) is None
    assert machine.json("token", "list")["items"] == []


def _first_token(machine: Machine, env: dict[str, str]) -> str | None:
    """What `kektor serve` shows on standard error, from its start to its end."""
    process = subprocess.Popen(
        [*machine.command, "serve", "--port", "0"],
        env={"KEKTOR_AUTH": "on", **machine.env, "KEKTOR_DATA": str(machine.data), **env},
        cwd=machine.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Kektor serves")
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=60)
    found = re.findall(r"^ey[\w-]+\.[\w-]+\.[\w-]+$", errors, re.M)
    assert len(found) <= 1
    assert "ey" not in output
    return found[0] if found else None
