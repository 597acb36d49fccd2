"""Making, checking and taking back tokens."""

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from typing import Final, NoReturn

import msgspec
from msgspec import Struct

from kektor import clock, times
from kektor.api import ALL_RIGHTS, Database
from kektor.engine.gateway import Gateway, Grant, Principal
from kektor.engine.records import Actor, ActorKind
from kektor.errors import Forbidden, Invalid, NotFound, Unauthenticated
from kektor.memory.inputs import read_rule
from kektor.memory.limits import check_name
from kektor.memory.requests import ScopeIn
from kektor.storage.keys import BadSignature, KeyRing
from kektor_server.auth.book import TokenBook, TokenRecord
from kektor_server.auth.durations import seconds_of
from kektor_server.auth.requests import (
    CreateTokenRequest,
    GrantIn,
    NewToken,
    RotateRequest,
    SigningKey,
    Token,
    TokenPage,
)

__all__ = ["TokenAuthority"]

_ISSUER: Final = "kektor"
_LEEWAY: Final = 30
_SECOND: Final = 1_000_000
_LONGEST_TOKEN: Final = 8 << 10
_LONGEST_DESCRIPTION: Final = 256
_MOST_GRANTS: Final = 100
_MOST_KNOWN: Final = 10_000
_NOT_OURS: Final = "this token is none of this server's, or its key has retired"
_BOOTSTRAP_EXPIRY: Final = "365d"

_RIGHTS: Final[Mapping[str, frozenset[str]]] = {
    "read": frozenset({"read"}),
    "review": frozenset({"read", "review"}),
    "write": frozenset({"read", "write"}),
    "admin": ALL_RIGHTS,
}


class _Claims(Struct, forbid_unknown_fields=True):
    """What a token says of itself. What it may do is looked up, so that this only needs to be believed in part."""

    iss: str
    aud: str
    sub: str
    jti: str
    iat: int
    exp: int
    roles: list[str]
    kind: str
    grants: list[GrantIn]


class TokenAuthority:
    """The tokens of one database. Thread-safe; `authenticate` waits for nothing."""

    def __init__(self, keys: KeyRing, book: TokenBook, gateway: Gateway) -> None:
        self._keys = keys
        self._book = book
        self._gateway = gateway
        self._known: dict[bytes, tuple[str, Principal]] = {}

    @classmethod
    def of(cls, database: Database) -> "TokenAuthority":
        """Raises Corrupt when its keys or its list of tokens are damaged."""
        folder = database.folder
        book = TokenBook(None if folder is None else folder / "keys" / "tokens.json")
        return cls(database.signing_keys, book, database.gateway)

    def bootstrap(self) -> NewToken | None:
        """A token with all rights for a database that never had any; it can be shown once, now."""
        if self._book.records():
            return None
        request = CreateTokenRequest(roles=["admin"], expires_in=_BOOTSTRAP_EXPIRY, description="the first one")
        return self.create(request, Principal(Actor(channel="serve"), ALL_RIGHTS, (Grant(),)))

    def create(self, request: CreateTokenRequest, maker: Principal) -> NewToken:
        """Give out a token that can do no more than its maker."""
        _must_be_admin(maker)
        if not request.roles:
            raise Invalid("a token needs at least one role: read, write, review or admin", field="roles")
        if len(request.description.encode("utf-8", "replace")) > _LONGEST_DESCRIPTION:
            raise Invalid(f"description is longer than {_LONGEST_DESCRIPTION} bytes", field="description")
        grants = _given_by(maker) if request.grants is None else _checked(request.grants)
        if not all(_covered(_grant(each), maker.grants) for each in grants):
            raise Forbidden("a token cannot reach further than the caller that makes it", field="grants")
        now = clock.now() // _SECOND
        lifetime = seconds_of(request.expires_in, field="expires_in")
        claims = _Claims(
            iss=_ISSUER,
            aud=_ISSUER,
            sub=(jti := clock.new_id()),
            jti=jti,
            iat=now,
            exp=now + lifetime,
            roles=sorted(set(request.roles)),
            kind=request.kind,
            grants=grants,
        )
        token = self._keys.sign(msgspec.json.encode(claims), "tokens", typ="JWT")
        record = TokenRecord(
            jti=jti,
            digest=hashlib.sha256(token.encode()).hexdigest(),
            kid=self._keys.verify(token, "tokens").kid,
            roles=sorted(set(request.roles)),
            kind=request.kind,
            grants=grants,
            description=request.description,
            created_at=now * _SECOND,
            expires_at=(now + lifetime) * _SECOND,
        )
        self._book.put(record)
        self._gateway.note("token_created", maker, ids=[jti])
        return NewToken(**msgspec.structs.asdict(_shown(record)), token=token)

    def tokens(self, caller: Principal, *, limit: int, cursor: str | None) -> TokenPage:
        """Those that reach no further than the caller, oldest first, revoked and expired ones too."""
        _must_be_admin(caller)
        if not 1 <= limit <= 1000:
            raise Invalid(f"limit must be 1 to 1,000, not {limit}", field="limit")
        seen = [record for record in self._book.records() if self._reaches(caller, record)]
        if cursor is not None:
            places = [place for place, record in enumerate(seen) if record.jti == cursor]
            if not places:
                raise Invalid(f"cursor {cursor!r} did not come from this list", field="cursor")
            seen = seen[places[0] + 1 :]
        more = seen[limit - 1].jti if len(seen) > limit else None
        return TokenPage([_shown(record) for record in seen[:limit]], more)

    def revoke(self, jti: str, caller: Principal) -> Token:
        """Refuse a token from now on, also after a restart; one that is revoked already stays so."""
        _must_be_admin(caller)
        record = self._book.find(jti)
        if record is None or not self._reaches(caller, record):
            raise NotFound(f"there is no token {jti!r}", field="jti")
        if record.revoked_at is None:
            record = msgspec.structs.replace(record, revoked_at=clock.now())
            self._book.put(record)
            self._gateway.note("token_revoked", caller, ids=[jti])
        return _shown(record)

    def rotate(self, request: RotateRequest, caller: Principal) -> SigningKey:
        """Sign with a new key from now on. It concerns every token, so the caller's grant must have no bounds."""
        _must_be_admin(caller)
        if not _covered(Grant(), caller.grants):
            raise Forbidden("the keys are every caller's; this caller has grants with bounds")
        now = clock.now()
        if request.overlap is None:
            live = [record for record in self._book.records() if record.revoked_at is None]
            retires_at = max([now, *(record.expires_at + _LEEWAY * _SECOND for record in live)])
        else:
            retires_at = now + seconds_of(request.overlap, field="overlap", least=0) * _SECOND
        others = bool(self._keys.keys())
        key = self._keys.rotate("tokens", retires_at=retires_at)
        self._gateway.note("keys_rotated", caller, ids=[key.kid])
        return SigningKey(key.kid, times.format(key.created_at), times.format(retires_at) if others else None)

    def authenticate(self, authorization: bytes | None) -> Principal:
        """Who calls, by the header `Authorization`; Unauthenticated when that is nobody."""
        token = _bearer(authorization)
        digest = hashlib.sha256(token.encode()).digest()
        known = self._known.get(digest)
        if known is None:
            known = self._verified(token, digest)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[digest] = known
        jti, principal = known
        record = self._book.find(jti)
        if record is None or record.revoked_at is not None:
            _refuse("this token was revoked", "revoked")
        if not self._keys.holds(record.kid, "tokens"):
            _refuse(_NOT_OURS, "signature")
        if clock.now() > record.expires_at + _LEEWAY * _SECOND:
            _refuse("this token has expired", "expired")
        return principal

    def _verified(self, token: str, digest: bytes) -> tuple[str, Principal]:
        try:
            verified = self._keys.verify(token, "tokens")
            claims = msgspec.json.decode(verified.payload, type=_Claims)
        except (BadSignature, ValueError):
            _refuse(_NOT_OURS, "signature")
        record = self._book.find(claims.jti)
        if record is None:
            _refuse(_NOT_OURS, "unknown")
        if (claims.iss, claims.aud) != (_ISSUER, _ISSUER) or not hmac.compare_digest(record.digest, digest.hex()):
            _refuse(_NOT_OURS, "claims")
        if claims.iat > clock.now() // _SECOND + _LEEWAY:
            _refuse("this token is from the future: the server's clock was set back", "not_yet")
        return record.jti, _principal(record)

    def _reaches(self, caller: Principal, record: TokenRecord) -> bool:
        return all(_covered(_grant(each), caller.grants) for each in record.grants)


