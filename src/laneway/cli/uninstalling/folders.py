"""Remnants in our own folders: state, caches, session records, sockets, settings, completion scripts.

In a folder that is shared with other programs only files that we write are removed, by their
names; then empty folders. No link is followed.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from laneway.base.config_files import (
    MAX_FILE_BYTES,
    OWN_REPO_FILE,
    find_repo_files,
    global_path,
    own_path,
)
from laneway.base.foreign_files import read_regular
from laneway.base.paths import cache_home, state_home
from laneway.cli.clients import backups
from laneway.cli.clients.show import short
from laneway.cli.uninstalling.model import Kind, Remnant, Surroundings
from laneway.doors.local import socket_files as sockets
from laneway.mail.places import Places
from laneway.store.layout import AGENT_SESSIONS, CODEX_SESSIONS, sessions_root

COMPLETIONS = (
    ".local/share/bash-completion/completions/laneway",
    ".zfunc/_laneway",
    ".config/fish/completions/laneway.fish",
)
"""Where `laneway completion --help` says to put the scripts."""
MADE_BY = b"laneway completion"
"""Marks a script of ours, in its first lines."""
HEAD_BYTES = 200
_RECORD = re.compile(
    r"audit\.jsonl(?:\.[0-9]+)?|\.audit\.lock|\.claims\.lock|[^/]+\.lock"
    r"|[^/]+/registry\.json(?:\.[a-z]+-[^/]+)?|[^/]+/[^/]+/summary\.md"
    r"|(?:[^/]+/)*\.[^/]+\.laneway-tmp"
)
"""Within the folder of a team, whose top-level `registry.json` belongs to an older program."""


def find(around: Surroundings) -> list[Remnant]:
    return [
        *_session_records(around),
        *_own_folders(around),
        *_settings(around),
        *(_script(around.home / name) for name in COMPLETIONS if _is_our_script(around.home / name)),
    ]


def _own_folders(around: Surroundings) -> Iterator[Remnant]:
    """Folders that only Laneway uses."""
    environment, home = around.environment, around.home
    state = state_home(environment, home)
    spool = Places.of(environment, home).spool_root
    folders: list[tuple[Kind, Path, str]] = [
        ("sessions", spool, "mail that is not delivered yet is lost" if any(spool.rglob("*.json")) else ""),
        ("copies", backups.folder(environment, home), "no setup can be taken back afterwards"),
        ("caches", cache_home(environment), ""),
        ("state", state, ""),
    ]
    for kind, folder, why in folders:
        if os.path.lexists(folder):
            yield Remnant(kind, short(folder), folder, partial(_remove_tree, folder), why)
    for folder in sockets.folders(environment):
        # Inside our state folder it is removed with that; elsewhere, as in /tmp, others may have files in it.
        if not folder.is_relative_to(state) and sockets.is_private(folder):
            yield Remnant("state", short(folder), folder, folder.rmdir)


def _remove_tree(folder: Path) -> None:
    if os.path.lexists(folder):
        shutil.rmtree(folder)


def _session_records(around: Surroundings) -> Iterator[Remnant]:
    for name, is_flat in ((AGENT_SESSIONS, False), (CODEX_SESSIONS, True)):
        root = sessions_root(name, around.environment)
        records = list(_records(root, is_flat=is_flat))
        if records:
            what = f"{short(root)} ({len(records)} files)"
            yield Remnant("sessions", what, root, partial(_remove_records, root, is_flat=is_flat))


def _records(root: Path, *, is_flat: bool) -> Iterator[Path]:
    within = sorted(path for path in root.glob("*") if path.is_dir() and not path.is_symlink())
    teams = [root] if is_flat else within
    for team in teams:
        for folder, _, names in os.walk(team):
            for name in names:
                path = Path(folder, name)
                if _RECORD.fullmatch(path.relative_to(team).as_posix()):
                    yield path


def _remove_records(root: Path, *, is_flat: bool) -> None:
    for path in list(_records(root, is_flat=is_flat)):
        path.unlink(missing_ok=True)
    for folder, _, _ in os.walk(root, topdown=False):
        try:
            os.rmdir(folder)
        except OSError:
            continue  # other programs' files are in it


def _settings(around: Surroundings) -> Iterator[Remnant]:
    own = own_path(around.environment, around.home)
    if os.path.lexists(own):
        if around.with_settings:
            yield Remnant("settings", short(own), own, partial(_remove_settings, own))
        else:
            yield Remnant("settings", short(own), own, why="you wrote it; --settings removes it, too")
    shared = global_path(around.environment, around.home)
    if _mentions_us(shared):
        why = "it is ATM's, too: remove its tables for Laneway by hand"
        yield Remnant("settings", short(shared), shared, why=why)
    for file in find_repo_files(around.folder).files:
        if file.name == OWN_REPO_FILE:
            yield Remnant("settings", short(file), file, why="it belongs to the repository")


def _remove_settings(file: Path) -> None:
    file.unlink(missing_ok=True)
    try:
        file.parent.rmdir()
    except OSError:
        pass  # something else is in it


def _mentions_us(file: Path) -> bool:
    try:
        text = read_regular(file, MAX_FILE_BYTES).decode("utf-8", "replace")
    except OSError:
        return False
    return (
        re.search(r"^\s*\[(?:laneway|plugins\.(?:codex-mcp|atm-agent-mcp))\b", text, re.MULTILINE) is not None
    )


def _is_our_script(file: Path) -> bool:
    try:
        return MADE_BY in read_regular(file, MAX_FILE_BYTES)[:HEAD_BYTES]
    except OSError:
        return False


def _script(file: Path) -> Remnant:
    return Remnant("shell", short(file), file, partial(file.unlink, missing_ok=True))
