"""The protocol itself, in both eras, from a client that makes mistakes."""

from typing import Any

import pytest

from tests.support.doors import Machine
from tests.support.mcp_client import MODERN, RawClient


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_handshake_answers_in_the_version_asked_for(shared: Machine, version: str) -> None:
    client = RawClient(shared)
    result = client.initialize(version)
    assert result["protocolVersion"] == version
    assert result["serverInfo"]["name"] == "kektor"
    assert result["capabilities"] == {
        "tools": {"listChanged": False},
        "resources": {"listChanged": False, "subscribe": True},
        "prompts": {"listChanged": False},
    }
    assert "recall" in result["instructions"]


def test_a_handshake_of_an_unknown_version_offers_the_newest(shared: Machine) -> None:
    assert RawClient(shared).initialize("2031-01-01")["protocolVersion"] == "2025-11-25"


def test_discovery_answers_requests_that_carry_their_envelope(shared: Machine) -> None:
    client = RawClient(shared)
    result = client.request("server/discover", {"_meta": MODERN})["result"]
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["resultType"] == "complete"
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "kektor"
    listed = client.request("tools/list", {"_meta": MODERN})["result"]
    assert listed["ttlMs"] > 0
    assert listed["cacheScope"] == "public"
    assert [tool["name"] for tool in listed["tools"]][:2] == ["remember", "recall"]


def test_a_version_that_is_not_spoken_is_refused_with_those_that_are(shared: Machine) -> None:
    client = RawClient(shared)
    meta = {**MODERN, "io.modelcontextprotocol/protocolVersion": "2031-01-01"}
    error = client.request("tools/list", {"_meta": meta})["error"]
    assert error["code"] == -32022
    assert error["data"] == {"supported": ["2026-07-28"], "requested": "2031-01-01"}


def test_an_envelope_without_capabilities_is_refused(shared: Machine) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    assert RawClient(shared).request("tools/list", {"_meta": meta})["error"]["code"] == -32602


def test_a_client_whose_probe_came_late_may_still_shake_hands(shared: Machine) -> None:
    client = RawClient(shared)
    client.request("server/discover", {"_meta": MODERN})
    assert client.initialize()["protocolVersion"] == "2025-11-25"
    assert client.request("tools/list")["result"]["tools"]


def test_a_handshake_result_has_nothing_of_the_newer_era(shared: Machine) -> None:
    client = RawClient(shared)
    client.initialize()
    assert client.request("ping")["result"] == {}
    assert client.request("tools/list")["result"].keys() == {"tools"}
    for method, name in (
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
        ("prompts/list", "prompts"),
    ):
        assert client.request(method)["result"].keys() == {name}


def test_nothing_is_said_to_a_notification(shared: Machine) -> None:
    client = RawClient(shared)
    client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    client.send({"jsonrpc": "2.0", "method": "notifications/nobody/knows"})
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}})
    client.send({"jsonrpc": "2.0", "id": 7, "result": {}})
    client.request("ping")
    assert client.answered() == {1}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": NaN}}', -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', -32600),
    ],
)
def test_what_is_no_message_is_an_error_without_an_id_and_the_next_is_heard(
    shared: Machine, line: bytes, code: int
) -> None:
    client = RawClient(shared)
    client.send(line)
    assert client.unnamed()["error"]["code"] == code
    assert client.request("ping")["result"] == {}


def test_a_line_beyond_the_limit_is_refused_without_being_kept(shared: Machine) -> None:
    client = RawClient(shared)
    client.send(b'{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": {"x": "' + b"x" * (65 << 20) + b'"}}')
    assert client.unnamed()["error"]["code"] == -32700
    assert client.request("ping")["result"] == {}


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("nobody/knows", {}, -32601),
        ("logging/setLevel", {"level": "info"}, -32601),
        ("tools/list", {"cursor": "2"}, -32602),
        ("tools/call", {"name": "start_a_band", "arguments": {}}, -32602),
        ("tools/call", {"name": None}, -32602),
        ("tools/call", {"name": "recall", "arguments": ["query"]}, -32602),
        ("resources/read", {"uri": "kektor://default/memory/x"}, -32002),
        ("prompts/get", {"name": "recall_everything"}, -32602),
        ("prompts/get", {"name": "recall_protocol", "arguments": {"task": 1}}, -32602),
        ("resources/read", {"uri": 1}, -32602),
        ("subscriptions/listen", {"notifications": {"resourceSubscriptions": [1]}}, -32602),
        ("server/discover", {}, -32602),
    ],
)
def test_what_cannot_be_asked_is_an_error_of_the_protocol(
    shared: Machine, method: str, params: dict[str, Any], code: int
) -> None:
    client = RawClient(shared)
    client.initialize()
    assert client.request(method, params)["error"]["code"] == code


def test_lists_need_no_daemon(machine: Machine) -> None:
    (machine.root / "data").write_text("not a folder, so that no daemon can come up")
    client = RawClient(machine)
    client.initialize()
    assert client.request("tools/list")["result"]["tools"]
    result = client.call("recall", query="who?")
    assert result["isError"]
    assert result["_meta"]["kektor/error"]["message"]


def test_the_end_of_input_ends_the_relay_when_everything_is_answered(shared: Machine) -> None:
    client = RawClient(shared)
    client.initialize()
    asked = [client.begin("tools/call", {"name": "remember", "arguments": {"text": f"Fact {n}"}}) for n in range(3)]
    code, errors = client.close()
    assert (code, errors) == (0, b"")
    assert {client.answer(number)["result"]["structuredContent"]["outcome"] for number in asked} == {"created"}


def test_everything_is_ascii_on_one_line(shared: Machine) -> None:
    client = RawClient(shared)
    client.initialize()
    text = "Línea\u2028separada \U0001f98a\x85"
    saved = client.call("remember", text=text)
    read = client.call("read_memory", id=saved["structuredContent"]["id"])
    assert read["structuredContent"]["text"] == text


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--tools", "everything"], "--tools"),
        (["--user", " "], "--user is empty"),
        (["--nobody"], "--nobody"),
    ],
)
def test_a_wrong_flag_ends_with_two_and_a_sentence(shared: Machine, flags: list[str], words: str) -> None:
    done = shared.run("mcp", *flags, code=2)
    assert words in done.stderr
    assert done.stdout == ""


def test_a_runtime_folder_open_to_others_is_refused(machine: Machine) -> None:
    (machine.runtime / "kektor").mkdir(mode=0o777)
    (machine.runtime / "kektor").chmod(0o777)
    done = machine.run("mcp", code=2)
    assert "is open to others" in done.stderr
    assert done.stdout == ""


def test_help_names_every_flag(shared: Machine) -> None:
    text = shared.run("mcp", "--help").stdout
    for flag in ("--data", "--tools", "--user", "--agent", "--project", "--index"):
        assert flag in text
