"""Every way of not being allowed in is refused with the right status, put down, and changes nothing."""

import base64
import hashlib
import hmac
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

import kektor
from kektor import clock
from kektor_server.auth.authority import TokenAuthority
from kektor_server.auth.requests import CreateTokenRequest, GrantIn, RotateRequest
from tests.support.doors import Machine, wait_for
from tests.support.events import events_of

pytestmark = pytest.mark.door("rest")

DAY = 86_400_000_000
SETTINGS = {"KEKTOR_AUTH": "on", "KEKTOR_REQUEST_SECONDS": "1", "KEKTOR_BODY_BYTES": "20000"}


class Guarded(NamedTuple):
    """A machine whose server asks for tokens, and some tokens."""

    machine: Machine
    http: httpx.Client
    port: int
    root: str
    reader: str
    writer: str
    alice: str
    expired: str

    def ask(self, token: str | None, method: str = "GET", path: str = "/v1/memories", **more: Any) -> httpx.Response:
        headers = {} if token is None else {"authorization": f"Bearer {token}".strip()}
        return self.http.request(method, path, headers={**headers, **more.pop("headers", {})}, **more)

    def still_works(self) -> None:
        """The control: whoever may come in still gets what is there."""
        texts = [item["text"] for item in self.ask(self.root).json()["items"]]
        assert texts == ["The weir is owned by Dana"]

    def denials(self) -> list[tuple[str, str, str]]:
        """What was put down of denied calls: what was asked, by whom, why."""
        events = events_of(str(self.machine.data / "log"), "", 0)
        return [(e.operation, e.actor.id, e.reason) for e in events if e.operation.startswith("denied:")]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    machine = Machine(tmp_path_factory.mktemp("auth"))
    machine.env |= SETTINGS
    with kektor.open(machine.data) as database:
        database.memory().remember("The weir is owned by Dana")
        authority, operator = TokenAuthority.of(database), database.principal()

        def token(role: Any, **more: Any) -> str:
            return authority.create(CreateTokenRequest(roles=[role], **more), operator).token

        long_ago = clock.now() - 3 * DAY
        with clock.fixed(clock.Clock(now=lambda: long_ago)):
            expired = token("admin", expires_in="1d")
        tokens = [
            token("admin"), token("read"), token("write"),
            token("write", grants=[GrantIn(index="default", user="alice")]), expired,
        ]  # fmt: skip
    with machine.server("serve", "--port", "0") as server:
        port = int(server["url"].rsplit(":", 1)[1])
        with httpx.Client(base_url=server["url"], timeout=30) as http:
            yield Guarded(machine, http, port, *tokens)
    machine.halt()


def part(value: Any) -> str:
    return (
        base64.urlsafe_b64encode(value if isinstance(value, bytes) else json.dumps(value).encode())
        .rstrip(b"=")
        .decode()
    )


def forgeries(good: str, jwks: dict[str, Any]) -> dict[str, str]:
    """Tokens that nobody was given, made of one that somebody was."""
    head, body, signature = good.split(".")
    header = json.loads(base64.urlsafe_b64decode(head + "=="))
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    public = jwt.PyJWK.from_dict(next(key for key in jwks["keys"] if key["kid"] == header["kid"])).key
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    as_hs256 = f"{part({**header, 'alg': 'HS256'})}.{body}"
    mac = hmac.digest(pem, as_hs256.encode(), hashlib.sha256)
    stranger = generate_private_key(SECP256R1())
    number = int.from_bytes(base64.urlsafe_b64decode(signature + "==")[32:], "big")
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    twin = base64.urlsafe_b64decode(signature + "==")[:32] + (order - number).to_bytes(32, "big")
    return {
        "empty": "",
        "no token": "let me in",
        "no signature": f"{head}.{body}.",
        "another's signature": jwt.encode(claims, stranger, "ES256", {"kid": header["kid"]}),
        "another's signature under no name": jwt.encode(claims, stranger, "ES256"),
        "alg none": f"{part({**header, 'alg': 'none'})}.{body}.",
        "alg none with a signature": f"{part({**header, 'alg': 'none'})}.{body}.{signature}",
        "HS256 with the public key": f"{as_hs256}.{part(mac)}",
        "more roles": f"{head}.{part({**claims, 'roles': ['admin']})}.{signature}",
        "no end": f"{head}.{part({**claims, 'exp': claims['exp'] + 10**9})}.{signature}",
        "its own key": f"{part({**header, 'jwk': jwks['keys'][0]})}.{body}.{signature}",
        "a key elsewhere": f"{part({**header, 'jku': 'http://127.0.0.1/jwks.json'})}.{body}.{signature}",
        "a key by path": f"{part({**header, 'kid': '../../keys/signing.json'})}.{body}.{signature}",
        "the twin of its signature": f"{head}.{body}.{part(twin)}",
        "cut": good[:-1],
        "with more": good + "A",
        "twice": f"{good} {good}",
        "very long": good + "A" * 9000,
    }


