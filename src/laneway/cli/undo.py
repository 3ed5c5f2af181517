"""`laneway migrate --undo`: the last migration taken back, file by file.

A file that nobody touched since becomes what it was, byte for byte. One that was changed is
left alone and the difference shown; with `--force` only the migrated entries are put back in it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from laneway.base.errors import ClientFileError
from laneway.cli.clients import edit, files, journal
from laneway.cli.clients.files import Snapshot
from laneway.cli.clients.journal import ChangedFile, Journal
from laneway.cli.clients.show import coloured, difference, short
from laneway.cli.registrations import in_words, parse
from laneway.cli.terminal import Style


class Undone(msgspec.Struct):
    file: str
    state: str
    """`restored`, `entries restored`, `as before` or `refused`."""
    problem: str = ""
    diff: str = ""


def undo(options: argparse.Namespace) -> int:
    record = Journal.last(journal.folder())
    told = [] if record is None else _undo_all(record, force=options.force)
    is_done = all(each.state != "refused" for each in told)
    if options.json:
        sys.stdout.write(msgspec.json.encode({"undone": told}).decode() + "\n")
    elif record is None:
        print("There is no migration to take back.")
    else:
        _tell(told)
    return 0 if is_done else 1


def _undo_all(record: Journal, *, force: bool) -> list[Undone]:
    told = []
    for changed in list(record.migration.files):
        done = _undo(changed, force=force)
        told.append(done)
        if done.state != "refused":
            record.migration.files.remove(changed)
            record.save()
    return told


def _undo(changed: ChangedFile, *, force: bool) -> Undone:
    file = Path(changed.file)
    try:
        now = files.read(file)
        if journal.digest(now.data or b"") == changed.before_sha256:
            return Undone(changed.file, "as before")
        exact = _backup(changed)
        if exact is not None and journal.digest(now.data or b"") == changed.after_sha256:
            files.write(now, exact.text)
            Path(changed.backup).unlink(missing_ok=True)
            return Undone(changed.file, "restored")
        new = _with_entries_back(now, changed)
        if force:
            files.write(now, new)
            return Undone(changed.file, "entries restored")
    except ClientFileError as problem:
        return Undone(changed.file, "refused", str(problem))
    except ValueError as problem:
        return Undone(changed.file, "refused", f"It cannot be edited: {in_words(problem)}.")
    why = "It was changed since. With --force only the migrated entries are put back."
    return Undone(changed.file, "refused", why, difference(now.text, new, file))


def _backup(changed: ChangedFile) -> Snapshot | None:
    """What the file was, if that is still what lies there."""
    try:
        kept = files.read(Path(changed.backup))
    except ClientFileError:
        return None
    return kept if journal.digest(kept.data or b"") == changed.before_sha256 else None


def _with_entries_back(now: Snapshot, changed: ChangedFile) -> str:
    """The text with those entries as they were that still are what we made of them."""
    text = now.text
    for entry in changed.entries:
        node = edit.look(parse(text, now.file), entry.keys)
        if isinstance(node, dict) and journal.changed_part(node) == entry.after:
            kept = {key: value for key, value in node.items() if key not in journal.CHANGED_KEYS}
            text = edit.put(text, now.file, entry.keys, {**kept, **entry.before})
    return text


def _tell(told: list[Undone]) -> None:
    style = Style(sys.stdout)
    words = {
        "restored": "is as it was",
        "entries restored": "has its old entries back; the rest stays as it is now",
        "as before": "was as before already",
        "refused": "was left alone",
    }
    for each in told:
        print(f"{short(Path(each.file))} {words[each.state]}.")
        if each.problem:
            print(f"  {each.problem}")
        if each.diff:
            print(coloured(each.diff, style))
