"""review: what waits for a decision."""

import sys
from typing import Annotated, Any

import typer

from kektor_server.cli import options as opt
from kektor_server.cli import render
from kektor_server.cli.faults import OK, Fault
from kektor_server.cli.output import print_json, say
from kektor_server.cli.target import Target, Where, open_target

__all__ = ["review"]


def review(
    id: Annotated[str | None, typer.Argument(metavar="[ID]", help="The review to decide; without one, list.")] = None,
    decision: Annotated[
        str | None, typer.Option(help="accept, reject, edit, merge, ask or undo.", show_default=False)
    ] = None,
    note: Annotated[str | None, typer.Option(help="Why, or the question to ask.", show_default=False)] = None,
    text: Annotated[
        str | None, typer.Option(help="For edit and merge: what it should say.", show_default=False)
    ] = None,
    into: Annotated[
        str | None, typer.Option(help="For merge: the memory that says the same.", show_default=False)
    ] = None,
    keep: Annotated[
        str | None, typer.Option(help="For accept: newer (the default) or both.", show_default=False)
    ] = None,
    how: Annotated[
        str | None, typer.Option(help="The older value has changed (the default) or was wrong.", show_default=False)
    ] = None,
    status: Annotated[str, typer.Option(help="List open, asked, decided or all.")] = "open",
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
    """List what waits for a decision, or decide one of them."""
    where = Where(data, url, index, user, agent, project)
    with open_target(where) as target:
        if id is None:
            if decision is not None:
                raise Fault("name the review to decide: kektor review ID --decision …", field="id")
            return _list(target, where.fields(status=status, limit=limit, cursor=cursor), as_json)
        if decision is None:
            raise Fault("say what to decide: --decision accept, reject, edit, merge, ask or undo", field="decision")
        fields = where.fields(decision=decision, note=note, text=text, into=into, keep=keep, how=how)
        receipt = target.call("review", fields, id)
    if as_json:
        print_json(receipt)
    else:
        say("\n".join(render.receipt_lines(receipt)))
    return OK


def _list(target: Target, fields: dict[str, Any], as_json: bool) -> int:
    page = target.call("reviews", fields)
    if as_json:
        print_json(page)
        return OK
    if page["next_cursor"]:
        say(f"there are more: --cursor {page['next_cursor']}", sys.stderr)
    for item in page["items"]:
        say("\n".join(render.review_lines(item)))
    return OK
