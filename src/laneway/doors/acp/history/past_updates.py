"""Renders past events as `session/update`s for the replay of a session's history.

Pure. Messages are complete. Output, changes and results of a tool call in an older turn are limited to
a budget of bytes, and each cut is marked. The newest turn has no budget (see `replay`).
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from laneway.base.engines import CODEX
from laneway.base.plain import plain
from laneway.core.model import Activity, Event, Plan, Text, Thought, TurnDone, UserSaid
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.history import user_blocks
from laneway.doors.acp.updates import tool_calls
from laneway.doors.acp.updates.blocks import text as text_content
from laneway.doors.acp.updates.text_chunks import chunk
from laneway.rendering.activities import is_verdict
from laneway.rendering.refusals import unwrapped_message

CALL_BYTES = 16 * 1024
"""Of one tool call in an older turn, as JSON: a few screens, and 2,000 of them are 32 MB at worst."""
CALL_CHARS = CALL_BYTES // 2
"""Of its text: leaves room for JSON escapes and the other fields of the call."""
TIGHT_CHARS = CALL_CHARS // 8
"""Of its text if escapes still make it too long: a control character takes six bytes."""
NOTE_BYTES = 256
"""Reserved for the sentence that says what was left out."""
LABEL_CHARS = 500
"""Of the title and the name of an older tool call: both come from models and MCP servers."""
MAX_LOCATIONS = 50
"""In an older tool call."""
IMAGE_CHARS = 256 * 1024
"""Base64 of an image in a user's prompt of an older turn: a screenshot fits, a photograph does not."""

Update = dict[str, Any] | msgspec.Raw

_encode = msgspec.json.Encoder().encode


class ReplayContext(msgspec.Struct, frozen=True):
    """The thread whose history is replayed, and the client that gets it."""

    thread_id: str
    client: EditorClient
    cwd: str = ""
    engine: str = CODEX
    """The name of the engine that worked."""


class Render(Protocol):
    """`updates`, in any version of the protocol."""

    def __call__(self, event: Event, context: ReplayContext, *, is_whole: bool) -> list[Update]: ...


def updates(event: Event, context: ReplayContext, *, is_whole: bool) -> list[Update]:
    """The updates for a past event; none for events that only mark a turn's progress."""
    match event:
        case UserSaid():
            return _prompt(event, None if is_whole else IMAGE_CHARS)
        case Text(item_id=item_id, text=text):
            return [chunk("agent_message_chunk", item_id, text)]
        case Thought(item_id=item_id, text=text):
            return [chunk("agent_thought_chunk", item_id, text)]
        case Activity():
            return _activity(event, context, is_whole=is_whole)
        case Plan():
            return [_plan(event)]
        case TurnDone(status="failed", turn_id=turn_id, failure=failure):
            why = (
                plain(unwrapped_message(failure.message)) if failure else f"{context.engine} did not say why."
            )
            return [chunk("agent_message_chunk", f"{turn_id}-failed", f"The turn failed: {why}")]
        case _:
            return []


def _prompt(event: UserSaid, max_image_chars: int | None) -> list[Update]:
    return [
        {"sessionUpdate": "user_message_chunk", "messageId": event.item_id, "content": block}
        for block in user_blocks.blocks(event, max_image_chars)
    ]


def _plan(plan: Plan) -> Update:
    entries = [
        {
            "content": plain(step.text),
            "priority": "medium",
            "status": "in_progress" if step.status == "running" else step.status,
        }
        for step in plan.steps
    ]
    return {"sessionUpdate": "plan", "entries": entries}


def _activity(activity: Activity, context: ReplayContext, *, is_whole: bool) -> list[Update]:
    if activity.kind == "compaction" and context.client.takes_compaction:
        return [
            {
                "sessionUpdate": "compaction_update",
                "compactionId": activity.item_id,
                "status": "completed" if activity.status == "completed" else "failed",
            }
        ]
    if activity.kind == "review" and is_verdict(activity):
        return []  # the text of a review follows as a message
    if is_whole:
        return [tool_calls.replayed(activity, context.thread_id, cwd=context.cwd, engine=context.engine)]
    return [bounded(activity, context)]


def bounded(activity: Activity, context: ReplayContext) -> msgspec.Raw:
    """A tool call in at most `CALL_BYTES` of JSON."""
    encoded = _encode(_call(activity, context, CALL_CHARS))
    if len(encoded) > CALL_BYTES:
        encoded = _encode(fitted(_call(activity, context, TIGHT_CHARS)))
    return msgspec.Raw(encoded)


def _call(activity: Activity, context: ReplayContext, max_chars: int) -> dict[str, Any]:
    return tool_calls.replayed(
        activity, context.thread_id, cwd=context.cwd, max_chars=max_chars, engine=context.engine
    )


def fitted(update: dict[str, Any]) -> dict[str, Any]:
    """A tool call cut to `CALL_BYTES`: as much as fits of content, locations, output and input."""
    optional = {"content", "locations", "rawInput", "rawOutput"}
    fitted_call = {key: value for key, value in update.items() if key not in optional}
    for label in ("title", "name"):
        if label in fitted_call:
            fitted_call[label] = fitted_call[label][:LABEL_CHARS]
    free_bytes = CALL_BYTES - NOTE_BYTES - len(_encode(fitted_call))
    content, left_out = [], 0
    for part in update.get("content") or []:
        size = len(_encode(part)) + 1
        if size <= free_bytes:
            content.append(part)
            free_bytes -= size
        else:
            left_out += 1
    if left_out:
        parts = (
            "One part of this tool call is" if left_out == 1 else f"{left_out} parts of this tool call are"
        )
        content.append(text_content(f"{parts} left out: only the newest turn is shown whole."))
    if content:
        fitted_call["content"] = content
    for key, value in (
        ("locations", (update.get("locations") or [])[:MAX_LOCATIONS]),
        ("rawOutput", update.get("rawOutput")),
        ("rawInput", update.get("rawInput")),
    ):
        size = len(_encode(value)) + len(key) + 4
        if value and size <= free_bytes:
            fitted_call[key] = value
            free_bytes -= size
    return fitted_call
