"""index: memories are kept apart by index, each with an embedder and a policy of its own."""

import json
from typing import Annotated, Any

import typer

from kektor_server.cli import options as opt
from kektor_server.cli.faults import OK, Fault
from kektor_server.cli.output import print_json, say
from kektor_server.cli.target import Target, Where, human_at_terminal, open_target

__all__ = ["indexes"]

indexes = typer.Typer(
    name="index",
    help="Indexes: memories are kept apart by index.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The index's name.")]
Policy = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Such as write=gated or evidence=require; may repeat.", show_default=False),
]


@indexes.command("create")
def create(
    name: Name,
    dim: Annotated[int | None, typer.Option(help="Numbers of a vector, for vectors of your own.")] = None,
    metric: Annotated[str, typer.Option(help="cosine, l2 or dot.")] = "cosine",
    embedder: Annotated[str | None, typer.Option(help="What turns texts into vectors.", show_default=False)] = None,
    m: Annotated[int, typer.Option("--m", help="Links of a vector in the graph.")] = 16,
    ef_construction: Annotated[int, typer.Option(help="How thoroughly links are chosen.")] = 200,
    policy: Policy = None,
    data: opt.Data = None,
    url: opt.Url = None,
    as_json: opt.AsJson = False,
) -> int:
    """Make an index; without --dim and --embedder it gets the default embedder."""
    fields: dict[str, Any] = {"name": name, "metric": metric, "m": m, "ef_construction": ef_construction}
    fields |= {key: value for key, value in (("dim", dim), ("embedder", embedder)) if value is not None}
    if policy:
        fields["policy"] = _policy(policy)
    with open_target(Where(data, url), create=True) as target:
        made = target.call("create_index", fields)
    return _said(made, f"created  {name}", as_json)


@indexes.command("list")
def list_(data: opt.Data = None, url: opt.Url = None, as_json: opt.AsJson = False) -> int:
    """List the indexes."""
    with open_target(Where(data, url)) as target:
        page = target.call("list_indexes", {})
    lines = [f"{each['name']}  {each['dim']}  {each['metric']}  {each['embedder'] or '-'}" for each in page["items"]]
    return _said(page, "\n".join(lines), as_json)


@indexes.command("show")
def show(name: Name, data: opt.Data = None, url: opt.Url = None, as_json: opt.AsJson = False) -> int:
    """Show the settings and sizes of an index."""
    with open_target(Where(data, url)) as target:
        found = {**target.call("get_index", {}, name), "stats": target.call("index_stats", {}, name)}
    lines = [f"{key}: {_plain(value)}" for key, value in found.items() if key != "stats"]
    sizes = ", ".join(f"{found['stats'][key]} {key}" for key in ("nodes", "vectors", "texts", "edges"))
    return _said(found, "\n".join([*lines, f"holds: {sizes}"]), as_json)


@indexes.command("configure")
def configure(
    name: Name,
    policy: Policy = None,
    reason: opt.Reason = None,
    data: opt.Data = None,
    url: opt.Url = None,
    as_json: opt.AsJson = False,
) -> int:
    """Merge a policy into the settings of an index."""
    if not policy:
        raise Fault("nothing to change: give --policy NAME=VALUE", field="policy")
    fields: dict[str, Any] = {"policy": _policy(policy), **({} if reason is None else {"reason": reason})}
    with open_target(Where(data, url)) as target:
        settings = target.call("configure_index", fields, name)
    return _said(settings, f"configured  {name}", as_json)


@indexes.command("delete")
def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    reason: opt.Reason = None,
    data: opt.Data = None,
    url: opt.Url = None,
    as_json: opt.AsJson = False,
) -> int:
    """Delete an index with all it holds, for good."""
    with open_target(Where(data, url)) as target:
        if not yes:
            _ask(target, name)
        receipt = target.call("drop_index", {} if reason is None else {"reason": reason}, name)
    return _said(receipt, f"deleted  {name}", as_json)


def _ask(target: Target, name: str) -> None:
    held = target.call("index_stats", {}, name)
    if not human_at_terminal():
        raise Fault("nobody is here to ask: pass --yes to delete without asking", field="yes")
    question = f"delete {name} with its {held['nodes']} nodes and {held['edges']} edges for good?"
    if not typer.confirm(question, err=True):
        raise Fault("nothing was deleted", "conflict")


def _policy(given: list[str]) -> dict[str, Any]:
    """Texts as they are; a value that begins like JSON's lists and objects is read as such."""
    policy: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise Fault(f"--policy takes NAME=VALUE, not {each!r}", field="policy")
        try:
            policy[name] = json.loads(value) if value.startswith(("[", "{")) else value
        except ValueError as error:
            raise Fault(f"--policy {name}: {error}", field="policy") from error
    return policy


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _said(value: Any, text: str, as_json: bool) -> int:
    if as_json:
        print_json(value)
    elif text:
        say(text)
    return OK
