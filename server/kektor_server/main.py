"""The console script `kektor`."""

import sys

__all__ = ["main"]

_EXTRA = ("typer", "rich", "uvicorn", "starlette")
_INTERRUPTED = 130


def main() -> int:
    """Run one command; returns the exit code."""
    try:
        if sys.argv[1:2] == ["mcp"]:
            # Before anything else is imported: an editor waits for this one.
            from kektor_server.mcp.relay import main as relay

            return relay(sys.argv[2:])
        from kektor_server.cli.app import run

        return run(sys.argv[1:])
    except KeyboardInterrupt:
        return _INTERRUPTED
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _EXTRA:
            raise
        print(f"kektor: this command needs {error.name}: pip install 'kektor[server]'", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
