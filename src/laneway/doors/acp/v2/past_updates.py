"""Events of the past as the updates of protocol 2: whole, or within a budget (`acp.history.past`).

Pure. Messages and calls are upserts: a client that asks for its history twice does not get it double.
"""

from __future__ import annotations

from laneway.core.model import Activity, Event, Plan, Text, Thought, TurnDone, UserSaid
from laneway.doors.acp.history import past_updates, user_blocks
from laneway.doors.acp.history.past_updates import ReplayContext, Update
from laneway.doors.acp.v2 import calls, shapes
from laneway.rendering.activities import is_verdict
from laneway.rendering.outputs import MAX_OUTPUT_CHARS
from laneway.rendering.refusals import in_words
from laneway.wire.messages import encode


def updates(event: Event, scene: ReplayContext, *, is_whole: bool) -> list[Update]:
    """What a client is told of an event; empty for what only moved a turn along."""
    match event:
        case UserSaid():
            content = user_blocks.blocks(event, None if is_whole else past_updates.IMAGE_CHARS)
            return [shapes.message("user_message", event.item_id, content)]
        case Text(item_id=item_id, text=text):
            return [shapes.message("agent_message", item_id, [shapes.text(text)])]
        case Thought(item_id=item_id, text=text):
            return [shapes.message("agent_thought", item_id, [shapes.text(text)])]
        case Activity():
            return _deed(event, scene, is_whole=is_whole)
        case Plan():
            return [shapes.plan(event)]
        case TurnDone(status="failed", turn_id=turn_id, failure=failure):
            why = in_words(failure.message) if failure else "Codex did not say why."
            words = shapes.text(f"The turn failed: {why}")
            return [shapes.message("agent_message", f"{turn_id}-failed", [words])]
        case _:
            return []


def _deed(activity: Activity, scene: ReplayContext, *, is_whole: bool) -> list[Update]:
    if activity.kind == "compaction":
        return [shapes.compaction(activity)]
    if is_verdict(activity):
        return []  # its text follows as a message
    max_chars = MAX_OUTPUT_CHARS if is_whole else past_updates.CALL_CHARS
    made: list[Update] = []
    if calls.has_terminal(activity) and activity.status != "declined":
        ended = calls.exited(activity, scene.thread_id, is_whole=True, max_chars=max_chars)
        made.append(calls.terminal(activity, scene.thread_id, cwd=scene.cwd) | ended)
    call = calls.call(activity, scene.thread_id, cwd=scene.cwd, max_chars=max_chars)
    if not is_whole and len(encode(call)) > past_updates.CALL_BYTES:
        tight = calls.call(activity, scene.thread_id, cwd=scene.cwd, max_chars=past_updates.TIGHT_CHARS)
        call = past_updates.fitted(tight)
    return [*made, call]
