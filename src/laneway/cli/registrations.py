"""Server entries in the configs of all clients: finds those of Laneway and of the removed `codex mcp-server`.

Parsing is pure: a text in, entries out, each with the keys that lead to it, so that it can be
edited later. Files are only read, within bounds; one that cannot be read is part of the result,
never an exception. Used by `doctor`, `setup`, `migrate` and `uninstall`.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.foreign_files import NotRegular, TooLarge, read_regular
from laneway.base.repo import find_repo
from laneway.base.server_words import is_ours, is_stale
from laneway.base.toml_lines import too_deep

REMOVED_IN = (0, 154, 0)
"""The first Codex without `mcp-server`, which takes the word for a prompt."""
MAX_CONFIG_BYTES = 32 * 1024 * 1024
"""A `.claude.json` with years of history has a few MiB; a larger file is no config."""
MAX_DEPTH = 32
"""Objects around an entry; real files have up to five."""
MAX_PLUGIN_FILES = 500
"""Plugin files looked at: their folder is a checkout that may hold anything."""
MAX_PLUGIN_FOLDERS = 5000


class Registration(msgspec.Struct, frozen=True):
    """One server entry of one file."""

    file: Path
    keys: tuple[str, ...]
    """From the root of the file to the entry."""
    command: str
    args: tuple[str, ...]
    is_enabled: bool = True

    @property
    def server(self) -> str:
        return self.keys[-1]


class Unreadable(msgspec.Struct, frozen=True):
    """A file that could not be read."""

    file: Path
    problem: str


class Scan(msgspec.Struct, frozen=True):
    """The entries of all files that were read."""

    stale: tuple[Registration, ...]
    unreadable: tuple[Unreadable, ...]
    read: tuple[Path, ...]
    ours: tuple[Registration, ...] = ()
    """Entries that start Laneway, under any of its names."""


# ── pure ───────────────────────────────────────────────────────────────────


def entries(text: str, file: Path) -> list[Registration]:
    """Every server entry of a config text, whatever its client calls the table.

    Raises `ValueError` if the text is neither what its name says nor JSON with comments.
    """
    return [_entry(file, keys, node) for keys, node in _commands(parse(text, file))]


def parse(text: str, file: Path) -> Any:
    """A config text as data; raises as `entries` does."""
    try:
        if file.suffix != ".toml":
            return _json(text)
        if too_deep(text) is not None:
            raise ValueError("it is nested too deeply")
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def without_comments(text: str) -> str:
    """JSON with comments and trailing commas as plain JSON; every character keeps its place."""
    return _COMMA.sub(lambda match: match[0] if match[0][0] == '"' else " ", blank_comments(text))


def blank_comments(text: str) -> str:
    """JSON with its comments replaced by blanks; every character keeps its place."""
    return _COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else _blank(match[0]), text)


_STRING = r'"(?:\\.|[^"\\])*+(?:"|\\?\Z)'
# An open string or comment runs to the end of the text: no second try, so no quadratic time.
_COMMENT = re.compile(rf"(?s){_STRING}|//[^\n]*+|/\*.*?(?:\*/|\Z)")
_COMMA = re.compile(rf"(?s){_STRING}|,(?=\s*+[}}\]])")


def _blank(comment: str) -> str:
    return re.sub(r"[^\n]", " ", comment)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(without_comments(text))


def _commands(tree: Any) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """The objects that name a command, with the keys that lead to them."""
    pending: list[tuple[tuple[str, ...], Any]] = [((), tree)]
    while pending:
        keys, node = pending.pop()
        if not isinstance(node, dict) or len(keys) > MAX_DEPTH:
            continue
        if keys and isinstance(node.get("command"), str | list | dict):
            yield keys, node
        pending += [((*keys, str(key)), value) for key, value in reversed(node.items())]


def _entry(file: Path, keys: tuple[str, ...], node: dict[str, Any]) -> Registration:
    command: Any = node["command"]
    args: Any = node.get("args")
    if isinstance(command, dict):  # Zed
        args, command = command.get("args"), command.get("path")
    if isinstance(command, list):  # OpenCode
        command, args = (command[0] if command else ""), command[1:]
    words = [word for word in args if isinstance(word, str)] if isinstance(args, list) else []
    is_enabled = node.get("enabled") is not False and node.get("disabled") is not True
    return Registration(file, keys, command if isinstance(command, str) else "", tuple(words), is_enabled)


# ── files ──────────────────────────────────────────────────────────────────


def scan(paths: Iterable[Path]) -> Scan:
    """Read the files that exist."""
    stale: list[Registration] = []
    ours: list[Registration] = []
    unreadable: list[Unreadable] = []
    read: list[Path] = []
    for file in dict.fromkeys(paths):
        try:
            data = read_bytes(file)
            if data is None:
                continue
            read.append(file)
            text = data.decode("utf-8-sig")
            all_entries = entries(text, file)
            stale += [entry for entry in all_entries if is_stale(entry.command, entry.args)]
            ours += [entry for entry in all_entries if is_ours(entry.command, entry.args)]
        except OSError as problem:
            unreadable.append(Unreadable(file, problem.strerror or "it cannot be read"))
        except ValueError as problem:
            unreadable.append(Unreadable(file, problem_text(problem)))
    return Scan(tuple(stale), tuple(unreadable), tuple(read), tuple(ours))


def read_bytes(file: Path) -> bytes | None:
    """A regular file within bounds; None if there is none. Raises `OSError` or `ValueError`."""
    try:
        return read_regular(file, MAX_CONFIG_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except NotRegular as problem:
        if problem.errno == errno.ELOOP:
            raise OSError(problem.errno, os.strerror(problem.errno), str(file)) from problem
        raise ValueError("it is not a regular file") from problem
    except TooLarge as problem:
        raise ValueError(f"it is larger than {MAX_CONFIG_BYTES // 1024**2} MiB") from problem


def problem_text(problem: ValueError) -> str:
    """Why a text could not be parsed; a clause that follows the name of the file."""
    match problem:
        case UnicodeDecodeError():
            return "it is not UTF-8"
        case json.JSONDecodeError():
            return f"it is not valid JSON: line {problem.lineno}, column {problem.colno}"
        case tomllib.TOMLDecodeError():
            return "it is not valid TOML"
        case _:
            return str(problem)


def places(
    home: Path, folder: Path, environment: Mapping[str, str], platform: str = sys.platform
) -> list[Path]:
    """The config files of known clients: the user's, and those around `folder`."""
    return [
        *_of_user(home, environment, platform),
        *_of_plugins(_claude(home, environment)),
        *_around(folder),
    ]


