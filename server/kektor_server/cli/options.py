"""The flags that many commands share."""

from typing import Annotated

import typer

__all__ = [
    "Agent",
    "AsJson",
    "Data",
    "Index",
    "Project",
    "Reason",
    "Url",
    "User",
]

Data = Annotated[
    str | None,
    typer.Option("--data", metavar="DIR", help="The data directory (KEKTOR_DATA).", show_default=False),
]
Url = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="A running server to ask instead (KEKTOR_URL).", show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, errors too.")]
Index = Annotated[
    str | None,
    typer.Option("--index", metavar="NAME", help="The index (KEKTOR_INDEX; default: default).", show_default=False),
]
User = Annotated[
    str | None, typer.Option("--user", metavar="NAME", help="Whose memories (KEKTOR_USER).", show_default=False)
]
Agent = Annotated[
    str | None, typer.Option("--agent", metavar="NAME", help="Of which agent (KEKTOR_AGENT).", show_default=False)
]
Project = Annotated[
    str | None, typer.Option("--project", metavar="NAME", help="Of which project (KEKTOR_PROJECT).", show_default=False)
]
Reason = Annotated[str | None, typer.Option("--reason", help="Why; kept with the change.", show_default=False)]
