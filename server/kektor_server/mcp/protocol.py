"""What an MCP server says without asking anybody: handshakes, lists, and the errors of the protocol itself.

Two eras are spoken. Up to 2025-11-25 a client shakes hands with `initialize`; from 2026-07-28 on every request carries
its version, client and capabilities in `_meta`. Each request is judged by itself, so that a client whose probe of the
newer era came too late may still shake hands. Standard library only.
"""

import json
import os
from typing import Any, NamedTuple

__all__ = ["SUBSCRIPTION_ID", "Catalogue", "Envelope", "ProtocolError", "error_of", "read_envelope"]

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
ENVELOPE_VERSIONS = ("2026-07-28",)

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
RESOURCE_NOT_FOUND = -32002
UNSUPPORTED_VERSION = -32022

_META = "io.modelcontextprotocol/"
SUBSCRIPTION_ID = f"{_META}subscriptionId"
"""Under which every message of a subscription of the newer era names it."""

_LISTS_HOLD_FOR_MS = 3_600_000
"""Lists only change with the program, which a client starts anew."""


class ProtocolError(Exception):
    """A JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error: dict[str, Any] = {"code": code, "message": message}
        if data is not None:
            self.error["data"] = data


class Envelope(NamedTuple):
    """What a request of the newer era says about its sender; `client` is None when it does not."""

    client: dict[str, Any] | None


def read_envelope(params: dict[str, Any]) -> Envelope | None:
    """The envelope of a request, or None when it is of the handshake era.

    Raises ProtocolError when there is one and it is broken or of a version not spoken here.
    """
    meta = params.get("_meta")
    if not isinstance(meta, dict) or f"{_META}protocolVersion" not in meta:
        return None
    version = meta[f"{_META}protocolVersion"]
    if f"{_META}clientCapabilities" not in meta:
        raise ProtocolError(INVALID_PARAMS, f"params._meta lacks {_META}clientCapabilities")
    if not isinstance(version, str):
        raise ProtocolError(INVALID_PARAMS, f"params._meta.{_META}protocolVersion must be a text")
    if version not in ENVELOPE_VERSIONS:
        raise ProtocolError(
            UNSUPPORTED_VERSION,
            f"protocol version {version} is not supported",
            {"supported": list(ENVELOPE_VERSIONS), "requested": version},
        )
    client = meta.get(f"{_META}clientInfo")
    return Envelope(client if isinstance(client, dict) else None)


def error_of(result: dict[str, Any], envelope: Envelope | None) -> ProtocolError | None:
    """The error of the protocol for a resource that could not be read, None for one that was."""
    told = result.get("error") or result.get("_meta", {}).get("kektor/error")
    if told is None:
        return None
    code = INTERNAL_ERROR
    if told["code"] in ("not_found", "forbidden"):
        code = RESOURCE_NOT_FOUND if envelope is None else INVALID_PARAMS
    elif told["code"] == "invalid":
        code = INVALID_PARAMS
    return ProtocolError(code, f"{told['code']}: {told['message']}", {"kektor/error": told})


class Catalogue:
    """The generated lists, cut to one profile of tools, and the answers made of them."""

    def __init__(self, profile: str = "core", path: str | None = None) -> None:
        with open(path or os.path.join(os.path.dirname(__file__), "tools.json"), encoding="utf-8") as stream:
            self._all = json.load(stream)
        self.profiles: list[str] = list(self._all["profiles"])
        self.tool_names: list[str] = self._all["profiles"].get(profile, [])
        by_name = {tool["name"]: tool for tool in self._all["tools"]}
        self._tools = [by_name[name] for name in self.tool_names]

    @property
    def server(self) -> dict[str, str]:
        server: dict[str, str] = self._all["server"]
        return server

    def answer(self, method: str, params: dict[str, Any], envelope: Envelope | None) -> dict[str, Any]:
        """The result of every request but `tools/call`; ProtocolError when there is none."""
        if method == "initialize":
            return self._initialize(params)
        if method == "ping":
            return self._stamped({}, envelope)
        if method == "server/discover":
            if envelope is None:
                raise ProtocolError(INVALID_PARAMS, f"server/discover needs params._meta with {_META}protocolVersion")
            discovered = {
                "supportedVersions": list(ENVELOPE_VERSIONS),
                "capabilities": self._capabilities(),
                "instructions": self._all["instructions"],
            }
            return self._stamped(discovered, envelope, cached=True)
        if method in self._lists():
            if params.get("cursor") is not None:
                raise ProtocolError(INVALID_PARAMS, "this list has one page: there is no such cursor")
            return self._stamped(self._lists()[method], envelope, cached=True)
        if method == "prompts/get":
            return self._stamped(self._prompt(params), envelope)
        raise ProtocolError(METHOD_NOT_FOUND, f"unknown method {method!r}")

    def stamp_call(self, result: dict[str, Any], envelope: Envelope | None) -> dict[str, Any]:
        """The result of a tool or resource, as the era of its request wants it."""
        stamped = self._stamped(result, envelope)
        if envelope is not None and "contents" in result:
            stamped |= {"ttlMs": 0, "cacheScope": "private"}
        return stamped

    def _prompt(self, params: dict[str, Any]) -> dict[str, Any]:
        """The text of a prompt with its arguments put in; ProtocolError for one that is not there."""
        prompt = next((each for each in self._all["prompts"] if each["name"] == params.get("name")), None)
        if prompt is None:
            raise ProtocolError(INVALID_PARAMS, f"there is no prompt {params.get('name')!r}")
        given = params.get("arguments") or {}
        names = [argument["name"] for argument in prompt["arguments"]]
        if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
            raise ProtocolError(INVALID_PARAMS, "the arguments of a prompt are texts")
        for name in given:
            if name not in names:
                taken = ", ".join(names) or "nothing"
                raise ProtocolError(INVALID_PARAMS, f"{prompt['name']} takes no {name!r}; it takes {taken}")
        text = prompt["text"]
        for name, value in given.items():
            text += prompt["tail"].replace(f"{{{name}}}", value)
        message = {"role": "user", "content": {"type": "text", "text": text}}
        return {"description": prompt["description"], "messages": [message]}

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        wanted = params.get("protocolVersion")
        return {
            "protocolVersion": wanted if wanted in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
            "capabilities": self._capabilities(),
            "serverInfo": self.server,
            "instructions": self._all["instructions"],
        }

    def _capabilities(self) -> dict[str, Any]:
        return {
            "tools": {"listChanged": False},
            "resources": {"listChanged": False, "subscribe": True},
            "prompts": {"listChanged": False},
        }

    @property
    def _prompts(self) -> list[Any]:
        told = ("name", "title", "description", "arguments")
        return [{name: prompt[name] for name in told} for prompt in self._all["prompts"]]

    def _lists(self) -> dict[str, dict[str, Any]]:
        return {
            "tools/list": {"tools": self._tools},
            "resources/list": {"resources": self._all["resources"]},
            "resources/templates/list": {"resourceTemplates": self._all["resourceTemplates"]},
            "prompts/list": {"prompts": self._prompts},
        }

    def _stamped(self, result: dict[str, Any], envelope: Envelope | None, *, cached: bool = False) -> dict[str, Any]:
        if envelope is None:
            return result
        stamped = {"resultType": "complete", **result}
        if cached:
            stamped |= {"ttlMs": _LISTS_HOLD_FOR_MS, "cacheScope": "public"}
        stamped["_meta"] = {**result.get("_meta", {}), f"{_META}serverInfo": self.server}
        return stamped
