"""audit: who did what, and whether that account is whole."""

import sys
from typing import Annotated

import typer

from kektor_server.cli import options as opt
from kektor_server.cli.faults import OK, TROUBLE
from kektor_server.cli.output import print_json, say
from kektor_server.cli.target import Where, open_target

__all__ = ["audit"]


def audit(
    verify: Annotated[bool, typer.Option("--verify", help="Check the whole chain of events instead.")] = False,
    since: Annotated[str | None, typer.Option(help="From this time on.", show_default=False)] = None,
    id: Annotated[str | None, typer.Option(help="That name this id.", show_default=False)] = None,
    actor: Annotated[str | None, typer.Option(help="By this actor.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(help="At most this many.")] = 100,
    cursor: Annotated[str | None, typer.Option(help="Go on where a list ended.", show_default=False)] = None,
    data: opt.Data = None,
    url: opt.Url = None,
    as_json: opt.AsJson = False,
) -> int:
    """Show who changed what, oldest first, or verify that nothing of that account was altered."""
    asked = {"since": since, "id": id, "actor": actor, "limit": limit, "cursor": cursor}
    with open_target(Where(data, url)) as target:
        if verify:
            report = target.call("verify_audit", {})
            if as_json:
                print_json(report)
            elif report["ok"]:
                say(f"the audit is whole: {report['events']} events")
            else:
                for finding in report["findings"]:
                    say(finding)
            return OK if report["ok"] else TROUBLE
        page = target.call("audit", {name: value for name, value in asked.items() if value is not None})
    if as_json:
        print_json(page)
        return OK
    if page["next_cursor"]:
        say(f"there are more: --cursor {page['next_cursor']}", sys.stderr)
    for event in page["items"]:
        who = event["actor"]["id"] or event["actor"]["kind"]
        why = f" ({event['reason']})" if event["reason"] else ""
        named = " ".join(event["ids"]) or ("erased since" if event["erased"] else "")
        say(f"{event['time']}  {who}  {event['operation']}  {event['index']}  {named}{why}".rstrip())
    return OK
