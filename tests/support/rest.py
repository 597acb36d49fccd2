"""The REST server over a real socket, for tests: in a thread, on a free port, with a database in memory."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

import httpx
from starlette.applications import Starlette

import kektor
from kektor_server.rest import Authenticate, Server, bind, build_server, create_app
from kektor_server.settings import Settings
from tests.support.embedders import HashingEmbedder

__all__ = ["LiveServer", "live_server"]


@dataclass
class LiveServer:
    """A server that runs, the database behind it, and a client of it."""

    url: str
    port: int
    database: kektor.Database
    app: Starlette
    server: Server
    http: httpx.Client

    def error(self, response: httpx.Response, status: int, code: str, field: str | None = None) -> dict[str, Any]:
        """The error object of an answer, after checking all that every error keeps."""
        assert response.status_code == status, response.text
        assert response.headers["content-type"] == "application/json"
        body = response.json()
        assert body.keys() == {"error"}
        error: dict[str, Any] = body["error"]
        assert error.keys() == {"code", "message", "field", "details"}
        assert (error["code"], error["field"]) == (code, field), error
        assert error["message"]
        return error

    def ok(self, response: httpx.Response, status: int = 200) -> Any:
        """The decoded answer, after checking that it is a success."""
        assert response.status_code == status, response.text
        return response.json()

    def raw(self, method: str, target: str, content: bytes | None = None) -> httpx.Response:
        """Send exactly this path and query: httpx tidies them before it sends them."""
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            connection.putrequest(method, target)
            if content is not None:
                connection.putheader("Content-Type", "application/json")
                connection.putheader("Content-Length", str(len(content)))
            connection.endheaders(content)
            answer = connection.getresponse()
            endless = answer.getheader("content-type") == "text/event-stream"
            content = b"" if endless else answer.read()
            return httpx.Response(answer.status, headers=answer.getheaders(), content=content)

    def stored(self) -> dict[str, Any]:
        """What the database holds, as REST tells it: any write at all makes a difference to it."""
        indexes = self.ok(self.http.get("/v1/indexes"))["items"]
        return {
            index["name"]: (index, self.ok(self.http.get(f"/v1/indexes/{index['name']}/stats"))) for index in indexes
        }


@contextmanager
def live_server(
    database: kektor.Database | None = None,
    *,
    authenticate: Authenticate | None = None,
    **settings: Any,
) -> Iterator[LiveServer]:
    """Run one until the block ends."""
    own = database is None
    database = database or kektor.open(":memory:", embedder=HashingEmbedder())
    chosen = Settings(**{"port": 0, **settings})
    listener = bind(chosen)
    port = listener.getsockname()[1]
    app = create_app(database, chosen, authenticate=authenticate)
    ready = threading.Event()
    server = build_server(app, chosen, ready=lambda addresses: ready.set(), stopping=app.state.service.stop)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="live-server")
    thread.start()
    try:
        assert ready.wait(30), "the server did not start"
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as http:
            yield LiveServer(str(http.base_url), port, database, app, server, http)
    finally:
        server.should_exit = True
        thread.join(30)
        if own:
            database.close()
        assert not thread.is_alive(), "the server did not stop"
