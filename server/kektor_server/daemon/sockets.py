"""The sockets a daemon listens on."""

import contextlib
import errno
import os
import socket

from kektor_server.daemon.places import Places

__all__ = ["PortTaken", "UnixListener", "listen_tcp"]

_BACKLOG = 1024


class PortTaken(Exception):
    """The address cannot be listened on; the message says how to choose another."""


def listen_tcp(host: str, port: int) -> socket.socket:
    """A listening socket on an address of this machine; port 0 picks a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortTaken(
                f"port {port} on {host} is taken: choose another with --port N (0 picks a free one), or stop the "
                "program that has it"
            ) from error
        raise PortTaken(f"cannot listen on {host} port {port}: {error.strerror}") from error
    listener.setblocking(False)
    return listener


class UnixListener:
    """A listening socket in the runtime folder, for this user only."""

    def __init__(self, places: Places) -> None:
        self._path = places.socket
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Made under another name, so that whoever finds the right one finds it listening and closed to others;
        # the rename takes the place of what a killed daemon left.
        making = f"{places.socket}.{os.getpid()}"
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(making)
            self.socket.bind(making)
            os.chmod(making, 0o600)
            self.socket.listen(_BACKLOG)
            self.socket.setblocking(False)
            os.rename(making, places.socket)
            self._inode = os.stat(places.socket).st_ino
        except BaseException:
            self.socket.close()
            raise

    def remove(self) -> None:
        """Take the name away, unless it is another's by now."""
        with contextlib.suppress(FileNotFoundError):
            if os.stat(self._path).st_ino == self._inode:
                os.unlink(self._path)
