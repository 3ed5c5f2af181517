"""One server entry of a client's config: the command it starts, with which variables, in which folder.

Pure but for the environment that is passed in. Each client has its own syntax for variables
(`${X}`, `${X:-y}`, `${env:X}`, `{env:X}`, `$X`); what only the client can fill in is reported.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from laneway.cli.clients.edit import Keys

CODEX_PASSES = ("HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ")
"""The variables that Codex passes to a server, apart from those its entry names."""
_HOLDERS = re.compile(r"\$\{env:(\w+)\}|\{env:(\w+)\}|\$\{(\w+)(?::-([^}]*))?\}")
_FOLDERS = {"workspaceFolder", "userHome", "CLAUDE_PROJECT_DIR"}
_OPEN = re.compile(r"\$\{[^}]*\}|\{(?:env|file):[^}]*\}")
_SUBFOLDERS = frozenset({".vscode", ".cursor", ".claude", ".codex", ".gemini", ".zed", ".opencode"})


class EntryStart(msgspec.Struct, frozen=True):
    """The command that a client runs for an entry."""

    words: tuple[str, ...]
    environment: dict[str, str]
    folder: Path
    problem: str = ""
    """Why we cannot run it as the client would; a sentence."""


def command_line_of(node: Mapping[str, Any]) -> list[str] | None:
    """The command with its arguments, in any of the three shapes that clients use; None for any other."""
    command: Any = node.get("command")
    args: Any = node.get("args", [])
    if isinstance(command, Mapping):  # older versions of Zed
        command, args = command.get("path"), command.get("args", [])
    words = command if isinstance(command, list) else [command, *(args if isinstance(args, list) else [None])]
    if not words or not all(isinstance(word, str) for word in words) or not words[0]:
        return None
    return [str(word) for word in words]


def with_command_line(node: Mapping[str, Any], words: list[str]) -> dict[str, Any]:
    """The entry with another command, in the same shape."""
    command = node.get("command")
    if isinstance(command, list):
        return {**node, "command": words}
    if isinstance(command, Mapping):
        return {**node, "command": {**command, "path": words[0], "args": words[1:]}}
    args = {"args": words[1:]} if len(words) > 1 or "args" in node else {}
    return {**node, "command": words[0], **args}


def start_of(
    node: Mapping[str, Any], file: Path, keys: Keys, environment: Mapping[str, str], folder: Path
) -> EntryStart:
    """The command that the client would run; `folder` is where its user would start the client."""
    folder = _folder(node, file, keys, folder)
    inherited = _inherited(node, file, environment)
    named = node.get("env", node.get("environment"))
    for name, value in (named if isinstance(named, Mapping) else {}).items():
        filled = _filled(str(value), environment, folder)
        if value is None or _OPEN.search(filled):
            inherited.pop(str(name), None)  # a secret that only the client can ask for
        else:
            inherited[str(name)] = filled
    words = command_line_of(node)
    if words is None:
        return EntryStart((), inherited, folder, "The entry names no command that can be run.")
    words = [_filled(word, environment, folder) for word in words]
    if unfilled := next((match[0] for word in words if (match := _OPEN.search(word))), None):
        return EntryStart(tuple(words), inherited, folder, f"Only the client itself can fill in {unfilled}.")
    if len(words) == 1 and " " in words[0] and not Path(words[0]).exists():
        words = shlex.split(words[0])
    return EntryStart(tuple(words), inherited, folder)


def _inherited(node: Mapping[str, Any], file: Path, environment: Mapping[str, str]) -> dict[str, str]:
    if file.suffix != ".toml":
        return dict(environment)
    more = node.get("env_vars")
    passed = {*CODEX_PASSES, *(more if isinstance(more, list) and _is_words(more) else ())}
    return {name: value for name, value in environment.items() if name in passed}


def _is_words(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _folder(node: Mapping[str, Any], file: Path, keys: Keys, folder: Path) -> Path:
    """The entry's own folder, else its project's, else the user's."""
    if len(keys) > 2 and keys[0] == "projects" and Path(keys[1]).is_dir():
        folder = Path(keys[1])  # Claude Code's own entries for one project
    elif file.parent.name in _SUBFOLDERS and file.parent.parent in (folder, *folder.parents):
        folder = file.parent.parent
    elif file.name == ".mcp.json" or file.name.startswith("opencode."):
        folder = file.parent
    own = node.get("cwd")
    if isinstance(own, str) and (folder / own).is_dir():
        return folder / own
    return folder


def _filled(text: str, environment: Mapping[str, str], folder: Path) -> str:
    """The text with its variables filled in; those that are not set stay as they are."""

    def fill(match: re.Match[str]) -> str:
        name = match[1] or match[2] or match[3]
        if match[3] in _FOLDERS:
            return environment.get("HOME", match[0]) if name == "userHome" else str(folder)
        return environment.get(name, match[0] if match[4] is None else match[4])

    return _HOLDERS.sub(fill, text)
