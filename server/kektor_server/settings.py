"""What a server runs with: flag, environment, `kektor.toml`, default, in that order of precedence.

Only the standard library is imported, so that a command that merely looks for a running daemon stays quick.
"""

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

from kektor_server.config import ConfigError, config_files, default_data

__all__ = ["Settings", "SettingsError", "load_settings"]


class SettingsError(ValueError):
    """A setting that is unknown or cannot mean anything; the message says where it came from."""


def _default_data() -> Path:
    return Path(default_data())


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All of them, with their defaults. In `kektor.toml` the names are these, in the environment `KEKTOR_` + name.

    >>> Settings(port=0).host
    '127.0.0.1'
    """

    data: Annotated[Path, "the data directory"] = field(default_factory=_default_data)
    host: Annotated[str, "the address to listen on"] = "127.0.0.1"
    port: Annotated[int, "the port to listen on; 0 takes a free one"] = 9091
    allowed_hosts: Annotated[tuple[str, ...], "names besides those of loopback that a Host header may hold"] = ()
    allowed_origins: Annotated[tuple[str, ...], "origins (https://app.example) whose pages may call"] = ()
    auth: Annotated[bool, "callers need a token; off loopback they always do, unless `insecure`"] = False
    insecure: Annotated[bool, "listen off loopback without authentication"] = False
    embedder: Annotated[str, "what new indexes embed with"] = "default"
    sync: Annotated[str, "when a write is acknowledged: always, interval:<ms> or off"] = "always"
    body_bytes: Annotated[int, "the largest body of a request"] = 64 << 20
    buffered_bytes: Annotated[int, "the most that bodies of unfinished requests hold together"] = 512 << 20
    header_bytes: Annotated[int, "the largest request line with its headers"] = 64 << 10
    request_seconds: Annotated[float, "within which a request must have arrived"] = 30.0
    requests: Annotated[int, "requests answered at the same time; more are told to come back"] = 1024
    rate: Annotated[float, "requests a second that one caller may make; 0 is no bound"] = 0.0
    streams: Annotated[int, "callers that may listen to events at the same time"] = 100
    read_threads: Annotated[int, "threads for reads"] = 8
    write_threads: Annotated[int, "threads for writes, which mostly wait for the disk"] = 32
    queue: Annotated[int, "calls that may wait for a thread, of reads and of writes each"] = 256
    drain_seconds: Annotated[float, "that calls under way get when the server stops"] = 30.0
    idle_exit: Annotated[float, "seconds without clients after which an on-demand daemon leaves"] = 600.0
    access_log: Annotated[bool, "log a line for every request"] = False
    slow_seconds: Annotated[float, "requests that took longer are logged, with their route; 0 logs none"] = 1.0
    log_format: Annotated[str, "text or json"] = "text"
    log_level: Annotated[str, "debug, info, warning or error"] = "warning"
    origins: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Where each value came from: `flag`, the name of a variable, the path of a file; absent is the default."""

    def __post_init__(self) -> None:
        _check(self)

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine reaches the server."""
        return is_loopback(self.host)

    @property
    def authenticated(self) -> bool:
        """Whether callers need a token."""
        return self.auth or not (self.on_loopback or self.insecure)

    @staticmethod
    def names() -> Iterator[tuple[str, str]]:
        """Every setting with what it is, for help texts and documentation."""
        return ((name, get_args(hint)[1]) for name, hint in _HINTS.items())


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    file: str | os.PathLike[str] | None = None,
) -> Settings:
    """Settings from flags (None stands for one that was not given), `KEKTOR_*` and a `kektor.toml`.

    The file is the one named here or by `KEKTOR_CONFIG`, which must exist, else `./kektor.toml` when there is one;
    behind it stands the user's own. Its table `[client]` is for the command line (`kektor_server.config`).
    Raises SettingsError, which names the file, variable or flag at fault.
    """
    environ = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for origin, name, given in (
        *(setting for path in _config_paths(file, environ) for setting in _from_file(path)),
        *_from_environment(environ),
        *((f"--{name.replace('_', '-')}", name, given) for name, given in (flags or {}).items() if given is not None),
    ):
        if name not in _KINDS:
            raise SettingsError(f"{origin}: there is no setting {name!r}; there are {', '.join(_KINDS)}")
        values[name] = _converted(given, _KINDS[name], f"{origin}: {name}")
        origins[name] = origin
    try:
        return Settings(**values, origins=MappingProxyType(origins))
    except SettingsError as error:
        name = str(error).split(" ", 1)[0]
        raise SettingsError(f"{origins[name]}: {error}" if name in origins else str(error)) from None


def is_loopback(host: str) -> bool:
    """Whether an address or name means this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


