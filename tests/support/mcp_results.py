"""What a tool answered, held against what it promises."""

from typing import Any

import jsonschema

from kektor_server.mcp.profiles import REGISTRY
from tests.support.mcp_client import RawClient

__all__ = ["done", "failed"]


def done(client: RawClient, tool: str, /, **arguments: Any) -> tuple[str, dict[str, Any]]:
    """The text and the structured result of a call that must succeed, the latter held against its schema."""
    result = client.call(tool, **arguments)
    assert not result.get("isError"), result
    jsonschema.validate(result["structuredContent"], REGISTRY.tools[tool].output)
    assert [part["type"] for part in result["content"]] == ["text"]
    return result["content"][0]["text"], result["structuredContent"]


def failed(client: RawClient, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """The error object of a call that must fail, the text of which names the code."""
    result = client.call(tool, **arguments)
    assert result["isError"], result
    assert "structuredContent" not in result
    error: dict[str, Any] = result["_meta"]["kektor/error"]
    assert result["content"][0]["text"].startswith(error["code"])
    assert error["message"] in result["content"][0]["text"]
    return error
