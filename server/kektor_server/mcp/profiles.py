"""Which tools a client is offered: a few every day, more on request."""

from kektor_server.mcp.admin import ADMIN
from kektor_server.mcp.agent import AGENT
from kektor_server.mcp.core import CORE
from kektor_server.mcp.reference import REFERENCE
from kektor_server.mcp.registry import Registry

__all__ = ["REGISTRY"]

REGISTRY = Registry(
    {
        "core": CORE,
        "agent": (*CORE, *AGENT),
        "admin": (*CORE, *AGENT, *ADMIN),
        "reference": REFERENCE,
        "all": (*CORE, *AGENT, *ADMIN, *REFERENCE),
    }
)
