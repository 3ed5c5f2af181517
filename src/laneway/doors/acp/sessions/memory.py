"""What the last turns of a session changed, newest last: for `/undo`."""

from __future__ import annotations

from laneway.core.model import Activity, FileChange, TurnDone
from laneway.doors.acp.slash.undo import LastTurn

MAX_REMEMBERED = 50
"""Turns that /undo can take back one after the other."""


class Memory:
    def __init__(self) -> None:
        self._turns: list[LastTurn] = []
        self._changes: list[FileChange] = []
        self._diff: str | None = None

    @property
    def last(self) -> LastTurn | None:
        return self._turns[-1] if self._turns else None

    def begin(self) -> None:
        self._changes, self._diff = [], None

    def edited(self, activity: Activity) -> None:
        if activity.status == "completed":
            self._changes += activity.changes

    def differs(self, diff: str) -> None:
        self._diff = diff

    def end(self, done: TurnDone) -> None:
        self._turns.append(LastTurn(done.first_id or done.turn_id, tuple(self._changes), self._diff))
        del self._turns[:-MAX_REMEMBERED]
        self.begin()

    def forget(self, turn_id: str) -> None:
        self._turns = [turn for turn in self._turns if turn.turn_id != turn_id]