def _principal(record: TokenRecord) -> Principal:
    rights = frozenset[str]().union(*(_RIGHTS[role] for role in record.roles))
    actor = Actor(ActorKind(record.kind), record.jti, "rest")
    return Principal(actor, rights, tuple(_grant(each) for each in record.grants))


def _grant(given: GrantIn) -> Grant:
    rule = read_rule(ScopeIn(user=given.user, agent=given.agent, project=given.project))
    return Grant(given.index, rule, given.shared)


def _checked(grants: list[GrantIn]) -> list[GrantIn]:
    """Grants as they are kept: names that exist as names, scopes in their normal form."""
    if not 1 <= len(grants) <= _MOST_GRANTS:
        raise Invalid(f"grants must be 1 to {_MOST_GRANTS}; leave it out to reach all that you reach", field="grants")
    for each in grants:
        if each.index is not None:
            check_name(each.index, field="grants.index")
    return [_kept(_grant(each)) for each in grants]


def _given_by(maker: Principal) -> list[GrantIn]:
    return [_kept(grant) for grant in maker.grants]


def _kept(grant: Grant) -> GrantIn:
    rule = grant.scope
    return GrantIn(index=grant.index, user=rule.user, agent=rule.agent, project=rule.project, shared=grant.shared)


def _covered(wanted: Grant, held: Iterable[Grant]) -> bool:
    """Whether some grant reaches at least as far: in indexes, in every member of the scope, in what is shared."""
    return any(
        grant.index in (None, wanted.index)
        and all(
            getattr(grant.scope, member) in (None, getattr(wanted.scope, member))
            for member in ("user", "agent", "project")
        )
        and (grant.shared or not wanted.shared or grant.scope == Grant().scope)
        for grant in held
    )


def _must_be_admin(caller: Principal) -> None:
    if "admin" not in caller.rights:
        raise Forbidden("tokens are for callers with the right 'admin'")


def _bearer(authorization: bytes | None) -> str:
    if authorization is None:
        _refuse("this server needs a token: Authorization: Bearer …  (kektor token create makes one)", "missing")
    if len(authorization) > _LONGEST_TOKEN:
        _refuse(_NOT_OURS, "signature")
    scheme, _, token = authorization.partition(b" ")
    if scheme.lower() != b"bearer" or not token.strip():
        _refuse("this server takes tokens as Authorization: Bearer …", "scheme")
    return token.strip().decode("latin-1")


def _refuse(message: str, reason: str) -> NoReturn:
    raise Unauthenticated(message, details={"reason": reason})


def _shown(record: TokenRecord) -> Token:
    return Token(
        jti=record.jti,
        roles=record.roles,
        kind=record.kind,
        grants=record.grants,
        description=record.description,
        created_at=times.format(record.created_at),
        expires_at=times.format(record.expires_at),
        revoked_at=None if record.revoked_at is None else times.format(record.revoked_at),
    )
