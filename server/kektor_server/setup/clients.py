"""Where each client keeps its servers, standing instructions and hooks, and in which shape."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kektor_server.setup import rules

__all__ = ["CLIENTS", "NAME", "Client", "Hook", "Launch", "Rules", "Servers"]

NAME = "kektor"
"""What our entry is called everywhere."""


@dataclass(frozen=True)
class Launch:
    """How the client starts us: an absolute path and its arguments."""

    command: str
    arguments: tuple[str, ...]

    @property
    def whole(self) -> list[str]:
        return [self.command, *self.arguments]


@dataclass(frozen=True)
class Folders:
    """From where a client's files are found."""

    home: Path
    config: Path
    """What XDG_CONFIG_HOME names, by default ~/.config."""
    appdata: Path
    """Where desktop applications keep theirs: depends on the system."""
    project: Path


@dataclass(frozen=True)
class Servers:
    """The file that lists MCP servers: `path` of the entry in it, and the entry."""

    kind: str
    """jsonc, toml or yaml."""
    path: tuple[str, ...]
    entry: Callable[[Launch], dict[str, Any]]
    user: Callable[[Folders], Path] | None
    project: Callable[[Folders], Path] | None


@dataclass(frozen=True)
class Rules:
    """Standing instructions: a file of our own, or a marked block in somebody else's."""

    text: Callable[[], str]
    own_file: bool
    user: Callable[[Folders], Path] | None
    project: Callable[[Folders], Path] | None


@dataclass(frozen=True)
class Hook:
    """What is run when the user has written a prompt: an item of a list in a JSON file."""

    path: tuple[str, ...]
    item: Callable[[str], dict[str, Any]]
    user: Callable[[Folders], Path]
    project: Callable[[Folders], Path]


@dataclass(frozen=True)
class Client:
    """One client of all."""

    name: str
    title: str
    servers: Servers | None
    rules: Rules | None = None
    hook: Hook | None = None
    afterwards: str = ""
    """What the user has to do, which no file does."""
    guide: str = ""
    """For a client without a file: what to enter where."""


def _plain(launch: Launch) -> dict[str, Any]:
    return {"command": launch.command, "args": list(launch.arguments)}


def _typed(launch: Launch) -> dict[str, Any]:
    return {"type": "stdio", **_plain(launch)}


def _opencode(launch: Launch) -> dict[str, Any]:
    return {"type": "local", "command": launch.whole, "enabled": True}


def _zed(launch: Launch) -> dict[str, Any]:
    return {"source": "custom", **_plain(launch), "env": {}}


def _hermes(launch: Launch) -> dict[str, Any]:
    return {**_plain(launch), "connect_timeout": 60, "enabled": True}


def _command_hook(seconds: int) -> Callable[[str], dict[str, Any]]:
    return lambda command: {"hooks": [{"type": "command", "command": command, "timeout": seconds}]}


def _gemini_hook(command: str) -> dict[str, Any]:
    return {"hooks": [{"name": "kektor-recall", "type": "command", "command": command, "timeout": 5000}]}


def _first_existing(*paths: Path) -> Path:
    """The one of several names for a file that is there, else the first."""
    return next((path for path in paths if path.exists()), paths[0])


def folders(home: Path, project: Path, environ: dict[str, str]) -> Folders:
    """Of this system's user."""
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    if sys.platform == "darwin":
        appdata = home / "Library" / "Application Support"
    elif os.name == "nt":
        appdata = Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
    else:
        appdata = config
    return Folders(home, config, appdata, project)


_HOOK_SECONDS = 5

