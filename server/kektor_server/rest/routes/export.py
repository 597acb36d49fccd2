"""Everything a caller may read, out as lines of JSON."""

from collections.abc import AsyncIterator, Iterator
from itertools import islice

import msgspec
from msgspec import Struct

from kektor_server.rest.pool import Lane as Threads
from kektor_server.rest.route import Call, Lane, Routes, Streamed

__all__ = ["routes"]

routes = Routes("export")

_LINES = 200


class ExportQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Without `index` all indexes that the caller reaches."""

    index: list[str] = []


@routes.get("/v1/export", lane=Lane.READ, media="application/x-ndjson", errors=("not_found",))
def export(call: Call, query: ExportQuery) -> Streamed:
    """Every node the caller sees in every version, with vectors, and every edge, one JSON record a line.

    The last line has `type` `end`; an export without it was cut short.
    """
    encode = msgspec.json.Encoder().encode
    records = call.operations.export(call.principal, indexes=query.index or None)
    return Streamed(_parts(call.service.reads, (encode(record) + b"\n" for record in records)))


async def _parts(threads: Threads, lines: Iterator[bytes]) -> AsyncIterator[bytes]:
    while part := await threads.run(lambda: b"".join(islice(lines, _LINES))):
        yield part