_HINTS: Final[Mapping[str, Any]] = {
    name: hint for name, hint in get_type_hints(Settings, include_extras=True).items() if get_origin(hint) is Annotated
}
_KINDS: Final[Mapping[str, Any]] = {name: get_args(hint)[0] for name, hint in _HINTS.items()}
_LEVELS: Final = ("debug", "info", "warning", "error")
_AT_LEAST: Final[Mapping[str, float]] = {
    "port": 0,
    "body_bytes": 1024,
    "buffered_bytes": 1024,
    "header_bytes": 1024,
    "request_seconds": 0.1,
    "requests": 1,
    "rate": 0,
    "streams": 0,
    "slow_seconds": 0,
    "read_threads": 1,
    "write_threads": 1,
    "queue": 0,
    "drain_seconds": 0,
    "idle_exit": 1,
}


def _check(settings: Settings) -> None:
    for name, least in _AT_LEAST.items():
        value = getattr(settings, name)
        if not value >= least:
            raise SettingsError(f"{name} must be at least {least:g}, not {value}")
    if settings.port > 65_535:
        raise SettingsError(f"port must be at most 65535, not {settings.port}")
    if settings.buffered_bytes < settings.body_bytes:
        raise SettingsError(f"buffered_bytes must be at least body_bytes ({settings.body_bytes})")
    if settings.log_level not in _LEVELS:
        raise SettingsError(f"log_level must be {', '.join(_LEVELS)}, not {settings.log_level!r}")
    if settings.log_format not in ("text", "json"):
        raise SettingsError(f"log_format must be text or json, not {settings.log_format!r}")
    for origin in settings.allowed_origins:
        if not origin.startswith(("http://", "https://")) or origin.rstrip("/").count("/") != 2:
            raise SettingsError(f"allowed_origins takes scheme://host[:port], not {origin!r}")


def _config_paths(file: str | os.PathLike[str] | None, environ: Mapping[str, str]) -> list[Path]:
    """The files to read, the one that counts most last."""
    if file is not None:
        environ = {**environ, "KEKTOR_CONFIG": os.fspath(file)}
    try:
        return [Path(path) for path, _ in reversed(config_files(environ))]
    except ConfigError as error:
        raise SettingsError(str(error)) from None


def _from_file(path: Path) -> Iterator[tuple[str, str, Any]]:
    try:
        with path.open("rb") as file:
            table = tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: {error}") from None
    for name, given in table.items():
        if name == "data" and isinstance(given, str):
            yield str(path), name, path.parent / Path(given).expanduser()
        elif name != "client":
            yield str(path), name, given


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, str, Any]]:
    """Only the names of settings: other `KEKTOR_*` variables belong to other parts."""
    for name in _KINDS:
        variable = f"KEKTOR_{name.upper()}"
        if environ.get(variable):  # an empty one counts as not set
            yield variable, name, environ[variable]


def _converted(given: Any, kind: Any, where: str) -> Any:
    """A value of the setting's type; from text, as a variable or a flag brings it, or from TOML's own types."""
    if get_origin(kind) is tuple:
        parts = given.split(",") if isinstance(given, str) else given
        if not isinstance(parts, Sequence) or not all(isinstance(part, str) for part in parts):
            raise SettingsError(f"{where} must be a list of texts, not {given!r}")
        assert get_args(kind)[0] is str
        return tuple(part.strip() for part in parts if part.strip())
    try:
        return _PLAIN[kind](given)
    except (TypeError, ValueError):
        raise SettingsError(f"{where} must be {_NAMES[kind]}, not {given!r}") from None


def _boolean(given: Any) -> bool:
    text = str(given).strip().lower()
    if text in ("1", "true", "on", "yes"):
        return True
    if text in ("0", "false", "off", "no"):
        return False
    raise ValueError


def _number(given: Any, kind: type[int] | type[float]) -> int | float:
    if isinstance(given, bool) or (kind is int and isinstance(given, float)):
        raise TypeError
    return kind(given)


def _text(given: Any) -> str:
    if not isinstance(given, str) or not given.strip():
        raise TypeError
    return given.strip()


def _path(given: Any) -> Path:
    return Path(given if isinstance(given, Path) else _text(given)).expanduser()


_PLAIN: Final[Mapping[Any, Any]] = {
    bool: _boolean,
    int: lambda given: _number(given, int),
    float: lambda given: _number(given, float),
    str: _text,
    Path: _path,
}
_NAMES: Final = {bool: "on or off", int: "a whole number", float: "a number", str: "a text", Path: "a path"}
