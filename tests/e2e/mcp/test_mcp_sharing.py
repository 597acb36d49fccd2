"""Any number of relays share one daemon, which comes when it is needed, goes when it is not, and may die any time."""

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import kektor
from kektor_server.daemon.client import UnixConnection, connection_to, request
from kektor_server.daemon.places import find_places
from kektor_server.mcp.calls import PROTOCOL
from tests.support.doors import Machine, wait_for
from tests.support.mcp_client import RawClient

ROUNDS = max(3, int(os.environ.get("KEKTOR_FAULT_ROUNDS", "0")) // 10)


def daemons(machine: Machine) -> list[int]:
    """The processes that are daemons on demand."""
    return [pid for pid in machine.processes() if b"kektor_server.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def socket_of(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(machine.runtime))
    return find_places(str(machine.data)).socket


@pytest.mark.faults
@pytest.mark.timeout(60 + 60 * ROUNDS)
def test_eight_relays_share_one_memory_while_its_daemon_is_killed(machine: Machine) -> None:
    machine.env["KEKTOR_IDLE_EXIT"] = "1"
    clients = [RawClient(machine) for _ in range(8)]
    written: list[str] = []
    failures: list[Any] = []
    lock = threading.Lock()
    barrier = threading.Barrier(9)

    def work(number: int, client: RawClient) -> None:
        client.initialize(client=f"editor {number}")
        for turn in range(ROUNDS):
            text = f"Editor {number} wrote line {turn} of the shared log"
            result = client.call("remember", text=text)
            with lock:
                (failures.append(result) if result.get("isError") else written.append(text))
            barrier.wait(120)  # the others are done as well
            barrier.wait(120)  # the daemon is dead

    threads = [threading.Thread(target=work, args=(n, client)) for n, client in enumerate(clients)]
    for thread in threads:
        thread.start()
    for _ in range(ROUNDS):
        barrier.wait(120)
        running = daemons(machine)
        assert len(running) == 1  # whoever lost the race to start it has left
        os.kill(running[0], signal.SIGKILL)
        barrier.wait(120)
    for thread in threads:
        thread.join(120)
    assert failures == []
    assert len(written) == 8 * ROUNDS

    seen = clients[0].call("recall", query="What did editor 7 write in the shared log?", k=50)
    assert "Editor 7 wrote line 0" in seen["content"][0]["text"]
    assert [client.close() for client in clients] == [(0, b"")] * 8
    wait_for(lambda: not machine.processes(), "everything to leave")
    records = map(json.loads, machine.run("export", "-").stdout.splitlines())
    stored = [record["text"] for record in records if record["type"] == "node"]
    assert sorted(stored) == sorted(written)  # nothing lost, nothing twice
    assert machine.json("doctor")["ok"]


def test_a_daemon_killed_during_a_call_is_replaced_and_the_write_is_there_once(machine: Machine) -> None:
    client = RawClient(machine)
    client.initialize()
    client.call("remember", text="warm up")
    asked = [client.begin("tools/call", {"name": "remember", "arguments": {"text": f"Fact {n}"}}) for n in range(20)]
    os.kill(machine.owner(), signal.SIGKILL)
    outcomes = [client.answer(number)["result"] for number in asked]
    assert not any(result.get("isError") for result in outcomes), outcomes
    ids = {result["structuredContent"]["id"] for result in outcomes}
    assert len(ids) == 20
    client.close()
    machine.halt_daemons()
    texts = [memory["text"] for memory in machine.json("list")["items"]]
    assert sorted(texts) == sorted(["warm up", *(f"Fact {n}" for n in range(20))])


def test_a_daemon_leaves_when_nobody_needs_it_and_takes_its_socket_along(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.env["KEKTOR_IDLE_EXIT"] = "1"
    path = socket_of(machine, monkeypatch)
    client = RawClient(machine)
    client.initialize()
    client.call("remember", text="Dana owns the Henderson account")
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert len(daemons(machine)) == 1
    time.sleep(2.5)  # longer than it stays alone
    assert len(daemons(machine)) == 1  # a relay that says nothing is a client all the same
    client.close()
    wait_for(lambda: not machine.processes(), "the daemon to leave")
    assert not os.path.exists(path)
    again = RawClient(machine)
    again.initialize()
    assert "Dana" in again.call("recall", query="Who owns the Henderson account?")["content"][0]["text"]


def test_what_a_killed_daemon_left_is_replaced(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    path = socket_of(machine, monkeypatch)
    client = RawClient(machine)
    client.initialize()
    client.call("remember", text="Dana owns the Henderson account")
    os.kill(machine.owner(), signal.SIGKILL)
    assert os.path.exists(path)
    assert "Dana" in client.call("recall", query="Who owns the Henderson account?")["content"][0]["text"]


def test_a_cancelled_call_is_not_answered_and_the_next_one_is(machine: Machine) -> None:
    client = RawClient(machine)
    client.initialize()
    cancelled = client.begin("tools/call", {"name": "recall", "arguments": {"query": "asked while the daemon starts"}})
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": cancelled}})
    client.call("remember", text="Dana owns the Henderson account")
    client.close()
    assert cancelled not in client.answered()


def test_two_requests_of_one_id_at_once_are_refused(machine: Machine) -> None:
    client = RawClient(machine)
    client.initialize()
    call = {"name": "recall", "arguments": {"query": "x y"}}
    for _ in range(2):
        client.send({"jsonrpc": "2.0", "id": "same", "method": "tools/call", "params": call})
    assert client.answer("same")["error"]["code"] == -32600


def test_another_owner_is_named_and_waited_for(machine: Machine) -> None:
    with kektor.open(machine.data):
        client = RawClient(machine)
        client.initialize()
        error = client.call("remember", text="x y")["_meta"]["kektor/error"]
        assert error["code"] == "unavailable"
        assert f"process {os.getpid()}" in error["message"]
    assert not client.call("remember", text="x y").get("isError")


def test_a_daemon_that_cannot_start_says_why_in_the_answer(machine: Machine) -> None:
    machine.env["KEKTOR_IDLE_EXIT"] = "soon"
    client = RawClient(machine)
    client.initialize()
    error = client.call("remember", text="x y")["_meta"]["kektor/error"]
    assert error["code"] == "invalid"
    assert "KEKTOR_IDLE_EXIT" in error["message"]
    assert client.request("tools/list")["result"]["tools"]


def test_a_server_takes_the_place_of_a_daemon_and_relays_follow(machine: Machine) -> None:
    client = RawClient(machine)
    client.initialize()
    client.call("remember", text="Dana owns the Henderson account")
    before = machine.owner()
    with machine.server("serve", "--port", "0") as server:
        assert server["pid"] == machine.owner() != before
        assert "Dana" in client.call("recall", query="Who owns the Henderson account?")["content"][0]["text"]
        refused = machine.json("serve", "--port", "0", code=2)
        assert "is served already" in refused["error"]["message"]
    assert server["process"].returncode == 0
    assert not client.call("remember", text="The server has gone").get("isError")
    assert len(daemons(machine)) == 1


def test_internal_routes_and_the_word_of_the_command_line_are_for_the_unix_socket(machine: Machine) -> None:
    body = b'{"text": "Who said this?"}'
    headers = {"Kektor-Cli": "human"}
    with machine.server("serve", "--port", "0") as server:
        through_tcp, through_unix = connection_to(server["url"]), UnixConnection(server["socket"])
        for method, path in (
            ("POST", "/internal/mcp"),
            ("GET", "/internal/attach"),
            ("POST", "/internal/leave"),
            ("GET", "/internal/doctor"),
            ("GET", "/internal/export"),
        ):
            assert request(through_tcp, method, path, b"{}" if method == "POST" else None).status == 404, path
        assert request(through_unix, "GET", "/internal/doctor").json() == {"ok": True, "findings": []}
        kinds = {}
        for name, connection in (("tcp", through_tcp), ("unix", through_unix)):
            saved = request(connection, "POST", "/v1/memories", body.replace(b"this", name.encode()), headers).json()
            kinds[name] = request(connection, "GET", f"/v1/memories/{saved['id']}").json()["actor"]["kind"]
        assert kinds == {"tcp": "service", "unix": "human"}
        through_tcp.close()
        through_unix.close()


def test_a_call_told_twice_is_done_once(machine: Machine) -> None:
    def post(name: str, arguments: dict[str, Any], key: str) -> dict[str, Any]:
        asked = {
            "protocol": PROTOCOL,
            "name": name,
            "arguments": arguments,
            "client": {"name": "t", "version": "1"},
            "key": key,
            "grant": {},
        }
        connection = UnixConnection(server["socket"])
        try:
            return request(connection, "POST", "/internal/mcp", json.dumps(asked).encode()).json()
        finally:
            connection.close()

    with machine.server("serve", "--port", "0") as server:
        ids = {}
        for name, text in (("a", "Anna runs the kiosk"), ("b", "Berta runs the pier"), ("c", "Carla runs the bar")):
            first, second = (post("remember", {"text": text}, f"save-{name}") for _ in range(2))
            assert first == second
            ids[name] = first["structuredContent"]["id"]
        for number, (tool, arguments) in enumerate(
            (
                ("correct", {"id": ids["a"], "text": "Anna runs the bakery"}),
                ("retract", {"id": ids["b"]}),
                ("link", {"src": ids["b"], "rel": "knows", "dst": ids["c"]}),
                ("forget", {"ids": [ids["c"]], "mode": "archive"}),
                ("forget", {"ids": [ids["b"]], "mode": "erase", "confirm": True}),
            )
        ):
            first, second = (post(tool, arguments, f"again-{number}") for _ in range(2))
            assert not first.get("isError"), (tool, first)
            assert not second.get("isError"), (tool, second)
            told = [
                answer["structuredContent"].get("receipt", answer["structuredContent"]) for answer in (first, second)
            ]
            assert told[0]["lsn"] == told[1]["lsn"], tool
        again = post("remember", {"text": "something else"}, "save-a")
        assert again["_meta"]["kektor/error"]["code"] == "conflict"
        connection = UnixConnection(server["socket"])
        old = request(
            connection,
            "POST",
            "/internal/mcp",
            b'{"protocol": 99, "name": "x", "arguments": {}, "client": {}, "key": "k", "grant": {}}',
        )
        assert old.status == 409
        assert "versions" in old.json()["error"]["message"]
        connection.close()
