"""token: who may call a server, told by tokens that are made, listed and taken back."""

import sys
from typing import Annotated, Any

import typer

from kektor_server.cli import options as opt
from kektor_server.cli.faults import OK
from kektor_server.cli.output import print_json, say, shown
from kektor_server.cli.target import Where, open_target

__all__ = ["tokens"]

tokens = typer.Typer(
    name="token",
    help="Tokens for a server that asks for them (kektor serve --auth).",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@tokens.command("create")
def create(
    role: Annotated[
        list[str], typer.Option("--role", metavar="ROLE", help="read, write, review or admin; may repeat.")
    ],
    kind: Annotated[
        str, typer.Option("--kind", metavar="KIND", help="Who acts with it: human, agent or service.")
    ] = "service",
    index: Annotated[
        list[str] | None, typer.Option("--index", metavar="NAME", help="Only this index; may repeat.")
    ] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="NAME", help="Only this user's memories.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Only this agent's.")] = None,
    project: Annotated[str | None, typer.Option("--project", metavar="NAME", help="Only this project's.")] = None,
    shared: Annotated[bool, typer.Option("--shared", help="It may also write what is shared.")] = False,
    expires: Annotated[str, typer.Option("--expires", metavar="LENGTH", help="How long: 30d, 12h, 15m.")] = "90d",
    description: Annotated[str, typer.Option("--description", help="What it is for.")] = "",
    data: opt.Data = None,
    url: opt.Url = None,
    as_json: opt.AsJson = False,
) -> int:
    """Print a new token. It is shown this once; only its hash is kept."""
    bounds = {"user": user, "agent": agent, "project": project, "shared": shared or None}
    grant: dict[str, Any] = {name: value for name, value in bounds.items() if value is not None}
    fields: dict[str, Any] = {"roles": role, "kind": kind, "expires_in": expires, "description": description}
    if index or grant:
        fields["grants"] = [{"index": name, **grant} for name in index] if index else [grant]
    with open_target(Where(data, url), create=True) as target:
        made = target.call("token_create", fields)
    if as_json:
        print_json(made)
    else:
        print(made["token"], flush=True)
        say(f"until {made['expires_at']}; revoke it with: kektor token revoke {made['jti']}", sys.stderr)
    return OK


@tokens.command("list")
def list_(data: opt.Data = None, url: opt.Url = None, as_json: opt.AsJson = False) -> int:
    """Show what tokens there are and what each may do; never the tokens themselves."""
    found: list[dict[str, Any]] = []
    with open_target(Where(data, url)) as target:
        page = target.call("token_list", {})
        found += page["items"]
        while page["next_cursor"] is not None:
            page = target.call("token_list", {"cursor": page["next_cursor"]})
            found += page["items"]
    if as_json:
        print_json({"items": found, "next_cursor": None})
        return OK
    for token in found:
        state = "revoked" if token["revoked_at"] else f"until {token['expires_at']}"
        say(f"{token['jti']}  {'+'.join(token['roles'])} ({token['kind']})  {state}  {shown(token['description'])}")
        for grant in token["grants"]:
            bounds = ", ".join(f"{name} {shown(str(value))}" for name, value in grant.items() if value)
            say(f"  reaches {bounds or 'everything'}")
    return OK


@tokens.command("revoke")
def revoke(
    jti: Annotated[str, typer.Argument(metavar="JTI", help="The token's id, as kektor token list shows it.")],
    data: opt.Data = None,
    url: opt.Url = None,
    as_json: opt.AsJson = False,
) -> int:
    """Refuse a token from now on."""
    with open_target(Where(data, url)) as target:
        revoked = target.call("token_revoke", {}, about=jti)
    if as_json:
        print_json(revoked)
    else:
        say(f"revoked {jti}")
    return OK


@tokens.command("rotate")
def rotate(
    overlap: Annotated[
        str | None,
        typer.Option("--overlap", metavar="LENGTH", help="How long older tokens are still taken; 0 ends them now."),
    ] = None,
    data: opt.Data = None,
    url: opt.Url = None,
    as_json: opt.AsJson = False,
) -> int:
    """Sign with a new key from now on; by default older tokens are taken until they expire."""
    with open_target(Where(data, url)) as target:
        made = target.call("keys_rotate", {} if overlap is None else {"overlap": overlap})
    if as_json:
        print_json(made)
    else:
        until = f"; older tokens are taken until {made['others_retire_at']}" if made["others_retire_at"] else ""
        say(f"key {made['kid']} signs from now on{until}")
    return OK
