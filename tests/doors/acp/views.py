"""What a client makes of the updates it has heard: texts, and the state of each tool call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

Message = dict[str, Any]

ENDED = ("completed", "failed")


class Update(msgspec.Struct, frozen=True):
    """One `session/update`."""

    session_id: str
    kind: str
    body: Message
    """The update itself, without its kind."""


def update_of(message: Message) -> Update | None:
    """None for every other message."""
    if message.get("method") != "session/update":
        return None
    params = message["params"]
    body = {key: value for key, value in params["update"].items() if key != "sessionUpdate"}
    return Update(params["sessionId"], params["update"]["sessionUpdate"], body)


def text(content: Any) -> str:
    """The text of a content block, of a tool call's content, or of a list of either."""
    if isinstance(content, list):
        return "".join(text(part) for part in content)
    if content.get("type") == "content":
        return text(content["content"])
    return str(content.get("text", ""))


def messages(updates: Iterable[Update], kind: str) -> list[str]:
    """The texts of one kind of chunk, by message."""
    found: dict[str | None, str] = {}
    for update in updates:
        if update.kind == kind:
            message_id = update.body.get("messageId")
            found[message_id] = found.get(message_id, "") + text(update.body["content"])
    return list(found.values())


def tool_calls(updates: Iterable[Update]) -> dict[str, Message]:
    """The calls by id, as they stand: what an update tells replaces, what it leaves out or nulls stays."""
    found: dict[str, Message] = {}
    for update in updates:
        if update.kind == "tool_call":
            found[update.body["toolCallId"]] = {"status": "pending", "kind": "other", **update.body}
        elif update.kind == "tool_call_update":
            news = {key: value for key, value in update.body.items() if value is not None}
            call = found.setdefault(update.body["toolCallId"], {})
            call.update(news)
    return found


def is_ended(call: Message) -> bool:
    return call.get("status") in ENDED
