"""Signing keys of one database: ES256 pairs, published as a JWKS (RFC 7517), that sign compact JWS (RFC 7515).

The private halves stay in one file that only its owner reads; nothing here, and no door, hands them out. A key signs
for one purpose, so that a receipt can never pass for a token. Rotating makes a new key; the old one goes on verifying
until it retires, or for ever.
"""

import base64
import threading
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from jwt import api_jws
from jwt.exceptions import InvalidTokenError
from msgspec import Struct

from kektor import clock
from kektor.errors import Corrupt
from kektor.storage.checked import Damaged, read_checked, write_checked

__all__ = ["BadSignature", "KeyRing", "PublicKey", "Purpose", "Verified"]

Purpose = Literal["tokens", "receipts"]

_ALGORITHM: Final = "ES256"
_HEADER: Final = frozenset({"alg", "kid", "typ"})
_LONGEST: Final = 16 << 10


class BadSignature(Exception):
    """Text that no key of this purpose has signed; the message may be logged and says nothing of the text."""


class Verified(NamedTuple):
    """What was signed, and by which key."""

    kid: str
    payload: bytes


class PublicKey(NamedTuple):
    """A key as it may be shown; times are in microseconds, and None is never."""

    kid: str
    purpose: Purpose
    created_at: int
    retires_at: int | None


class KeyRing:
    """The keys of a database; `path` None keeps them in memory. Thread-safe, and verifying waits for no lock."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._changing = threading.Lock()
        self._keys: tuple[_Key, ...] = () if path is None else _read(path)

    def sign(self, payload: bytes, purpose: Purpose, *, typ: str = "JOSE") -> str:
        """Sign with the newest key of a purpose, making the first one when there is none yet."""
        key = self._newest(purpose)
        if key is None:
            with self._changing:
                key = self._newest(purpose) or self._keep(self._keys, _Key.fresh(purpose))
        return api_jws.encode(payload, key.private(), _ALGORITHM, {"kid": key.kid, "typ": typ})

    def verify(self, text: str, purpose: Purpose) -> Verified:
        """What a compact JWS says, when a key of this purpose that has not retired signed it; else BadSignature."""
        if len(text) > _LONGEST:
            raise BadSignature("it is too long")
        try:
            header = api_jws.get_unverified_header(text)
        except (InvalidTokenError, ValueError) as error:
            raise BadSignature("it is no compact JWS") from error
        # The algorithm is ours to say, not the text's; and what a header might add is nothing that is honoured here.
        if header.get("alg") != _ALGORITHM or not set(header) <= _HEADER:
            raise BadSignature("its header asks for another algorithm, or for more than that")
        kid = header.get("kid")
        key = next((key for key in self._in_force() if key.kid == kid and key.purpose == purpose), None)
        if key is None:
            raise BadSignature("it names no key that verifies")
        try:
            payload = api_jws.decode(text, key.private().public_key(), [_ALGORITHM])
        except (InvalidTokenError, ValueError) as error:
            raise BadSignature("its signature does not fit") from error
        return Verified(key.kid, payload)

    def rotate(self, purpose: Purpose, *, retires_at: int | None) -> PublicKey:
        """Make a new key; those before it verify until `retires_at` (None: for ever), or until they retire anyway."""
        with self._changing:
            kept = tuple(key.until(retires_at) if key.purpose == purpose else key for key in self._keys)
            return self._keep(kept, _Key.fresh(purpose)).public()

    def holds(self, kid: str, purpose: Purpose) -> bool:
        """Whether a key verifies still."""
        return any(key.kid == kid and key.purpose == purpose for key in self._in_force())

    def keys(self) -> list[PublicKey]:
        """Every key that verifies, oldest first."""
        return [key.public() for key in self._in_force()]

    def jwks(self) -> dict[str, Any]:
        """The public halves of every key that verifies."""
        return {"keys": [key.jwk() for key in self._in_force()]}

    def _in_force(self) -> list["_Key"]:
        return [key for key in self._keys if not key.retired]

    def _newest(self, purpose: Purpose) -> "_Key | None":
        return next((key for key in reversed(self._in_force()) if key.purpose == purpose), None)

    def _keep(self, others: "tuple[_Key, ...]", made: "_Key") -> "_Key":
        """Durable first, in use after: nothing is ever signed with a key that a crash takes away."""
        keys = (*(key for key in others if not key.retired), made)
        if self._path is not None:
            write_checked(self._path, msgspec.json.encode(keys))
        self._keys = keys
        return made


class _Key(Struct, frozen=True):
    """As it stands in the file."""

    kid: str
    purpose: Purpose
    created_at: int
    retires_at: int | None
    pem: str

    @classmethod
    def fresh(cls, purpose: Purpose) -> "_Key":
        pair = generate_private_key(SECP256R1())
        pem = pair.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return cls(clock.new_id(), purpose, clock.now(), None, pem.decode())

    @property
    def retired(self) -> bool:
        return self.retires_at is not None and self.retires_at <= clock.now()

    def until(self, moment: int | None) -> "_Key":
        """The same key, retiring then at the latest."""
        ends = [end for end in (self.retires_at, moment) if end is not None]
        return msgspec.structs.replace(self, retires_at=min(ends, default=None))

    def private(self) -> EllipticCurvePrivateKey:
        key = serialization.load_pem_private_key(self.pem.encode(), None)
        assert isinstance(key, EllipticCurvePrivateKey)
        return key

    def public(self) -> PublicKey:
        return PublicKey(self.kid, self.purpose, self.created_at, self.retires_at)

    def jwk(self) -> dict[str, str]:
        numbers = self.private().public_key().public_numbers()
        return {
            "kty": "EC",
            "crv": "P-256",
            "x": _base64url(numbers.x),
            "y": _base64url(numbers.y),
            "kid": self.kid,
            "alg": _ALGORITHM,
            "use": "sig",
        }


def _read(path: Path) -> tuple[_Key, ...]:
    """The keys of a file, none when there is no file. One that is damaged is not replaced: what it signed would be
    refused, and nobody would know why."""
    try:
        content = read_checked(path)
        return () if content is None else msgspec.json.decode(content, type=tuple[_Key, ...])
    except (Damaged, ValueError) as error:
        raise Corrupt(
            f"{path} is damaged: what its keys signed cannot be verified. Restore it from a copy, or remove it and "
            "make new tokens.",
            details={"path": str(path)},
        ) from error


def _base64url(number: int) -> str:
    return base64.urlsafe_b64encode(number.to_bytes(32, "big")).rstrip(b"=").decode()
