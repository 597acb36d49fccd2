"""A machine of its own for every test of the doors: folders, environment, and no process left when it ends."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = ["Machine", "wait_for"]

_PATIENCE = 60.0


def wait_for(happened: Callable[[], Any], what: str) -> Any:
    """What `happened` returns once it is true; fails with `what` when it never is."""
    deadline = time.monotonic() + _PATIENCE
    while not (found := happened()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)
    return found


class Machine:
    """Runs `kektor` with every folder below one of its own, by which its processes are known too."""

    def __init__(self, root: Path, *, idle_exit: float = 60.0) -> None:
        self.root = root
        self.data = root / "data"
        self.runtime = Path(tempfile.mkdtemp(prefix="kk-", dir="/tmp"))  # a test's own folder is too deep for a socket
        (root / "home").mkdir()
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("KEKTOR_", "XDG_"))},
            "HOME": str(root / "home"),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "XDG_DATA_HOME": str(root / "share"),
            "XDG_CONFIG_HOME": str(root / "config"),
            "KEKTOR_IDLE_EXIT": str(idle_exit),
            "PYTHONUNBUFFERED": "1",
        }
        self.at_end: list[Callable[[], None]] = []
        """What a test started and need not end itself."""
        self.command = [str(script)] if (script := Path(sys.executable).with_name("kektor")).exists() else _module()

    def run(
        self, *arguments: str, code: int | None = 0, stdin: str = "", env: dict[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """One command on this machine's data directory, its exit code checked."""
        done = subprocess.run(
            [*self.command, *arguments],
            input=stdin,
            env={"KEKTOR_DATA": str(self.data), **self.env, **(env or {})},
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
        )
        assert code is None or done.returncode == code, f"{arguments} ended with {done.returncode}: {done.stderr}"
        return done

    def json(self, *arguments: str, code: int = 0, stdin: str = "", env: dict[str, str] | None = None) -> Any:
        """What a command printed with --json: on standard output, or on standard error when it failed."""
        done = self.run(*arguments, "--json", code=code, stdin=stdin, env=env)
        return json.loads(done.stdout or done.stderr)

    @contextmanager
    def server(self, *arguments: str) -> Iterator[dict[str, Any]]:
        """`kektor serve` or `try` while the block runs; yields the JSON it announces itself with, and its process."""
        process = subprocess.Popen(
            [*self.command, *arguments, "--json"],
            env={"KEKTOR_DATA": str(self.data), **self.env},
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            line = process.stdout.readline()
            assert line, f"{arguments} did not start: {process.stderr.read()}"
            yield {**json.loads(line), "process": process}
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.communicate(timeout=_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()

    def owner(self) -> int:
        """The process that owns the data directory."""
        return int(json.loads((self.data / "LOCK").read_text())["pid"])

    def processes(self) -> list[int]:
        """Every process that lives in this machine's environment."""
        mark = f"XDG_RUNTIME_DIR={self.runtime}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdecimal() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found

    def halt_daemons(self) -> None:
        """Have the owner of the data directory end as it would by itself."""
        pid = self.owner()
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: pid not in self.processes(), "the daemon to end")

    def halt(self) -> None:
        """End what is left, gently first. A test that cares looks at `processes` before."""
        for end in self.at_end:
            end()
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in self.processes():
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            deadline = time.monotonic() + _PATIENCE / 2
            while self.processes() and time.monotonic() < deadline:
                time.sleep(0.02)
        shutil.rmtree(self.runtime, ignore_errors=True)


def _module() -> list[str]:
    return [sys.executable, "-m", "kektor_server.main"]
