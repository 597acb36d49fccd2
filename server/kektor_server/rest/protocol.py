"""HTTP/1.1 as uvicorn speaks it, with the bounds it leaves open: the size of a head, and the time a request may take.

Both are kept where the bytes arrive, because an application is not called before a head is complete.
"""

import asyncio

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from kektor.errors import Invalid, KektorError, TooLarge
from kektor_server.rest.errors import encode_error, status_of

__all__ = ["BoundedProtocol", "bounded"]


class BoundedProtocol(HttpToolsProtocol):
    """One connection. The server calls `expire` every second."""

    head_bytes: int
    seconds: float

    _arriving_since: float | None = None
    _in_head = True
    _received = 0
    _refusal: KektorError | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._arriving_since = self.loop.time()

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._received += len(data)
        super().data_received(data)
        if self._in_head and self._received > self.head_bytes and not self.transport.is_closing():
            self._refuse(self._too_large())

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        if self._arriving_since is None:
            self._arriving_since = self.loop.time()

    def on_headers_complete(self) -> None:
        self._in_head = False
        # What was received may be more than the head: only then is it worth counting.
        if self._received > self.head_bytes and self._head_size() > self.head_bytes:
            self._refusal = self._too_large()
            raise ValueError  # ends the parsing, which answers with the refusal
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head, self._received, self._arriving_since = True, 0, None
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(self._refusal or Invalid("this is no valid HTTP/1.1 request"))

    def expire(self, now: float) -> None:
        """End the connection when its request should have arrived by now."""
        if self._arriving_since is None or now - self._arriving_since < self.seconds or self.transport.is_closing():
            return
        waiting = self.cycle is not None and not self.cycle.response_complete
        if waiting:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self._received == 0 or (waiting and (self._in_head or self.cycle.response_started)):
            self.transport.close()  # nothing was asked, or an answer is already on its way
        else:
            self._refuse(Invalid(f"the request did not arrive within {self.seconds:g} seconds"))

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _too_large(self) -> TooLarge:
        return TooLarge(
            f"the request line and headers are larger than {self.head_bytes:,} bytes",
            details={"limit": self.head_bytes},
        )

    def _refuse(self, error: KektorError) -> None:
        body = encode_error(error, "")
        self.transport.write(
            b"%scontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s"
            % (STATUS_LINE[status_of(error)], len(body), body)
        )
        self.transport.close()


def bounded(*, head_bytes: int, seconds: float) -> type[BoundedProtocol]:
    """The protocol with its bounds; uvicorn makes one for each connection."""
    return type("Bounded", (BoundedProtocol,), {"head_bytes": head_bytes, "seconds": seconds})
