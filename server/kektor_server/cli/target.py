"""Whom a command speaks to: the server of `--url`, the daemon of a data directory, or the directory itself."""

import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from kektor_server.cli.faults import Fault
from kektor_server.cli.remote import RemoteTarget
from kektor_server.config import Config, ConfigError, Setting
from kektor_server.daemon.client import answers
from kektor_server.daemon.places import Places, UnsafeFolder, find_places

__all__ = ["Target", "Where", "human_at_terminal", "open_target"]

_PATIENCE = 5.0
_POLL = 0.05


class Target(Protocol):
    """What every command works on."""

    def call(self, operation: str, fields: Mapping[str, Any], about: str = "") -> Any: ...
    def doctor(self) -> dict[str, Any]: ...
    def repair(self) -> list[str]: ...
    def export(self, indexes: list[str] | None) -> Iterator[bytes]: ...
    def close(self) -> None: ...


class Where:
    """The flags and settings that say where, and as whom."""

    def __init__(
        self,
        data: str | None = None,
        url: str | None = None,
        index: str | None = None,
        user: str | None = None,
        agent: str | None = None,
        project: str | None = None,
    ) -> None:
        try:
            self.config = Config()
        except ConfigError as error:
            raise Fault(str(error)) from error
        if data is not None and url is not None:
            raise Fault("give either --data or --url: one says which directory, the other which server", field="url")
        self._data_flag = data
        self._url = self.config.find("url", url)
        self.index = self.config.get("index", index) or "default"
        named = {"user": user, "agent": agent, "project": project}
        self.scope = {name: value for name, flag in named.items() if (value := self.config.get(name, flag)) is not None}

    @property
    def url(self) -> str | None:
        """The server to ask; None when a directory was named more closely, as a flag does over a variable."""
        if self._url.value is None:
            return None
        data = self.config.find("data", self._data_flag)
        return None if _rank(data) > _rank(self._url) else self._url.value

    @property
    def data(self) -> str:
        """The data directory."""
        return self.config.data(self._data_flag)

    @property
    def data_is_named(self) -> bool:
        """Whether the directory is another than the usual one."""
        return self.config.find("data", self._data_flag).value is not None

    def fields(self, **given: Any) -> dict[str, Any]:
        """The fields of a request without those that were not given."""
        fields = {name: value for name, value in given.items() if value is not None and value != []}
        fields["index"] = self.index
        if self.scope:
            fields["scope"] = self.scope
        return fields


@contextmanager
def open_target(where: Where, *, create: bool = False) -> Iterator[Target]:
    """The target of a command for as long as it runs; `create` makes a directory that is not there."""
    target = _find(where, create=create)
    try:
        yield target
    finally:
        target.close()


def human_at_terminal() -> bool:
    """Whether somebody types: then the command acts for a person."""
    return sys.stdin is not None and sys.stdin.isatty()


def find_places_of(data: str) -> Places:
    """Where the daemon of a directory is met; Fault when the runtime folder is unsafe."""
    try:
        return find_places(data)
    except UnsafeFolder as error:
        raise Fault(str(error), "unavailable") from error


def _find(where: Where, *, create: bool) -> Target:
    human = human_at_terminal()
    if where.url is not None:
        return RemoteTarget.at(where.url, where.config.get("token"))
    places = find_places_of(where.data)
    if answers(places.socket):
        return RemoteTarget.through_socket(places.socket, human=human)
    if not create and not os.path.isdir(os.path.join(places.data, "log")):
        raise Fault(
            f"there is no memory at {places.data}: remember and ingest make one, --data names another", field="data"
        )
    return _opened(places, human=human)


def _opened(places: Places, *, human: bool) -> Target:
    """The directory itself. Who holds it for a moment is waited for; a daemon on its way up is asked instead."""
    # Here and not above: a command that asks a server starts without the library.
    from kektor.errors import KektorError, Locked
    from kektor_server.cli.local import LocalTarget
    from kektor_server.settings import SettingsError, load_settings

    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return LocalTarget(load_settings({"data": places.data}), human=human)
        except Locked as error:
            if answers(places.socket):
                return RemoteTarget.through_socket(places.socket, human=human)
            if time.monotonic() > deadline:
                raise Fault.of(error.as_dict()["error"]) from error
            time.sleep(_POLL)
        except KektorError as error:
            raise Fault.of(error.as_dict()["error"]) from error
        except SettingsError as error:
            raise Fault(str(error)) from error


def _rank(setting: Setting) -> int:
    """How closely a value was named: by a flag, a variable, a file, or not at all."""
    if setting.value is None:
        return 0
    return 3 if setting.origin == "flag" else 2 if setting.origin.startswith("KEKTOR_") else 1
