"""serve and try: what they announce, what they refuse, and how they end."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kektor_server.daemon.client import connection_to, request
from tests.support.doors import Machine, wait_for
from tests.support.mcp_client import RawClient


def asked(url: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = connection_to(url, timeout=60)
    try:
        answer = request(connection, method, path, None if body is None else json.dumps(body).encode())
        return answer.status, answer.json()
    finally:
        connection.close()


def started(machine: Machine, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*machine.command, *arguments],
        env={"KEKTOR_DATA": str(machine.data), **machine.env},
        cwd=machine.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_server_is_up_at_the_address_it_announces(machine: Machine) -> None:
    with machine.server("serve", "--port", "0") as server:
        assert server["data"] == str(machine.data)
        assert asked(server["url"], "GET", "/healthz") == (200, {"status": "ok"})
        assert asked(server["url"], "GET", "/readyz")[1]["status"] == "ready"
        status, saved = asked(server["url"], "POST", "/v1/memories", {"text": "Said over HTTP"})
        assert status == 201
    assert server["process"].returncode == 0
    assert not os.path.exists(server["socket"])
    assert machine.json("get", saved["id"])["text"] == "Said over HTTP"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_server_cleanly_with_its_answers_given(machine: Machine, number: signal.Signals) -> None:
    process = started(machine, "serve", "--port", "0", "--json")
    assert process.stdout is not None
    server = json.loads(process.stdout.readline())
    body = b'{"text": "On its way when the signal came"}'
    host, port = server["url"].removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        head = (
            f"POST /v1/memories HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
        )
        connection.sendall(head.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 100")  # so it is under way
        process.send_signal(number)
        connection.sendall(body)
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 201")
    saved = json.loads(answer.partition(b"\r\n\r\n")[2])
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert machine.json("get", saved["id"])


def test_a_taken_port_is_said_and_how_to_choose_another(machine: Machine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for command in ("serve", "try"):
            message = machine.json(command, "--port", port, code=2)["error"]["message"]
            assert port in message
            assert "--port" in message
    assert not machine.data.exists()


def test_listening_beyond_this_machine_asks_for_tokens(machine: Machine) -> None:
    with machine.server("serve", "--host", "0.0.0.0", "--port", "0") as server:
        url = server["url"].replace("0.0.0.0", "127.0.0.1")
        assert asked(url, "GET", "/v1/memories")[0] == 401
        assert asked(url, "GET", "/healthz")[0] == 200


def test_a_server_that_cannot_have_its_directory_says_who_has_it(machine: Machine) -> None:
    code = f"import kektor, sys; db = kektor.open({str(machine.data)!r}); print('open', flush=True); sys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=machine.env
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    message = machine.json("serve", "--port", "0", code=2)["error"]["message"]
    holder.communicate()
    assert f"process {holder.pid}" in message


def test_a_demo_answers_a_real_question_and_leaves_nothing(machine: Machine) -> None:
    with machine.server("try", "--port", "0") as demo:
        assert demo["recall"]["status"] == "ok"
        assert demo["recall"]["hits"][0]["memory"]["text"] == "Tomás Ortega owns the Henderson account"
        assert asked(demo["url"], "GET", "/readyz")[0] == 200
        status, found = asked(demo["url"], "POST", "/v1/recall", {"query": "Who is the contact of the Skarholm line?"})
        assert status == 200
        assert "Ingrid Solheim" in found["context"]
        assert Path(demo["data"]).is_dir()
        assert machine.json("get", "henderson-owner", "--data", demo["data"])["status"] == "superseded"
    assert demo["process"].returncode == 0
    assert not Path(demo["data"]).exists()


def test_a_demo_is_alive_before_it_is_ready(machine: Machine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = started(machine, "try", "--port", str(port))
    seen = set()

    def ready() -> bool:
        try:
            status, body = asked(f"http://127.0.0.1:{port}", "GET", "/readyz")
        except OSError:
            return False
        seen.add((status, body.get("error", {}).get("code")))
        return status == 200

    wait_for(ready, "the demo to be ready")
    assert seen <= {(503, "unavailable"), (200, None)}
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert "Tomás Ortega owns the Henderson account" in printed or "gone when it stops" in printed


def test_ctrl_c_at_any_moment_ends_a_demo_cleanly(machine: Machine) -> None:
    for delay in (0.7, 1.2, 2.0):
        process = started(machine, "try", "--port", "0")
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode in (0, 130), errors
        assert "Traceback" not in errors
    assert not [path for path in Path("/tmp").glob("kektor-try-*") if (path / "LOCK").exists()]


def test_what_the_demo_prints_works_as_it_stands(machine: Machine) -> None:
    with machine.server("try", "--port", "0") as demo:
        examples = demo["examples"]
        for name in ("Ask (curl)", "Save (curl)"):
            done = subprocess.run(["bash", "-c", examples[name]], capture_output=True, text=True, check=True)
            assert "error" not in json.loads(done.stdout)
        assert "Tomás" in subprocess.run(["bash", "-c", examples["Ask (curl)"]], capture_output=True, text=True).stdout
        done = subprocess.run(
            [sys.executable, "-c", examples["Python, embedded"]], capture_output=True, text=True, cwd=machine.root
        )
        assert "Dana owns the Henderson account" in done.stdout, done.stderr
        entry = json.loads(examples["An agent's MCP client"])["mcpServers"]["kektor"]
        assert os.path.isabs(entry["command"])
        machine.command, arguments = [entry["command"]], entry["args"]
        assert arguments[-1] == "mcp"
        machine.command += arguments[:-1]
        machine.data = Path(demo["data"])
        client = RawClient(machine)
        client.initialize()
        found = client.call("recall", query="Who owns the Henderson account?")
        assert "Tomás" in found["content"][0]["text"]
        client.end()
