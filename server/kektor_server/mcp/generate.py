"""Write `tools.json` from the registry: `python -m kektor_server.mcp.generate`."""

import json
from pathlib import Path
from typing import Any

from kektor.version import __version__
from kektor_server.mcp import prompts
from kektor_server.mcp.instructions import INSTRUCTIONS
from kektor_server.mcp.profiles import REGISTRY
from kektor_server.mcp.resources import LISTED, TEMPLATES

__all__ = ["TARGET", "catalogue"]

TARGET = Path(__file__).with_name("tools.json")


def catalogue() -> dict[str, Any]:
    """What the relay answers from."""
    return {
        "server": {"name": "kektor", "title": "Kektor memory", "version": __version__},
        "instructions": INSTRUCTIONS,
        "profiles": REGISTRY.profiles,
        "tools": REGISTRY.described(),
        "resources": LISTED,
        "resourceTemplates": TEMPLATES,
        "prompts": prompts.described(),
    }


def main() -> None:
    TARGET.write_text(json.dumps(catalogue(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
