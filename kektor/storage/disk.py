"""The few file operations durability rests on."""

import os
from pathlib import Path

__all__ = ["make_folder", "replace_file", "sync_folder"]


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
