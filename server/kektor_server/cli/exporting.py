"""export: everything out, as JSON lines."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated

import typer

from kektor_server.cli import options as opt
from kektor_server.cli.faults import OK, Fault
from kektor_server.cli.output import print_json, progress, say
from kektor_server.cli.target import Where, open_target

__all__ = ["export"]


def export(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to; - is standard output.")],
    index: Annotated[
        list[str] | None, typer.Option("--index", help="Only this index; may repeat.", show_default=False)
    ] = None,
    data: opt.Data = None,
    url: opt.Url = None,
    as_json: opt.AsJson = False,
) -> int:
    """Write every node in every version, with vectors, and every edge, as JSON lines."""
    where = Where(data, url)
    with open_target(where) as target:
        lines = iter(target.export(index or None))
        first = next(lines)  # what is wrong with the request is known before a file is touched
        total = int(json.loads(first)["nodes"])
        last = first
        with _writing(file) as stream, progress("exporting", total) as bar:
            stream.write(first)
            for line in lines:
                stream.write(line)
                bar.advance(line.startswith(b'{"type":"node"'))
                last = line
    return _report(file, json.loads(last), as_json)


def _report(file: str, footer: dict[str, object], as_json: bool) -> int:
    if footer.get("type") != "end":
        raise Fault(f"the export to {file} was cut short", "unavailable")
    counts = {name: footer[name] for name in ("indexes", "nodes", "edges")}
    said = f"{file}: {', '.join(f'{name} {count}' for name, count in counts.items())}"
    if file == "-":
        say(json.dumps({"file": file, **counts}) if as_json else said, sys.stderr)
    elif as_json:
        print_json({"file": file, **counts})
    else:
        say(said)
    return OK


@contextmanager
def _writing(file: str) -> Iterator[IO[bytes]]:
    """The file under its own name only once it is whole, readable by its owner alone."""
    if file == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(file)
    making = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            descriptor = os.open(making, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with open(descriptor, "wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(making, path)
        except OSError as error:
            raise Fault(f"{file} cannot be written: {error.strerror}", "unavailable", field="file") from error
    finally:
        making.unlink(missing_ok=True)
