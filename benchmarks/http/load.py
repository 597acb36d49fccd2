"""The load generator: keeps some connections busy with prepared requests, and writes what it saw as JSON.

It stands in a process of its own, so that it has a core of its own, and speaks HTTP by hand, so that it costs little.

    python load.py ADDRESS PORT REQUESTS CONNECTIONS SECONDS
"""

import asyncio
import json
import sys
import time
from pathlib import Path

import numpy as np
import uvloop


class Connection(asyncio.Protocol):
    """Sends one request after the other, each when the answer to the one before is whole."""

    def __init__(self, requests: list[bytes], first: int, until: float, done: "asyncio.Future[None]") -> None:
        self.requests, self.at, self.until, self.done = requests, first, until, done
        self.times: list[float] = []
        self.failed = 0
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.send()

    def send(self) -> None:
        self.began = time.perf_counter()
        self.transport.write(self.requests[self.at % len(self.requests)])
        self.at += 1

    def data_received(self, data: bytes) -> None:
        self.buffer = self.buffer + data if self.buffer else data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.buffer[:end].lower()
        at = head.find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0])
        if len(self.buffer) < end + 4 + length:
            return
        now = time.perf_counter()
        self.times.append(now - self.began)
        self.failed += b" 200 " not in head[:20] and b" 201 " not in head[:20]
        self.buffer = b""
        if now < self.until:
            self.send()
        else:
            self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None)


async def load(address: str, port: int, requests: list[bytes], connections: int, seconds: float) -> dict[str, float]:
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    made: list[Connection] = []
    ends = []
    for number in range(connections):
        done = loop.create_future()
        connection = Connection(requests, number * 37, began + seconds, done)
        await loop.create_connection(lambda made=connection: made, address, port)
        made.append(connection)
        ends.append(done)
    await asyncio.gather(*ends)
    took = time.perf_counter() - began
    times = np.array([each for connection in made for each in connection.times])
    p50, p95, p99 = (float(value) * 1000 for value in np.percentile(times, [50, 95, 99]))
    return {
        "requests": len(times),
        "failed": sum(connection.failed for connection in made),
        "seconds": took,
        "per_second": len(times) / took,
        "p50_ms": p50,
        "p95_ms": p95,
        "p99_ms": p99,
    }


if __name__ == "__main__":
    host, port, path, connections, seconds = sys.argv[1:]
    prepared = Path(path).read_bytes().split(b"\0next\0")
    print(json.dumps(uvloop.run(load(host, int(port), prepared, int(connections), float(seconds)))))
