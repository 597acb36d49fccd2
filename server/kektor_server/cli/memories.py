"""remember, recall, get, list, history, evolve, correct, retract, forget."""

import sys
from typing import Annotated, Any

import typer

from kektor_server.cli import options as opt
from kektor_server.cli import render
from kektor_server.cli.faults import OK, Fault
from kektor_server.cli.output import print_json, say
from kektor_server.cli.target import Where, human_at_terminal, open_target

__all__ = ["correct", "evolve", "forget", "get", "history", "list_", "recall", "remember", "retract"]

_MODES = ("retract", "archive", "erase")

Id = Annotated[str, typer.Argument(metavar="ID", help="The memory's id.")]
Statement = Annotated[str, typer.Argument(metavar="TEXT", help="The statement; - reads it from standard input.")]
ValidFrom = Annotated[str | None, typer.Option(help="Since when it holds, such as 2026-03-01.", show_default=False)]
Partial = Annotated[
    bool, typer.Option("--partial", help="Replace only what the text is about; what else the old one says stays.")
]
Remainder = Annotated[str | None, typer.Option(help="With --partial: what stays, in your words.", show_default=False)]
Include = Annotated[
    list[str] | None,
    typer.Option(help="Also superseded, archived, proposed or rejected ones; may repeat.", show_default=False),
]
AsOf = Annotated[str | None, typer.Option(help="What held in the world then.", show_default=False)]
KnownAt = Annotated[str | None, typer.Option(help="What was known then.", show_default=False)]
Filter = Annotated[
    str | None, typer.Option(help="For example: tags CONTAINS 'crm' AND metadata.price > 10", show_default=False)
]


def remember(
    text: Statement,
    tag: Annotated[list[str] | None, typer.Option(help="A tag; may repeat.", show_default=False)] = None,
    layer: Annotated[str | None, typer.Option(help="semantic, episodic or procedural.", show_default=False)] = None,
    occurred_at: Annotated[str | None, typer.Option(help="When an event happened.", show_default=False)] = None,
    valid_from: ValidFrom = None,
    valid_to: Annotated[str | None, typer.Option(help="Until when it holds.", show_default=False)] = None,
    id: Annotated[str | None, typer.Option(help="An id of your own.", show_default=False)] = None,
    session: Annotated[str | None, typer.Option(help="The session it belongs to.", show_default=False)] = None,
    pinned: Annotated[bool, typer.Option("--pin", help="Never let it age out of sight.")] = False,
    data: opt.Data = None,
    url: opt.Url = None,
    index: opt.Index = None,
    user: opt.User = None,
    agent: opt.Agent = None,
    project: opt.Project = None,
    as_json: opt.AsJson = False,
) -> int:
    """Save a statement."""
    where = Where(data, url, index, user, agent, project)
    fields = where.fields(
        text=_given(text),
        tags=tag,
        layer=layer,
        occurred_at=occurred_at,
        valid_from=valid_from,
        valid_to=valid_to,
        id=id,
        session=session,
        pinned=pinned or None,
    )
    with open_target(where, create=True) as target:
        return _print_receipt(target.call("remember", fields), as_json)


def recall(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="A full question, with names.")],
    k: Annotated[int, typer.Option("-k", "--k", help="At most this many memories.")] = 8,
    budget_tokens: Annotated[int, typer.Option(help="At most this many tokens of context.")] = 2000,
    filter: Filter = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only with this tag; may repeat.", show_default=False)] = None,
    layer: Annotated[list[str] | None, typer.Option(help="Only this layer; may repeat.", show_default=False)] = None,
    kind: Annotated[list[str] | None, typer.Option(help="Only this kind; may repeat.", show_default=False)] = None,
    include: Include = None,
    as_of: AsOf = None,
    known_at: KnownAt = None,
    history: Annotated[str, typer.Option(help="Past statements: never, auto or always.")] = "auto",
    mode: Annotated[str, typer.Option(help="hybrid, or fast (by words alone).")] = "hybrid",
    explain: Annotated[bool, typer.Option("--explain", help="With --json: what each stage made of it.")] = False,
    context: Annotated[bool, typer.Option("--context", help="Print the context as a prompt gets it.")] = False,
    data: opt.Data = None,
    url: opt.Url = None,
    index: opt.Index = None,
    user: opt.User = None,
    agent: opt.Agent = None,
    project: opt.Project = None,
    as_json: opt.AsJson = False,
) -> int:
    """Ask a question."""
    where = Where(data, url, index, user, agent, project)
    fields = where.fields(
        query=question,
        k=k,
        budget_tokens=budget_tokens,
        filter=filter,
        tags=tag,
        layers=layer,
        kinds=kind,
        include=include,
        as_of=as_of,
        known_at=known_at,
        history=history,
        mode=mode,
        explain=explain,
    )
    with open_target(where) as target:
        found = target.call("recall", fields)
    lines = [found["context"]] if context and found["context"] else render.recall_lines(found)
    return _print(found, lines, as_json)


def get(
    id: Id,
    head: Annotated[bool, typer.Option("--head", help="Its newest successor instead of exactly this version.")] = False,
    data: opt.Data = None,
    url: opt.Url = None,
    index: opt.Index = None,
    user: opt.User = None,
    agent: opt.Agent = None,
    project: opt.Project = None,
    as_json: opt.AsJson = False,
) -> int:
    """Show one memory in full."""
    where = Where(data, url, index, user, agent, project)
    with open_target(where) as target:
        memory = target.call("get", where.fields(resolve="head" if head else None), id)
    return _print(memory, render.memory_lines(memory), as_json)


