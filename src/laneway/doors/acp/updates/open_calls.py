"""Tool calls that have been announced to a client and have not ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from laneway.core.model import Activity, Question
from laneway.doors.acp.updates import tool_calls

Key = tuple[str, str]
"""The thread and the item."""


class OpenCall:
    """A running activity, and the fields of its tool call that the client has."""

    __slots__ = ("activity", "cancel_change", "sent")

    def __init__(self, activity: Activity) -> None:
        self.activity = activity
        self.sent: dict[str, Any] = {}
        self.cancel_change: Callable[[], None] | None = None
        """Cancels the update that is scheduled for a change."""

    def drop_change(self) -> bool:
        """Cancel a scheduled update; returns whether there was one."""
        cancel, self.cancel_change = self.cancel_change, None
        if cancel is not None:
            cancel()
        return cancel is not None

    def belongs_to(self, question: Question) -> bool:
        """Whether an MCP server's question may be about this call: Codex names only the server."""
        params, item = question.params, self.activity.item
        if not (self.activity.kind == "mcp" and isinstance(params, dict) and isinstance(item, dict)):
            return False
        return item.get("server") == params.get("serverName")

    def send(self, send: Callable[[dict[str, Any]], None], update: dict[str, Any]) -> None:
        """Send those fields of an update that the client does not have yet, if there are any."""
        changes = tool_calls.changed_fields(update, self.sent)
        if changes.keys() - {"sessionUpdate", "toolCallId"}:
            send(changes)
        self.sent |= update


def key_of(question: Question, calls: Mapping[Key, OpenCall]) -> Key | None:
    """The call that a question is about; none if it has ended, or if there are several."""
    if question.item_id is not None:
        keys = [(question.thread_id, question.item_id)]
    else:
        keys = [key for key, call in calls.items() if call.belongs_to(question)]
    return keys[0] if len(keys) == 1 and keys[0] in calls else None
