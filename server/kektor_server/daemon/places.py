"""The names of what a daemon leaves in the user's runtime folder. Standard library only.

They are made of a hash of the data directory's real path, so whoever means the same directory finds the same socket.
"""

import hashlib
import os
import stat
from typing import NamedTuple

__all__ = ["Places", "UnsafeFolder", "find_places", "runtime_folder"]

_LONGEST_SOCKET = 103
"""Bytes of a socket's path that every system takes (104 with the closing zero on macOS)."""


class UnsafeFolder(Exception):
    """The runtime folder is not the user's alone, or cannot be made."""


class Places(NamedTuple):
    """Where the daemon of one data directory is met."""

    data: str
    """The real path of the data directory."""
    socket: str
    lock: str
    """Held by the daemon from before it starts until it has ended."""
    log: str


def find_places(data: str) -> Places:
    """Where the daemon of a data directory is met; makes the runtime folder when it is not there."""
    real = os.path.realpath(data)
    base = os.path.join(runtime_folder(), hashlib.sha256(os.fsencode(real)).hexdigest()[:20])
    places = Places(real, f"{base}.sock", f"{base}.lock", f"{base}.log")
    if len(os.fsencode(f"{places.socket}.new")) > _LONGEST_SOCKET:
        raise UnsafeFolder(
            f"{places.socket} is too long for a socket: set XDG_RUNTIME_DIR to a folder with a shorter path"
        )
    return places


def runtime_folder() -> str:
    """`$XDG_RUNTIME_DIR/kektor`, else `/run/user/<uid>/kektor`, else `/tmp/kektor-<uid>`.

    MCP clients start servers without most of the environment: the second is what it would have said in a session, and
    the third does not ask it, so that an agent and a shell meet in the same folder.
    Raises UnsafeFolder when it is not a real folder that belongs to this user and nobody else may enter.
    """
    uid = os.getuid()
    session = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{uid}"
    if os.path.isabs(session) and os.access(session, os.W_OK | os.X_OK):
        folder = os.path.join(session, "kektor")
    else:
        folder = f"/tmp/kektor-{uid}"
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise UnsafeFolder(
            f"{folder} cannot be made: {error.strerror}. Set XDG_RUNTIME_DIR to a folder of yours"
        ) from error
    _check(folder, uid)
    return folder


def _check(folder: str, uid: int) -> None:
    found = os.lstat(folder)  # a link could lead anywhere, so it is refused as well
    if not stat.S_ISDIR(found.st_mode):
        raise UnsafeFolder(f"{folder} is no folder: remove it, or set XDG_RUNTIME_DIR to a folder of yours")
    if found.st_uid != uid:
        raise UnsafeFolder(
            f"{folder} belongs to user {found.st_uid}, not to you ({uid}): whoever owns it could answer in the "
            "daemon's place. Remove it, or set XDG_RUNTIME_DIR to a folder of yours"
        )
    if found.st_mode & 0o077:
        raise UnsafeFolder(f"{folder} is open to others (mode {found.st_mode & 0o777:o}): chmod 700 {folder}")