def list_(
    filter: Filter = None,
    include: Include = None,
    kind: Annotated[list[str] | None, typer.Option(help="These kinds; may repeat.", show_default=False)] = None,
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
    """List memories in the order they were recorded."""
    where = Where(data, url, index, user, agent, project)
    fields = where.fields(
        filter=filter, include=include, kinds=kind, limit=limit, cursor=cursor, as_of=as_of, known_at=known_at
    )
    with open_target(where) as target:
        page = target.call("list", fields)
    lines = [render.one_line(memory) for memory in page["items"]]
    if page["next_cursor"] and not as_json:
        say(f"there are more: --cursor {page['next_cursor']}", sys.stderr)
    return _print(page, lines, as_json)


def history(
    id: Id,
    data: opt.Data = None,
    url: opt.Url = None,
    index: opt.Index = None,
    user: opt.User = None,
    agent: opt.Agent = None,
    project: opt.Project = None,
    as_json: opt.AsJson = False,
) -> int:
    """Show every version of a memory, oldest first."""
    where = Where(data, url, index, user, agent, project)
    with open_target(where) as target:
        versions = target.call("history", where.fields(), id)
    return _print(versions, [render.version_line(memory) for memory in versions["items"]], as_json)


def evolve(
    id: Id,
    text: Statement,
    valid_from: ValidFrom = None,
    partial: Partial = False,
    remainder: Remainder = None,
    reason: opt.Reason = None,
    data: opt.Data = None,
    url: opt.Url = None,
    index: opt.Index = None,
    user: opt.User = None,
    agent: opt.Agent = None,
    project: opt.Project = None,
    as_json: opt.AsJson = False,
) -> int:
    """Replace a memory because the world changed; the old one held until now."""
    where = Where(data, url, index, user, agent, project)
    fields = where.fields(
        text=_given(text), valid_from=valid_from, partial=partial or None, remainder=remainder, reason=reason
    )
    with open_target(where) as target:
        return _print_receipt(target.call("evolve", fields, id), as_json)


def correct(
    id: Id,
    text: Statement,
    valid_from: ValidFrom = None,
    partial: Partial = False,
    remainder: Remainder = None,
    reason: opt.Reason = None,
    data: opt.Data = None,
    url: opt.Url = None,
    index: opt.Index = None,
    user: opt.User = None,
    agent: opt.Agent = None,
    project: opt.Project = None,
    as_json: opt.AsJson = False,
) -> int:
    """Replace a memory that was never true; its value cannot come back."""
    where = Where(data, url, index, user, agent, project)
    fields = where.fields(
        text=_given(text), valid_from=valid_from, partial=partial or None, remainder=remainder, reason=reason
    )
    with open_target(where) as target:
        return _print_receipt(target.call("correct", fields, id), as_json)


def retract(
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
    """Take back a memory that was never true and that nothing replaces."""
    where = Where(data, url, index, user, agent, project)
    with open_target(where) as target:
        return _print_receipt(target.call("retract", where.fields(reason=reason), id), as_json)


def forget(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID...", help="The memories to forget.", show_default=False)
    ] = None,
    query: Annotated[
        str | None, typer.Option(help="What they are about, such as: everything about Frank", show_default=False)
    ] = None,
    filter: Filter = None,
    preview: Annotated[
        str | None, typer.Option(help="The token of a preview: exactly what that showed.", show_default=False)
    ] = None,
    mode: Annotated[str, typer.Option(help="retract, archive (can be undone) or erase (for good).")] = "retract",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what goes.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    reason: opt.Reason = None,
    data: opt.Data = None,
    url: opt.Url = None,
    index: opt.Index = None,
    user: opt.User = None,
    agent: opt.Agent = None,
    project: opt.Project = None,
    as_json: opt.AsJson = False,
) -> int:
    """Forget memories: show what goes, ask, then do it."""
    if mode not in _MODES:
        raise Fault(f"--mode must be {', '.join(_MODES)}, not {mode!r}", field="mode")
    where = Where(data, url, index, user, agent, project)
    with open_target(where) as target:
        if preview is not None:
            chosen = where.fields(preview=preview, reason=reason)
        else:
            chosen = where.fields(ids=ids, query=query, filter=filter, mode=mode, reason=reason)
        if dry_run or not yes:
            shown = target.call("forget", {**chosen, "dry_run": True})
            if dry_run:
                return _print(shown, [f"would {mode}:", *render.forgotten_lines(shown)], as_json)
            _ask(shown, mode)
            chosen = where.fields(preview=shown["preview"], reason=reason)
        done = target.call("forget", {**chosen, "dry_run": False})
    return _print(done, [f"{_PAST[mode]}:", *render.forgotten_lines(done)], as_json)


_PAST = {"retract": "retracted", "archive": "archived", "erase": "erased"}


def _ask(preview: dict[str, Any], mode: str) -> None:
    if not human_at_terminal():
        raise Fault(f"nobody is here to ask: pass --yes to {mode} without asking, or --dry-run to look", field="yes")
    say("\n".join([f"about to {mode}:", *render.forgotten_lines(preview)]), sys.stderr)
    if not typer.confirm("go on?", err=True):
        raise Fault("nothing was forgotten", "conflict")


def _given(text: str) -> str:
    return sys.stdin.read() if text == "-" else text


def _print_receipt(receipt: dict[str, Any], as_json: bool) -> int:
    return _print(receipt, render.receipt_lines(receipt), as_json)


def _print(value: Any, lines: list[str], as_json: bool) -> int:
    if as_json:
        print_json(value)
    elif lines:
        say("\n".join(lines))
    return OK
