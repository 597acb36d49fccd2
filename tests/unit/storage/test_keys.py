"""Signing keys: what they sign is verified by anybody with the JWKS, and nothing else passes."""

import base64
import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt import api_jws

from kektor import clock
from kektor.errors import Corrupt
from kektor.storage.keys import BadSignature, KeyRing

DAY = 86_400_000_000


def part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_what_is_signed_is_verified_by_its_own_purpose_and_by_anybody_with_the_jwks() -> None:
    ring = KeyRing(None)
    signed = ring.sign(b'{"a": 1}', "tokens", typ="JWT")
    assert ring.verify(signed, "tokens").payload == b'{"a": 1}'
    with pytest.raises(BadSignature):
        ring.verify(signed, "receipts")
    published = jwt.PyJWKSet.from_dict(ring.jwks())
    header = api_jws.get_unverified_header(signed)
    assert header == {"alg": "ES256", "kid": published.keys[0].key_id, "typ": "JWT"}
    assert api_jws.decode(signed, published[header["kid"]].key, ["ES256"]) == b'{"a": 1}'


def test_the_jwks_holds_no_private_part() -> None:
    ring = KeyRing(None)
    ring.sign(b"x", "tokens")
    ring.sign(b"x", "receipts")
    keys = ring.jwks()["keys"]
    assert len(keys) == 2
    assert all(set(key) == {"kty", "crv", "x", "y", "kid", "alg", "use"} for key in keys)


def test_no_other_text_passes() -> None:
    ring, other = KeyRing(None), KeyRing(None)
    signed = ring.sign(b'{"role": "read"}', "tokens")
    head, body, signature = signed.split(".")
    kid = ring.keys()[0].kid
    public = jwt.PyJWKSet.from_dict(ring.jwks()).keys[0].key
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    # The public key as the secret of a symmetric signature: pyjwt refuses to make it, so it is made by hand.
    asked = f"{part({'alg': 'HS256', 'kid': kid})}.{part({'role': 'admin'})}"
    mac = base64.urlsafe_b64encode(hmac.digest(pem, asked.encode(), hashlib.sha256)).rstrip(b"=").decode()
    for forged in (
        "", ".", "..", "...", "a.b.c", head, f"{head}.{body}", f"{head}.{body}.", f".{body}.{signature}",
        f"{part({'alg': 'none'})}.{part({'role': 'admin'})}.",
        f"{part({'alg': 'none', 'kid': kid})}.{part({'role': 'admin'})}.{signature}",
        f"{asked}.{mac}",
        f"{part({'alg': 'ES256', 'kid': kid})}.{part({'role': 'admin'})}.{signature}",
        f"{part({'alg': 'ES256', 'kid': kid, 'crit': ['b64'], 'b64': False})}.{body}.{signature}",
        f"{part({'alg': 'ES256', 'kid': kid, 'jwk': other.jwks()})}.{body}.{signature}",
        f"{part({'alg': 'ES256', 'kid': [kid]})}.{body}.{signature}",
        f"{part({'alg': ['ES256'], 'kid': kid})}.{body}.{signature}",
        f"{part([])}.{body}.{signature}",
        f"{head}.{body}.{signature[:-4]}AAAA",
        f"{head}.{body}.{'A' * 86}",
        f"{head}.{body}.{signature}.{signature}",
        other.sign(b'{"role": "admin"}', "tokens"),
        signed + "A" * 20_000,
        "é.é.é",
        "\ud800",
    ):  # fmt: skip
        with pytest.raises(BadSignature):
            ring.verify(forged, "tokens")
    assert ring.verify(signed, "tokens").payload == b'{"role": "read"}'


def test_keys_outlive_their_process_and_the_file_is_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "signing.json"
    signed = KeyRing(path).sign(b"kept", "receipts")
    assert path.stat().st_mode & 0o777 == 0o600
    assert KeyRing(path).verify(signed, "receipts").payload == b"kept"


def test_a_damaged_file_is_named_and_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "signing.json"
    KeyRing(path).sign(b"kept", "receipts")
    good = path.read_bytes()
    for damaged in (b"", good[:-2], good[:40] + b"x" + good[41:], b"[]\n00000000\n"):
        path.write_bytes(damaged)
        with pytest.raises(Corrupt, match=r"signing\.json"):
            KeyRing(path)
        assert path.read_bytes() == damaged


def test_after_a_rotation_the_old_key_verifies_until_it_retires(tmp_path: Path) -> None:
    path = tmp_path / "signing.json"
    now = 1_800_000_000_000_000
    seam = clock.Clock(now=lambda: now)
    with clock.fixed(seam):
        ring = KeyRing(path)
        old = ring.sign(b"old", "tokens")
        receipt = ring.sign(b"receipt", "receipts")
        new_key = ring.rotate("tokens", retires_at=now + DAY)
        new = ring.sign(b"new", "tokens")
        assert ring.verify(new, "tokens").kid == new_key.kid != ring.verify(old, "tokens").kid
        assert len(ring.jwks()["keys"]) == 3
        now += DAY - 1
        ring.rotate("tokens", retires_at=now + 10 * DAY)  # does not lengthen what was to end tomorrow
        assert ring.verify(old, "tokens").payload == b"old"
        now += 1
        for again in (ring, KeyRing(path)):
            with pytest.raises(BadSignature):
                again.verify(old, "tokens")
            assert again.verify(new, "tokens").payload == b"new"
            assert again.verify(receipt, "receipts").payload == b"receipt"
        assert len(ring.jwks()["keys"]) == 3  # two of tokens, one of receipts
        ring.rotate("receipts", retires_at=None)
        assert ring.verify(receipt, "receipts").payload == b"receipt"
