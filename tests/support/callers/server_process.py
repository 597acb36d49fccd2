"""A server like `kektor serve` in a process that may be killed: `python -m tests.support.callers.server_process DIR`.

It asks for tokens. New indexes embed with the hashing embedder unless they ask for another.
"""

import logging
import signal
import sys
from contextlib import closing
from pathlib import Path
from types import FrameType

import kektor
from kektor_server.auth.authority import TokenAuthority
from kektor_server.daemon.app import DaemonApp
from kektor_server.daemon.ownership import take_over
from kektor_server.daemon.places import find_places
from kektor_server.daemon.sockets import UnixListener
from kektor_server.rest import bind, build_server, create_app
from kektor_server.settings import load_settings
from tests.support.embedders import HashingEmbedder


def main() -> None:
    """Serve until killed. Standard output has the address, then the first token, or nothing when there was one."""
    signal.signal(signal.SIGTERM, _stop)
    logging.basicConfig(level=logging.WARNING)
    settings = load_settings({"data": sys.argv[1], "port": 0, "auth": True})
    places = find_places(str(settings.data))
    with closing(bind(settings)) as tcp, take_over(str(settings.data)):
        database = kektor.open(Path(places.data), embedder=HashingEmbedder())
        with closing(database):
            listener = UnixListener(places)
            first = TokenAuthority.of(database).bootstrap()
            app = DaemonApp(create_app(database, settings), database, body_bytes=settings.body_bytes)

            def ready(addresses: list[str]) -> None:
                print(addresses[-1], "" if first is None else first.token, sep="\n", flush=True)

            server = build_server(app, settings, ready=ready)
            app.stopping = lambda: server.should_exit
            server.run(sockets=[listener.socket, tcp])
            app.close()
            listener.remove()


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
