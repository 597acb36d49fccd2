"""A server like `kektor serve` in a process that may be killed: `python -m tests.support.callers.server_process DIR`.

Authentication by tokens is not there yet, so its place is taken by one that believes: the bearer token is the JSON of
a `Who`. New indexes embed with the hashing embedder unless they ask for another.
"""

import json
import logging
import signal
import sys
from contextlib import closing
from pathlib import Path
from types import FrameType

import kektor
from kektor.engine.gateway import Principal
from kektor.engine.records import Actor, ActorKind
from kektor.errors import Unauthenticated
from kektor_server.daemon.app import DaemonApp
from kektor_server.daemon.ownership import take_over
from kektor_server.daemon.places import find_places
from kektor_server.daemon.sockets import UnixListener
from kektor_server.rest import bind, build_server, create_app
from kektor_server.rest.principal import Headers, everyone
from kektor_server.settings import load_settings
from tests.support.callers.door import Who
from tests.support.callers.library import principal_of
from tests.support.embedders import HashingEmbedder


def main() -> None:
    """Serve until killed; the first line of standard output is the address."""
    signal.signal(signal.SIGTERM, _stop)
    logging.basicConfig(level=logging.WARNING)
    settings = load_settings({"data": sys.argv[1], "port": 0})
    places = find_places(str(settings.data))
    with closing(bind(settings)) as tcp, take_over(str(settings.data)):
        database = kektor.open(Path(places.data), embedder=HashingEmbedder())
        with closing(database):
            listener = UnixListener(places)
            app = DaemonApp(
                create_app(database, settings, authenticate=_believe), database, body_bytes=settings.body_bytes
            )
            server = build_server(app, settings, ready=lambda addresses: print(addresses[-1], flush=True))
            app.stopping = lambda: server.should_exit
            server.run(sockets=[listener.socket, tcp])
            app.close()
            listener.remove()


_everyone = everyone()


def _believe(headers: Headers) -> Principal:
    token = headers.get(b"authorization")
    if token is None:
        return _everyone(headers)
    try:
        who = Who(**json.loads(token.removeprefix(b"Bearer ")))
    except (ValueError, TypeError) as error:
        raise Unauthenticated(f"the token is none: {error}") from error
    return principal_of(who, Actor(ActorKind.SERVICE, "", "rest"))


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
