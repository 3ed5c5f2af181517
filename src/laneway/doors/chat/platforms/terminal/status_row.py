"""The status row of a conversation: who works or leads, model, tokens, time, what can be pressed. Pure."""

from __future__ import annotations

from laneway.doors.chat.outputs import StatusNow
from laneway.rendering.lane_titles import lane_name
from laneway.terminal.foreign import cells, label
from laneway.terminal.status import ASCII_MARKS, MARKS, count, elapsed

MARKS_PER_S = 8
"""How often the mark of work turns."""


def status_row(
    status: StatusNow, doing: str, now: float, columns: int, *, hint: str = "", is_ascii: bool = False
) -> str:
    """One row that fits: what is done is cut first, then the hint is left out. `now` as `working_since`."""
    marks = ASCII_MARKS if is_ascii else MARKS
    parts: list[str] = []
    seconds = max(now - status.working_since, 0.0)
    if status.active_lane is not None:
        mark = "?" if status.is_waiting else marks[int(seconds * MARKS_PER_S) % len(marks)]
        parts.append(f"{mark} {lane_name(status.active_lane)}")
    elif status.default_lane:
        parts.append(lane_name(status.default_lane))
    if status.model:
        parts.append(label(status.model, 40))
    if status.tokens:
        share = f" ({100 * status.tokens // status.window} %)" if status.window else ""
        parts.append(f"{count(status.tokens)} tokens{share}")
    if status.active_lane is not None and status.working_since:
        parts.append(elapsed(seconds))
    if status.queued:
        parts.append(f"{status.queued} queued")
    text = label(" · ".join(parts), columns)
    room = columns - cells(text) - cells(hint) - 6
    if doing and room >= 10:
        text = f"{text} · {label(doing, room)}"
    if hint and cells(text) + cells(hint) + 2 <= columns:
        text += " " * (columns - cells(text) - cells(hint)) + hint
    return text
