"""sessions: conversations, their beginning and end."""

import sys
from typing import Annotated

import typer

from kektor_server.cli import options as opt
from kektor_server.cli.faults import OK, Fault
from kektor_server.cli.output import print_json, say
from kektor_server.cli.target import Where, open_target

__all__ = ["sessions"]


def sessions(
    start: Annotated[str | None, typer.Option(help="Begin a session of this name.", show_default=False)] = None,
    title: Annotated[str | None, typer.Option(help="With --start: what it is about.", show_default=False)] = None,
    end: Annotated[str | None, typer.Option(help="End this session with a summary.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(help="At most this many.")] = 100,
    cursor: Annotated[str | None, typer.Option(help="Go on where a list ended.", show_default=False)] = None,
    data: opt.Data = None,
    url: opt.Url = None,
    index: opt.Index = None,
    user: opt.User = None,
    agent: opt.Agent = None,
    project: opt.Project = None,
    as_json: opt.AsJson = False,
) -> int:
    """List sessions, or begin or end one."""
    if start is not None and end is not None:
        raise Fault("give either --start or --end", field="end")
    where = Where(data, url, index, user, agent, project)
    with open_target(where, create=start is not None) as target:
        if start is not None:
            done = target.call("start_session", where.fields(id=start, title=title))
        elif end is not None:
            done = target.call("end_session", where.fields(), end)
        else:
            done = target.call("sessions", where.fields(limit=limit, cursor=cursor))
    if as_json:
        print_json(done)
    elif start is not None or end is not None:
        say(f"{done['outcome']}  {done['id']}" + (f"  summary {done['of']}" if end is not None and done["of"] else ""))
    else:
        for session in done["items"]:
            title = f"  {session['title']}" if session["title"] else ""
            state = f"{session['status']}, {session['messages']} messages"
            say(f"{session['id']}  {session['started_at'][:10]}  {state}{title}")
        if done["next_cursor"]:
            say(f"there are more: --cursor {done['next_cursor']}", sys.stderr)
    return OK
