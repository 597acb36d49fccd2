"""doctor and version."""

import sys
from typing import Annotated

import typer

from kektor_server.cli import options as opt
from kektor_server.cli.faults import OK, TROUBLE, Fault
from kektor_server.cli.output import print_json, say
from kektor_server.cli.target import Where, open_target

__all__ = ["doctor", "version"]


def doctor(
    repair: Annotated[bool, typer.Option("--repair", help="Mend what can be mended; keep a copy before.")] = False,
    data: opt.Data = None,
    url: opt.Url = None,
    as_json: opt.AsJson = False,
) -> int:
    """Look for damage: every checkpoint byte, every structure, the audit, what was met in the log. Changes nothing.

    With --repair it builds anew what is derived, sets damaged records aside in quarantine/, and writes sound
    checkpoints; then it looks again.
    """
    where = Where(data, url)
    done: list[str] = []
    try:
        if repair:
            with open_target(where) as target:
                done = target.repair()
        with open_target(where) as target:
            report = target.doctor()
    except Fault as fault:
        if fault.code != "corrupt":
            raise
        report = {"ok": False, "findings": [_nothing_left(where.data, fault)]}
    if as_json:
        print_json({**report, "repaired": done} if repair else report)
        return OK if report["ok"] else TROUBLE
    for what in done:
        say(f"repaired: {what}")
    if report["ok"]:
        say("no damage found")
    else:
        for finding in report["findings"]:
            say(f"{finding['severity']}: {finding['where']}: {finding['what']}")
            say(f"  lost: {finding['lost']}")
            say(f"  to do: {finding['action']}")
    return OK if report["ok"] else TROUBLE


def _nothing_left(data: str, fault: Fault) -> dict[str, str]:
    return {
        "severity": "error",
        "where": data,
        "what": fault.message,
        "lost": "it cannot be opened as it is",
        "action": "keep a copy of the directory, and restore a backup",
    }


def version(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Show the versions of Kektor, its native core and Python."""
    import kektor_native

    from kektor.version import __version__

    versions = {"version": __version__, "native": kektor_native.__version__, "python": sys.version.split()[0]}
    if as_json:
        print_json(versions)
    else:
        say(f"kektor {versions['version']} (native core {versions['native']}, Python {versions['python']})")
    return OK
