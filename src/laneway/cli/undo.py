"""`laneway setup --undo` and `laneway migrate --undo`: undoes the last run, file by file.

A file that was not changed since is restored, byte for byte, and one that was created is removed.
One that was changed is left alone and the diff is shown; with `--force` only the entries that were
written are restored in it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from laneway.base.errors import ClientFileError
from laneway.base.plain import plain
from laneway.cli.clients import edit, files, journal
from laneway.cli.clients.files import FileSnapshot
from laneway.cli.clients.journal import Changed, ChangedFile, Journal, Maker
from laneway.cli.clients.show import coloured, difference, short
from laneway.cli.registrations import parse, problem_text
from laneway.terminal import Style

State: TypeAlias = Literal["restored", "removed", "entries restored", "as before", "gone", "refused"]

_STATE_TEXTS: dict[State, str] = {
    "restored": "is as it was",
    "removed": "is gone again: there was none before",
    "entries restored": "has its old entries back; the rest stays as it is now",
    "as before": "was as before already",
    "gone": "is gone, so there is nothing to put back",
    "refused": "was left alone",
}


class UndoResult(msgspec.Struct):
    """What was done with one file, as `--json` prints it."""

    file: str
    state: State
    problem: str = ""
    diff: str = ""


def undo(by: Maker, client: str = "", *, is_forced: bool, has_json: bool) -> int:
    """Undo the last run of a command; of `setup` the last one for a client, if one is named."""
    last = Journal.last(journal.folder(), by, client)
    results = [] if last is None else _undo_all(last, is_forced=is_forced)
    if has_json:
        sys.stdout.write(msgspec.json.encode({"undone": results}).decode() + "\n")
    elif last is None:
        what = "migration" if by == "migrate" else f"setup of {client}" if client else "setup"
        print(f"There is no {what} to take back.")
    else:
        _print(results)
    return 1 if any(each.state == "refused" for each in results) else 0


def _undo_all(last: Journal, *, is_forced: bool) -> list[UndoResult]:
    results = []
    for changed in list(last.record.files):
        result = _undo(changed, is_forced=is_forced)
        results.append(result)
        if result.state != "refused":
            last.record.files.remove(changed)
            last.save()
            if changed.backup:
                Path(changed.backup).unlink(missing_ok=True)
    return results


def _undo(changed: ChangedFile, *, is_forced: bool) -> UndoResult:
    file = Path(changed.file)
    try:
        now = files.read(file)
        if _is_as_before(now, changed):
            return UndoResult(changed.file, "as before")
        if now.data is None:
            return UndoResult(changed.file, "gone")
        is_untouched = journal.digest(now.data) == changed.after_sha256
        if is_untouched and (state := _restore(now, changed)) is not None:
            return UndoResult(changed.file, state)
        new = _with_entries_back(now, changed)
        if is_forced:
            files.write(now, new)
            return UndoResult(changed.file, "entries restored")
    except ClientFileError as problem:
        return UndoResult(changed.file, "refused", str(problem))
    except ValueError as problem:
        return UndoResult(changed.file, "refused", f"It cannot be edited: {problem_text(problem)}.")
    reason = "The copy of the old file is gone." if is_untouched else "It was changed since."
    reason += " With --force only the entries that were written are put back."
    return UndoResult(changed.file, "refused", reason, difference(now.text, new, file))


def _is_as_before(now: FileSnapshot, changed: ChangedFile) -> bool:
    if changed.is_new or now.data is None:
        return changed.is_new and now.data is None
    return journal.digest(now.data) == changed.before_sha256


def _restore(now: FileSnapshot, changed: ChangedFile) -> State | None:
    """Restore the whole file; None if its backup is gone or damaged."""
    if changed.is_new:
        files.restore(FileSnapshot(now.file, now.real, None, now.mode), now)
        files.remove_folders([Path(folder) for folder in changed.made_folders])
        return "removed"
    try:
        backup = files.read(Path(changed.backup))
    except ClientFileError:
        return None
    if journal.digest(backup.data or b"") != changed.before_sha256:
        return None
    files.write(now, backup.text)
    return "restored"


def _with_entries_back(now: FileSnapshot, changed: ChangedFile) -> str:
    """The text with the entries restored that were not changed since."""
    text = now.text
    for entry in changed.entries:
        node = edit.look(parse(text, now.file), entry.keys)
        if not _is_still(node, entry):
            continue
        if entry.before is None:
            text = edit.drop(text, now.file, entry.keys)
        elif isinstance(node, dict):
            unchanged = {key: value for key, value in node.items() if key not in (entry.after or {})}
            text = edit.put(text, now.file, entry.keys, {**unchanged, **entry.before})
        else:
            text = edit.put(text, now.file, entry.keys, entry.before)
    return text


def _is_still(node: Any, entry: Changed) -> bool:
    """Whether an entry was not changed since, in the keys that we changed."""
    if entry.after is None:
        return node is None
    if not isinstance(node, dict):
        return False
    changed_keys = {**entry.after, **(entry.before or {})}
    return all(node.get(key, ...) == entry.after.get(key, ...) for key in changed_keys)


def _print(results: list[UndoResult]) -> None:
    style = Style(sys.stdout)
    for result in results:
        print(f"{short(Path(result.file))} {_STATE_TEXTS[result.state]}.")
        if result.problem:
            print(f"  {plain(result.problem)}")
        if result.diff:
            print(coloured(result.diff, style))
