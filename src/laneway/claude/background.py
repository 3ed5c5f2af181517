"""Commands that go on in the background: their end is told when it comes, in their turn or after it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from laneway.claude.activities import ToolCallResult, background_id
from laneway.core.model import Activity, ActivityStatus, Event, Outlived

_EXIT = re.compile(r"exit code (\d+)")
_STATUS: dict[str, ActivityStatus] = {
    "completed": "completed",
    "failed": "failed",
    "killed": "interrupted",
    "stopped": "interrupted",
}


class BackgroundCalls:
    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._running: dict[str, Activity] = {}
        """Of the running turn, by Claude Code's id of the task."""
        self._outlived: dict[str, Activity] = {}
        """Of earlier turns."""

    def keep(self, activity: Activity, result: ToolCallResult) -> bool:
        """Whether this call goes on in the background, so that its result is not its end."""
        task_id = background_id(result)
        if task_id is None:
            return False
        self._running[task_id] = msgspec.structs.replace(activity, output=None)
        return True

    def end(self, notification: dict[str, Any], turn_id: str | None) -> None:
        """A `task_notification`; nothing happens if it is of an unknown task."""
        task_id = str(notification.get("task_id"))
        activity = self._running.pop(task_id, None)
        outlived = self._outlived.pop(task_id, None)
        known = activity or outlived
        if known is None:
            return
        match = _EXIT.search(str(notification.get("summary") or ""))
        over = msgspec.structs.replace(
            known,
            status=_STATUS.get(str(notification.get("status")), "completed"),
            exit_code=int(match[1]) if match else None,
            frame=b"",
        )
        self._emit(over if outlived is None and turn_id == known.turn_id else Outlived(activity=over))

    def end_turn(self) -> None:
        """The turn is over, and these go on."""
        for task_id, activity in self._running.items():
            detached = msgspec.structs.replace(activity, status="detached", frame=b"")
            self._emit(detached)
            self._outlived[task_id] = detached
        self._running.clear()

    def lost(self) -> None:
        """The process has ended, and with it everything that it had started."""
        for activity in self._outlived.values():
            self._emit(Outlived(activity=msgspec.structs.replace(activity, status="interrupted")))
        self._outlived.clear()
