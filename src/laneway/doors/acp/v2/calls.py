"""Activities as the tool calls and terminals of protocol 2.

Pure. A tool call is one upsert: the same function tells its beginning, its middle and its end, and
whoever sends it leaves out what is known. What a command prints goes to a terminal of ours that
bears the id of the call.
"""

from __future__ import annotations

import base64
from typing import Any

from laneway.base.plain import plain_code
from laneway.core.model import Activity
from laneway.doors.acp.ids import tool_call_id
from laneway.doors.acp.updates import blocks
from laneway.doors.acp.updates.activity_views import ActivityView, view
from laneway.doors.acp.v2 import patches
from laneway.rendering.activities import outcome
from laneway.rendering.diffs import absolute
from laneway.rendering.outputs import MAX_OUTPUT_CHARS, shortened

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


def call(activity: Activity, thread_id: str, *, cwd: str, max_chars: int = MAX_OUTPUT_CHARS) -> Update:
    """All of a tool call as it stands."""
    shown = view(activity, cwd, max_chars)
    note = _note(activity, shown)
    update: Update = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call_id(activity, thread_id),
        "title": shown.title,
        "kind": shown.kind,
        "status": _status(activity, shown),
        "content": [
            *_content(activity, shown, thread_id, cwd, max_chars),
            *([blocks.text(note)] if note else []),
        ],
    }
    if shown.name:
        update["name"] = shown.name
    if shown.locations:
        update["locations"] = list(shown.locations)
    if shown.raw_input is not None:
        update["rawInput"] = shown.raw_input
    if shown.raw_output is not None:
        update["rawOutput"] = shown.raw_output
    return update


def ended_without(activity: Activity, thread_id: str, why: str, *, cwd: str) -> Update:
    """The end of a call whose end nobody will tell."""
    last = call(activity, thread_id, cwd=cwd)
    return last | {"status": "failed", "content": [*last["content"], blocks.text(why)]}


def _content(
    activity: Activity, shown: ActivityView, thread_id: str, cwd: str, max_chars: int
) -> list[blocks.Content]:
    if activity.kind == "edit":
        return patches.contents(activity.changes, cwd, max_chars)
    if has_terminal(activity) and activity.status != "declined":
        return [{"type": "terminal", "terminalId": call_id(activity, thread_id)}]
    return list(shown.content)


def _status(activity: Activity, shown: ActivityView) -> str:
    if activity.status in ("completed", "detached") and shown.has_failed:
        return "failed"
    return _STATUS.get(activity.status, "completed")


def _note(activity: Activity, shown: ActivityView) -> str | None:
    """What neither the status nor the terminal says by itself."""
    if activity.status == "interrupted":
        return None
    if has_terminal(activity) and activity.status not in ("declined", "detached"):
        return None
    return outcome(activity, has_content=bool(shown.content))


# ── terminals ──────────────────────────────────────────────────────────────


def has_terminal(activity: Activity) -> bool:
    return activity.kind == "command"


def terminal(activity: Activity, thread_id: str, *, cwd: str) -> Update:
    """A terminal begins: what runs, and where."""
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
    """A terminal ends. `is_whole`: all that was printed is told, in the place of the pieces."""
    update: Update = {"sessionUpdate": "terminal_update", "terminalId": call_id(activity, thread_id)}
    if is_whole and activity.output:
        update["output"] = {"data": encoded(shortened(activity.output, max_chars))}
    if activity.status != "detached":
        update["exitStatus"] = {} if activity.exit_code is None else {"exitCode": activity.exit_code}
    return update


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")
