"""What `kektor setup` does: print, write, take out, look, try."""

import difflib
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from kektor_server.cli.faults import OK, TROUBLE, Fault
from kektor_server.cli.output import print_json, say
from kektor_server.cli.target import Where
from kektor_server.config import Setting
from kektor_server.setup import plan, rules
from kektor_server.setup.check import CheckFailed, round_trip
from kektor_server.setup.clients import CLIENTS, Client, Folders, Launch, folders
from kektor_server.setup.edits import Uneditable
from kektor_server.setup.files import write_text
from kektor_server.setup.hook import EVENTS

__all__ = ["run_setup"]


def run_setup(
    client: str | None,
    where: Where,
    *,
    project: bool,
    print_only: bool,
    status: bool,
    uninstall: bool,
    check: bool,
    tools: str,
    hook: bool,
    as_json: bool,
) -> int:
    """`kektor setup`, its flags read."""
    if sum((print_only, status, uninstall, check)) > 1:
        raise Fault("give one of --print-only, --status, --uninstall and --check", field="status")
    found = _folders(project)
    if client is None:
        if print_only or uninstall or check:
            raise Fault(f"name a client: {', '.join(CLIENTS)}", field="client")
        return _print_all(where, found, tools=tools, hook=hook, project=project, as_json=as_json)
    chosen = CLIENTS.get(client)
    if chosen is None:
        raise Fault(f"there is no client {client!r}; there are {', '.join(CLIENTS)}", field="client")
    if project and (chosen.servers is None or chosen.servers.project is None):
        raise Fault(f"{chosen.title} has no configuration of a project's own: leave --project out", field="project")
    launch, prompt = _launches(chosen, where, found, tools=tools, hook=hook, project=project)
    try:
        if status:
            return _print_status(chosen, launch, prompt, found, project=project, as_json=as_json)
        if check:
            return _check(chosen, found, project=project, as_json=as_json)
        if chosen.servers is None:
            return _print_guide(chosen, as_json)
        if uninstall:
            return _write(chosen, plan.undoing(chosen, launch, prompt, found, project=project), as_json, undo=True)
        changes = plan.changes(chosen, launch, prompt, found, project=project)
        if print_only:
            return _print_changes(chosen, changes, as_json)
        return _write(chosen, changes, as_json, undo=False)
    except Uneditable as error:
        by_hand = f". Add this yourself:\n{plan.snippet(chosen, launch)}" if chosen.servers and not uninstall else ""
        raise Fault(f"{error}{by_hand}", field="client") from error


def _folders(project: bool) -> Folders:
    return folders(Path.home(), _repository() if project else Path.cwd(), dict(os.environ))


def _repository() -> Path:
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


def _launches(
    client: Client, where: Where, found: Folders, *, tools: str, hook: bool, project: bool
) -> tuple[Launch, Launch | None]:
    """How the client starts the server, and what it runs at a prompt."""
    command, *first = _executable()
    scope = _scope(where, found.project.name if project else None)
    offered = [] if tools == "core" else ["--tools", tools]
    launch = Launch(command, (*first, "mcp", *offered, *scope))
    if not hook or client.name not in EVENTS:
        return launch, None
    return launch, Launch(command, (*first, "hook", client.name, *scope))


def _scope(where: Where, project: str | None) -> list[str]:
    """The flags that say in the client's bare environment what flags, variables and files say here."""
    settings = {name: where.config.find(name) for name in ("user", "agent", "project", "index")}
    settings |= {name: Setting(value, "flag") for name, value in where.scope.items()}
    if where.index != "default":
        settings["index"] = Setting(where.index, "flag")
    if project is not None:
        settings["project"] = Setting(project, "flag")
    flags = [part for name, found in settings.items() if found.value for part in (f"--{name}", found.value)]
    return [*(["--data", os.path.abspath(where.data)] if where.data_is_named else []), *flags]


def _executable() -> list[str]:
    """An absolute path that stays: not resolved, so that an installer's link goes on working after an update."""
    for candidate in (Path(sys.argv[0]), Path(sys.executable).with_name("kektor")):
        if candidate.name == "kektor" and candidate.is_absolute() and candidate.is_file():
            return [str(candidate)]
    on_path = shutil.which("kektor")
    return [os.path.abspath(on_path)] if on_path else [sys.executable, "-m", "kektor_server.main"]


