"""Who calls: the seam between a request and the rights it has."""

from collections.abc import Callable, Mapping
from typing import Final

from kektor.api import ALL_RIGHTS
from kektor.engine.gateway import Grant, Principal
from kektor.engine.records import Actor, ActorKind

__all__ = ["CLI_HEADER", "NOBODY", "Authenticate", "Headers", "everyone"]

Headers = Mapping[bytes, bytes]
"""Header names in lower case; of a header given twice, the last."""

Authenticate = Callable[[Headers], Principal]
"""Tells the caller from the headers of a request, or raises Unauthenticated or Forbidden. Must not block."""


NOBODY: Final = Principal(Actor(ActorKind.SERVICE, "", "rest"), frozenset(), ())
"""Who calls what is open to anybody."""

CLI_HEADER = b"kektor-cli"
"""Says `human` or `service` of a caller on this machine's own command line. Only through the Unix socket, which
nobody but this user reaches: `Guard` takes it off every other request."""


def everyone() -> Authenticate:
    """Without authentication every caller is this machine's own service, with all rights; or its user, as the command
    line tells."""
    service = Principal(Actor(ActorKind.SERVICE, "", "rest"), ALL_RIGHTS, (Grant(),))
    of_cli = {
        kind.value.encode(): Principal(Actor(kind, "", "cli"), ALL_RIGHTS, (Grant(),))
        for kind in (ActorKind.HUMAN, ActorKind.SERVICE)
    }
    return lambda headers: of_cli.get(headers.get(CLI_HEADER, b""), service)
