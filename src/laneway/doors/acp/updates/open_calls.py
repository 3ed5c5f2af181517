"""Tool calls that a client was told of and that have not ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from laneway.core.model import Activity, Question
from laneway.doors.acp.updates import tool_calls

Key = tuple[str, str]
"""The thread and the item."""


class OpenCall:
    """What it is, and what the client was told of it."""

    __slots__ = ("activity", "later", "told")

    def __init__(self, activity: Activity) -> None:
        self.activity = activity
        self.told: dict[str, Any] = {}
        self.later: Callable[[], None] | None = None
        """Takes back that a change is told soon."""

    def drop_later(self) -> bool:
        """Whether a change was to be told soon; it is not any more."""
        later, self.later = self.later, None
        if later is not None:
            later()
        return later is not None

    def belongs_to(self, question: Question) -> bool:
        """Codex does not say for which of its calls an MCP server asks: it is the one to that server."""
        params, item = question.params, self.activity.item
        if not (self.activity.kind == "mcp" and isinstance(params, dict) and isinstance(item, dict)):
            return False
        return item.get("server") == params.get("serverName")

    def tell(self, tell: Callable[[dict[str, Any]], None], update: dict[str, Any]) -> None:
        """Only what the client does not know yet."""
        news = tool_calls.fresh(update, self.told)
        if news.keys() - {"sessionUpdate", "toolCallId"}:
            tell(news)
        self.told |= update


def key_of(question: Question, calls: Mapping[Key, OpenCall]) -> Key | None:
    """The call that a question is about; none if it has ended, or if there are several."""
    if question.item_id is not None:
        keys = [(question.thread_id, question.item_id)]
    else:
        keys = [key for key, call in calls.items() if call.belongs_to(question)]
    return keys[0] if len(keys) == 1 and keys[0] in calls else None
