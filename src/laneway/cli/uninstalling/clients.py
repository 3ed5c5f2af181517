"""Remnants in clients' configs: our server entries, and copies that earlier versions left beside them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from laneway.base.plain import code_label
from laneway.cli.clients import backups, edit, files
from laneway.cli.clients.known import CLIENTS, EDITORS, ConfigFolders
from laneway.cli.clients.show import short
from laneway.cli.registrations import Registration, Scan, places, problem_text, scan
from laneway.cli.uninstalling.model import Remnant, Surroundings

TABLES = frozenset(("mcpServers", "mcp_servers", "servers", "context_servers", "agent_servers", "mcp"))
"""The clients' names for their tables of servers. Other entries with a command are no registrations."""


def find(around: Surroundings) -> list[Remnant]:
    paths = places(around.home, around.folder, around.environment)
    result = scan(paths)
    return [
        *_registrations(result, around),
        *_unreadable(result),
        *(_copy(path) for path in backups.beside(paths)),
    ]


def _registrations(result: Scan, around: Surroundings) -> Iterator[Remnant]:
    folders = ConfigFolders(around.home, around.folder, around.environment)
    for entry in result.ours:
        if not _is_server(entry):
            continue
        what = f"{code_label(entry.server)} in {short(entry.file)}"
        if "plugins" in entry.file.parts and ".claude" in entry.file.parts:
            why = "it belongs to a plugin of Claude Code: uninstall the plugin"
            yield Remnant("registrations", what, entry.file, why=why)
        elif _is_shared(entry.file, folders):
            why = f"others who use the project share this file; {_removal_hint(entry, folders)}"
            yield Remnant("registrations", what, entry.file, why=why)
        else:
            yield Remnant("registrations", what, entry.file, partial(_remove_entry, entry))


def _is_server(entry: Registration) -> bool:
    """Whether the entry is in a table of servers; a `.mcp.json` may be such a table itself."""
    return entry.keys[-2] in TABLES if len(entry.keys) > 1 else entry.file.name == ".mcp.json"


def _is_shared(file: Path, folders: ConfigFolders) -> bool:
    return folders.project != folders.home and file.is_relative_to(folders.project)


def _removal_hint(entry: Registration, folders: ConfigFolders) -> str:
    for client in (*CLIENTS.values(), *EDITORS.values()):
        if "project" in client.files and client.files["project"](folders) == entry.file:
            scope = [] if tuple(client.files) == ("project",) else ["--scope", "project"]
            words = ["laneway", "setup", client.name, *scope, "--name", entry.server, "--remove"]
            return f"`{code_label(shlex.join(words))}` takes it out"
    return "take it out by hand"


def _remove_entry(entry: Registration) -> None:
    """Remove only this entry; the rest of the file stays byte for byte."""
    before = files.read(entry.file)
    try:
        text = edit.drop(before.text, entry.file, entry.keys)
    except ValueError as problem:
        raise files.refused(entry.file, problem_text(problem)) from problem
    files.write(before, text)


def _unreadable(result: Scan) -> Iterator[Remnant]:
    for unreadable in result.unreadable:
        yield Remnant(
            "registrations",
            short(unreadable.file),
            unreadable.file,
            why=f"it could not be read: {unreadable.problem}",
        )


def _copy(path: Path) -> Remnant:
    return Remnant("copies", short(path), path, partial(path.unlink, missing_ok=True))
