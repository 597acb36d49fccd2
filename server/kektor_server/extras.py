"""Saying how to get what is not installed. Standard library only."""

__all__ = ["how_to_install"]

_SERVER = ("httptools", "mcp", "rich", "starlette", "tomlkit", "typer", "uvicorn", "uvloop", "yaml")


def how_to_install(error: ModuleNotFoundError) -> str | None:
    """A sentence when what is missing belongs to the extra `server`, else None."""
    missing = (error.name or "").partition(".")[0]
    return f"this needs {missing}: pip install 'kektor[server]'" if missing in _SERVER else None