def test_doors_auth_no_token_and_no_good_one(guarded: Guarded) -> None:
    jwks = guarded.ask(None, path="/.well-known/jwks.json").json()
    refused = {"none": None, "expired": guarded.expired, **forgeries(guarded.reader, jwks)}
    for name, token in refused.items():
        for method, path in (("GET", "/v1/memories"), ("POST", "/v1/recall"), ("POST", "/v1/admin/checkpoint")):
            answer = guarded.ask(token, method, path, content=b"{}" if method == "POST" else None)
            assert answer.status_code == 401, (name, answer.text)
            assert answer.json()["error"]["code"] == "unauthenticated"
            assert answer.headers["www-authenticate"] == "Bearer"
            assert token is None or len(token) < 9 or token not in answer.text
    for scheme in ("Basic", "bearer", "Token", ""):
        answer = guarded.ask(None, headers={"authorization": f"{scheme} {guarded.reader}".strip()})
        assert answer.status_code == (200 if scheme == "bearer" else 401), scheme
    assert guarded.ask(None, path=f"/v1/memories?token={guarded.root}").status_code == 401
    assert guarded.ask(None, path="/v1/memories", headers={"kektor-cli": "human"}).status_code == 401
    guarded.still_works()
    wait_for(lambda: len(guarded.denials()) >= 8, "the denials to be put down")
    reasons = {reason.partition(" (")[0] for _, _, reason in guarded.denials()}
    assert {f"unauthenticated: {why}" for why in ("missing", "expired", "signature", "scheme")} <= reasons


def test_doors_auth_only_what_must_be_open_is(guarded: Guarded) -> None:
    contract = guarded.ask(guarded.root, path="/openapi.json").json()
    open_to_all = set()
    for path, methods in contract["paths"].items():
        for method in methods:
            answer = guarded.ask(None, method.upper(), path.replace("{", "").replace("}", ""))
            assert answer.status_code in (200, 401), (method, path, answer.text)
            if answer.status_code == 200:
                open_to_all.add(path)
    assert open_to_all == {"/healthz", "/readyz", "/.well-known/jwks.json"}


