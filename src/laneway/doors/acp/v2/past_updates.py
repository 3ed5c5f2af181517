"""Renders past events as the updates of ACP 2, whole or within a budget (`acp.history.past_updates`).

Pure. Messages and calls are upserts: a client that loads its history twice does not show it twice.
"""

from __future__ import annotations

from laneway.core.model import Activity, Event, Plan, Text, Thought, TurnDone, UserSaid
from laneway.doors.acp.history import past_updates, user_blocks
from laneway.doors.acp.history.past_updates import ReplayContext, Update
from laneway.doors.acp.v2 import calls, shapes
from laneway.rendering.activities import is_verdict
from laneway.rendering.outputs import MAX_OUTPUT_CHARS
from laneway.rendering.refusals import unwrapped_message
from laneway.wire.messages import encode


def updates(event: Event, context: ReplayContext, *, is_whole: bool) -> list[Update]:
    """The updates for a past event; none for events that only mark a turn's progress."""
    match event:
        case UserSaid():
            content = user_blocks.blocks(event, None if is_whole else past_updates.IMAGE_CHARS)
            return [shapes.message("user_message", event.item_id, content)]
        case Text(item_id=item_id, text=text):
            return [shapes.message("agent_message", item_id, [shapes.text(text)])]
        case Thought(item_id=item_id, text=text):
            return [shapes.message("agent_thought", item_id, [shapes.text(text)])]
        case Activity():
            return _activity(event, context, is_whole=is_whole)
        case Plan():
            return [shapes.plan(event)]
        case TurnDone(status="failed", turn_id=turn_id, failure=failure):
            why = unwrapped_message(failure.message) if failure else f"{context.engine} did not say why."
            content = [shapes.text(f"The turn failed: {why}")]
            return [shapes.message("agent_message", f"{turn_id}-failed", content)]
        case _:
            return []


def _activity(activity: Activity, context: ReplayContext, *, is_whole: bool) -> list[Update]:
    if activity.kind == "compaction":
        return [shapes.compaction(activity)]
    if is_verdict(activity):
        return []  # the text of a review follows as a message
    max_chars = MAX_OUTPUT_CHARS if is_whole else past_updates.CALL_CHARS
    terminals: list[Update] = []
    if calls.has_terminal(activity) and activity.status != "declined":
        ended = calls.exited(activity, context.thread_id, is_whole=True, max_chars=max_chars)
        terminals.append(calls.terminal(activity, context.thread_id, cwd=context.cwd) | ended)
    call = calls.call(
        activity, context.thread_id, cwd=context.cwd, max_chars=max_chars, engine=context.engine
    )
    if not is_whole and len(encode(call)) > past_updates.CALL_BYTES:
        tight = calls.call(
            activity,
            context.thread_id,
            cwd=context.cwd,
            max_chars=past_updates.TIGHT_CHARS,
            engine=context.engine,
        )
        call = past_updates.fitted(tight)
    return [*terminals, call]
