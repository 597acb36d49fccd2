"""tombstones: what must not come back."""

import sys
from typing import Annotated

import typer

from kektor_server.cli import options as opt
from kektor_server.cli.faults import OK
from kektor_server.cli.output import print_json, say
from kektor_server.cli.target import Where, open_target

__all__ = ["tombstones"]


def tombstones(
    lift: Annotated[str | None, typer.Option(help="Lift this one, so that its value may be told again.")] = None,
    limit: Annotated[int, typer.Option(help="At most this many.")] = 100,
    cursor: Annotated[str | None, typer.Option(help="Go on where a list ended.", show_default=False)] = None,
    reason: opt.Reason = None,
    data: opt.Data = None,
    url: opt.Url = None,
    index: opt.Index = None,
    user: opt.User = None,
    agent: opt.Agent = None,
    project: opt.Project = None,
    as_json: opt.AsJson = False,
) -> int:
    """List what was rejected or erased and must not come back, or lift one of them."""
    where = Where(data, url, index, user, agent, project)
    with open_target(where) as target:
        if lift is not None:
            receipt = target.call("lift", where.fields(reason=reason), lift)
            if as_json:
                print_json(receipt)
            else:
                say(f"lifted {receipt['id']}")
            return OK
        page = target.call("tombstones", where.fields(limit=limit, cursor=cursor))
    if as_json:
        print_json(page)
        return OK
    if page["next_cursor"]:
        say(f"there are more: --cursor {page['next_cursor']}", sys.stderr)
    for stone in page["items"]:
        what = "erased" if stone["class"] == "erasure" else "rejected"
        why = f": {stone['reason']}" if stone["reason"] else ""
        say(f"{stone['id']}  {what} {stone['created_at'][:10]} by {stone['actor']['kind']}, was {stone['node']}{why}")
    return OK
