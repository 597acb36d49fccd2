"""The changes to files that set a client up, or undo that; and how things stand."""

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kektor_server.setup import blocks, jsonc, tomls, yamls
from kektor_server.setup.clients import Client, Folders, Hook, Launch, Rules, Servers
from kektor_server.setup.edits import Uneditable
from kektor_server.setup.files import read_text

__all__ = ["Change", "State", "changes", "configured", "snippet", "states", "undoing"]

Edit = Callable[[str], str | None]


@dataclass(frozen=True)
class Change:
    """One file as it is and as it should be; None where there is none. `before == after`: nothing to do."""

    what: str
    """server, rules or hook."""
    path: Path
    before: str | None
    after: str | None


@dataclass(frozen=True)
class State:
    """How one part stands: absent, current, different (an entry of ours that says something else) or unreadable."""

    what: str
    path: Path
    state: str
    detail: str = ""


@dataclass(frozen=True)
class _Part:
    what: str
    path: Path
    put: Edit
    take: Edit
    found: Callable[[str], bool]
    """Whether anything of ours is in the file."""


def changes(client: Client, launch: Launch, hook: Launch | None, where: Folders, *, project: bool) -> list[Change]:
    """What setting up does, a file each; Uneditable names the file that cannot be changed."""
    return _changes(_parts(client, launch, hook, where, project=project), lambda part: part.put)


def undoing(client: Client, launch: Launch, hook: Launch | None, where: Folders, *, project: bool) -> list[Change]:
    """What taking out does."""
    found = _changes(_parts(client, launch, hook, where, project=project), lambda part: part.take)
    return [_emptied(change) for change in found]


def states(client: Client, launch: Launch, hook: Launch | None, where: Folders, *, project: bool) -> list[State]:
    """How each part stands."""
    return [_state(part) for part in _parts(client, launch, hook, where, project=project)]


def configured(client: Client, where: Folders, *, project: bool) -> dict[str, Any] | None:
    """The entry that the client has now; None when it has none."""
    path = None if client.servers is None else _located(client.servers, where, project)
    text = None if path is None else read_text(path)
    if client.servers is None or text is None:
        return None
    value: Any = _READERS[client.servers.kind](text)
    for name in client.servers.path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else None


def snippet(client: Client, launch: Launch) -> str:
    """The entry for somebody who adds it by hand."""
    assert client.servers is not None
    return _EDITORS[client.servers.kind][0]("", client.servers.path, client.servers.entry(launch)).strip() + "\n"


def _changes(parts: Iterator[_Part], edit: Callable[[_Part], Edit]) -> list[Change]:
    done: dict[Path, Change] = {}
    for part in parts:
        known = done.get(part.path)
        before = read_text(part.path) if known is None else known.before
        text = before if known is None else known.after
        try:
            after = edit(part)("" if text is None else text)
        except Uneditable as error:
            raise Uneditable(f"{part.path} is left as it is: {error}") from None
        if text is None and not after:
            after = None
        what = part.what if known is None else f"{known.what} and {part.what}"
        done[part.path] = Change(what, part.path, before, after)
    return list(done.values())


def _emptied(change: Change) -> Change:
    """A file that held nothing but ours is taken away."""
    if change.after is not None and change.after.strip() in ("", "{}") and change.after != change.before:
        return replace(change, after=None)
    return change


def _state(part: _Part) -> State:
    try:
        text = read_text(part.path)
        if text is None or not part.found(text):
            return State(part.what, part.path, "absent")
        return State(part.what, part.path, "current" if part.put(text) == text else "different")
    except Uneditable as error:
        return State(part.what, part.path, "unreadable", str(error))


def _parts(client: Client, launch: Launch, hook: Launch | None, where: Folders, *, project: bool) -> Iterator[_Part]:
    if client.servers is not None and (path := _located(client.servers, where, project)) is not None:
        yield _server(client.servers, path, client.servers.entry(launch))
    if client.rules is not None and (path := _located(client.rules, where, project)) is not None:
        yield _rules(client.rules, path)
    if client.hook is not None and hook is not None:
        path = client.hook.project(where) if project else client.hook.user(where)
        yield _hook(client.hook, path, hook)


def _located(part: Servers | Rules, where: Folders, project: bool) -> Path | None:
    place = part.project if project else part.user
    return None if place is None else place(where)


def _server(servers: Servers, path: Path, entry: dict[str, Any]) -> _Part:
    put, take = _EDITORS[servers.kind]

    def found(text: str) -> bool:
        value: Any = _READERS[servers.kind](text)
        for name in servers.path:
            value = value.get(name) if isinstance(value, dict) else None
        return value is not None

    return _Part(
        "server", path, lambda text: put(text, servers.path, entry), lambda text: take(text, servers.path), found
    )


def _rules(rules: Rules, path: Path) -> _Part:
    content = rules.text()
    if rules.own_file:
        return _Part("rules", path, lambda _: content, lambda _: None, bool)
    return _Part(
        "rules",
        path,
        lambda text: blocks.set_block(text, content),
        lambda text: blocks.remove_block(text),
        lambda text: blocks.remove_block(text) != text,
    )


def _hook(hook: Hook, path: Path, launch: Launch) -> _Part:
    item = hook.item(shlex.join(launch.whole))

    def put(text: str) -> str:
        there = jsonc.read_at(text, hook.path)
        if isinstance(there, list) and item in there:
            return text
        return jsonc.append_item(jsonc.remove_items(text, hook.path, _is_ours), hook.path, item)

    return _Part(
        "hook",
        path,
        put,
        lambda text: jsonc.remove_items(text, hook.path, _is_ours),
        lambda text: any(map(_is_ours, jsonc.read_at(text, hook.path) or ())),
    )


def _is_ours(item: Any) -> bool:
    """A hook that runs `kektor hook …`, whichever kektor that is."""
    hooks = item.get("hooks") if isinstance(item, dict) else None
    commands = [str(each.get("command", "")) for each in hooks or () if isinstance(each, dict)]
    return any(_runs_us(command) for command in commands)


def _runs_us(command: str) -> bool:
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return "hook" in words[1:4] and any("kektor" in word for word in words[: words.index("hook")])


_READERS: dict[str, Callable[[str], Any]] = {"jsonc": jsonc.read, "toml": tomls.read, "yaml": yamls.read}
_EDITORS: dict[str, tuple[Callable[..., str], Callable[..., str]]] = {
    "jsonc": (jsonc.set_member, jsonc.remove_member),
    "toml": (tomls.set_table, tomls.remove_table),
    "yaml": (yamls.set_member, yamls.remove_member),
}
