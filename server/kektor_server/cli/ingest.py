"""ingest: conversations in."""

from pathlib import Path
from typing import Annotated, Any

import typer

from kektor_server.cli import options as opt
from kektor_server.cli.conversations import Part, parts, read_conversation
from kektor_server.cli.faults import OK, TROUBLE, Fault
from kektor_server.cli.output import Progress, print_json, progress, say, shown
from kektor_server.cli.target import Target, Where, open_target

__all__ = ["ingest"]

_PART = 100
"""Messages a call: what a stopped run has to do again at most, and a quarter of a second of embedding."""


def ingest(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files of messages: .jsonl or .json.")],
    session: Annotated[
        str | None, typer.Option(help="The conversation's name (default: the file's).", show_default=False)
    ] = None,
    title: Annotated[str | None, typer.Option(help="The conversation's title.", show_default=False)] = None,
    data: opt.Data = None,
    url: opt.Url = None,
    index: opt.Index = None,
    user: opt.User = None,
    agent: opt.Agent = None,
    project: opt.Project = None,
    as_json: opt.AsJson = False,
) -> int:
    """Keep conversations verbatim. Running it again changes nothing, so a stopped run is simply repeated."""
    if len(paths) > 1 and (session is not None or title is not None):
        raise Fault("--session and --title are of one conversation: give one file", field="session")
    conversations = [(path, session or path.stem, read_conversation(path)) for path in paths]
    names = [name for _, name, _ in conversations]
    for name in names:
        if names.count(name) > 1:
            raise Fault(f"two files are both named {name!r}: ingest them one by one with --session", field="session")
    where = Where(data, url, index, user, agent, project)
    total = sum(len(messages) for _, _, messages in conversations)
    done = []
    with open_target(where, create=True) as target, progress("ingesting", total) as bar:
        for path, name, messages in conversations:
            fields = where.fields(session=name, title=title)
            counts = _send(target, fields, messages, bar)
            done.append({"path": str(path), "session": name, "messages": len(messages), **counts})
    return _report(done, as_json)


def _send(target: Target, fields: dict[str, Any], messages: list[dict[str, Any]], bar: Progress) -> dict[str, Any]:
    counts: dict[str, Any] = {"created": 0, "duplicate": 0, "blocked": 0, "warnings": []}
    for part in parts(messages, _PART):
        receipt = target.call("ingest_messages", {**fields, "messages": [*part.repeated, *part.new]})
        _count(counts, part, receipt)
        bar.advance(len(part.new))
    return counts


def _count(counts: dict[str, Any], part: Part, receipt: dict[str, Any]) -> None:
    for item in receipt["items"][len(part.repeated) :]:
        counts[item["outcome"]] += 1
    counts["warnings"] += receipt.get("warnings") or []


def _report(done: list[dict[str, Any]], as_json: bool) -> int:
    blocked = sum(each["blocked"] for each in done)
    if as_json:
        names = ("messages", "created", "duplicate", "blocked")
        print_json({"files": done, **{name: sum(each[name] for each in done) for name in names}})
    else:
        for each in done:
            held = f", {each['blocked']} blocked" if each["blocked"] else ""
            session = shown(each["session"])
            say(f"{each['path']}: {each['created']} new, {each['duplicate']} known{held} (session {session})")
            for warning in each["warnings"]:
                say(f"  {shown(warning)}")
    return TROUBLE if blocked else OK
