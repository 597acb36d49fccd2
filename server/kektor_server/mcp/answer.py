"""One call as the relay sends it, a tool's or a resource's, to the result an MCP client gets."""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import msgspec
from msgspec import Struct

from kektor.contract import decode_json
from kektor.engine.gateway import Grant, Principal
from kektor.engine.records import Actor, ActorKind
from kektor.engine.view import ScopeRule
from kektor.errors import Conflict, Internal, KektorError, NotFound
from kektor.memory.inputs import read_rule
from kektor.memory.reading import DEFAULT_INDEX
from kektor.memory.requests import ScopeIn
from kektor.operations import Operations
from kektor_server.mcp.calls import PROTOCOL
from kektor_server.mcp.profiles import REGISTRY
from kektor_server.mcp.registry import Cancelled, Progress, ToolCall, nobody_watches
from kektor_server.mcp.resources import read_resource

__all__ = ["CallIn", "Stopped", "answer_call", "fail", "principal_of", "read_call", "run_tool"]

_LOG = logging.getLogger("kektor.mcp")
_RIGHTS = frozenset({"read", "write"})
_ADMIN_PROFILES = ("admin", "all")
"""Who launches an agent with these gives it the right `admin`, within the launch's own scope."""
_TEXTS_OF_A_NAME = 200


class GrantIn(Struct, forbid_unknown_fields=True):
    """The relay's launch flags: None is any."""

    index: str | None = None
    user: str | None = None
    agent: str | None = None
    project: str | None = None


class ClientIn(Struct, forbid_unknown_fields=True):
    """Who the client says it is."""

    name: str = ""
    version: str = ""


class CallIn(Struct, forbid_unknown_fields=True):
    """The body of the internal route. Everything but `arguments` comes from the relay, nothing of it from a model."""

    protocol: int
    name: str
    arguments: dict[str, Any]
    client: ClientIn
    key: str
    grant: GrantIn
    profile: str = "core"
    method: Literal["tools/call", "resources/read"] = "tools/call"
    progress: bool = False
    """Whether the relay wants to be told how far it is."""


_decoder = msgspec.json.Decoder(CallIn)


class Stopped(Exception):
    """Nobody waits for the answer any more."""


def read_call(body: bytes) -> CallIn:
    """Raises Invalid for a body that no relay sends, Conflict for one of another version."""
    call = decode_json(_decoder, body)
    if call.protocol != PROTOCOL:
        raise Conflict(
            f"this daemon speaks protocol {PROTOCOL} and the relay {call.protocol}: they are of different versions "
            "of kektor. Restart the agents that started them",
        )
    return call


def answer_call(
    operations: Operations,
    call: CallIn,
    *,
    progress: Progress = nobody_watches,
    cancelled: Callable[[], bool] = bool,
) -> dict[str, Any]:
    """Run a call; what the caller did wrong is a result with `isError`, so that the model can read it and do better.

    What is wrong with a resource is under `error`, for the relay to make an error of the protocol of it. Raises
    Stopped when it was left off.
    """
    principal = principal_of(call.grant, call.client, call.profile)
    if call.method == "resources/read":
        return _read(operations, principal, call.arguments)
    tool_call = ToolCall(
        operations, principal, call.grant.index or DEFAULT_INDEX, call.key, call.arguments, progress, cancelled
    )
    return run_tool(call.name, call.profile, tool_call)


def run_tool(name: str, profile: str, call: ToolCall) -> dict[str, Any]:
    """A tool's result, as the protocol has it."""
    try:
        if name not in REGISTRY.profiles.get(profile, ()):
            raise NotFound(f"there is no tool {name!r} in the profile {profile!r}", field="name")
        tool = REGISTRY.tools[name]
        result = tool.run(replace(call, arguments=tool.accepted(call.arguments)))
        return {"content": [{"type": "text", "text": result.text}], "structuredContent": result.structured}
    except KektorError as error:
        return fail(error)
    except Cancelled:
        raise Stopped from None
    except Exception:  # noqa: BLE001 - a model reads the answer, the log has the rest
        _LOG.exception("the tool %s failed", name)
        return fail(Internal(f"{name} failed unexpectedly; the daemon's log says more"))


def principal_of(grant: GrantIn, client: ClientIn, profile: str) -> Principal:
    """Whoever calls through MCP is an agent, confined to what it was launched with."""
    rule: ScopeRule = read_rule(ScopeIn(user=grant.user, agent=grant.agent, project=grant.project))
    actor = Actor(ActorKind.AGENT, client.name.strip()[:_TEXTS_OF_A_NAME], "mcp")
    rights = _RIGHTS | {"admin"} if profile in _ADMIN_PROFILES else _RIGHTS
    return Principal(actor, rights, (Grant(grant.index, rule),))


def _read(operations: Operations, principal: Principal, arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        return read_resource(operations, principal, str(arguments.get("uri")))
    except KektorError as error:
        return error.as_dict()


def fail(error: KektorError) -> dict[str, Any]:
    """A result that says what was wrong."""
    field = f" (field {error.field})" if error.field else ""
    return {
        "content": [{"type": "text", "text": f"{error.code}{field}: {error.message}"}],
        "isError": True,
        "_meta": {"kektor/error": error.as_dict()["error"]},
    }
