"""Servers in the foreground: of a data directory, and of a demo memory that is gone when it stops."""

import contextlib
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from kektor.api import Database
from kektor.errors import KektorError
from kektor_server.cli.faults import Fault
from kektor_server.cli.output import print_json, say
from kektor_server.cli.stopping import Stopping
from kektor_server.daemon.app import DaemonApp
from kektor_server.daemon.ownership import owned, take_over
from kektor_server.daemon.places import UnsafeFolder
from kektor_server.daemon.service import serve_owned
from kektor_server.demo.guide import Guide
from kektor_server.metrics.logs import configure_logging
from kektor_server.rest import bind
from kektor_server.settings import Settings, SettingsError, load_settings

__all__ = ["serve_demo", "serve_directory"]

Flags = dict[str, Any]


def serve_directory(flags: Flags, stopping: Stopping, *, as_json: bool) -> None:
    """Serve until the server is told to stop."""
    with _as_faults():
        settings = _settings(flags)
        data = str(settings.data)
        with _listening(settings) as listener, take_over(data), owned(settings) as owner:
            _show_first_token(owner.database, settings)

            def started(_app: DaemonApp, url: str) -> None:
                if as_json:
                    print_json({"url": url, "socket": owner.places.socket, "data": data, "pid": os.getpid()})
                else:
                    say(f"Kektor serves {data} at {url} (Ctrl-C stops it)")

            serve_owned(owner, settings, tcp=listener, stopping=lambda: stopping.asked, started=started)


def serve_demo(flags: Flags, stopping: Stopping, *, as_json: bool) -> None:
    """Serve a memory made for the occasion, and show what can be done with it."""
    folder = tempfile.mkdtemp(prefix="kektor-try-")
    try:
        with _as_faults():
            settings = _settings({**flags, "data": folder, "auth": False})
            with _listening(settings) as listener, take_over(folder), owned(settings) as owner:
                guide = Guide(owner.database, folder, as_json=as_json)
                serve_owned(
                    owner,
                    settings,
                    tcp=listener,
                    stopping=lambda: stopping.asked,
                    starting=guide.why_not_ready,
                    started=guide.begin,
                )
                guide.end()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _show_first_token(database: Database, settings: Settings) -> None:
    """Where callers need a token and there never was one, there is one now, and nobody else will be shown it."""
    if not settings.authenticated:
        return
    from kektor_server.auth.authority import TokenAuthority

    made = TokenAuthority.of(database).bootstrap()
    if made is not None:
        say(
            f"Kektor made a token with all rights, until {made.expires_at}. It is shown this once, only its hash is "
            f"kept:\n\n{made.token}\n\nkektor token create makes others, kektor token revoke {made.jti} ends it.",
            sys.stderr,
        )


def _settings(flags: Flags) -> Settings:
    settings = load_settings(flags)
    configure_logging(settings)
    return settings


@contextlib.contextmanager
def _listening(settings: Settings) -> Iterator[socket.socket]:
    """Bound before anything is opened or asked to make room, so that a taken port disturbs nothing."""
    listener = bind(settings)
    try:
        yield listener
    finally:
        listener.close()


@contextlib.contextmanager
def _as_faults() -> Iterator[None]:
    try:
        yield
    except KektorError as error:
        raise Fault.of(error.as_dict()["error"]) from error
    except (SettingsError, UnsafeFolder) as error:
        raise Fault(str(error)) from error
