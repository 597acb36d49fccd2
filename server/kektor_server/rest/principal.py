"""Who calls: the seam between a request and the rights it has."""

from collections.abc import Callable, Mapping

from kektor.api import ALL_RIGHTS
from kektor.engine.gateway import Grant, Principal
from kektor.engine.records import Actor, ActorKind

__all__ = ["Authenticate", "Headers", "everyone"]

Headers = Mapping[bytes, bytes]
"""Header names in lower case; of a header given twice, the last."""

Authenticate = Callable[[Headers], Principal]
"""Tells the caller from the headers of a request, or raises Unauthenticated or Forbidden. Must not block."""


def everyone() -> Authenticate:
    """Without authentication every caller is this machine's own service, with all rights."""
    principal = Principal(Actor(ActorKind.SERVICE, "", "rest"), ALL_RIGHTS, (Grant(),))
    return lambda headers: principal
