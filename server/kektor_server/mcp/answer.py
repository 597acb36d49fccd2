"""One tool call as the relay sends it, to the result an MCP client gets."""

import logging
from typing import Any

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
from kektor_server.mcp.core import REGISTRY
from kektor_server.mcp.registry import ToolCall, ToolResult

__all__ = ["answer_call"]

_LOG = logging.getLogger("kektor.mcp")
_RIGHTS = frozenset({"read", "write"})
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


_decoder = msgspec.json.Decoder(CallIn)
_encode = msgspec.json.Encoder().encode


def answer_call(operations: Operations, body: bytes) -> bytes:
    """Run a call; what the caller did wrong is a result with `isError`, so that the model can read it and do better.

    Raises Invalid for a body that no relay sends, Conflict for one of another version.
    """
    call = decode_json(_decoder, body)
    if call.protocol != PROTOCOL:
        raise Conflict(
            f"this daemon speaks protocol {PROTOCOL} and the relay {call.protocol}: they are of different versions "
            "of kektor. Restart the agents that started them",
        )
    try:
        result = _run(operations, call)
        return _encode({"content": [{"type": "text", "text": result.text}], "structuredContent": result.structured})
    except KektorError as error:
        return _encode(_failure(error))
    except Exception:  # noqa: BLE001 - a model reads the answer, the log has the rest
        _LOG.exception("the tool %s failed", call.name)
        return _encode(_failure(Internal(f"{call.name} failed unexpectedly; the daemon's log says more")))


def _run(operations: Operations, call: CallIn) -> ToolResult:
    tool = REGISTRY.tools.get(call.name)
    if tool is None:
        raise NotFound(f"there is no tool {call.name!r}", field="name")
    return tool.run(
        ToolCall(
            operations,
            _principal(call),
            index=call.grant.index or DEFAULT_INDEX,
            key=call.key,
            arguments=tool.accepted(call.arguments),
        )
    )


def _principal(call: CallIn) -> Principal:
    grant = call.grant
    rule: ScopeRule = read_rule(ScopeIn(user=grant.user, agent=grant.agent, project=grant.project))
    actor = Actor(ActorKind.AGENT, call.client.name.strip()[:_TEXTS_OF_A_NAME], "mcp")
    return Principal(actor, _RIGHTS, (Grant(grant.index, rule),))


def _failure(error: KektorError) -> dict[str, Any]:
    field = f" (field {error.field})" if error.field else ""
    return {
        "content": [{"type": "text", "text": f"{error.code}{field}: {error.message}"}],
        "isError": True,
        "_meta": {"kektor/error": error.as_dict()["error"]},
    }