_ALL = (
    Client(
        "claude-code",
        "Claude Code",
        Servers(
            "jsonc", ("mcpServers", NAME), _typed,
            user=lambda f: f.home / ".claude.json",
            project=lambda f: f.project / ".mcp.json",
        ),
        Rules(
            rules.skill, own_file=True,
            user=lambda f: f.home / ".claude" / "skills" / "kektor-memory" / "SKILL.md",
            project=lambda f: f.project / ".claude" / "skills" / "kektor-memory" / "SKILL.md",
        ),
        Hook(
            ("hooks", "UserPromptSubmit"), _command_hook(_HOOK_SECONDS),
            user=lambda f: f.home / ".claude" / "settings.json",
            project=lambda f: f.project / ".claude" / "settings.local.json",
        ),
        afterwards="Start Claude Code anew; /mcp shows the server.",
    ),
    Client(
        "claude-desktop",
        "Claude Desktop",
        Servers(
            "jsonc", ("mcpServers", NAME), _plain,
            user=lambda f: f.appdata / "Claude" / "claude_desktop_config.json",
            project=None,
        ),
        afterwards="Quit Claude Desktop and start it again. It reads standing instructions from Settings only: paste "
        "those of `kektor setup claude-desktop --print-only` there.",
    ),
    Client(
        "cursor",
        "Cursor",
        Servers(
            "jsonc", ("mcpServers", NAME), _typed,
            user=lambda f: f.home / ".cursor" / "mcp.json",
            project=lambda f: f.project / ".cursor" / "mcp.json",
        ),
        Rules(
            rules.cursor_rule, own_file=True,
            user=None,
            project=lambda f: f.project / ".cursor" / "rules" / "kektor-memory.mdc",
        ),
        afterwards="Restart Cursor. Rules for all projects stand in Settings only: paste those of "
        "`kektor setup cursor --print-only` there.",
    ),
    Client(
        "vscode",
        "VS Code",
        Servers(
            "jsonc", ("servers", NAME), _typed,
            user=lambda f: f.appdata / "Code" / "User" / "mcp.json",
            project=lambda f: f.project / ".vscode" / "mcp.json",
        ),
        Rules(
            rules.vscode_instructions, own_file=True,
            user=lambda f: f.appdata / "Code" / "User" / "prompts" / "kektor-memory.instructions.md",
            project=lambda f: f.project / ".github" / "instructions" / "kektor-memory.instructions.md",
        ),
        afterwards="Run `MCP: List Servers` and start kektor there once; VS Code asks whether to trust it.",
    ),
    Client(
        "codex",
        "Codex CLI",
        Servers(
            "toml", ("mcp_servers", NAME), _plain,
            user=lambda f: f.home / ".codex" / "config.toml",
            project=lambda f: f.project / ".codex" / "config.toml",
        ),
        Rules(
            lambda: rules.RULES, own_file=False,
            user=lambda f: f.home / ".codex" / "AGENTS.md",
            project=lambda f: f.project / "AGENTS.md",
        ),
        Hook(
            ("hooks", "UserPromptSubmit"), _command_hook(_HOOK_SECONDS),
            user=lambda f: f.home / ".codex" / "hooks.json",
            project=lambda f: f.project / ".codex" / "hooks.json",
        ),
        afterwards="Start Codex anew; it asks once whether to trust the hook.",
    ),
    Client(
        "gemini-cli",
        "Gemini CLI",
        Servers(
            "jsonc", ("mcpServers", NAME), _plain,
            user=lambda f: f.home / ".gemini" / "settings.json",
            project=lambda f: f.project / ".gemini" / "settings.json",
        ),
        Rules(
            lambda: rules.RULES, own_file=False,
            user=lambda f: f.home / ".gemini" / "GEMINI.md",
            project=lambda f: f.project / "GEMINI.md",
        ),
        Hook(
            ("hooks", "BeforeAgent"), _gemini_hook,
            user=lambda f: f.home / ".gemini" / "settings.json",
            project=lambda f: f.project / ".gemini" / "settings.json",
        ),
        afterwards="Start Gemini CLI anew; /mcp lists the server.",
    ),
    Client(
        "opencode",
        "OpenCode",
        Servers(
            "jsonc", ("mcp", NAME), _opencode,
            user=lambda f: _first_existing(
                f.config / "opencode" / "opencode.json", f.config / "opencode" / "opencode.jsonc"
            ),
            project=lambda f: _first_existing(f.project / "opencode.json", f.project / "opencode.jsonc"),
        ),
        Rules(
            lambda: rules.RULES, own_file=False,
            user=lambda f: f.config / "opencode" / "AGENTS.md",
            project=lambda f: f.project / "AGENTS.md",
        ),
        afterwards="Start OpenCode anew.",
    ),
    Client(
        "windsurf",
        "Windsurf",
        Servers(
            "jsonc", ("mcpServers", NAME), _plain,
            user=lambda f: _first_existing(
                f.home / ".codeium" / "windsurf" / "mcp_config.json", f.home / ".codeium" / "mcp_config.json"
            ),
            project=None,
        ),
        Rules(
            lambda: rules.RULES, own_file=False,
            user=lambda f: f.home / ".codeium" / "windsurf" / "memories" / "global_rules.md",
            project=None,
        ),
        afterwards="Press refresh in Windsurf's list of MCP servers.",
    ),
    Client(
        "zed",
        "Zed",
        Servers(
            "jsonc", ("context_servers", NAME), _zed,
            user=lambda f: f.config / "zed" / "settings.json",
            project=lambda f: f.project / ".zed" / "settings.json",
        ),
        Rules(
            lambda: rules.RULES, own_file=False,
            user=lambda f: f.config / "zed" / "AGENTS.md",
            project=lambda f: f.project / "AGENTS.md",
        ),
        afterwards="Zed starts it at once; the dot beside it in the agent's settings turns green.",
    ),
    Client(
        "hermes",
        "Hermes",
        Servers(
            "yaml", ("mcp_servers", NAME), _hermes,
            user=lambda f: f.home / ".hermes" / "config.yaml",
            project=None,
        ),
        Rules(
            rules.skill, own_file=True,
            user=lambda f: f.home / ".hermes" / "skills" / "kektor-memory" / "SKILL.md",
            project=None,
        ),
        afterwards="Start Hermes anew, or send /reload-mcp.",
    ),
    Client(
        "open-webui",
        "Open WebUI",
        None,
        guide="Open WebUI keeps its servers in its own database. Run `kektor serve`, then as an administrator open "
        "Settings, External Tools, add a connection of the type MCP (Streamable HTTP), and enter:\n"
        "  URL   http://127.0.0.1:9091/mcp   (from a container: the host's address)\n"
        "  Auth  none, or Bearer with a token when the server runs with authentication\n"
        "Paste the instructions below into the system prompt of the models that are to use it.",
    ),
)  # fmt: skip

CLIENTS = {client.name: client for client in _ALL}
