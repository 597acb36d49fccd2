"""import: memories of other systems."""

from pathlib import Path
from typing import Annotated, Any

import typer

from kektor_server.cli import options as opt
from kektor_server.cli.faults import OK, TROUBLE, Fault
from kektor_server.cli.output import print_json, progress, say, shown
from kektor_server.cli.target import Where, open_target

__all__ = ["import_"]


def import_(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The file, or folder, to read.")],
    source: Annotated[
        str,
        typer.Option("--from", metavar="SYSTEM", help="mcp-memory, mem0, basic-memory, kektordb, chatgpt or claude."),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only read, and say what would be taken in.")] = False,
    data: opt.Data = None,
    url: opt.Url = None,
    index: opt.Index = None,
    user: opt.User = None,
    agent: opt.Agent = None,
    project: opt.Project = None,
    as_json: opt.AsJson = False,
) -> int:
    """Take in what another memory system kept. Running it again changes nothing and revives nothing."""
    # Here and not above: no other command needs the readers.
    from kektor_server.importers.items import Left, Unreadable
    from kektor_server.importers.readers import READERS
    from kektor_server.importers.run import Importing

    reader = READERS.get(source)
    if reader is None:
        raise Fault(f"--from takes {', '.join(READERS)}, not {source!r}", field="from")
    try:
        items = list(reader(path))
    except Unreadable as error:
        raise Fault(str(error), field="path") from error
    where = Where(data, url, index, user, agent, project)
    if dry_run:
        kinds: dict[str, int] = {}
        for item in items:
            kinds[type(item).__name__.lower()] = kinds.get(type(item).__name__.lower(), 0) + 1
        left = [{"what": item.where, "why": item.why} for item in items if isinstance(item, Left)]
        return _report({"from": source, "path": str(path), "dry_run": True, "found": kinds, "left": left}, as_json)
    with open_target(where, create=True) as target, progress("importing", len(items)) as bar:
        run = Importing(target, source, where.fields)
        run.run(items, lambda: bar.advance(1))
    told = {"from": source, "path": str(path), "dry_run": False, "counts": dict(run.counts), "left": run.left}
    return _report(told, as_json) or (TROUBLE if run.counts["refused"] else OK)


def _report(told: dict[str, Any], as_json: bool) -> int:
    if as_json:
        print_json(told)
        return OK
    counts = told.get("counts", told.get("found", {}))
    named = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in sorted(counts.items()))
    say(f"{told['path']}: {named or 'nothing in it'}")
    for each in told["left"]:
        say(f"  left: {shown(each['what'])} ({shown(each['why'])})")
    return OK
