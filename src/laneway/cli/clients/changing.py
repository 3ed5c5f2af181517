"""One change of another program's file that can be taken back: copy, record, write, in this order.

A crash anywhere in between leaves the file as it was, or a record that tells how it was.
Shared by `setup`, `migrate` and `uninstall`.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from laneway.base.errors import ClientFileError, StoreError
from laneway.cli.clients import backups, files
from laneway.cli.clients.files import Snapshot
from laneway.cli.clients.journal import Changed, ChangedFile, Journal, digest


class Applied(msgspec.Struct):
    """A change that was made."""

    before: Snapshot
    after: Snapshot
    told: ChangedFile
    journal: Journal

    @property
    def backup(self) -> str | None:
        return self.told.backup or None

    def take_back(self) -> None:
        """The whole file as it was; the copy and the record go. Raises `ClientFileError`, `StoreError`."""
        files.restore(self.before, self.after)
        files.remove_folders([Path(folder) for folder in self.told.made_folders])
        self.journal.record.files.remove(self.told)
        self.journal.save()
        _forget(self.told)


def apply(before: Snapshot, text: str, entries: list[Changed], journal: Journal) -> Applied:
    """Write this text, so that it can be taken back. Raises `ClientFileError` or `StoreError`."""
    files.check_writable(before)
    backup = backups.back_up(before)
    told = ChangedFile(
        str(before.real),
        "" if backup is None else str(backup),
        digest(before.data or b""),
        digest(before.encoded(text)),
        entries,
        [str(folder) for folder in files.missing_folders(before)],
    )
    journal.record.files.append(told)
    try:
        journal.save()
        after = files.write(before, text)
    except (ClientFileError, StoreError):
        journal.record.files.remove(told)
        _forget(told)
        try:
            journal.save()
        except StoreError:
            pass  # a record that tells of this file all the same does no harm: the file is as before
        raise
    return Applied(before, after, told, journal)


def _forget(told: ChangedFile) -> None:
    if told.backup:
        Path(told.backup).unlink(missing_ok=True)
