"""serve, try and mcp: what runs until it is stopped. What they need is imported when they run."""

from typing import Annotated

import typer

from kektor_server.cli import options as opt
from kektor_server.cli.faults import OK
from kektor_server.cli.stopping import Stopping
from kektor_server.cli.target import Where

__all__ = ["mcp", "serve", "try_"]

Port = Annotated[
    int | None,
    typer.Option("--port", metavar="N", help="The port (KEKTOR_PORT; default 9091; 0: any).", show_default=False),
]


def serve(
    data: opt.Data = None,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Where to listen (default 127.0.0.1).", show_default=False)
    ] = None,
    port: Port = None,
    auth: Annotated[
        bool | None, typer.Option("--auth", help="Callers need a token (KEKTOR_AUTH).", show_default=False)
    ] = None,
    as_json: opt.AsJson = False,
) -> int:
    """Serve a data directory over HTTP until Ctrl-C."""
    stopping = Stopping()
    with stopping.until_asked():
        with stopping.later():
            from kektor_server.cli.foreground import serve_directory
        flags = {"data": Where(data).data, "host": host, "port": port, "auth": auth}
        serve_directory(flags, stopping, as_json=as_json)
    return OK


def try_(port: Port = None, as_json: opt.AsJson = False) -> int:
    """Start a server with a small demo memory that is gone when it stops."""
    stopping = Stopping()
    with stopping.until_asked():
        with stopping.later():
            from kektor_server.cli.foreground import serve_demo
        serve_demo({"host": "127.0.0.1", "port": port}, stopping, as_json=as_json)
    return OK


def mcp(context: typer.Context) -> int:
    """Serve an agent over MCP on standard input and output (kektor mcp --help)."""
    from kektor_server.mcp.relay import main

    return main(context.args)