def _write(client: Client, changes: list[plan.Change], as_json: bool, *, undo: bool) -> int:
    done = []
    for change in changes:
        if change.before == change.after:
            done.append({"what": change.what, "path": str(change.path), "done": "nothing to do", "backup": None})
            continue
        kept = write_text(change.path, change.after)
        verb = "taken out" if undo else "written" if change.before is None else "changed"
        backup = None if kept is None else str(kept)
        done.append({"what": change.what, "path": str(change.path), "done": verb, "backup": backup})
    if as_json:
        print_json({"client": client.name, "files": done})
        return OK
    for each in done:
        kept_at = f" (before: {each['backup']})" if each["backup"] else ""
        say(f"{each['done']}  {each['what']}  {each['path']}{kept_at}")
    if not undo and client.afterwards:
        say(client.afterwards)
    return OK


def _print_changes(client: Client, changes: list[plan.Change], as_json: bool) -> int:
    if as_json:
        files = [{"what": c.what, "path": str(c.path), "before": c.before, "after": c.after} for c in changes]
        print_json({"client": client.name, "files": files})
        return OK
    for change in changes:
        if change.before == change.after:
            say(f"{change.path}: nothing to do")
            continue
        before, after = ((text or "").splitlines() for text in (change.before, change.after))
        say("\n".join(difflib.unified_diff(before, after, str(change.path), str(change.path), lineterm="")))
    if not any("rules" in change.what for change in changes):
        say(f"\nstanding instructions, to paste where {client.title} takes them:\n\n{rules.RULES}")
    return OK


def _print_guide(client: Client, as_json: bool) -> int:
    if as_json:
        print_json({"client": client.name, "guide": client.guide, "rules": rules.RULES})
    else:
        say(f"{client.guide}\n\n{rules.RULES}")
    return OK


def _print_status(
    client: Client, launch: Launch, hook: Launch | None, found: Folders, *, project: bool, as_json: bool
) -> int:
    states = plan.states(client, launch, hook, found, project=project)
    shown = [_shown(state) for state in states]
    if as_json:
        print_json({"client": client.name, "files": shown})
    else:
        for each in shown:
            detail = f": {each['detail']}" if each["detail"] else ""
            say(f"{each['state']}  {each['what']}  {each['path']}{detail}")
        if not shown:
            say(client.guide)
    return OK if all(state.state == "current" for state in states) else TROUBLE


def _print_all(where: Where, found: Folders, *, tools: str, hook: bool, project: bool, as_json: bool) -> int:
    listed: list[dict[str, Any]] = []
    for client in CLIENTS.values():
        launch, prompt = _launches(client, where, found, tools=tools, hook=hook, project=project)
        states = plan.states(client, launch, prompt, found, project=project)
        listed.append({"client": client.name, "title": client.title, "files": [_shown(state) for state in states]})
    if as_json:
        print_json({"clients": listed})
        return OK
    for each in listed:
        words = ", ".join(f"{state['what']} {state['state']}" for state in each["files"]) or "by hand"
        say(f"{each['client']:<15} {words}")
    return OK


def _shown(state: plan.State) -> dict[str, Any]:
    return {"what": state.what, "path": str(state.path), "state": state.state, "detail": state.detail}


def _check(client: Client, found: Folders, *, project: bool, as_json: bool) -> int:
    entry = plan.configured(client, found, project=project)
    if entry is None:
        raise Fault(f"{client.title} is not set up: run kektor setup {client.name}", "not_found", field="client")
    command = entry["command"] if isinstance(entry["command"], list) else [entry["command"], *entry.get("args", ())]
    try:
        word = round_trip(command, dict(os.environ))
    except CheckFailed as error:
        raise Fault(f"{client.title}: {error}", "unavailable") from error
    if as_json:
        print_json({"client": client.name, "ok": True, "word": word})
    else:
        say(f"{client.title}: saved a word, found it from a new process ({word}), and erased it")
    return OK