def test_doors_auth_a_revoked_token_stays_refused_after_a_restart(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    try:
        with kektor.open(machine.data) as database:
            first = TokenAuthority.of(database).bootstrap()
            assert first is not None
        with _client(machine, "serve", "--auth", "--port", "0") as http:
            root = {"authorization": f"Bearer {first.token}"}
            made = [http.post("/v1/tokens", json={"roles": ["read"]}, headers=root).json() for _ in range(2)]
            revoked, kept = ({"authorization": f"Bearer {each['token']}"} for each in made)
            assert http.get("/v1/memories", headers=revoked).status_code == 200
            assert http.delete(f"/v1/tokens/{made[0]['jti']}", headers=root).json()["revoked_at"]
            assert http.get("/v1/memories", headers=revoked).status_code == 401
            owner = machine.owner()
            os.kill(owner, signal.SIGKILL)
        wait_for(lambda: owner not in machine.processes(), "the server to die")
        with _client(machine, "serve", "--auth", "--port", "0") as http:
            answer = http.get("/v1/memories", headers=revoked)
            assert (answer.status_code, answer.json()["error"]["details"]) == (401, {"reason": "revoked"})
            assert http.get("/v1/memories", headers=kept).status_code == 200
    finally:
        machine.halt()


@contextmanager
def _client(machine: Machine, *command: str) -> Iterator[httpx.Client]:
    with machine.server(*command) as server, httpx.Client(base_url=server["url"], timeout=30) as http:
        yield http


def test_doors_auth_a_role_does_what_it_may_and_no_more(guarded: Guarded) -> None:
    save, one = {"text": "planted"}, {"roles": ["read"]}
    forbidden: list[tuple[str, str, str, Any]] = [
        (guarded.reader, "POST", "/v1/memories", save),
        (guarded.reader, "POST", "/v1/forget", {"filter": "tags CONTAINS 'x'", "mode": "erase", "dry_run": False}),
        (guarded.reader, "POST", "/v1/indexes", {"name": "theirs", "dim": 3}),
        (guarded.reader, "POST", "/v1/tokens", one),
        (guarded.writer, "POST", "/v1/tokens", one),
        (guarded.writer, "GET", "/v1/tokens", None),
        (guarded.writer, "POST", "/v1/admin/checkpoint", None),
        (guarded.writer, "POST", "/v1/admin/keys/rotate", {}),
        (guarded.writer, "DELETE", "/v1/indexes/default", None),
        (guarded.writer, "PATCH", "/v1/indexes/default", {"policy": {"write": "frozen"}}),
        (guarded.alice, "POST", "/v1/memories", {**save, "index": "other"}),
        (guarded.alice, "POST", "/v1/memories", {**save, "scope": {"user": "bob"}}),
        (guarded.alice, "GET", "/v1/memories?index=other", None),
    ]
    for token, method, path, body in forbidden:
        answer = guarded.ask(token, method, path, json=body)
        if path == "/v1/forget":
            assert answer.status_code in (400, 403), answer.text
            continue
        assert answer.status_code == 403, (method, path, answer.text)
        assert answer.json()["error"]["code"] == "forbidden"
    guarded.still_works()
    events = wait_for(
        lambda: [e for e in guarded.denials() if e[0] == "denied:POST /v1/admin/keys/rotate" and e[2] == "forbidden"],
        "a denial",
    )
    jti = jwt.decode(guarded.writer, options={"verify_signature": False})["jti"]
    assert events == [("denied:POST /v1/admin/keys/rotate", jti, "forbidden")]
    refused = events_of(str(guarded.machine.data / "log"), "default", 0)
    assert "refused:remember" in [event.operation for event in refused]  # those of the write gate are put down once
    assert not [e for e in guarded.denials() if e[0] == "denied:POST /v1/memories" and e[2] == "forbidden"]


def test_doors_auth_an_admin_with_bounds_makes_no_token_beyond_them(guarded: Guarded) -> None:
    asked = {"roles": ["admin"], "grants": [{"index": "default", "user": "alice"}]}
    made = guarded.ask(guarded.root, "POST", "/v1/tokens", json=asked).json()
    for grants in ([{}], [{"index": "default"}], [{"user": "alice"}], [{"index": "default", "user": "bob"}],
                   [{"index": "default", "user": "alice", "shared": True}],
                   [{"index": "default", "user": "alice"}, {"index": "other", "user": "alice"}]):  # fmt: skip
        answer = guarded.ask(made["token"], "POST", "/v1/tokens", json={"roles": ["read"], "grants": grants})
        assert answer.status_code == 403, answer.text
    wider = {"roles": ["read"], "grants": [{"index": "default", "user": "alice", "project": "weir"}]}
    assert guarded.ask(made["token"], "POST", "/v1/tokens", json=wider).status_code == 201
    own = guarded.ask(made["token"], "POST", "/v1/tokens", json={"roles": ["admin"]}).json()
    assert own["grants"] == [{"index": "default", "user": "alice"}]
    assert guarded.ask(made["token"], "POST", "/v1/admin/keys/rotate", json={}).status_code == 403
    seen = guarded.ask(made["token"], path="/v1/tokens").json()["items"]
    assert {json.dumps(item["grants"]) for item in seen} >= {json.dumps(own["grants"])}
    assert all(grant["user"] == "alice" for item in seen for grant in item["grants"])
    root = jwt.decode(guarded.root, options={"verify_signature": False})["jti"]
    assert guarded.ask(made["token"], "DELETE", f"/v1/tokens/{root}").status_code == 404
    guarded.still_works()


def test_doors_auth_an_admin_with_bounds_does_nothing_to_the_whole_database(guarded: Guarded) -> None:
    asked = {"roles": ["admin"], "grants": [{"index": "default", "user": "alice"}]}
    made = guarded.ask(guarded.root, "POST", "/v1/tokens", json=asked).json()["token"]
    for method, path in (("GET", "/v1/audit"), ("POST", "/v1/audit/verify"), ("POST", "/v1/admin/checkpoint"),
                         ("POST", "/v1/admin/compact"), ("GET", "/metrics")):  # fmt: skip
        body = {"json": {}} if method == "POST" and path == "/v1/admin/compact" else {}
        assert guarded.ask(made, method, path, **body).status_code == 403, path
        assert guarded.ask(guarded.root, method, path, **body).status_code == 200, path
    guarded.still_works()


def test_doors_auth_nothing_secret_is_told(guarded: Guarded) -> None:
    """Neither by the list, nor the contract, nor an error, nor an export, nor the files of the list itself."""
    listed = guarded.ask(guarded.root, path="/v1/tokens")
    jti = jwt.decode(guarded.root, options={"verify_signature": False})["jti"]
    assert jti in listed.text
    keys = guarded.machine.data / "keys"
    assert not [path for path in keys.iterdir() if path.stat().st_mode & 0o077]
    pem = json.loads((keys / "signing.json").read_text().splitlines()[0])[0]["pem"].splitlines()[1]
    guarded.machine.run("export", str(guarded.machine.root / "all.jsonl"))
    told = [
        listed.text,
        guarded.ask(guarded.root, path="/openapi.json").text,
        guarded.ask(guarded.root, path="/v1/info").text,
        guarded.ask(guarded.root, path="/.well-known/jwks.json").text,
        (keys / "tokens.json").read_text(),
        (guarded.machine.root / "all.jsonl").read_text(),
        *(
            guarded.ask(guarded.root, "GET", path).text
            for path in ("/v1/memories/keys", "/v1/indexes/keys", "/keys/signing.json")
        ),
    ]
    assert "Dana" in told[5]
    for secret in (guarded.root, guarded.reader.rpartition(".")[2], pem):
        assert not [text for text in told if secret in text]


def test_doors_auth_paths_that_lead_nowhere(guarded: Guarded) -> None:
    for path in (
        "/v1/../v1/memories", "/v1/memories/../../keys/signing.json", "/../data/keys/signing.json",
        "/v1/memories/%2e%2e%2f%2e%2e%2fkeys%2fsigning.json", "/v1/memories/..%2f..%2fkeys", "//v1//memories",
        "/v1/memories/%00", "/v1/memories/a%00b", "/v1/indexes/%2e%2e/stats", "/v1/indexes/..%00/nodes/x",
        "/v1/memories/" + "x" * 5000, "/v1/memories/" + "%c3%28", "/v1/memories/" + "a" * 70_000,
        "/v1/tokens/..%2f..%2fetc", "/v1/memories;admin=true", "/V1/memories", "/v1/memories/",
        "/healthz/../v1/memories",
        "/healthz%2f..%2fv1%2fmemories", "/.well-known/jwks.json/../../v1/memories",
    ):  # fmt: skip
        for token in (None, guarded.root):
            status, body = _raw(guarded, path, token)
            assert status in (400, 401, 404, 405, 413), (path, status)
            assert "Dana" not in body
            assert "PRIVATE" not in body
    guarded.still_works()


def _raw(guarded: Guarded, target: str, token: str | None) -> tuple[int, str]:
    with closing(HTTPConnection("127.0.0.1", guarded.port, timeout=30)) as connection:
        connection.putrequest("GET", target)
        if token is not None:
            connection.putheader("Authorization", f"Bearer {token}")
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_doors_auth_oversized_bodies(guarded: Guarded) -> None:
    large = json.dumps({"text": "x" * 30_000}).encode()
    for token, status in ((None, 401), (guarded.expired, 401), (guarded.writer, 413)):
        assert guarded.ask(token, "POST", "/v1/memories", content=large).status_code == status
        assert guarded.ask(token, "POST", "/v1/memories", content=iter([large])).status_code == status
    deep = b'{"text": "deep", "metadata": ' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}"
    assert guarded.ask(guarded.writer, "POST", "/v1/memories", content=deep[:19_000]).status_code == 400
    guarded.still_works()


