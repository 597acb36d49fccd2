"""An export as lines of JSON."""

from collections.abc import Iterator, Sequence

import msgspec

from kektor.api import Database

__all__ = ["export_lines"]


def export_lines(database: Database, indexes: Sequence[str] | None = None) -> Iterator[bytes]:
    """Every record of an export as one line; errors of the request are raised before the first."""
    encode = msgspec.json.Encoder().encode
    records = database.operations.export(database.principal(), indexes=indexes)
    return (encode(record) + b"\n" for record in records)
