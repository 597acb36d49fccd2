"""SIGINT and SIGTERM to a command that runs until it is stopped. Standard library only: it is there before the rest."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Stopping"]


class Stopping:
    """Whether somebody asked for the end, from the first moment on.

    Native code that is interrupted while it loads may swallow KeyboardInterrupt or pass on another error in its place.
    So the signal is remembered as well as raised: `asked` is looked at again where the serving begins.

    >>> stopping = Stopping()
    >>> with stopping.until_asked():
    ...     with stopping.later():
    ...         signal.raise_signal(signal.SIGTERM)
    ...         print("an import goes on to its end")
    ...     print("not reached")
    an import goes on to its end
    >>> stopping.asked
    True
    """

    def __init__(self) -> None:
        self.asked = False
        self._held = False

    @contextmanager
    def until_asked(self) -> Iterator[None]:
        """Run the block until a signal ends it, cleanly."""
        before = {number: signal.signal(number, self._hear) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        except BaseException as error:
            if not (self.asked and _interrupted(error)):
                raise
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def later(self) -> Iterator[None]:
        """Let the block come to its end first: for short work that must not be torn, like an import."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self.asked:
            raise KeyboardInterrupt

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True
        if not self._held:
            raise KeyboardInterrupt


def _interrupted(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
