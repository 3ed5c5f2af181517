"""Decides who reports that an engine has ended: its lane's failed turn, or a message of its own."""

from __future__ import annotations

from laneway.core.model import Failure
from laneway.doors.chat.engine_words import ENGINE_LOST


class EngineEnds:
    """Of the lanes of one conversation. The engine's own end comes before that of its turn, or after it."""

    def __init__(self) -> None:
        self._gone: set[str] = set()
        """Lanes whose engine has ended in a turn that has not ended yet …"""
        self._failed: set[str] = set()
        """… and those whose turn has told it, and the engine has not."""

    def begin(self, lane: str) -> None:
        """A turn of the lane begins: its engine is started again if need be."""
        self._failed.discard(lane)

    def turn_ended(self, lane: str, failure: Failure | None) -> None:
        if lane not in self._gone and failure is not None and failure.kind == ENGINE_LOST:
            self._failed.add(lane)
        self._gone.discard(lane)

    def is_told_by_turn(self, lane: str, *, is_working: bool) -> bool:
        """The engine has ended; `is_working`: while a turn of the lane runs."""
        if is_working:
            self._gone.add(lane)
            return True
        is_told = lane in self._failed
        self._failed.discard(lane)
        return is_told
