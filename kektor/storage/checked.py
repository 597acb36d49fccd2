"""Small files that are written whole, and know when a byte of theirs is not what was written."""

from pathlib import Path

from kektor_native import crc32c

from kektor.storage.disk import replace_file

__all__ = ["Damaged", "read_checked", "write_checked"]


class Damaged(Exception):
    """The content is not what its checksum was made of."""


def write_checked(path: Path, content: bytes) -> None:
    """Replace the file, readable by its owner alone; durable when this returns."""
    replace_file(path, b"%s\n%08x\n" % (content, crc32c(content)))


def read_checked(path: Path) -> bytes | None:
    """The content as it was written, None when there is no file; else Damaged."""
    try:
        whole = path.read_bytes()
    except FileNotFoundError:
        return None
    content, _, checksum = whole.removesuffix(b"\n").rpartition(b"\n")
    if checksum != b"%08x" % crc32c(content):
        raise Damaged
    return content
