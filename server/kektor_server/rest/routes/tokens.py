"""Tokens, and the keys that sign them."""

from msgspec import Struct

from kektor_server.auth.requests import (
    CreateTokenRequest,
    NewToken,
    RotateRequest,
    SigningKey,
    Token,
    TokenPage,
)
from kektor_server.rest.route import Call, Lane, Routes

__all__ = ["routes"]

routes = Routes("tokens")


class TokensQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    limit: int = 100
    cursor: str | None = None


@routes.post("/v1/tokens", creates=True)
def create_token(call: Call, body: CreateTokenRequest) -> NewToken:
    """Give out a token, shown this once: of it only a hash is kept. It can do no more than the caller."""
    return call.service.authority.create(body, call.principal)


@routes.get("/v1/tokens", lane=Lane.READ)
def list_tokens(call: Call, query: TokensQuery) -> TokenPage:
    """The tokens that reach no further than the caller, oldest first; revoked and expired ones too."""
    return call.service.authority.tokens(call.principal, limit=query.limit, cursor=query.cursor)


@routes.delete("/v1/tokens/{jti}", errors=("not_found",))
def revoke_token(call: Call, jti: str) -> Token:
    """Refuse a token from now on, also after a restart."""
    return call.service.authority.revoke(jti, call.principal)


@routes.post("/v1/admin/keys/rotate")
def rotate_keys(call: Call, body: RotateRequest) -> SigningKey:
    """Sign with a new key from now on; the old ones are taken until they retire."""
    return call.service.authority.rotate(body, call.principal)
