"""What a worker must know of the user's config: is the folder's trust decided, which MCP servers are ours?

A new thread that may write makes Codex (0.133 to 0.166) write the repository into the user's config.toml as
trusted, so that it is marked as untrusted for the run where the user has decided nothing. From 0.153 on
that mark also hides the repository's AGENTS.md from the model, which `laneway.codex.exec.project_docs` makes
up for. So it is set only where Codex would write: not for reading, a thread that goes on, or from 0.169 on.

Files are read within bounds and never written. Where Codex reads a file that Python's TOML parser refuses
(newlines within inline tables), Codex is asked itself. Blocking.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from laneway.base.foreign_files import read_regular
from laneway.base.server_words import OUR_SERVERS, is_ours
from laneway.base.toml_lines import TomlLines, too_deep
from laneway.codex.exec.command import SandboxMode, ServerOff

SYSTEM_FILE = "/etc/codex/config.toml"
"""Read by Codex before the user's own."""
MAX_CONFIG_BYTES = 8 * 1024 * 1024
MAX_GIT_FILE_BYTES = 4096
"""A `.git` file is one line."""
MAX_LEVELS = 128
"""Folders between a worker's folder and the root of its repository."""
LIST_S = 10.0
"""For `codex mcp list`, which takes 0.05 s."""
WRITES_NO_TRUST_SINCE = (0, 169, 0)
"""The first version seen that leaves config.toml alone."""
_LINKED = re.compile(r"gitdir: (.+)", re.DOTALL)


class WorkerConfig(msgspec.Struct, frozen=True):
    """What was found for a worker in one folder."""

    untrusted: tuple[str, ...] = ()
    """For `WorkerCommand.untrusted`; empty where the user has decided, or Codex would write nothing."""
    servers_off: tuple[ServerOff, ...] = ()
    user: Mapping[str, Any] = {}
    """The user's own file and the system's, merged; empty if they cannot be parsed."""


def read(
    cwd: str,
    codex_home: str,
    *,
    sandbox: SandboxMode,
    is_resumed: bool = False,
    version: tuple[int, ...] | None = None,
    ask: Sequence[str] = (),
    system_file: str = SYSTEM_FILE,
) -> WorkerConfig:
    """Read it all. `ask` is the command of Codex, which is run if a file cannot be parsed."""
    own = [_ConfigFile.read(path) for path in (system_file, os.path.join(codex_home, "config.toml"))]
    projects = [_ConfigFile.read(os.path.join(level, ".codex", "config.toml")) for level in levels(cwd)]
    user: dict[str, Any] = {}
    for file in own:
        _merge(user, file.table)
    untrusted: tuple[str, ...] = ()
    if writes_trust(sandbox, is_resumed=is_resumed, version=version):
        untrusted = roots_to_mark(trust_keys(cwd), own)
    files = (*own, *projects)
    servers = [name_and_entry for file in files for name_and_entry in file.servers()]
    if ask and not all(file.is_parsed for file in files):
        servers += _asked(ask, cwd, codex_home)
    return WorkerConfig(untrusted, ours(servers), user)


def writes_trust(sandbox: SandboxMode, *, is_resumed: bool, version: tuple[int, ...] | None) -> bool:
    """Whether Codex would write the folder down as trusted; of an unknown version it is believed."""
    return sandbox != "read-only" and not is_resumed and (version is None or version < WRITES_NO_TRUST_SINCE)


# ── trust ──────────────────────────────────────────────────────────────────


def roots_to_mark(keys: tuple[str, ...], files: Iterable[_ConfigFile]) -> tuple[str, ...]:
    """All keys by which Codex would find a decision, or none where there is one."""
    return () if any(file.decides(key) for file in files for key in keys) else keys


def trust_keys(cwd: str) -> tuple[str, ...]:
    """The paths by which Codex (0.163) looks for a decision: the folder, then the repository.

    Of a linked worktree it is the main one that counts; a submodule counts by its folder alone.
    """
    real = os.path.realpath(cwd)
    root = trust_root(real)
    return tuple(dict.fromkeys(key for key in (os.path.normpath(cwd), real, root) if key))


