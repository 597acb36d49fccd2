"""What the command line and `kektor mcp` run with: flag, environment, `kektor.toml`, default, in this order.

Standard library only. `data` stands at the top of the file, beside the settings of a server; the others in its table
`[client]`. Two files are read: the one `KEKTOR_CONFIG` names, else `./kektor.toml`, and behind it
`$XDG_CONFIG_HOME/kektor/kektor.toml`. A file met in the current folder may have come with somebody's repository, so it
cannot say where memories are sent (`url`).
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["CLIENT_NAMES", "Config", "ConfigError", "Setting", "config_files", "default_data"]

CLIENT_NAMES = ("url", "token", "index", "user", "agent", "project")
"""What the table `[client]` may set; the environment has them as KEKTOR_URL and so on."""

_FILE = "kektor.toml"


class ConfigError(Exception):
    """A setting that cannot be used; the message says which, where it stands and what to do."""


class Setting(NamedTuple):
    """A value and where it was found: `flag`, the variable, the file, or `default`."""

    value: str | None
    origin: str


class Config:
    """The settings of one run.

    >>> Config(environ={"KEKTOR_DATA": "/srv/memory"}, folder="/").data()
    '/srv/memory'
    """

    def __init__(self, environ: Mapping[str, str] | None = None, folder: str | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._files = list(_files(self._environ, os.curdir if folder is None else folder))

    def get(self, name: str, flag: str | None = None) -> str | None:
        """The value that counts, or None."""
        return self.find(name, flag).value

    def find(self, name: str, flag: str | None = None) -> Setting:
        """The value that counts and where it was found. An empty variable counts as not set."""
        if flag is not None:
            return Setting(flag, "flag")
        variable = f"KEKTOR_{name.upper()}"
        if value := self._environ.get(variable):
            return Setting(value, variable)
        for path, values in self._files:
            if name in values:
                return Setting(values[name], path)
        return Setting(None, "default")

    def data(self, flag: str | None = None) -> str:
        """The data directory."""
        found = self.get("data", flag)
        return os.path.expanduser(found) if found else default_data(self._environ)


def default_data(environ: Mapping[str, str] | None = None) -> str:
    """`$XDG_DATA_HOME/kektor/default`, by default `~/.local/share/kektor/default`: one a user, because editors start
    agents in whatever folder they please."""
    environ = os.environ if environ is None else environ
    base = environ.get("XDG_DATA_HOME") or os.path.join(_home(environ), ".local", "share")
    return os.path.join(base, "kektor", "default")


def config_files(environ: Mapping[str, str], folder: str = os.curdir) -> list[tuple[str, bool]]:
    """The files there are, the one that counts most first, and whether the user chose each.

    ConfigError when `KEKTOR_CONFIG` names one that is not there.
    """
    config_home = environ.get("XDG_CONFIG_HOME") or os.path.join(_home(environ), ".config")
    found = []
    named = environ.get("KEKTOR_CONFIG")
    if named:
        named = os.path.expanduser(named)
        if not os.path.isfile(named):
            raise ConfigError(f"{named}: there is no such file; KEKTOR_CONFIG names it")
        found.append((named, True))
    elif os.path.isfile(met := os.path.join(folder, _FILE)):
        found.append((met, False))
    if os.path.isfile(own := os.path.join(config_home, "kektor", _FILE)):
        found.append((own, True))
    return found


def _home(environ: Mapping[str, str]) -> str:
    return environ.get("HOME") or os.path.expanduser("~")


def _files(environ: Mapping[str, str], folder: str) -> list[tuple[str, dict[str, str]]]:
    return [(path, _read(path, trusted=trusted)) for path, trusted in config_files(environ, folder)]


def _read(path: str, *, trusted: bool) -> dict[str, str]:
    import tomllib  # costs more than the rest of this file, and most runs have no file to read

    try:
        with open(path, "rb") as stream:
            table = tomllib.load(stream)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    client = table.get("client", {})
    if not isinstance(client, dict):
        raise ConfigError(f"{path}: client must be a table")
    values = {name: _text(path, f"client.{name}", value) for name, value in client.items()}
    for name in values:
        if name not in CLIENT_NAMES:
            raise ConfigError(f"{path}: unknown setting client.{name}; there are {', '.join(CLIENT_NAMES)}")
    for name in ("url", "token"):
        if name in values and not trusted:
            raise ConfigError(
                f"{path}: client.{name} is not read from a file met in a folder, which may have come with a "
                f"repository; set it with KEKTOR_{name.upper()} or in ~/.config/kektor/{_FILE}"
            )
    if "data" in table:
        data = os.path.expanduser(_text(path, "data", table["data"]))
        values["data"] = os.path.join(os.path.dirname(os.path.abspath(path)), data)
    return values


def _text(path: str, name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{path}: {name} must be a text, not {value!r}")
    return value
