"""Who calls: tokens, the keys that sign them, and the roles and grants that they carry."""

from kektor_server.auth.authority import TokenAuthority
from kektor_server.auth.requests import CreateTokenRequest, GrantIn, RotateRequest, Token, TokenPage

__all__ = ["CreateTokenRequest", "GrantIn", "RotateRequest", "Token", "TokenAuthority", "TokenPage"]
