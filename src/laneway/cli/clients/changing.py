"""One reversible change of a client's config: back up, record, write, in this order.

A crash in between leaves the file as it was, or a record from which it can be restored.
Shared by `setup`, `migrate` and `uninstall`.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from laneway.base.errors import ClientFileError, StoreError
from laneway.cli.clients import backups, files
from laneway.cli.clients.files import FileSnapshot
from laneway.cli.clients.journal import Changed, ChangedFile, Journal, digest


class Applied(msgspec.Struct):
    """A change that was made and can be undone."""

    before: FileSnapshot
    after: FileSnapshot
    changed: ChangedFile
    journal: Journal

    @property
    def backup(self) -> str | None:
        return self.changed.backup or None

    def take_back(self) -> None:
        """Restore the file, and remove copy and record. Raises `ClientFileError` or `StoreError`."""
        files.restore(self.before, self.after)
        files.remove_folders([Path(folder) for folder in self.changed.made_folders])
        self.journal.record.files.remove(self.changed)
        self.journal.save()
        _forget(self.changed)


def apply(before: FileSnapshot, text: str, entries: list[Changed], journal: Journal) -> Applied:
    """Write this text, so that it can be undone. Raises `ClientFileError` or `StoreError`."""
    files.check_writable(before)
    backup = backups.back_up(before)
    changed = ChangedFile(
        str(before.real),
        "" if backup is None else str(backup),
        digest(before.data or b""),
        digest(before.encoded(text)),
        entries,
        [str(folder) for folder in files.missing_folders(before)],
    )
    journal.record.files.append(changed)
    try:
        journal.save()
        after = files.write(before, text)
    except (ClientFileError, StoreError):
        journal.record.files.remove(changed)
        _forget(changed)
        try:
            journal.save()
        except StoreError:
            pass  # a record that still names this file does no harm: the file is as before
        raise
    return Applied(before, after, changed, journal)


def _forget(changed: ChangedFile) -> None:
    if changed.backup:
        Path(changed.backup).unlink(missing_ok=True)
