"""link, unlink, edges, path: how memories hang together."""

from typing import Annotated, Any

import typer

from kektor_server.cli import options as opt
from kektor_server.cli import render
from kektor_server.cli.faults import OK
from kektor_server.cli.output import print_json, say, shown
from kektor_server.cli.target import Where, open_target

__all__ = ["edges", "link", "path", "unlink"]

Src = Annotated[str, typer.Argument(metavar="SRC", help="The id it goes from.")]
Rel = Annotated[str, typer.Argument(metavar="REL", help="The relation, such as works_with.")]
Dst = Annotated[str, typer.Argument(metavar="DST", help="The id it goes to.")]
AsOf = Annotated[str | None, typer.Option(help="What held in the world then.", show_default=False)]
KnownAt = Annotated[str | None, typer.Option(help="What was known then.", show_default=False)]
OnlyRel = Annotated[list[str] | None, typer.Option("--rel", help="Only this relation; may repeat.", show_default=False)]


def link(
    src: Src,
    rel: Rel,
    dst: Dst,
    weight: Annotated[float, typer.Option(help="How strong it is.")] = 1.0,
    valid_from: Annotated[str | None, typer.Option(help="Since when it holds.", show_default=False)] = None,
    valid_to: Annotated[str | None, typer.Option(help="Until when it holds.", show_default=False)] = None,
    reason: opt.Reason = None,
    data: opt.Data = None,
    url: opt.Url = None,
    index: opt.Index = None,
    user: opt.User = None,
    agent: opt.Agent = None,
    project: opt.Project = None,
    as_json: opt.AsJson = False,
) -> int:
    """Join two memories with a named relation."""
    where = Where(data, url, index, user, agent, project)
    given = {"src": src, "rel": rel, "dst": dst, "weight": weight, "valid_from": valid_from, "valid_to": valid_to}
    edge = {name: value for name, value in given.items() if value is not None}
    with open_target(where) as target:
        receipt = target.call("link", where.fields(edges=[edge], reason=reason))
    return _said(receipt, f"linked  {src} {rel} {dst}", as_json)


def unlink(
    src: Src,
    rel: Rel,
    dst: Dst,
    reason: opt.Reason = None,
    data: opt.Data = None,
    url: opt.Url = None,
    index: opt.Index = None,
    user: opt.User = None,
    agent: opt.Agent = None,
    project: opt.Project = None,
    as_json: opt.AsJson = False,
) -> int:
    """End a relation; what it was stays readable with --known-at."""
    where = Where(data, url, index, user, agent, project)
    with open_target(where) as target:
        receipt = target.call("unlink", where.fields(src=src, rel=rel, dst=dst, reason=reason))
    return _said(receipt, f"unlinked  {src} {rel} {dst}", as_json)


def edges(
    id: Annotated[str, typer.Argument(metavar="ID", help="The memory's id.")],
    direction: Annotated[str, typer.Option(help="out, in or both.")] = "both",
    rel: OnlyRel = None,
    limit: Annotated[int, typer.Option(help="At most this many.")] = 100,
    cursor: Annotated[str | None, typer.Option(help="Go on where a list ended.", show_default=False)] = None,
    as_of: AsOf = None,
    known_at: KnownAt = None,
    data: opt.Data = None,
    url: opt.Url = None,
    index: opt.Index = None,
    user: opt.User = None,
    agent: opt.Agent = None,
    project: opt.Project = None,
    as_json: opt.AsJson = False,
) -> int:
    """List what is linked to a memory."""
    where = Where(data, url, index, user, agent, project)
    fields = where.fields(direction=direction, rels=rel, limit=limit, cursor=cursor, as_of=as_of, known_at=known_at)
    with open_target(where) as target:
        page = target.call("edges", fields, id)
    lines = [f"{edge['src']} {edge['rel']} {edge['dst']}" for edge in page["items"]]
    if page["next_cursor"]:
        lines.append(f"there are more: --cursor {page['next_cursor']}")
    return _said(page, shown("\n".join(lines) or "no edges"), as_json)


def path(
    src: Src,
    dst: Dst,
    rel: OnlyRel = None,
    max_depth: Annotated[int, typer.Option(help="At most this many links.")] = 6,
    as_of: AsOf = None,
    known_at: KnownAt = None,
    data: opt.Data = None,
    url: opt.Url = None,
    index: opt.Index = None,
    user: opt.User = None,
    agent: opt.Agent = None,
    project: opt.Project = None,
    as_json: opt.AsJson = False,
) -> int:
    """Show the shortest way along links from one memory to another."""
    where = Where(data, url, index, user, agent, project)
    fields = where.fields(src=src, dst=dst, rels=rel, max_depth=max_depth, as_of=as_of, known_at=known_at)
    with open_target(where) as target:
        found = target.call("path", fields)
    lines = [f"{edge['src']} {edge['rel']} {edge['dst']}" for edge in found["edges"]]
    lines += [render.one_line(memory) for memory in found["nodes"]]
    return _said(found, shown("\n".join(lines)) or "no path", as_json)


def _said(value: Any, text: str, as_json: bool) -> int:
    if as_json:
        print_json(value)
    else:
        say(text)
    return OK
