"""The last turns of a session with their file changes, newest last: the memory of `/undo`.

A turn that is forgotten leaves a mark behind. Where no newer turn is known, older ones come from Codex's
history, and a turn that Codex cannot take back must not be found there a second time.
"""

from __future__ import annotations

from laneway.commands.undo import LastTurn
from laneway.core.model import Activity, FileChange, TurnDone

MAX_REMEMBERED = 50
"""Turns that /undo can take back one after the other."""


class LastTurns:
    def __init__(self) -> None:
        self._turns: list[LastTurn] = []
        self._forgotten: LastTurn | None = None
        self._changes: list[FileChange] = []
        self._diff: str | None = None

    @property
    def last(self) -> LastTurn | None:
        """Where `/undo` begins: the newest turn that ended in this process, else the one settled last."""
        return self._turns[-1] if self._turns else self._forgotten

    def begin(self) -> None:
        self._changes, self._diff = [], None

    def add_edit(self, activity: Activity) -> None:
        if activity.status == "completed":
            self._changes += activity.changes

    def set_diff(self, diff: str) -> None:
        self._diff = diff

    def end(self, done: TurnDone) -> None:
        self._turns.append(LastTurn(done.first_id or done.turn_id, tuple(self._changes), self._diff))
        del self._turns[:-MAX_REMEMBERED]
        self.begin()

    def forget(self, turn_id: str) -> None:
        """The turn was taken back, or cannot be."""
        self._forgotten = LastTurn(turn_id, is_settled=True)
        self._turns = [turn for turn in self._turns if turn.turn_id != turn_id]
