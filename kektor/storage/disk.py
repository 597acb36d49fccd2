"""The few file operations durability rests on."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kektor.errors import Unavailable

__all__ = ["disk_errors", "make_folder", "refused", "replace_file", "sync_folder"]

_CURES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space, or ask for a larger quota",
    errno.EROFS: "it lies on read-only media and the log must be written there: mount it writable, or copy it",
    errno.EACCES: "give this user the right to read and write there",
    errno.EPERM: "give this user the right to read and write there",
    errno.EMFILE: "this process has too many files open: raise its limit (ulimit -n)",
    errno.ENFILE: "the system has too many files open",
    errno.EIO: "the device fails: copy what can be read, and replace it",
    errno.ENOTDIR: "a folder is needed there, and something else is in its place",
}


@contextmanager
def disk_errors(folder: Path, doing: str, after: str) -> Iterator[None]:
    """What the operating system refuses, as the error callers know: what was tried, why not, what to do."""
    try:
        yield
    except OSError as error:
        raise refused(folder, error, doing, after) from error


def refused(folder: Path, error: OSError, doing: str, after: str) -> Unavailable:
    cause = os.strerror(error.errno) if error.errno else str(error)
    where = error.filename if isinstance(error.filename, str) and error.filename != str(folder) else ""
    cure = _CURES.get(error.errno or 0, "look at the disk")
    named = f" ({where})" if where else ""
    return Unavailable(
        f"{folder} cannot be {doing}: {cause}{named}. {after}{cure[0].upper()}{cure[1:]}.",
        details={"path": str(folder), "errno": error.errno},
    )


def sync_folder(folder: Path) -> None:
    """Make creations, renames and removals in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a folder and make its name durable; its parent must exist."""
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder.parent)


def replace_file(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Write a small file so that a reader finds the old content or the new, whole, after any crash."""
    temporary = path.with_name(path.name + ".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(temporary, path)
    sync_folder(path.parent)
