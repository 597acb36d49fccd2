"""A machine with one server process on it, which REST, MCP and the command line share."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx

from tests.support.callers.door import Who

__all__ = ["ServerMachine"]

_REPOSITORY = Path(__file__).parents[3]
_PATIENCE = 60.0


class ServerMachine:
    """Folders and environment of its own; `kill` and `start` as often as a test likes."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.runtime = Path(tempfile.mkdtemp(prefix="ka-", dir="/tmp"))  # a socket's path must be short
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("KEKTOR_", "XDG_"))}
        self.env = {
            **kept,
            "HOME": str(folder),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "PYTHONPATH": os.pathsep.join([str(_REPOSITORY), str(_REPOSITORY / "server")]),
        }
        self.command = [str(script)] if (script := Path(sys.executable).with_name("kektor")).exists() else _MODULE
        self._log = (folder / "server.log").open("ab")
        self._root = ""
        self._tokens: dict[Who, str] = {}
        self.start()

    def start(self) -> None:
        """Serve, and return when requests are taken."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.callers.server_process", str(self.data)],
            env=self.env,
            cwd=_REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        assert self._process.stdout is not None
        url = self._process.stdout.readline().strip()
        assert url, f"the server did not start; see {self._log.name}"
        self._root = self._process.stdout.readline().strip() or self._root
        self.http = httpx.Client(base_url=url, timeout=_PATIENCE)

    def kill(self) -> None:
        """As a power cut would."""
        self.http.close()
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate()

    def restart(self) -> None:
        self.kill()
        self.start()

    def settle(self) -> None:
        """A checkpoint."""
        answer = self.http.post("/v1/admin/checkpoint", headers=self.headers(Who()))
        assert answer.status_code == 200, answer.text

    def headers(self, who: Who) -> dict[str, str]:
        """What a request carries for the server to know who calls: a token that was made for just that."""
        if who not in self._tokens:
            grant = {name: getattr(who, name) for name in ("index", "user", "agent", "project")}
            asked = {"roles": who.rights, "kind": who.kind or "service", "grants": [grant]}
            made = self.http.post("/v1/tokens", json=asked, headers={"authorization": f"Bearer {self._root}"})
            assert made.status_code == 201, made.text
            self._tokens[who] = made.json()["token"]
        return {"authorization": f"Bearer {self._tokens[who]}"}

    def run(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """One `kektor` command."""
        return subprocess.run(
            [*self.command, *arguments],
            env=self.env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
        )

    def close(self) -> None:
        """Stop gracefully and remove what is left."""
        self.http.close()
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        self._log.close()
        shutil.rmtree(self.runtime, ignore_errors=True)


_MODULE = [sys.executable, "-m", "kektor_server.main"]
