"""The console script `kektor`."""

import sys

from kektor_server.extras import how_to_install

__all__ = ["main"]

_INTERRUPTED = 130


def main() -> int:
    """Run one command; returns the exit code."""
    try:
        if sys.argv[1:2] == ["mcp"]:
            # Before anything else is imported: an editor waits for this one.
            from kektor_server.mcp.relay import main as relay

            return relay(sys.argv[2:])
        if sys.argv[1:2] == ["hook"]:
            # The same: a prompt waits for this one.
            from kektor_server.setup.hook import main as hook

            return hook(sys.argv[2:])
        from kektor_server.cli.app import run

        return run(sys.argv[1:])
    except KeyboardInterrupt:
        return _INTERRUPTED
    except ModuleNotFoundError as error:
        advice = how_to_install(error)
        if advice is None:
            raise
        print(f"kektor: {advice}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
