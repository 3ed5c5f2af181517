"""The clients that `laneway setup` knows: where each keeps its servers, and how an entry looks there.

Facts only, checked against each client's own documentation; whatever they leave open is
left out of an entry. `laneway.cli.registrations` knows where else to look for old ones.
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


class Where(msgspec.Struct, frozen=True):
    """The surroundings in which a client's file is looked for."""

    home: Path
    folder: Path
    environment: Mapping[str, str]
    platform: str = sys.platform

    @property
    def config(self) -> Path:
        return Path(self.environment.get("XDG_CONFIG_HOME") or self.home / ".config")

    @property
    def apps(self) -> Path:
        """Where programs with windows keep theirs."""
        is_mac = self.platform == "darwin"
        return self.home / "Library" / "Application Support" if is_mac else self.config

    @property
    def project(self) -> Path:
        """The root of the repository around the folder, else the folder."""
        repo = find_repo(self.folder)
        return self.folder if repo is None else repo.root


class Client(msgspec.Struct, frozen=True):
    name: str
    title: str
    files: Mapping[Scope, Callable[[Where], Path]]
    """By scope, the usual one first."""
    table: tuple[str, ...]
    entry: Callable[[list[str]], Entry]
    default_name: str = "codex"
    after: str = "Restart it to see the new tools."
    """What the user does next."""
    on_windows: bool = False
    """Whether people who work in WSL have it on the Windows side, where its file is another one."""

    def table_in(self, tree: Any) -> tuple[str, ...]:
        """The keys of the table of servers in a file that is there already."""
        if self.name == "opencode" and _is_table_of_servers(look(tree, ("mcp", "servers"))):
            return ("mcp", "servers")  # OpenCode 2; both read the older, flat form
        return self.table


def wsl_note(client: Client, command: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """How a client on the Windows side starts this Laneway, for whoever sets it up from within WSL."""
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


def _zed_user(where: Where) -> Path:
    return where.config / "zed" / "settings.json"


def _zed_project(where: Where) -> Path:
    return where.project / ".zed" / "settings.json"


def _claude_user(where: Where) -> Path:
    named = where.environment.get("CLAUDE_CONFIG_DIR")
    return Path(named) / ".claude.json" if named else where.home / ".claude.json"


def _codex_user(where: Where) -> Path:
    return Path(where.environment.get("CODEX_HOME") or where.home / ".codex") / "config.toml"


def _opencode_file(folder: Path) -> Path:
    """The one that is there, since OpenCode reads both."""
    names = ("opencode.json", "opencode.jsonc")
    return next((folder / name for name in names if (folder / name).exists()), folder / names[0])


def _opencode_user(where: Where) -> Path:
    named = where.environment.get("OPENCODE_CONFIG")
    return Path(named) if named else _opencode_file(where.config / "opencode")


CLIENTS: dict[str, Client] = {
    client.name: client
    for client in (
        Client(
            "claude",
            "Claude Code",
            {"user": _claude_user, "project": lambda where: where.project / ".mcp.json"},
            ("mcpServers",),
            _typed,
            after="Start `claude` anew; /mcp shows it.",
        ),
        Client(
            "claude-project",
            "Claude Code, for everyone in this project",
            {"project": lambda where: where.project / ".mcp.json"},
            ("mcpServers",),
            _typed,
            after="Start `claude` anew here; it asks once whether you trust the project's servers.",
        ),
        Client(
            "claude-desktop",
            "Claude Desktop",
            {"user": lambda where: where.apps / "Claude" / "claude_desktop_config.json"},
            ("mcpServers",),
            _plain,
            after="Quit Claude Desktop (closing its window is not enough), then start it again.",
            on_windows=True,
        ),
        Client(
            "codex",
            "Codex",
            {"user": _codex_user, "project": lambda where: where.project / ".codex" / "config.toml"},
            ("mcp_servers",),
            _plain,
            default_name="laneway",
            after="Start `codex` anew; /mcp shows it. A project's own config counts once you trust it.",
        ),
        Client(
            "cursor",
            "Cursor",
            {
                "user": lambda where: where.home / ".cursor" / "mcp.json",
                "project": lambda where: where.project / ".cursor" / "mcp.json",
            },
            ("mcpServers",),
            _plain,
            after="Restart Cursor, and switch it on under MCP in its settings.",
        ),
        Client(
            "windsurf",
            "Windsurf",
            {"user": lambda where: where.home / ".codeium" / "windsurf" / "mcp_config.json"},
            ("mcpServers",),
            _plain,
            after="Refresh the MCP servers in Cascade's settings, or restart Windsurf.",
            on_windows=True,
        ),
        Client(
            "vscode",
            "VS Code",
            {
                "user": lambda where: where.apps / "Code" / "User" / "mcp.json",
                "project": lambda where: where.project / ".vscode" / "mcp.json",
            },
            ("servers",),
            _typed,
            after="`MCP: List Servers` in the command palette starts it.",
        ),
        Client(
            "zed",
            "Zed",
            {"user": _zed_user, "project": _zed_project},
            ("context_servers",),
            _plain,
            after="Zed starts it at once; a green dot in the agent panel's settings says so.",
        ),
        Client(
            "opencode",
            "OpenCode",
            {"user": _opencode_user, "project": lambda where: _opencode_file(where.project)},
            ("mcp",),
            _opencode,
        ),
        Client(
            "gemini",
            "Gemini CLI",
            {
                "user": lambda where: where.home / ".gemini" / "settings.json",
                "project": lambda where: where.project / ".gemini" / "settings.json",
            },
            ("mcpServers",),
            _plain,
            after="Start `gemini` anew; /mcp shows it.",
        ),
        Client("generic", "an MCP client", {}, ("mcpServers",), _plain, after="Restart the client."),
    )
}

EDITORS: dict[str, Client] = {
    client.name: client
    for client in (
        Client(
            "zed",
            "Zed",
            {"user": _zed_user},
            ("agent_servers",),
            _custom,
            default_name="Laneway",
            after="Start a thread with it from the agent panel's + menu.",
        ),
        Client(
            "jetbrains",
            "JetBrains IDEs",
            {"user": lambda where: where.home / ".jetbrains" / "acp.json"},
            ("agent_servers",),
            _plain,
            default_name="Laneway",
            after="Choose it among the agents of AI Chat.",
        ),
    )
}
"""Editors that take an ACP agent from a file: `--door acp`."""
