"""Files changed whole: backed up, then replaced at once, with the mode they had."""

import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from kektor_server.setup.edits import Uneditable

__all__ = ["read_text", "write_text"]


def read_text(path: Path) -> str | None:
    """What a file holds; None when there is none. Line ends are kept."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise Uneditable(f"it is not UTF-8 (byte {error.start})") from None
    except OSError as error:
        raise Uneditable(f"it cannot be read: {error.strerror}") from None


def write_text(path: Path, text: str | None) -> Path | None:
    """Put a file in place, or take away one that is all ours (None); returns where the one before was kept.

    A link is followed: its target is replaced, and the link stays.
    """
    target = Path(os.path.realpath(path))
    try:
        if text is None:
            path.unlink(missing_ok=True)
            return None
        kept = _keep(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(target, text)
        return kept
    except OSError as error:
        raise Uneditable(f"it cannot be written: {error.strerror}") from None


def _keep(target: Path) -> Path | None:
    if not target.exists():
        return None
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    kept = target.with_name(f"{target.name}.{stamp}.kektor-backup")
    descriptor = os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL, target.stat().st_mode & 0o777)
    with open(descriptor, "wb") as stream:
        stream.write(target.read_bytes())
    return kept


def _replace(target: Path, text: str) -> None:
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
    descriptor, making = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with open(descriptor, "wb") as stream:
            stream.write(text.encode())
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(making, mode)
        os.replace(making, target)
    except BaseException:
        Path(making).unlink(missing_ok=True)
        raise
