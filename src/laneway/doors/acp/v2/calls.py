"""Renders activities as the tool calls and terminals of ACP 2.

Pure. An update of a tool call is an upsert: the same function renders its beginning, its changes and its
end, and `OpenCall` leaves out the fields that the client has. The output of a command goes to a terminal
with the id of the call.
"""

from __future__ import annotations

import base64
from typing import Any

from laneway.base.engines import CODEX
from laneway.base.plain import plain_code
from laneway.core.model import Activity
from laneway.doors.acp.ids import tool_call_id
from laneway.doors.acp.updates import blocks
from laneway.doors.acp.updates.activity_views import ActivityView, view
from laneway.doors.acp.v2 import patches
from laneway.rendering.activities import outcome
from laneway.rendering.diffs import absolute
from laneway.rendering.outputs import MAX_OUTPUT_CHARS, shortened
from laneway.rendering.titles import CUT

Update = dict[str, Any]
"""The `update` of a `session/update`."""

_STATUS = {
    "running": "in_progress",
    "interrupted": "cancelled",
    "failed": "failed",
    "declined": "failed",
}


def call_id(activity: Activity, thread_id: str) -> str:
    return tool_call_id(thread_id, activity.turn_id, activity.item_id)


def call(
    activity: Activity,
    thread_id: str,
    *,
    cwd: str,
    max_chars: int = MAX_OUTPUT_CHARS,
    engine: str = CODEX,
) -> Update:
    """A tool call with all its fields. `engine` is the name of the engine that works."""
    call_view = view(activity, cwd, max_chars)
    note = _note(activity, call_view, engine)
    update: Update = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call_id(activity, thread_id),
        "title": call_view.title,
        "kind": call_view.kind,
        "status": _status(activity, call_view),
        "content": [
            *_content(activity, call_view, thread_id, cwd, max_chars),
            *([blocks.text(note)] if note else []),
        ],
        **call_view.optional_fields(),
    }
    if call_view.raw_output is not None:
        update["rawOutput"] = call_view.raw_output
    return update


def ended_without(activity: Activity, thread_id: str, why: str, *, cwd: str) -> Update:
    """The end of a call whose activity will not end."""
    last = call(activity, thread_id, cwd=cwd)
    return last | {"status": "failed", "content": [*last["content"], blocks.text(why)]}


def _content(
    activity: Activity, call_view: ActivityView, thread_id: str, cwd: str, max_chars: int
) -> list[blocks.Content]:
    if activity.kind == "edit":
        return patches.contents(activity.changes, cwd, max_chars)
    if has_terminal(activity) and activity.status != "declined":
        return [{"type": "terminal", "terminalId": call_id(activity, thread_id)}]
    return list(call_view.content)


def _status(activity: Activity, call_view: ActivityView) -> str:
    if activity.status in ("completed", "detached") and call_view.has_failed:
        return "failed"
    return _STATUS.get(activity.status, "completed")


def _note(activity: Activity, call_view: ActivityView, engine: str) -> str | None:
    """A sentence about the outcome, where neither the status nor the terminal shows it."""
    if activity.status == "interrupted":
        return None
    if has_terminal(activity) and activity.status not in ("declined", "detached"):
        return CUT if activity.is_cut else None
    return outcome(activity, has_content=bool(call_view.content), engine=engine)


# ── terminals ──────────────────────────────────────────────────────────────


def has_terminal(activity: Activity) -> bool:
    return activity.kind == "command"


def terminal(activity: Activity, thread_id: str, *, cwd: str) -> Update:
    """The first update of a terminal: its command and folder."""
    update: Update = {
        "sessionUpdate": "terminal_update",
        "terminalId": call_id(activity, thread_id),
        "command": plain_code(activity.title),
    }
    folder = absolute(activity.cwd or cwd, cwd)
    return update | {"cwd": folder} if folder else update


def printed(terminal_id: str, text: str) -> Update:
    return {"sessionUpdate": "terminal_output_chunk", "terminalId": terminal_id, "data": encoded(text)}


def exited(
    activity: Activity, thread_id: str, *, is_whole: bool, max_chars: int = MAX_OUTPUT_CHARS
) -> Update:
    """The last update of a terminal. `is_whole`: with the whole output, in place of the pieces."""
    update: Update = {"sessionUpdate": "terminal_update", "terminalId": call_id(activity, thread_id)}
    if is_whole and activity.output:
        update["output"] = {"data": encoded(shortened(activity.output, max_chars))}
    if activity.status != "detached":
        update["exitStatus"] = {} if activity.exit_code is None else {"exitCode": activity.exit_code}
    return update


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")
