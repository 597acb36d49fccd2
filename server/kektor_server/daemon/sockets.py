"""The socket by which a daemon is found."""

import contextlib
import os
import socket

from kektor_server.daemon.places import Places

__all__ = ["UnixListener"]

_BACKLOG = 1024


class UnixListener:
    """A listening socket in the runtime folder, for this user only."""

    def __init__(self, places: Places) -> None:
        self._path = places.socket
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Made under another name, so that whoever finds the right one finds it listening and closed to others; the
        # rename takes the place of what a killed daemon left.
        making = f"{places.socket}.new"
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
        """Stop listening and take the name away, unless it is another's by now."""
        self.socket.close()
        with contextlib.suppress(FileNotFoundError):
            if os.stat(self._path).st_ino == self._inode:
                os.unlink(self._path)
