"""`kektor hook CLIENT`: run by a client when the user has written a prompt, to put what is known of it in front of the
model.

Standard library only, bounded in time, and silent when there is nothing to say or anything goes wrong: a prompt never
waits for memory, nor fails because of it.
"""

import argparse
import json
import os
import sys
import threading
from typing import Any

from kektor_server.config import Config, ConfigError
from kektor_server.daemon.places import UnsafeFolder, find_places

__all__ = ["EVENTS", "main"]

EVENTS = {"claude-code": "UserPromptSubmit", "codex": "UserPromptSubmit", "gemini-cli": "BeforeAgent"}
"""By client: what it calls the moment after a prompt was written."""

_SECONDS = 1.5
_TOKENS = 600
_HITS = 4
_LONGEST_PROMPT = 4_000
_INTRODUCTION = (
    "Previews from the user's long-term memory that may bear on this prompt (the tool read_memory shows one whole)."
)


def main(arguments: list[str]) -> int:
    """Answer one prompt on standard input; the exit code is 0 whatever happens, so that no prompt is stopped."""
    options = _parser().parse_args(arguments)
    worker = threading.Thread(target=_answer, args=(options,), daemon=True)
    worker.start()
    worker.join(_SECONDS)
    os._exit(0)  # a thread that still waits for the daemon is left behind


def _answer(options: argparse.Namespace) -> None:
    try:
        asked = json.load(sys.stdin)
        prompt = str(asked.get("prompt") or "").strip()[:_LONGEST_PROMPT]
        context = _recalled(prompt, options) if prompt else ""
    except (OSError, ValueError, KeyError, AttributeError, TypeError, ConfigError, UnsafeFolder):
        return
    if context:
        event = EVENTS[options.client]
        told = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": f"{_INTRODUCTION}\n{context}"}}
        os.write(1, json.dumps(told).encode() + b"\n")


def _recalled(prompt: str, options: argparse.Namespace) -> str:
    from kektor_server.daemon.client import UnixConnection, answers, request

    config = Config()
    places = find_places(config.data(options.data))
    if not answers(places.socket):
        return ""  # the first tool call starts the daemon; a prompt does not wait for that
    named = {name: config.get(name, getattr(options, name)) for name in ("user", "agent", "project")}
    scope = {name: value for name, value in named.items() if value}
    body: dict[str, Any] = {"query": prompt, "k": _HITS, "budget_tokens": _TOKENS}
    body |= {"index": index} if (index := config.get("index", options.index)) else {}
    body |= {"scope": scope} if scope else {}
    connection = UnixConnection(places.socket, _SECONDS)
    try:
        # Through the Unix socket a server with authentication asks this machine's own user for no token.
        answer = request(connection, "POST", "/v1/recall", json.dumps(body).encode(), {"Kektor-Cli": "service"})
    finally:
        connection.close()
    if answer.status != 200:
        return ""
    found = answer.json()
    context = str(found["context"])
    longer = found["dropped"] if context else []
    return f"{context}\nMore that did not fit: {', '.join(longer)}" if longer else context


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kektor hook",
        description="Read a client's prompt event on standard input and answer with what the memory knows of it. "
        "`kektor setup` puts this where it belongs.",
        allow_abbrev=False,
    )
    parser.add_argument("client", choices=EVENTS, help="in whose format")
    parser.add_argument("--data", metavar="DIR", help="the data directory (KEKTOR_DATA)")
    for name in ("user", "agent", "project", "index"):
        parser.add_argument(f"--{name}", help=f"as for kektor mcp (KEKTOR_{name.upper()})")
    return parser
