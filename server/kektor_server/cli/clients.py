"""setup: the memory put into an agent's configuration, looked at there, tried, and taken out."""

from typing import Annotated

import typer

from kektor_server.cli import options as opt
from kektor_server.cli.target import Where

__all__ = ["setup"]


def setup(
    client: Annotated[
        str | None, typer.Argument(metavar="[CLIENT]", help="Which; without one, all are listed.", show_default=False)
    ] = None,
    project: Annotated[
        bool, typer.Option("--project", help="For this repository alone, in its own files and its own scope.")
    ] = False,
    print_only: Annotated[
        bool, typer.Option("--print-only", help="Show what would be written, write nothing.")
    ] = False,
    status: Annotated[bool, typer.Option("--status", help="Show how things stand.")] = False,
    uninstall: Annotated[bool, typer.Option("--uninstall", help="Take everything of ours out again.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Try it: save, start anew, ask.")] = False,
    tools: Annotated[str, typer.Option(help="Which tools: core, agent, admin, reference, all.")] = "core",
    hook: Annotated[bool, typer.Option(help="Recall at every prompt, where the client has hooks.")] = True,
    data: opt.Data = None,
    index: opt.Index = None,
    user: opt.User = None,
    agent: opt.Agent = None,
    as_json: opt.AsJson = False,
) -> int:
    """Give an agent this memory: its MCP server, standing instructions, and a recall at every prompt."""
    from kektor_server.cli.setting_up import run_setup  # its editors are of no use to any other command

    return run_setup(
        client,
        Where(data, None, index, user, agent),
        project=project,
        print_only=print_only,
        status=status,
        uninstall=uninstall,
        check=check,
        tools=tools,
        hook=hook,
        as_json=as_json,
    )