def trust_root(real: str) -> str | None:
    for level in _upward(real):
        dot_git = os.path.join(level, ".git")
        if os.path.lexists(os.path.join(dot_git, "HEAD")):  # Codex's sandbox leaves empty ones behind
            return level
        if os.path.isfile(dot_git):
            return _main_worktree(dot_git, level)
    return None


def _main_worktree(dot_git: str, level: str) -> str | None:
    try:
        line = os.fsdecode(read_regular(dot_git, MAX_GIT_FILE_BYTES)).strip()
    except OSError:
        return None
    match = _LINKED.fullmatch(line)
    if match is None:
        return None
    worktrees, _ = os.path.split(os.path.realpath(os.path.join(level, match[1])))
    common, name = os.path.split(worktrees)
    root = os.path.dirname(common)
    return root if name == "worktrees" and os.path.lexists(os.path.join(root, ".git")) else None


def levels(cwd: str) -> Iterator[str]:
    """The folder and those above it, up to the root of its work tree; outside of one only the folder."""
    real = os.path.realpath(cwd)
    passed = []
    for level in _upward(real):
        passed.append(level)
        if os.path.lexists(os.path.join(level, ".git")):
            return iter(passed)
    return iter([real])


def _upward(folder: str) -> Iterator[str]:
    for _ in range(MAX_LEVELS):
        yield folder
        folder, before = os.path.dirname(folder), folder
        if folder == before:
            return


# ── servers ────────────────────────────────────────────────────────────────


def ours(servers: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[ServerOff, ...]:
    """Those that are Laneway by what they start, or by their name: a URL or a script tells nothing else."""
    off = {
        name: ServerOff(name, has_url="url" in entry)
        for name, entry in servers
        if name in OUR_SERVERS or _starts_us(entry)
    }
    return tuple(off.values())


def _starts_us(entry: Mapping[str, Any]) -> bool:
    command, args = entry.get("command"), entry.get("args")
    words = [word for word in args if isinstance(word, str)] if isinstance(args, list) else []
    return isinstance(command, str) and is_ours(command, words)


def _asked(codex: Sequence[str], cwd: str, codex_home: str) -> list[tuple[str, Mapping[str, Any]]]:
    """The servers as Codex lists them for a folder; none if it does not answer."""
    try:
        ran = subprocess.run(
            [*codex, "mcp", "list", "--json"],
            cwd=cwd,
            env={**os.environ, "CODEX_HOME": codex_home},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIST_S,
            check=False,
        )
        listed = json.loads(ran.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return []  # nor will it run a worker, and then it says why
    return [
        (str(server["name"]), _without_nulls(server["transport"]))
        for server in (listed if isinstance(listed, list) else [])
        if isinstance(server, dict) and "name" in server and isinstance(server.get("transport"), dict)
    ]


def _without_nulls(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value is not None}


# ── files ──────────────────────────────────────────────────────────────────


class _ConfigFile(msgspec.Struct, frozen=True):
    """A config file. One that is missing or cannot be read is as good as an empty one."""

    text: str = ""
    table: Mapping[str, Any] = {}
    is_parsed: bool = True

    @classmethod
    def read(cls, path: str) -> _ConfigFile:
        try:
            text = read_regular(path, MAX_CONFIG_BYTES).decode("utf-8-sig")
        except (OSError, UnicodeDecodeError):
            return cls()
        try:
            if too_deep(text) is None:
                return cls(text, tomllib.loads(text))
        except (tomllib.TOMLDecodeError, RecursionError):
            pass
        return cls(text, is_parsed=False)

    def decides(self, key: str) -> bool:
        if not self.is_parsed:
            return self._names(key)
        projects = self.table.get("projects")
        project = projects.get(key) if isinstance(projects, dict) else None
        return isinstance(project, dict) and bool(project.get("trust_level"))

    def _names(self, key: str) -> bool:
        lines = TomlLines(self.text)
        path = ("projects", key, "trust_level")
        return lines.find(path) not in (None, lines.find(("projects",)))

    def servers(self) -> list[tuple[str, Mapping[str, Any]]]:
        table = self.table.get("mcp_servers")
        entries = table.items() if isinstance(table, dict) else ()
        return [(name, entry) for name, entry in entries if isinstance(entry, dict)]


def _merge(into: dict[str, Any], table: Mapping[str, Any]) -> None:
    for key, value in table.items():
        below = into.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            _merge(below, value)
        else:
            into[key] = value
