"""A disk that fails on demand: `tests/faults/disk.c`, preloaded into a process of its own."""

import ctypes
import os
import subprocess
import sys
from enum import IntEnum
from pathlib import Path

__all__ = ["Call", "Disk", "build", "run_with"]

_SOURCE = Path(__file__).parents[1] / "faults" / "disk.c"


class Call(IntEnum):
    """What can be made to fail, in the order of the enum in `disk.c`."""

    WRITE = 0
    SYNC = 1
    ALLOCATE = 2
    TRUNCATE = 3
    RENAME = 4
    OPEN = 5
    LINK = 6
    REMOVE = 7
    MAKE = 8
    MARK = 9


class Disk:
    """The disk below one folder, for a process that was started by `run_with`."""

    def __init__(self, folder: Path) -> None:
        self._library = ctypes.CDLL(None)
        self._library.disk_calls.restype = ctypes.c_long
        self._library.disk_watch(os.fsencode(folder))

    def fail(self, call: Call, *, after: int, error: int, lasting: bool = True) -> None:
        """Let the next call but `after` of its kind fail, and with `lasting` all behind it."""
        self._library.disk_fail(int(call), ctypes.c_long(after), error, int(lasting), ctypes.c_long(0))

    def cut(self, after: int, length: int) -> None:
        """Let one write take only its first bytes, as the system may."""
        self._library.disk_fail(int(Call.WRITE), ctypes.c_long(after), 0, 0, ctypes.c_long(length))

    def heal(self) -> None:
        self._library.disk_heal()

    def calls(self, call: Call) -> int:
        """How many there were."""
        return int(self._library.disk_calls(int(call)))

    def note(self, path: Path) -> None:
        """Write everything done to the disk from now on into a file."""
        self._library.disk_note(os.fsencode(path))

    def mark(self, what: str) -> None:
        """A line of our own among the notes."""
        self._library.disk_mark(what.encode())


def build(folder: Path) -> Path:
    """Compile the library."""
    library = folder / "disk.so"
    command = ["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(_SOURCE), "-ldl", "-lpthread"]
    subprocess.run(command, check=True, capture_output=True)
    return library


def run_with(library: Path, module: str, *arguments: str, timeout: float) -> str:
    """Run a module in a process on such a disk; what it printed."""
    ran = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env={**os.environ, "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert ran.returncode == 0, f"{ran.stdout[-2000:]}\n{ran.stderr[-6000:]}"
    return ran.stdout
