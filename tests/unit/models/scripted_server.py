"""An HTTP server on a real socket that answers what a test tells it to, and remembers what it was asked."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Reply:
    """`body` as JSON unless it is bytes; `stall` seconds before it; `promise` more bytes than are sent."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    stall: float = 0.0
    promise: int = 0

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class Server:
    """`answer(request)` makes each reply."""

    def __init__(self, answer: Callable[[Request], Reply]) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.url = ""


@contextmanager
def serving(answer: Callable[[Request], Reply]) -> Iterator[Server]:
    server = Server(answer)
    released = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, self.path, headers, json.loads(raw) if raw else None)
            server.requests.append(request)
            reply = server.answer(request)
            released.wait(reply.stall) if reply.stall else time.sleep(0)
            try:
                self.send_response(reply.status)
                given = {"content-type": "application/json"} | {
                    name.lower(): value for name, value in reply.headers.items()
                }
                given["connection"] = "close"  # or a kept connection would outlive the server
                given.setdefault("content-length", str(len(reply.content) + reply.promise))
                for name, value in given.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(reply.content)
            except OSError:
                self.close_connection = True  # the client gave up, as some tests want

        do_GET = do_POST = do_HEAD = _serve  # noqa: N815

        def log_message(self, *args: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{httpd.server_address[1]}"
    try:
        yield server
    finally:
        released.set()
        httpd.shutdown()
        httpd.server_close()
        thread.join()
