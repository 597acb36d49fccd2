"""Who calls: the seam between a request and the rights it has."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from kektor.api import ALL_RIGHTS
from kektor.engine.gateway import Grant, Principal
from kektor.engine.records import Actor, ActorKind

if TYPE_CHECKING:
    from kektor_server.auth.authority import TokenAuthority

__all__ = ["CLI_HEADER", "NOBODY", "Authenticate", "Headers", "everyone", "holders_of_tokens"]

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
    return lambda headers: _OF_CLI.get(headers.get(CLI_HEADER, b""), _SERVICE)


def holders_of_tokens(authority: "TokenAuthority") -> Authenticate:
    """With authentication it is whoever the token names; through the Unix socket this machine's user, who could read
    the directory as well, needs none."""

    def tell(headers: Headers) -> Principal:
        authorization = headers.get(b"authorization")
        local = None if authorization is not None else _OF_CLI.get(headers.get(CLI_HEADER, b""))
        return authority.authenticate(authorization) if local is None else local

    return tell


_SERVICE: Final = Principal(Actor(ActorKind.SERVICE, "", "rest"), ALL_RIGHTS, (Grant(),))
_OF_CLI: Final[Mapping[bytes, Principal]] = {
    kind.value.encode(): Principal(Actor(kind, "", "cli"), ALL_RIGHTS, (Grant(),))
    for kind in (ActorKind.HUMAN, ActorKind.SERVICE)
}
