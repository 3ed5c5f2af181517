"""The clients that `laneway setup` knows: their config files, and what a server entry looks like there.

Facts only, checked against each client's own documentation; optional fields are left out of an
entry. `laneway.cli.registrations` knows where else to look for existing entries.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from laneway.base.repo import find_repo
from laneway.cli.clients.edit import look

Scope: TypeAlias = Literal["user", "project"]
Entry: TypeAlias = dict[str, Any]


class ConfigFolders(msgspec.Struct, frozen=True):
    """The home, folder, environment and platform in which a client's file is searched for."""

    home: Path
    folder: Path
    environment: Mapping[str, str]
    platform: str = sys.platform

    @property
    def config(self) -> Path:
        return Path(self.environment.get("XDG_CONFIG_HOME") or self.home / ".config")

    @property
    def apps(self) -> Path:
        """The config folder of desktop applications."""
        is_mac = self.platform == "darwin"
        return self.home / "Library" / "Application Support" if is_mac else self.config

    @property
    def project(self) -> Path:
        """The root of the repository around the folder, else the folder."""
        repo = find_repo(self.folder)
        return self.folder if repo is None else repo.root


class KnownClient(msgspec.Struct, frozen=True):
    """One client: its files by scope, the table of servers in them, and how to write an entry."""

    name: str
    title: str
    files: Mapping[Scope, Callable[[ConfigFolders], Path]]
    """By scope, the usual one first."""
    table: tuple[str, ...]
    entry: Callable[[list[str]], Entry]
    default_name: str = "codex"
    after: str = "Restart it to see the new tools."
    """What the user must do next."""
    on_windows: bool = False
    """Whether people who work in WSL run it on Windows, where it reads another file."""

    def table_in(self, tree: Any) -> tuple[str, ...]:
        """The keys of the table of servers in an existing file."""
        if self.name == "opencode" and _is_table_of_servers(look(tree, ("mcp", "servers"))):
            return ("mcp", "servers")  # OpenCode 2; both read the older, flat form
        return self.table


