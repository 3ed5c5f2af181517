"""Our entries in other programs' files, and the copies that earlier versions left beside those."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from laneway.base.plain import code_label
from laneway.cli.clients import backups, edit, files
from laneway.cli.clients.known import CLIENTS, EDITORS, Where
from laneway.cli.clients.show import short
from laneway.cli.registrations import Registration, Scan, in_words, places, scan
from laneway.cli.uninstalling.model import Remnant, Surroundings

TABLES = frozenset(("mcpServers", "mcp_servers", "servers", "context_servers", "agent_servers", "mcp"))
"""What the clients call their tables of servers. Anything else that runs a command is no registration."""


def find(around: Surroundings) -> list[Remnant]:
    looked_at = places(around.home, around.folder, around.environment)
    found = scan(looked_at)
    return [
        *_registrations(found, around),
        *_unreadable(found),
        *(_copy(path) for path in backups.beside(looked_at)),
    ]


def _registrations(found: Scan, around: Surroundings) -> Iterator[Remnant]:
    where = Where(around.home, around.folder, around.environment)
    for entry in found.ours:
        if not _is_server(entry):
            continue
        what = f"{code_label(entry.server)} in {short(entry.file)}"
        if "plugins" in entry.file.parts and ".claude" in entry.file.parts:
            why = "it belongs to a plugin of Claude Code: uninstall the plugin"
            yield Remnant("registrations", what, entry.file, why=why)
        elif _is_shared(entry.file, where):
            why = f"others who use the project share this file; {_removing(entry, where)}"
            yield Remnant("registrations", what, entry.file, why=why)
        else:
            yield Remnant("registrations", what, entry.file, partial(_take_out, entry))


def _is_server(entry: Registration) -> bool:
    """A `.mcp.json` may be a table of servers itself."""
    return entry.keys[-2] in TABLES if len(entry.keys) > 1 else entry.file.name == ".mcp.json"


def _is_shared(file: Path, where: Where) -> bool:
    return where.project != where.home and file.is_relative_to(where.project)


def _removing(entry: Registration, where: Where) -> str:
    for client in (*CLIENTS.values(), *EDITORS.values()):
        if "project" in client.files and client.files["project"](where) == entry.file:
            scope = [] if tuple(client.files) == ("project",) else ["--scope", "project"]
            words = ["laneway", "setup", client.name, *scope, "--name", entry.server, "--remove"]
            return f"`{code_label(shlex.join(words))}` takes it out"
    return "take it out by hand"


def _take_out(entry: Registration) -> None:
    """Only this entry; all else in the file keeps its bytes."""
    before = files.read(entry.file)
    try:
        text = edit.drop(before.text, entry.file, entry.keys)
    except ValueError as problem:
        raise files.refused(entry.file, in_words(problem)) from problem
    files.write(before, text)


def _unreadable(found: Scan) -> Iterator[Remnant]:
    for each in found.unreadable:
        yield Remnant(
            "registrations", short(each.file), each.file, why=f"it could not be read: {each.problem}"
        )


def _copy(path: Path) -> Remnant:
    return Remnant("copies", short(path), path, partial(path.unlink, missing_ok=True))
