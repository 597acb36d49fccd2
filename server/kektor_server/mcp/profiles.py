"""Which tools a client is offered: a few every day, more on request."""

from kektor_server.mcp.admin import ADMIN
from kektor_server.mcp.agent import AGENT
from kektor_server.mcp.core import CORE
from kektor_server.mcp.reference import REFERENCE
from kektor_server.mcp.registry import Registry
from kektor_server.mcp.sessions import LIST_SESSIONS, SESSIONS, TRANSFER

__all__ = ["REGISTRY"]

_CORE = (*CORE, *SESSIONS)
_AGENT = (*_CORE, *AGENT, LIST_SESSIONS)
_ADMIN = (*_AGENT, *ADMIN, TRANSFER)

REGISTRY = Registry(
    {
        "core": _CORE,
        "agent": _AGENT,
        "admin": _ADMIN,
        "reference": REFERENCE,
        "all": (*_ADMIN, *REFERENCE),
    }
)
