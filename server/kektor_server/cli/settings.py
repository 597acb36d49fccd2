"""config: what a command and a server would run with here, and where each value comes from."""

import os
from typing import Any

from kektor_server.cli import options as opt
from kektor_server.cli.faults import OK, Fault
from kektor_server.cli.output import print_json, say
from kektor_server.cli.target import Where
from kektor_server.config import CLIENT_NAMES, ConfigError, config_files

__all__ = ["config"]

_SECRET = ("token",)


def config(
    data: opt.Data = None,
    url: opt.Url = None,
    index: opt.Index = None,
    user: opt.User = None,
    agent: opt.Agent = None,
    project: opt.Project = None,
    as_json: opt.AsJson = False,
) -> int:
    """Show every setting, its value, and where that was found: a flag, a variable, a file, or the default."""
    from kektor_server.settings import Settings, SettingsError, load_settings

    where = Where(data, url, index, user, agent, project)
    flags = {"url": url, "index": index, "user": user, "agent": agent, "project": project}
    found: list[dict[str, Any]] = [_found("data", where.data, where.config.find("data", data).origin)]
    for name in CLIENT_NAMES:
        setting = where.config.find(name, flags.get(name))
        found.append(_found(name, setting.value, setting.origin))
    try:
        settings = load_settings({"data": data})
        files = [path for path, _ in config_files(os.environ)]
    except (SettingsError, ConfigError) as error:
        raise Fault(str(error)) from error
    for name, about in Settings.names():
        if name != "data":
            found.append({**_found(name, getattr(settings, name), settings.origins.get(name, "default")), "is": about})
    if as_json:
        print_json({"files": files, "settings": found})
        return OK
    for file in files:
        say(f"# {file}")
    width = max(len(each["name"]) for each in found)
    for each in found:
        value = "-" if each["value"] is None else each["value"]
        say(f"{each['name']:<{width}}  {value}  ({each['from']})")
    return OK


def _found(name: str, value: Any, origin: str) -> dict[str, Any]:
    if name in _SECRET and value is not None:
        value = "…"
    plain = value if value is None or isinstance(value, bool | int | float | str) else _listed(value)
    return {"name": name, "value": plain, "from": origin}


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else str(value)
