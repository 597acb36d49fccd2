"""Who is answered: the Host and Origin checks, the seam for authentication, the refusal to lie open."""

from collections.abc import Iterator

import pytest

from kektor.engine.gateway import Grant, Principal
from kektor.engine.records import Actor, ActorKind
from kektor.engine.view import ScopeRule
from kektor.errors import Unauthenticated, Unavailable
from kektor_server.rest import bind
from kektor_server.rest.hosts import HostRule
from kektor_server.rest.principal import Headers
from kektor_server.settings import Settings
from tests.support.rest import LiveServer, live_server


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "localhost:9091", "LOCALHOST:1", "127.0.0.1:80"])
def test_the_names_of_loopback_are_answered(shared: LiveServer, host: str) -> None:
    shared.ok(shared.http.get("/healthz", headers={"host": host}))


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "evil.example:9091", "127.0.0.1.nip.io", "192.168.0.7", "0.0.0.0",
     "", "localhost:port", "localhost/x", "user@localhost", "[::1", "lo\u00e7alhost"],
)  # fmt: skip
def test_another_host_is_refused_before_anything_else(shared: LiveServer, host: str) -> None:
    before = shared.stored()
    answer = shared.http.post("/v1/memories", json={"text": "rebound"}, headers=[("host", host.encode("latin-1"))])
    shared.error(answer, 403, "forbidden", "Host")
    assert shared.stored() == before


def test_a_page_from_elsewhere_may_not_call_and_gets_no_permission(shared: LiveServer) -> None:
    before = shared.stored()
    own = f"http://127.0.0.1:{shared.port}"
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "http://localhost", "file://", "https://evil"):
        for method in ("POST", "OPTIONS"):
            answer = shared.http.request(
                method, "/v1/memories", content=b'{"text": "from a page"}', headers={"origin": origin}
            )
            shared.error(answer, 403, "forbidden", "Origin")
            assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert shared.stored() == before
    control = shared.http.post("/v1/memories", json={"text": "from our own page"}, headers={"origin": own})
    shared.ok(control, 201)


def test_hosts_and_origins_can_be_allowed_by_name() -> None:
    allowed = {"allowed_hosts": ("kektor.internal",), "allowed_origins": ("https://app.example",)}
    with live_server(**allowed) as live:
        live.ok(live.http.get("/healthz", headers={"host": "kektor.internal:9091"}))
        live.ok(live.http.get("/healthz", headers={"origin": "https://app.example"}))
        live.error(live.http.get("/healthz", headers={"host": "kektor.example"}), 403, "forbidden", "Host")
        live.error(live.http.get("/healthz", headers={"origin": "http://app.example"}), 403, "forbidden", "Origin")


def test_off_loopback_an_address_is_answered_and_a_name_is_not() -> None:
    """A name can be made to point here; an address cannot be made to be another site's."""
    rule = HostRule(Settings(host="0.0.0.0", insecure=True))
    rule.check({"server": ("10.0.0.5", 9091)}, {b"host": b"10.0.0.5:9091"})
    with pytest.raises(Exception, match="evil"):
        rule.check({"server": ("10.0.0.5", 9091)}, {b"host": b"evil.example"})


def test_a_unix_socket_is_answered_whatever_the_host() -> None:
    HostRule(Settings()).check({"server": ("/run/kektor.sock", None)}, {b"host": b"anything"})


def test_a_server_does_not_lie_open_unless_it_is_told_to() -> None:
    with live_server(host="0.0.0.0") as live:
        live.error(live.http.get("/v1/memories"), 401, "unauthenticated")
        live.ok(live.http.get("/healthz"))
    with live_server(host="0.0.0.0", insecure=True) as live:
        live.ok(live.http.get("/v1/memories"))


