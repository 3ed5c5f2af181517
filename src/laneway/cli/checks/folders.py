"""Checks of Laneway's own folders: owner, permissions, free space; and leftovers of killed rehearsals.

Proves by writing and removing files, because permission bits say nothing about read-only mounts,
quotas or network disks. Creates no folder that does not exist.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from laneway.base.disk import is_full
from laneway.base.paths import cache_home
from laneway.base.trust import trust_file
from laneway.cli.checks.model import Check, CheckContext, Severity, in_thread
from laneway.rehearsal.home import sweep
from laneway.store.layout import sessions_root

MIN_FREE_BYTES = 64 * 1024 * 1024
"""With less, a database or a log of ours soon fails in the middle of a turn."""
MAX_FILES = 2000
"""Files whose permissions are checked: even a store of several years has fewer."""
NAMED_FILES = 3
"""Files named in a message; the rest is counted."""


class Folder(msgspec.Struct, frozen=True):
    """One folder that Laneway keeps its files in."""

    name: str
    path: Path
    variable: str
    """The environment variable that moves it."""
    is_private: bool = True
    """Whether it and its files must be closed to everybody else."""


def our_folders(home: Path, environment: Mapping[str, str]) -> list[Folder]:
    return [
        Folder("sessions", sessions_root(environment=environment), "ATM_HOME"),
        Folder("state", trust_file(environment, home).parent, "XDG_STATE_HOME"),
        Folder("cache", cache_home(environment), "XDG_CACHE_HOME", is_private=False),
    ]


async def look(context: CheckContext) -> list[Check]:
    folders = our_folders(context.home, context.environment)
    rehearsals = cache_home(context.environment) / "rehearsals"
    return await in_thread(
        lambda: [check for folder in folders for check in on_folder(folder)] + on_leftovers(rehearsals)
    )


def on_folder(folder: Folder) -> list[Check]:
    """The problems of a folder, or one check that says it works."""
    name = f"folder-{folder.name}"
    facts = {"path": str(folder.path)}
    is_there = os.path.lexists(folder.path)
    try:
        problems = _existing_problems(folder) if is_there else _future_problems(folder)
    except OSError as problem:
        what = f"{folder.path} cannot be used: {problem.strerror}."
        problems = [("error", what, "Check that its parent folders exist and are yours.")]
    if problems:
        return [Check(name, severity, message, remedy, facts) for severity, message, remedy in problems]
    state = "exists and works" if is_there else "does not exist yet and can be created"
    return [Check(name, "ok", f"{folder.path} {state}.", facts=facts)]


_Problem: TypeAlias = tuple[Severity, str, str]


def _existing_problems(folder: Folder) -> list[_Problem]:
    path = folder.path
    status = path.stat()
    if not stat.S_ISDIR(status.st_mode):
        return [("error", f"{path} is not a folder.", "Move it away.")]
    if status.st_uid != os.geteuid():
        return [_foreign(path)]
    problems = [*_free_space(path), *_unwritable(path)]
    mode = stat.S_IMODE(status.st_mode)
    too_open = 0o077 if folder.is_private else 0o022
    if mode & too_open:
        message = f"{path} is open to other users (mode {mode:o})."
        problems.append(("warning", message, f"Run `chmod 700 '{path}'`."))
    if folder.is_private:
        problems += _open_files(path)
    return problems


def _future_problems(folder: Folder) -> list[_Problem]:
    path = folder.path
    parent = next(parent for parent in path.parents if parent.exists())
    try:
        Path(tempfile.mkdtemp(prefix=".laneway-", dir=parent)).rmdir()
    except OSError as problem:
        message = f"{path} cannot be created: {parent}: {problem.strerror}."
        return [
            (
                "error",
                message,
                f"Make {parent} writable for you, or choose another place with {folder.variable}.",
            )
        ]
    return _free_space(parent)


def _free_space(path: Path) -> list[_Problem]:
    free = shutil.disk_usage(path).free
    if free >= MIN_FREE_BYTES:
        return []
    return [("error", f"The disk of {path} is full: {free // 1024**2} MiB are free.", "Make room on it.")]


def _unwritable(path: Path) -> list[_Problem]:
    try:
        with tempfile.TemporaryFile(dir=path) as stream:
            stream.write(b"x")
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as problem:
        if is_full(problem):
            full_for_us: list[_Problem] = [
                ("error", f"The disk of {path} is full for you.", "Make room on it.")
            ]
            return [] if _free_space(path) else full_for_us  # a quota: the disk itself is not full
        return [("error", f"{path} is not writable: {problem.strerror}.", f"Run `chmod u+rwx '{path}'`.")]
    return []


def _open_files(top: Path) -> list[_Problem]:
    """Files that another user may read or owns. Links are not followed."""
    readable: list[Path] = []
    count = 0
    for folder, _, names in os.walk(top):
        for name in names:
            count += 1
            file = Path(folder, name)
            try:
                status = file.lstat()
            except FileNotFoundError:
                continue  # a running process removed it
            if status.st_uid != os.geteuid():
                return [_foreign(file)]
            if stat.S_ISREG(status.st_mode) and status.st_mode & 0o077:
                readable.append(file)
        if count > MAX_FILES:
            break
    if not readable:
        return []
    named = ", ".join(str(file) for file in readable[:NAMED_FILES])
    more = f" and {len(readable) - NAMED_FILES} more" if len(readable) > NAMED_FILES else ""
    remedy = f"Run `chmod -R go= '{top}'`."
    return [("warning", f"Other users may read {named}{more}.", remedy)]


def _foreign(path: Path) -> _Problem:
    remedy = f"Run `sudo chown -R \"$USER\" '{path}'`, and from then on run Laneway without sudo."
    return ("error", f"{path} belongs to another user.", remedy)


def on_leftovers(rehearsals: Path) -> list[Check]:
    removed = sweep(rehearsals)
    if not removed:
        return []
    whose = "a killed rehearsal" if len(removed) == 1 else f"{len(removed)} killed rehearsals"
    return [Check("leftovers", "note", f"Leftovers of {whose} were removed.")]
