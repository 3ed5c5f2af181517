"""Writes and removes the table of a bot in the user's own settings: private, and so that it can be undone.

The token goes into this file and the private records for `--undo`, and nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.config_files import own_path
from laneway.base.settings import OUR_TABLES
from laneway.cli.clients import changing, edit, files, journal
from laneway.cli.clients.changing import Applied
from laneway.cli.clients.files import FileSnapshot
from laneway.cli.clients.show import short
from laneway.cli.registrations import parse, problem_text

Table = dict[str, Any]


class SavedTable(msgspec.Struct, frozen=True):
    """What was done. `applied` is none where nothing changed."""

    file: Path
    applied: Applied | None
    notes: tuple[str, ...] = ()


def keys_of(platform: str) -> tuple[str, ...]:
    return (*OUR_TABLES[-1], "chat", platform)


def existing(platform: str) -> Table:
    """The table as it stands in the user's own file; empty if there is none. Raises `ClientFileError`."""
    snapshot = _read()
    try:
        table = edit.look(parse(snapshot.text, snapshot.file), keys_of(platform))
    except ValueError as problem:
        raise files.refused(snapshot.file, problem_text(problem)) from problem
    return dict(table) if isinstance(table, dict) else {}


def save(platform: str, table: Mapping[str, Any]) -> SavedTable:
    """Put this table there; everything else in the file stays. Raises `ClientFileError` and `StoreError`."""
    snapshot, keys = _read(), keys_of(platform)
    try:
        tree = parse(snapshot.text, snapshot.file)
        before = edit.look(tree, keys)
        text = edit.put(snapshot.text, snapshot.file, keys, dict(table))
    except ValueError as problem:
        raise files.refused(snapshot.file, problem_text(problem)) from problem
    entry = journal.changed(keys, before if isinstance(before, dict) else None, dict(table))
    return _write(platform, snapshot, text, entry)


def remove(platform: str) -> SavedTable:
    """Take the table out, under each of our names. Raises `ClientFileError` and `StoreError`."""
    snapshot = _read()
    text, found = snapshot.text, None
    try:
        for table in OUR_TABLES:
            keys = (*table, "chat", platform)
            before = edit.look(parse(text, snapshot.file), keys)
            if isinstance(before, dict):
                found = found or journal.changed(keys, before, None)
                text = edit.drop(text, snapshot.file, keys)
    except ValueError as problem:
        raise files.refused(snapshot.file, problem_text(problem)) from problem
    if found is None:
        return SavedTable(snapshot.file, None)
    return _write(platform, snapshot, text, found)


def _read() -> FileSnapshot:
    return files.read(own_path(os.environ, Path.home()), files.PRIVATE)


def _write(platform: str, snapshot: FileSnapshot, text: str, entry: journal.Changed) -> SavedTable:
    notes = []
    if snapshot.mode & 0o077:
        # What was a file without a secret gets one.
        snapshot = msgspec.structs.replace(snapshot, mode=snapshot.mode & 0o700)
        notes.append(f"{short(snapshot.file)} could be read by other users of this machine; now only by you.")
    if snapshot.real != Path(os.path.abspath(snapshot.file)):
        notes.append(f"{short(snapshot.file)} is a link to {short(snapshot.real)}: do not publish that file.")
    if text == snapshot.text and not notes:
        return SavedTable(snapshot.file, None)
    record = journal.Journal.begin(journal.folder(), "setup", platform)
    return SavedTable(snapshot.file, changing.apply(snapshot, text, [entry], record), tuple(notes))