def _claude(home: Path, environment: Mapping[str, str]) -> Path:
    return Path(environment.get("CLAUDE_CONFIG_DIR") or home / ".claude")


def _of_user(home: Path, environment: Mapping[str, str], platform: str) -> Iterator[Path]:
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    apps = home / "Library" / "Application Support" if platform == "darwin" else config
    claude = _claude(home, environment)
    codex = Path(environment.get("CODEX_HOME") or home / ".codex")
    yield home / ".claude.json"
    yield from (claude / name for name in (".claude.json", "settings.json", "settings.local.json"))
    yield apps / "Claude" / "claude_desktop_config.json"
    yield codex / "config.toml"
    yield from sorted(codex.glob("*.config.toml"))
    if custom := environment.get("OPENCODE_CONFIG"):
        yield Path(custom)
    yield from (config / "opencode" / name for name in ("opencode.json", "opencode.jsonc", "config.json"))
    for editor in ("Code", "Code - Insiders", "VSCodium", "Cursor"):
        user = apps / editor / "User"
        yield from (user / "mcp.json", user / "settings.json")
        yield from sorted(user.glob("profiles/*/mcp.json"))
    yield home / ".cursor" / "mcp.json"
    yield home / ".codeium" / "windsurf" / "mcp_config.json"
    yield home / ".gemini" / "settings.json"
    yield config / "zed" / "settings.json"
    yield home / ".jetbrains" / "acp.json"
    yield home / ".mcp.json"


def _of_plugins(claude: Path) -> Iterator[Path]:
    """Files of Claude's installed plugins and marketplaces that may hold servers."""
    count = 0
    walk = os.walk(claude / "plugins")  # follows no links, so it ends
    for _, (folder, subfolders, names) in zip(range(MAX_PLUGIN_FOLDERS), walk, strict=False):
        subfolders[:] = [name for name in subfolders if name not in (".git", "node_modules")]
        for name in (".mcp.json", "plugin.json"):
            if name in names and count < MAX_PLUGIN_FILES:
                count += 1
                yield Path(folder, name)


def _around(folder: Path) -> Iterator[Path]:
    """The project's own files: from `folder` up to the root of its repository."""
    repo = find_repo(folder)
    for level in (folder, *folder.parents):
        yield from (
            level / name
            for name in (
                ".mcp.json",
                "mcp.json",
                ".claude/settings.json",
                ".claude/settings.local.json",
                ".claude-plugin/plugin.json",
                ".codex/config.toml",
                "opencode.json",
                "opencode.jsonc",
                ".opencode/opencode.json",
                ".opencode/opencode.jsonc",
                ".vscode/mcp.json",
                ".vscode/settings.json",
                ".cursor/mcp.json",
                ".gemini/settings.json",
                ".zed/settings.json",
            )
        )
        if repo is None or level == repo.root:
            return