def test_doors_auth_slow_clients(guarded: Guarded) -> None:
    """Whoever sends a byte now and then is let go, with or without a token, and does not keep others waiting."""
    slow = [socket.create_connection(("127.0.0.1", guarded.port), timeout=20) for _ in range(20)]
    try:
        for number, connection in enumerate(slow):
            token = f"Authorization: Bearer {guarded.writer}\r\n" if number % 2 else ""
            connection.sendall(
                f"POST /v1/memories HTTP/1.1\r\nHost: localhost\r\n{token}Content-Length: 99\r\n".encode()
            )
            if number % 4 < 2:
                connection.sendall(b"\r\n{")
        began = time.monotonic()
        guarded.still_works()
        assert time.monotonic() - began < 1
        for connection in slow:
            answer = b"".join(iter(lambda sender=connection: sender.recv(65_536), b""))
            assert answer[:12] in (b"", b"HTTP/1.1 400", b"HTTP/1.1 401"), answer
        assert time.monotonic() - began < 10
    finally:
        for connection in slow:
            connection.close()
    guarded.still_works()


def test_doors_auth_pages_and_rebound_names(guarded: Guarded) -> None:
    """A token does not make a page's call ours: the Host and Origin checks stand before it."""
    for headers in ({"host": "evil.example"}, {"origin": "https://evil.example"}, {"origin": "null"}):
        for token in (None, guarded.root):
            answer = guarded.ask(token, "POST", "/v1/memories", json={"text": "planted"}, headers=headers)
            assert answer.status_code == 403
            assert not [name for name in answer.headers if name.startswith("access-control-")]
    guarded.still_works()


def test_doors_auth_after_a_rotation_old_tokens_are_taken_until_their_key_retires(tmp_path: Path) -> None:
    with kektor.open(tmp_path / "data") as database:
        authority, operator = TokenAuthority.of(database), database.principal()
        now = clock.now()

        def taken(token: str) -> bool:
            try:
                authority.authenticate(b"Bearer " + token.encode())
            except kektor.KektorError:
                return False
            return True

        def made() -> str:
            return authority.create(CreateTokenRequest(roles=["read"]), operator).token

        with clock.fixed(clock.Clock(now=lambda: now)):
            old = made()
            authority.rotate(RotateRequest(overlap="1h"), operator)
            new = made()
            assert [taken(old), taken(new)] == [True, True]
            assert len(database.signing_keys.keys()) == 2
            now += DAY // 24
            assert [taken(old), taken(new)] == [False, True]
            assert len(database.signing_keys.keys()) == 1
            authority.rotate(RotateRequest(), operator)  # until the last token has expired
            now += 89 * DAY
            assert taken(new)
            now += 2 * DAY
            assert not taken(new)
            latest = made()
            authority.rotate(RotateRequest(overlap=0), operator)
            assert not taken(latest)
