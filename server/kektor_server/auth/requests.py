"""What is asked of the token routes and what they answer."""

from typing import Literal

from msgspec import Struct

__all__ = ["CreateTokenRequest", "GrantIn", "NewToken", "Role", "RotateRequest", "SigningKey", "Token", "TokenPage"]

Role = Literal["read", "write", "review", "admin"]
ActorOfToken = Literal["human", "agent", "service"]


class GrantIn(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """An index, and a scope within it; what is left out is any. `shared` lets it write what all share."""

    index: str | None = None
    user: str | None = None
    agent: str | None = None
    project: str | None = None
    shared: bool = False


class CreateTokenRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """Without `grants` the token reaches what its maker reaches; `expires_in` is in seconds, or `90d`, `12h`, `15m`."""

    roles: list[Role]
    kind: ActorOfToken = "service"
    grants: list[GrantIn] | None = None
    expires_in: int | str = "90d"
    description: str = ""


class Token(Struct, frozen=True, forbid_unknown_fields=True):
    """What is kept of a token; never itself."""

    jti: str
    roles: list[Role]
    kind: ActorOfToken
    grants: list[GrantIn]
    description: str
    created_at: str
    expires_at: str
    revoked_at: str | None


class NewToken(Token, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The one answer that holds the token itself."""

    token: str


class TokenPage(Struct, frozen=True, forbid_unknown_fields=True):
    items: list[Token]
    next_cursor: str | None


class RotateRequest(Struct, forbid_unknown_fields=True, kw_only=True):
    """How long tokens signed before are still taken: by default until the last of them has expired; 0 ends them."""

    overlap: int | str | None = None


class SigningKey(Struct, frozen=True, forbid_unknown_fields=True):
    """The key that signs from now on, and when those before it retire."""

    kid: str
    created_at: str
    others_retire_at: str | None