def test_a_taken_port_says_what_to_do() -> None:
    with bind(Settings(port=0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match=rf"port {port}.*--port"):
            bind(Settings(port=port))


@pytest.fixture(scope="module")
def guarded() -> Iterator[LiveServer]:
    """A server to which `Authorization: Bearer <user>` is who calls."""

    def authenticate(headers: Headers) -> Principal:
        kind, _, user = headers.get(b"authorization", b"").decode().partition(" ")
        if kind != "Bearer" or not user:
            raise Unauthenticated("a bearer token is needed")
        rights = {"reader": {"read"}, "root": {"read", "write", "admin"}}.get(user, {"read", "write"})
        rule = ScopeRule() if user in ("reader", "root") else ScopeRule(user=user)
        return Principal(Actor(ActorKind.AGENT, user, "rest"), frozenset(rights), (Grant("default", rule),))

    with live_server(authenticate=authenticate) as live:
        yield live


def test_a_caller_who_cannot_be_told_is_refused_before_its_body_is_read(guarded: LiveServer) -> None:
    answer = guarded.http.post("/v1/memories", content=b"not even JSON")
    guarded.error(answer, 401, "unauthenticated")
    assert answer.headers["www-authenticate"] == "Bearer"
    described = guarded.ok(guarded.http.get("/openapi.json", headers={"authorization": "Bearer root"}))
    assert described["security"] == [{"bearer": []}]
    assert "401" in described["paths"]["/v1/recall"]["post"]["responses"]


def test_rights_and_grants_come_from_the_caller_and_never_from_the_payload(guarded: LiveServer) -> None:
    alice, bob, reader = ({"authorization": f"Bearer {name}"} for name in ("alice", "bob", "reader"))
    made = guarded.http.post("/v1/memories", json={"text": "alice likes tea"}, headers=alice)
    memory_id = guarded.ok(made, 201)["id"]
    memory = guarded.ok(guarded.http.get(f"/v1/memories/{memory_id}", headers=alice))
    assert (memory["scope"]["user"], memory["actor"]) == ("alice", {"kind": "agent", "id": "alice", "channel": "rest"})
    for path in (f"/v1/memories/{memory_id}", f"/v1/memories/{memory_id}?user=alice", "/v1/memories/nobody"):
        guarded.error(guarded.http.get(path, headers=bob), 404, "not_found", "id")
    reach = {"text": "planted", "scope": {"user": "alice"}}
    guarded.error(guarded.http.post("/v1/memories", json=reach, headers=bob), 403, "forbidden", "scope")
    guarded.error(guarded.http.post("/v1/memories", json={"text": "x"}, headers=reader), 403, "forbidden")
    guarded.error(guarded.http.post("/v1/admin/checkpoint", headers=reader), 403, "forbidden")
    other = guarded.http.post("/v1/memories", json={"text": "x", "index": "other"}, headers=alice)
    guarded.error(other, 403, "forbidden", "index")
    assert len(guarded.ok(guarded.http.get("/v1/memories", headers=reader))["items"]) == 1


def test_the_statistics_of_an_index_are_not_for_one_user(guarded: LiveServer) -> None:
    guarded.ok(guarded.http.post("/v1/memories", json={"text": "seen"}, headers={"authorization": "Bearer root"}), 201)
    url = "/v1/indexes/default/stats"
    guarded.error(guarded.http.get(url, headers={"authorization": "Bearer alice"}), 403, "forbidden", "index")
    guarded.ok(guarded.http.get(url, headers={"authorization": "Bearer root"}))


def test_only_an_admin_names_an_embedder_that_reads_files_or_calls_out(guarded: LiveServer) -> None:
    alice, root = ({"authorization": f"Bearer {name}"} for name in ("alice", "root"))
    for spec in ("onnx:/etc/hostname", "openai:text-embedding-3-small", "hub:org/name@" + "0" * 40):
        body = {"name": "default", "embedder": spec}
        guarded.error(guarded.http.post("/v1/indexes", json=body, headers=alice), 403, "forbidden", "embedder")
    missing = {"name": "default", "embedder": "onnx:/nowhere/model.onnx"}
    assert guarded.http.post("/v1/indexes", json=missing, headers=root).status_code != 403
