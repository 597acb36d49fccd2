"""archive, restore-memory, pin, unpin, confirm, update, share, evidence: what may happen to one memory otherwise."""

import json
from collections.abc import Callable
from typing import Annotated, Any

import typer

from kektor_server.cli import options as opt
from kektor_server.cli import render
from kektor_server.cli.faults import OK, Fault
from kektor_server.cli.output import print_json, say, shown
from kektor_server.cli.target import Where, open_target

__all__ = ["archive", "confirm", "evidence", "pin", "restore_memory", "share", "unpin", "update"]

Id = Annotated[str, typer.Argument(metavar="ID", help="The memory's id.")]


def _verb(operation: str, about: str) -> Callable[..., int]:
    """A command that needs no more than an id and perhaps a reason."""

    def command(
        id: Id,
        reason: opt.Reason = None,
        data: opt.Data = None,
        url: opt.Url = None,
        index: opt.Index = None,
        user: opt.User = None,
        agent: opt.Agent = None,
        project: opt.Project = None,
        as_json: opt.AsJson = False,
    ) -> int:
        where = Where(data, url, index, user, agent, project)
        with open_target(where) as target:
            return _receipt(target.call(operation, where.fields(reason=reason), id), as_json)

    command.__doc__ = about
    return command


archive = _verb("archive", "Put a memory out of sight; restore-memory brings it back.")
restore_memory = _verb("restore", "Bring an archived memory back.")
pin = _verb("pin", "Keep a memory from ageing out of sight.")
unpin = _verb("unpin", "Let a pinned memory age like the others.")


def confirm(
    id: Id,
    evidence: Annotated[
        str | None, typer.Option(metavar="ID", help="The source that shows it.", show_default=False)
    ] = None,
    reason: opt.Reason = None,
    data: opt.Data = None,
    url: opt.Url = None,
    index: opt.Index = None,
    user: opt.User = None,
    agent: opt.Agent = None,
    project: opt.Project = None,
    as_json: opt.AsJson = False,
) -> int:
    """Say that a memory was seen to hold still, so that it stays fresh."""
    where = Where(data, url, index, user, agent, project)
    with open_target(where) as target:
        return _receipt(target.call("confirm", where.fields(evidence=evidence, reason=reason), id), as_json)


def update(
    id: Id,
    tag: Annotated[
        list[str] | None, typer.Option(help="All its tags from now on; may repeat.", show_default=False)
    ] = None,
    no_tags: Annotated[bool, typer.Option("--no-tags", help="Take all tags off.")] = False,
    layer: Annotated[str | None, typer.Option(help="semantic, episodic or procedural.", show_default=False)] = None,
    metadata: Annotated[
        str | None, typer.Option(metavar="JSON", help="All its own fields from now on.", show_default=False)
    ] = None,
    reason: opt.Reason = None,
    data: opt.Data = None,
    url: opt.Url = None,
    index: opt.Index = None,
    user: opt.User = None,
    agent: opt.Agent = None,
    project: opt.Project = None,
    as_json: opt.AsJson = False,
) -> int:
    """Replace tags, layer or metadata; the statement, and so the version, stays."""
    if tag and no_tags:
        raise Fault("give either --tag or --no-tags", field="tags")
    where = Where(data, url, index, user, agent, project)
    fields = where.fields(layer=layer, reason=reason)
    if tag or no_tags:
        fields["tags"] = tag or []
    if metadata is not None:
        fields["metadata"] = _json(metadata)
    with open_target(where) as target:
        return _receipt(target.call("update", fields, id), as_json)


def share(
    id: Id,
    to_index: Annotated[str | None, typer.Option(help="Another index.", show_default=False)] = None,
    to_user: Annotated[str | None, typer.Option(help="Whose the copy is.", show_default=False)] = None,
    to_agent: Annotated[str | None, typer.Option(help="The agent it is for.", show_default=False)] = None,
    to_project: Annotated[str | None, typer.Option(help="The project it is for.", show_default=False)] = None,
    move: Annotated[bool, typer.Option("--move", help="Archive the original.")] = False,
    reason: opt.Reason = None,
    data: opt.Data = None,
    url: opt.Url = None,
    index: opt.Index = None,
    user: opt.User = None,
    agent: opt.Agent = None,
    project: opt.Project = None,
    as_json: opt.AsJson = False,
) -> int:
    """Copy a memory to another scope or index; erasing the original reaches the copy."""
    where = Where(data, url, index, user, agent, project)
    named = {"user": to_user, "agent": to_agent, "project": to_project}
    scope = {name: value for name, value in named.items() if value is not None}
    to: dict[str, Any] = {**({"index": to_index} if to_index else {}), **({"scope": scope} if scope else {})}
    with open_target(where) as target:
        return _receipt(target.call("share", where.fields(to=to, move=move or None, reason=reason), id), as_json)


def evidence(
    id: Id,
    data: opt.Data = None,
    url: opt.Url = None,
    index: opt.Index = None,
    user: opt.User = None,
    agent: opt.Agent = None,
    project: opt.Project = None,
    as_json: opt.AsJson = False,
) -> int:
    """Show the words a memory rests on, and who said them."""
    where = Where(data, url, index, user, agent, project)
    with open_target(where) as target:
        found = target.call("evidence", where.fields(), id)
    if as_json:
        print_json(found)
        return OK
    for span in found["items"]:
        say(f"{span['source']}  {span['class']}  {shown(span['quote'])}")
    return OK


def _json(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise Fault(f"--metadata is no JSON: {error}", field="metadata") from error
    if not isinstance(value, dict):
        raise Fault("--metadata must be a JSON object", field="metadata")
    return value


def _receipt(receipt: dict[str, Any], as_json: bool) -> int:
    if as_json:
        print_json(receipt)
    else:
        say("\n".join(render.receipt_lines(receipt)))
    return OK
