"""What `kektor try` prints: one real answer, and examples that work as they stand."""

import http.client
import json
import os
import shutil
import signal
import sys
import threading
from typing import Any

import kektor
from kektor.errors import KektorError, Unavailable
from kektor_server.cli.output import print_json, say, shown
from kektor_server.daemon.app import DaemonApp
from kektor_server.daemon.client import connection_to, request
from kektor_server.demo.team import QUESTION, fill

__all__ = ["Guide", "examples"]


class Guide:
    """Fills the memory while the server runs already, asks it a question, and shows how to ask others."""

    why_not_ready = "the demo memory is being filled; it takes a second"

    def __init__(self, database: kektor.Database, folder: str, *, as_json: bool) -> None:
        self._database = database
        self._folder = folder
        self._as_json = as_json
        self._failed: KektorError | None = None
        self._thread: threading.Thread | None = None

    def begin(self, app: DaemonApp, url: str) -> None:
        """The server takes requests: do the rest beside it."""
        self._thread = threading.Thread(target=self._run, args=(app, url), name="demo")
        self._thread.start()

    def end(self) -> None:
        """The server has stopped. Raises what kept the demo from showing anything."""
        if self._thread is not None:
            self._thread.join()
        if self._failed is not None:
            raise self._failed

    def _run(self, app: DaemonApp, url: str) -> None:
        if not self._as_json:
            say(f"Kektor is up at {url} with a demo memory in {self._folder} (gone when it stops).\n")
        try:
            fill(self._database)
            app.starting = None
            self._show(url, _ask(url))
        except KektorError as error:
            if not app.stopping():  # else it is only Ctrl-C, which came early
                self._failed = error
                os.kill(os.getpid(), signal.SIGTERM)

    def _show(self, url: str, recall: dict[str, Any]) -> None:
        if self._as_json:
            asked = {"question": QUESTION, "recall": recall, "examples": examples(url)}
            print_json({"url": url, "data": self._folder, **asked})
            return
        say(f"One real recall, asked over HTTP: {QUESTION}")
        for hit in recall["hits"][:1]:
            memory = hit["memory"]
            say(f"  {shown(memory['text'])}")
            labels = (memory["validity"]["label"], memory["trust"], f"replaces {memory['supersedes']}")
            say(f"  [{', '.join(labels)}, score {hit['score']:.3f}]")
        for title, text in examples(url).items():
            say(f"\n{title}\n" + "\n".join(f"  {line}" for line in text.splitlines()))
        say("\nThat agent's own memory will be in its default directory; to show it this one while it is there, add")
        say(f'  "--data", "{self._folder}"')
        say("Ctrl-C stops it.")


def examples(url: str) -> dict[str, str]:
    """Ready to paste, by what they are for."""
    recall = json.dumps({"query": QUESTION, "k": 3})
    remember = json.dumps({"text": "The board demo moved to Friday", "tags": ["decision"]})
    command, *arguments = [*_executable(), "mcp"]
    entry = {"mcpServers": {"kektor": {"command": command, "args": arguments}}}
    return {
        "Ask (curl)": f"curl -s {url}/v1/recall -H 'content-type: application/json' -d '{recall}'",
        "Save (curl)": f"curl -s {url}/v1/memories -H 'content-type: application/json' -d '{remember}'",
        "An agent's MCP client": json.dumps(entry, indent=2),
        "Python, embedded": (
            "import kektor\n"
            'with kektor.open("./memory") as db:\n'
            "    memory = db.memory()\n"
            '    memory.remember("Dana owns the Henderson account")\n'
            '    print(memory.recall("who owns Henderson?").context)'
        ),
    }


def _executable() -> list[str]:
    """How to start this very program from anywhere."""
    started = shutil.which(sys.argv[0])
    if started is not None and os.path.basename(started).startswith("kektor"):
        return [os.path.abspath(started)]
    return [sys.executable, "-m", "kektor_server.main"]


def _ask(url: str) -> dict[str, Any]:
    connection = connection_to(url, timeout=30)
    try:
        answer = request(connection, "POST", "/v1/recall", json.dumps({"query": QUESTION, "k": 3}).encode())
        found: dict[str, Any] = answer.json()
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unavailable(f"the demo server did not answer: {error}") from error
    finally:
        connection.close()
    if answer.status != 200:
        raise Unavailable(f"the demo server answered {answer.status}: {answer.body.decode(errors='replace')}")
    return found
