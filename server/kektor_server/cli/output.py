"""What a command prints: JSON for programs, words for people, progress on standard error."""

import json
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Protocol

from kektor_server.cli.faults import Fault

__all__ = ["Progress", "print_fault", "print_json", "progress", "say", "shown"]


class Progress(Protocol):
    """Told how far a long work has come."""

    def advance(self, count: int) -> None: ...


def print_json(value: Any) -> None:
    """One line of JSON in UTF-8, whatever the terminal's own encoding."""
    sys.stdout.buffer.write(json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n")
    sys.stdout.buffer.flush()


def say(text: str, stream: IO[str] | None = None) -> None:
    """A line for a person."""
    print(text, file=stream or sys.stdout, flush=True)


def print_fault(fault: Fault, *, as_json: bool) -> None:
    """An error on standard error: the error object, or one sentence."""
    if as_json:
        say(json.dumps(fault.as_dict()), sys.stderr)
    else:
        say(f"kektor: {shown(fault.message)}", sys.stderr)


def shown(text: str) -> str:
    """A stored text that cannot move the cursor, change colours or end the terminal's line discipline."""
    return "".join(
        char if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs") else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Progress]:
    """A bar on standard error when somebody can see it, else nothing."""
    if not sys.stderr.isatty():
        yield _Silent()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield _Shown(lambda count: bar.advance(task, count))


class _Silent:
    def advance(self, count: int) -> None:
        """Nobody looks."""


class _Shown:
    def __init__(self, advance: Any) -> None:
        self.advance = advance
