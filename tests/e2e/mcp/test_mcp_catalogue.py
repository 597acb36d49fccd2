"""What clients are told of the tools: the file the relay reads, and the shape that strict clients take."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from kektor_server.mcp.generate import TARGET, catalogue
from kektor_server.mcp.instructions import INSTRUCTIONS
from kektor_server.mcp.profiles import REGISTRY

TOOLS = {tool["name"]: tool for tool in REGISTRY.described()}
_KEYWORDS = {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "description",
    "enum",
    "items",
    "minimum",
    "maximum",
}


def schemas(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """A schema and every schema within."""
    found = [schema]
    for inner in schema.get("properties", {}).values():
        found += schemas(inner)
    if "items" in schema:
        found += schemas(schema["items"])
    return found


def test_the_file_the_relay_reads_is_what_the_registry_says() -> None:
    assert json.loads(TARGET.read_text(encoding="utf-8")) == catalogue()


CORE = [
    "remember", "recall", "read_memory", "correct", "retract", "forget", "confirm", "link", "explore", "review",
    "start_session", "end_session",
]  # fmt: skip
AGENT = [
    "list_memories", "update_memory", "pin_memory", "history", "evidence", "archive_memory", "restore_memory",
    "unlink", "find_path", "subgraph", "edges", "search", "stats", "list_indexes", "list_sessions",
]  # fmt: skip
ADMIN = ["create_index", "configure_index", "delete_index", "checkpoint", "transfer"]
REFERENCE = [
    "create_entities", "create_relations", "add_observations", "delete_entities", "delete_observations",
    "delete_relations", "read_graph", "search_nodes", "open_nodes",
]  # fmt: skip
READING = {
    "recall", "read_memory", "explore", "list_memories", "history", "evidence", "find_path", "subgraph", "edges",
    "search", "stats", "list_indexes", "list_sessions", "read_graph", "search_nodes", "open_nodes",
}  # fmt: skip


def test_a_profile_has_the_tools_that_exist_and_no_more() -> None:
    assert REGISTRY.profiles == {
        "core": CORE,
        "agent": CORE + AGENT,
        "admin": CORE + AGENT + ADMIN,
        "reference": REFERENCE,
        "all": CORE + AGENT + ADMIN + REFERENCE,
    }
    assert set(REGISTRY.tools) == set(REGISTRY.profiles["all"])
    assert len(CORE) <= 12


def test_the_instructions_fit_two_kilobytes_and_name_every_tool_but_reading() -> None:
    assert len(INSTRUCTIONS.encode()) < 2048
    for name in set(CORE) - {"read_memory"}:
        assert name in INSTRUCTIONS


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_a_tool_says_what_it_is_for_in_few_words(tool: dict[str, Any]) -> None:
    assert re.fullmatch(r"[a-z_]{1,40}", tool["name"])
    assert 0 < len(tool["description"]) <= 300
    assert tool["title"]


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_a_schema_stays_in_the_subset_that_every_client_takes(tool: dict[str, Any]) -> None:
    for top in (tool["inputSchema"], tool["outputSchema"]):
        assert top["type"] == "object"
        for schema in schemas(top):
            assert schema.keys() <= _KEYWORDS
            assert isinstance(schema["type"], str)
            assert schema["type"] != "null"
            if schema["type"] == "array":
                assert "items" in schema
            if "required" in schema:
                assert isinstance(schema["required"], list)
                assert set(schema["required"]) <= schema["properties"].keys()
    assert tool["inputSchema"]["additionalProperties"] is False


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_every_argument_is_described_and_none_is_a_scope(tool: dict[str, Any]) -> None:
    for name, schema in tool["inputSchema"]["properties"].items():
        assert schema["description"], name
        assert name not in {"scope", "user", "agent", "project", "idempotency_key", "actor"}
    whole = {"create_index", "configure_index", "delete_index", "checkpoint"}
    assert ("index" in tool["inputSchema"]["properties"]) == (tool["name"] not in whole)


def test_the_hints_tell_reading_from_changing_from_destroying() -> None:
    hints = {name: tool["annotations"] for name, tool in TOOLS.items()}
    assert {name for name in hints if hints[name]["readOnlyHint"]} == READING
    assert {name for name in hints if hints[name]["destructiveHint"]} == {
        "correct", "retract", "forget", "archive_memory", "unlink", "delete_index", "delete_entities",
        "delete_observations", "delete_relations",
    }  # fmt: skip
    assert {name for name in hints if hints[name]["idempotentHint"]} == READING | {
        "remember", "link", "start_session", "end_session", "update_memory", "pin_memory", "configure_index",
        "checkpoint",
        "create_entities", "create_relations", "add_observations",
    }  # fmt: skip
    assert not any(hint["openWorldHint"] for hint in hints.values())


def test_the_relay_imports_the_standard_library_alone() -> None:
    loaded = "sorted({n.partition('.')[0] for n in sys.modules} - set(sys.stdlib_module_names) - {'kektor_server'})"
    parts = "main, kektor_server.mcp.relay, kektor_server.mcp.calls, kektor_server.daemon.launch"
    code = f"import sys\nbefore = {loaded}\nimport kektor_server.{parts}\nassert {loaded} == before, {loaded}"
    subprocess.run([sys.executable, "-c", code], check=True)
