"""compact: what was erased leaves the files."""

from typing import Annotated

import typer

from kektor_server.cli import options as opt
from kektor_server.cli.faults import OK
from kektor_server.cli.output import print_json, say
from kektor_server.cli.target import Where, open_target

__all__ = ["compact"]


def compact(
    wait: Annotated[bool, typer.Option(help="Return when the bytes are gone; else a server does it by itself.")] = True,
    data: opt.Data = None,
    url: opt.Url = None,
    as_json: opt.AsJson = False,
) -> int:
    """Rid log, checkpoints and audit of every byte of what was erased; it writes the whole database anew, twice."""
    with open_target(Where(data, url)) as target:
        done = target.call("compact", {"wait": wait})
    if as_json:
        print_json(done)
    elif done["bytes_gone_at"] is None:
        say("it will be done within a minute")
    else:
        say(f"what was erased up to transaction {done['lsn']} is in no file since {done['bytes_gone_at']}")
    return OK