def wsl_note(client: KnownClient, command: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """A note for users of WSL: how a client on Windows starts this Laneway."""
    distribution = environment.get("WSL_DISTRO_NAME", "")
    if not client.on_windows or not distribution:
        return None
    line = shlex.join(["wsl.exe", "-d", distribution, "-e", *command])
    return (
        f"If {client.title} runs on Windows it reads its own file there, which must start `{line}`: "
        "see docs/clients.md."
    )


def _is_table_of_servers(node: Any) -> bool:
    return isinstance(node, dict) and "command" not in node and "url" not in node and "enabled" not in node


def _plain(words: list[str]) -> Entry:
    return {"command": words[0], "args": words[1:]}


def _typed(words: list[str]) -> Entry:
    return {"type": "stdio", **_plain(words)}


def _custom(words: list[str]) -> Entry:
    return {"type": "custom", **_plain(words)}


def _opencode(words: list[str]) -> Entry:
    return {"type": "local", "command": words}


def _zed_user(folders: ConfigFolders) -> Path:
    return folders.config / "zed" / "settings.json"


def _zed_project(folders: ConfigFolders) -> Path:
    return folders.project / ".zed" / "settings.json"


def _claude_user(folders: ConfigFolders) -> Path:
    named = folders.environment.get("CLAUDE_CONFIG_DIR")
    return Path(named) / ".claude.json" if named else folders.home / ".claude.json"


def _codex_user(folders: ConfigFolders) -> Path:
    return Path(folders.environment.get("CODEX_HOME") or folders.home / ".codex") / "config.toml"


def _opencode_file(folder: Path) -> Path:
    """The one that exists, since OpenCode reads both."""
    names = ("opencode.json", "opencode.jsonc")
    return next((folder / name for name in names if (folder / name).exists()), folder / names[0])


def _opencode_user(folders: ConfigFolders) -> Path:
    named = folders.environment.get("OPENCODE_CONFIG")
    return Path(named) if named else _opencode_file(folders.config / "opencode")


CLIENTS: dict[str, KnownClient] = {
    client.name: client
    for client in (
        KnownClient(
            "claude",
            "Claude Code",
            {"user": _claude_user, "project": lambda folders: folders.project / ".mcp.json"},
            ("mcpServers",),
            _typed,
            after="Start `claude` anew; /mcp shows it.",
        ),
        KnownClient(
            "claude-project",
            "Claude Code, for everyone in this project",
            {"project": lambda folders: folders.project / ".mcp.json"},
            ("mcpServers",),
            _typed,
            after="Start `claude` anew here; it asks once whether you trust the project's servers.",
        ),
        KnownClient(
            "claude-desktop",
            "Claude Desktop",
            {"user": lambda folders: folders.apps / "Claude" / "claude_desktop_config.json"},
            ("mcpServers",),
            _plain,
            after="Quit Claude Desktop (closing its window is not enough), then start it again.",
            on_windows=True,
        ),
        KnownClient(
            "codex",
            "Codex",
            {"user": _codex_user, "project": lambda folders: folders.project / ".codex" / "config.toml"},
            ("mcp_servers",),
            _plain,
            default_name="laneway",
            after="Start `codex` anew; /mcp shows it. A project's own config counts once you trust it.",
        ),
        KnownClient(
            "cursor",
            "Cursor",
            {
                "user": lambda folders: folders.home / ".cursor" / "mcp.json",
                "project": lambda folders: folders.project / ".cursor" / "mcp.json",
            },
            ("mcpServers",),
            _plain,
            after="Restart Cursor, and switch it on under MCP in its settings.",
        ),
        KnownClient(
            "windsurf",
            "Windsurf",
            {"user": lambda folders: folders.home / ".codeium" / "windsurf" / "mcp_config.json"},
            ("mcpServers",),
            _plain,
            after="Refresh the MCP servers in Cascade's settings, or restart Windsurf.",
            on_windows=True,
        ),
        KnownClient(
            "vscode",
            "VS Code",
            {
                "user": lambda folders: folders.apps / "Code" / "User" / "mcp.json",
                "project": lambda folders: folders.project / ".vscode" / "mcp.json",
            },
            ("servers",),
            _typed,
            after="`MCP: List Servers` in the command palette starts it.",
        ),
        KnownClient(
            "zed",
            "Zed",
            {"user": _zed_user, "project": _zed_project},
            ("context_servers",),
            _plain,
            after="Zed starts it at once; a green dot in the agent panel's settings says so.",
        ),
        KnownClient(
            "opencode",
            "OpenCode",
            {"user": _opencode_user, "project": lambda folders: _opencode_file(folders.project)},
            ("mcp",),
            _opencode,
        ),
        KnownClient(
            "gemini",
            "Gemini CLI",
            {
                "user": lambda folders: folders.home / ".gemini" / "settings.json",
                "project": lambda folders: folders.project / ".gemini" / "settings.json",
            },
            ("mcpServers",),
            _plain,
            after="Start `gemini` anew; /mcp shows it.",
        ),
        KnownClient("generic", "an MCP client", {}, ("mcpServers",), _plain, after="Restart the client."),
    )
}

EDITORS: dict[str, KnownClient] = {
    client.name: client
    for client in (
        KnownClient(
            "zed",
            "Zed",
            {"user": _zed_user},
            ("agent_servers",),
            _custom,
            default_name="Laneway",
            after="Start a thread with it from the agent panel's + menu.",
        ),
        KnownClient(
            "jetbrains",
            "JetBrains IDEs",
            {"user": lambda folders: folders.home / ".jetbrains" / "acp.json"},
            ("agent_servers",),
            _plain,
            default_name="Laneway",
            after="Choose it among the agents of AI Chat.",
        ),
    )
}
"""Editors that take an ACP agent from a file: `--door acp`."""
