"""The application: every command, and how all of them end."""

import os
import sys

import typer

from kektor_server.cli import details, graph, memories
from kektor_server.cli.audit import audit
from kektor_server.cli.checking import doctor, version
from kektor_server.cli.clients import setup
from kektor_server.cli.compacting import compact
from kektor_server.cli.exporting import export
from kektor_server.cli.faults import OK, UNABLE, Fault, exit_code
from kektor_server.cli.importing import import_
from kektor_server.cli.indexes import indexes
from kektor_server.cli.ingest import ingest
from kektor_server.cli.output import print_fault
from kektor_server.cli.review import review
from kektor_server.cli.serving import mcp, serve, try_
from kektor_server.cli.sessions import sessions
from kektor_server.cli.settings import config
from kektor_server.cli.tokens import tokens
from kektor_server.cli.tombstones import tombstones

__all__ = ["run"]

_INTERRUPTED = 130

app = typer.Typer(
    name="kektor",
    help="A vector-plus-graph memory database for AI agents.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def run(arguments: list[str]) -> int:
    """Run one command; returns its exit code: 0 done, 1 trouble found or refused, 2 used wrongly or unable to look."""
    as_json = "--json" in arguments
    try:
        ended = app(arguments, prog_name="kektor", standalone_mode=False)
        sys.stdout.flush()
    except Fault as fault:
        print_fault(fault, as_json=as_json)
        return exit_code(fault.code)
    except BrokenPipeError:
        # Who read us has gone; the interpreter must not find that out again when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except (KeyboardInterrupt, typer.Abort):
        return _INTERRUPTED
    except Exception as error:
        told = getattr(error, "format_message", None)
        if told is None:
            raise
        # The parser of the command line reports through exceptions that have their message this way.
        print_fault(Fault(told()), as_json=as_json)
        return UNABLE
    return ended if isinstance(ended, int) else OK


for name, command in (
    ("try", try_),
    ("serve", serve),
    ("remember", memories.remember),
    ("recall", memories.recall),
    ("get", memories.get),
    ("list", memories.list_),
    ("history", memories.history),
    ("evolve", memories.evolve),
    ("correct", memories.correct),
    ("retract", memories.retract),
    ("forget", memories.forget),
    ("sessions", sessions),
    ("archive", details.archive),
    ("restore-memory", details.restore_memory),
    ("pin", details.pin),
    ("unpin", details.unpin),
    ("confirm", details.confirm),
    ("update", details.update),
    ("share", details.share),
    ("evidence", details.evidence),
    ("link", graph.link),
    ("unlink", graph.unlink),
    ("edges", graph.edges),
    ("path", graph.path),
    ("review", review),
    ("tombstones", tombstones),
    ("audit", audit),
    ("compact", compact),
    ("ingest", ingest),
    ("import", import_),
    ("export", export),
    ("doctor", doctor),
    ("setup", setup),
    ("config", config),
    ("version", version),
):
    app.command(name)(command)
app.add_typer(tokens)
app.command("mcp", add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})(
    mcp
)
app.add_typer(indexes)
