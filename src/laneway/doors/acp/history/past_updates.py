"""Events of the past as `session/update`s: one at a time, whole or within a budget of bytes.

Pure. What was said stays whole. What a tool call printed, changed or returned is bounded where the
budget holds, and each cut says so. The newest turn of a session has no budget (see `replay`).
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from laneway.base.plain import plain
from laneway.core.model import Activity, Event, Plan, Text, Thought, TurnDone, UserSaid
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.history import user_blocks
from laneway.doors.acp.updates import tool_calls
from laneway.doors.acp.updates.blocks import text as text_content
from laneway.doors.acp.updates.text_chunks import chunk
from laneway.rendering.activities import is_verdict
from laneway.rendering.refusals import in_words

CALL_BYTES = 16 * 1024
"""Of one tool call in an older turn, as JSON: a few screens, and 2,000 of them are 32 MB at worst."""
CALL_CHARS = CALL_BYTES // 2
"""Of its text: there is room for what JSON escapes, and for the rest of the call."""
TIGHT_CHARS = CALL_CHARS // 8
"""Of its text where escapes made it too long after all: six bytes for each control character."""
NOTE_BYTES = 256
"""Kept free for the sentence that tells what was left out."""
LABEL_CHARS = 500
"""Of the title and the name of an older tool call: both come from models and from servers of others."""
MAX_LOCATIONS = 50
"""Places in files that an older tool call still names."""
IMAGE_CHARS = 256 * 1024
"""Of an image that a user sent in an older turn, in base64: a screenshot fits, a photograph does not."""

Update = dict[str, Any] | msgspec.Raw

_encode = msgspec.json.Encoder().encode


class ReplayContext(msgspec.Struct, frozen=True):
    """Whose past it is, and who is told."""

    thread_id: str
    client: EditorClient
    cwd: str = ""


class Render(Protocol):
    """`updates`, in whichever version of the protocol."""

    def __call__(self, event: Event, scene: ReplayContext, *, is_whole: bool) -> list[Update]: ...


def updates(event: Event, scene: ReplayContext, *, is_whole: bool) -> list[Update]:
    """What a client is told of an event; empty for what only moved a turn along."""
    match event:
        case UserSaid():
            return _prompt(event, None if is_whole else IMAGE_CHARS)
        case Text(item_id=item_id, text=text):
            return [chunk("agent_message_chunk", item_id, text)]
        case Thought(item_id=item_id, text=text):
            return [chunk("agent_thought_chunk", item_id, text)]
        case Activity():
            return _deed(event, scene, is_whole=is_whole)
        case Plan():
            return [_plan(event)]
        case TurnDone(status="failed", turn_id=turn_id, failure=failure):
            why = plain(in_words(failure.message)) if failure else "Codex did not say why."
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


def _deed(activity: Activity, scene: ReplayContext, *, is_whole: bool) -> list[Update]:
    if activity.kind == "compaction" and scene.client.takes_compaction:
        return [
            {
                "sessionUpdate": "compaction_update",
                "compactionId": activity.item_id,
                "status": "completed" if activity.status == "completed" else "failed",
            }
        ]
    if activity.kind == "review" and is_verdict(activity):
        return []  # its text follows as a message
    if is_whole:
        return [tool_calls.replayed(activity, scene.thread_id, cwd=scene.cwd)]
    return [bounded(activity, scene)]


def bounded(activity: Activity, scene: ReplayContext) -> msgspec.Raw:
    """A tool call in at most `CALL_BYTES` of JSON."""
    encoded = _encode(_shown(activity, scene, CALL_CHARS))
    if len(encoded) > CALL_BYTES:
        encoded = _encode(fitted(_shown(activity, scene, TIGHT_CHARS)))
    return msgspec.Raw(encoded)


def _shown(activity: Activity, scene: ReplayContext, max_chars: int) -> dict[str, Any]:
    return tool_calls.replayed(activity, scene.thread_id, cwd=scene.cwd, max_chars=max_chars)


def fitted(update: dict[str, Any]) -> dict[str, Any]:
    """A tool call with what is most telling, for as long as there is room."""
    optional = {"content", "locations", "rawInput", "rawOutput"}
    kept = {key: value for key, value in update.items() if key not in optional}
    for label in ("title", "name"):
        if label in kept:
            kept[label] = kept[label][:LABEL_CHARS]
    room = CALL_BYTES - NOTE_BYTES - len(_encode(kept))
    content, left_out = [], 0
    for part in update.get("content") or []:
        size = len(_encode(part)) + 1
        if size <= room:
            content.append(part)
            room -= size
        else:
            left_out += 1
    if left_out:
        parts = (
            "One part of this tool call is" if left_out == 1 else f"{left_out} parts of this tool call are"
        )
        content.append(text_content(f"{parts} left out: only the newest turn is shown whole."))
    if content:
        kept["content"] = content
    for key, value in (
        ("locations", (update.get("locations") or [])[:MAX_LOCATIONS]),
        ("rawOutput", update.get("rawOutput")),
        ("rawInput", update.get("rawInput")),
    ):
        size = len(_encode(value)) + len(key) + 4
        if value and size <= room:
            kept[key] = value
            room -= size
    return kept
