"""Rollbacks as values: what shall be given back, what stands in the way, what is done in which order."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from laneway.base.prepare import prepare
from laneway.jobs.snapshots.model import ABSENT, PathState

Why: TypeAlias = Literal[
    "edited",
    "shared",
    "outside",
    "uncertain",
    "not kept",
    "too large",
    "special",
    "folder",
    "unreadable",
    "name",
    "failed",
]
Ending: TypeAlias = Literal["done", "refused", "given up", "partial"]

WORDS: dict[Why, str] = {
    "edited": "it does not hold any more what the job left",
    "shared": "another job may have a part in the same change",
    "outside": "it was changed again while no job was at work, perhaps by a person",
    "uncertain": "it is not certain that the job changed it",
    "not kept": "what was there before was too large to be kept",
    "too large": "it is too large to be saved first",
    "special": "it is no file and no link",
    "folder": "a folder is in the way, with files that are not the job's",
    "unreadable": "it cannot be read",
    "name": "it belongs to git",
    "failed": "it could not be written",
}


@prepare
class Step(msgspec.Struct, frozen=True):
    """One change of a path that is taken back: from `after` to `before`."""

    before: PathState
    after: PathState


@prepare
class Return(msgspec.Struct, frozen=True):
    """A path that shall be given back: its changes, the oldest first."""

    path: str
    steps: tuple[Step, ...]


@prepare
class Refusal(msgspec.Struct, frozen=True, omit_defaults=True):
    """A path that cannot be given back, or is left as it is, and why."""

    path: str
    why: Why
    detail: str = ""

    @property
    def text(self) -> str:
        return f"{WORDS[self.why]} ({self.detail})" if self.detail else WORDS[self.why]


class Wanted(msgspec.Struct, frozen=True):
    """What shall be given back of the chosen jobs."""

    returns: tuple[Return, ...]
    refused: tuple[Refusal, ...] = ()
    """These stand in the way of all: nothing is written while there are any."""
    left: tuple[Refusal, ...] = ()
    """These are left as they are, and named."""


@prepare
class Operation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step of the way, which is taken once however often it is tried."""

    kind: Literal["remove", "rmdir", "mkdir", "put"]
    path: str
    old: PathState = ABSENT
    new: PathState = ABSENT
    aside: str = ""
    """Where the new file waits, and where the old one lies until all is done."""
    mode: int = 0
    """Of a folder."""

    def reversed(self) -> Operation:
        """The way back, without a place of its own."""
        kinds = {"rmdir": "mkdir", "mkdir": "rmdir"}
        if self.kind in kinds:
            return Operation("mkdir" if self.kind == "rmdir" else "rmdir", self.path, mode=self.mode)
        return Operation("remove" if self.old.kind == "absent" else "put", self.path, self.new, self.old)


@prepare
class RollbackJournal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that is needed to finish a rollback, or to take it back. On disk before the first write."""

    version: int = 1
    rollback_id: str
    tree: str
    algorithm: str
    made_at: float
    number: int = 0
    """Grows with each one of its tree: their order, whatever the clock did."""
    operations: tuple[Operation, ...]
    jobs: tuple[str, ...] = ()
    undoes: str = ""
    """The rollback that this one takes back."""
    contents: dict[str, tuple[int, int]] = {}
    """By id or fingerprint, where each content begins in the file of contents, and its length."""
    merged: tuple[str, ...] = ()
    attempt_borders: int = 0
    """Where only a failed attempt's edits were given back, and its job went on: how many borders the run
    had by then."""


@prepare
class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a rollback ended."""

    ending: Ending
    """`refused`: nothing was written. `given up`: all is as before. `partial`: `refused` has what is not."""
    rollback_id: str = ""
    paths: tuple[str, ...] = ()
    """Given back."""
    merged: tuple[str, ...] = ()
    """Of these, with work of others in them that was kept."""
    refused: tuple[Refusal, ...] = ()
