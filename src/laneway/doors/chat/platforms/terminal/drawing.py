"""Draws what a conversation shows as rows of text: banners, calls, plans, receipts, ends of questions. Pure.

Foreign text is fenced or made harmless on one line; only Laneway's own text starts at the margin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from laneway.base.plain import code_label, label
from laneway.core.model import Activity, Plan
from laneway.doors.chat.outputs import (
    Button,
    FileShown,
    InputReceipt,
    QuestionOver,
    Said,
    Told,
    TurnBegan,
    TurnEnded,
)
from laneway.rendering.activities import end_note
from laneway.rendering.lane_titles import MAX_NAME_CHARS, RULE, began_head, call_title, ended_head, lane_name
from laneway.rendering.titles import CUT
from laneway.terminal import foreign
from laneway.terminal.foreign import fenced
from laneway.terminal.output import excerpt
from laneway.terminal.status import count, elapsed
from laneway.terminal.style import Style

TERMINAL = "terminal"
STEPS = {"pending": "☐", "running": "◐", "completed": "☑"}
THOUGHT = "  ┄ "
SAID = "› "
SAID_MORE = "  "
MAX_TASK_CHARS = 100
"""Of a task in its banner: the words themselves stand above it."""
MAX_PLAN_ROWS = 12
"""Of a plan that is changed in place: more would push the input off a small screen."""
STOPPED_BY = {
    "stop": "stopped",
    "message": "stopped for your message",
    "silence": "stopped: it was silent for too long",
    "delegation": "stopped with the turn that asked for it",
}
ORDINALS = {1: "next", 2: "2nd", 3: "3rd"}


class RowCanvas(msgspec.Struct, frozen=True):
    """Where rows are drawn: their colours, and their width in cells (none: nothing is wrapped or cut)."""

    style: Style
    columns: int | None

    def line(self, text: str, used: int = 0) -> str:
        """Foreign text as the rest of one row of which so many cells are used."""
        return foreign.label(text, None if self.columns is None else max(self.columns - used, 8))


# ── people ─────────────────────────────────────────────────────────────────


def own_rows(text: str, images: int, canvas: RowCanvas) -> list[str]:
    """A message that was typed here."""
    rows = fenced(text, canvas.columns, mark=SAID_MORE, goes_on=SAID_MORE)
    rows[0] = SAID + rows[0][len(SAID_MORE) :]
    rows += [f"{SAID_MORE}({images} image{'s' if images > 1 else ''})"] if images else []
    return [canvas.style.bold(row) for row in rows]


def said_rows(said: Said, canvas: RowCanvas) -> list[str]:
    """A message that came from another place: an earlier run at a terminal is our own."""
    own = own_rows(said.text, said.images, canvas)
    if said.place.platform == TERMINAL:
        return own
    name = label(said.sender, MAX_NAME_CHARS) or "somebody"
    rows = [canvas.style.dim(f"{name} ({code_label(said.platform, MAX_NAME_CHARS)}):")]
    return [*rows, *own]


def receipt_text(receipt: InputReceipt) -> str:
    """What has become of a message, in words; empty where what follows shows it anyway."""
    lane = lane_name(receipt.lane) if receipt.lane else ""
    match receipt.kind:
        case "queued" if receipt.position:
            place = ORDINALS.get(receipt.position, f"{receipt.position}th")
            text = f"queued for {lane}, {place}" if lane else f"queued, {place}"
        case "queued":
            text = f"queued for {lane}" if lane else "queued"
        case "held":
            text = f"waits behind the question of {lane}" if lane else "waits behind the question"
        case "steered":
            text = f"went into the turn of {lane}" if lane else "went into the turn that runs"
        case "kept":
            text = "kept for your next message"
        case "refused":
            text = "not taken"
        case _:
            text = ""
    return " · ".join(filter(None, (text, receipt.text)))


# ── turns ──────────────────────────────────────────────────────────────────


def began_rows(turn: TurnBegan, canvas: RowCanvas) -> list[str]:
    if not turn.has_banner:
        return []
    by = f" for {lane_name(turn.caller)}" if turn.caller else ""
    task = label(" ".join(turn.task.split()), MAX_TASK_CHARS)
    head = f"{RULE} {began_head(turn.lane)}{by}"
    text = f"{head}: {task}" if task else head
    return [canvas.style.yellow(f"{canvas.line(text, len(RULE) + 1)} {RULE}")]


def ended_rows(turn: TurnEnded, canvas: RowCanvas, *, tells_counts: bool) -> list[str]:
    """Its failure, how it was cut, its banner. `tells_counts` for a place without a status line."""
    rows: list[str] = []
    if turn.failure is not None:
        mark = f"  ✘ {lane_name(turn.lane)}: "
        rows += map(
            canvas.style.red, fenced(turn.failure.message, canvas.columns, mark=mark, goes_on=" " * len(mark))
        )
    elif turn.status == "failed":
        rows.append(canvas.style.red(f"  ✘ {lane_name(turn.lane)}: the turn failed"))
    elif turn.status == "interrupted":
        how = STOPPED_BY.get(turn.stopped_by, "interrupted")
        rows.append(canvas.style.yellow(f"  ■ {lane_name(turn.lane)}: {how}"))
    rows += button_rows(turn.buttons, canvas)
    tokens = turn.tokens.total if turn.tokens else 0
    counts = elapsed(turn.seconds) + (f" · {count(tokens)} tokens" if tokens else "")
    if turn.has_banner:
        text = f"{RULE} {ended_head(turn.lane, turn.status)} · {counts}"
        rows.append(canvas.style.yellow(f"{text} {RULE}"))
    elif tells_counts:
        rows.append(canvas.style.dim(f"  {counts}"))
    return rows


def call_row(activity: Activity, lane: str | None, cwd: str, canvas: RowCanvas) -> str:
    """A command, edit or tool call as it begins; `lane` for one that has a banner."""
    title = call_title(activity, cwd, lane_name(lane) if lane else None)
    return canvas.style.cyan(f"▸ {canvas.line(title, 2)}")


def call_end_rows(
    activity: Activity, title: str, canvas: RowCanvas, *, is_full: bool = False
) -> tuple[list[str], int]:
    """Its output and how it ended, and how many lines are left out. `title` if it is not the last row."""
    rows: list[str] = []
    hidden = 0
    if activity.kind == "command":
        first, hidden, last = excerpt(activity.output or "", is_full=is_full)
        rows += output_rows(first, canvas)
        rows += [hidden_row(hidden, canvas)] if hidden else []
        rows += output_rows(last, canvas)
    if activity.is_cut:
        rows.append(canvas.style.yellow(f"  {CUT}"))
    status = end_note(activity)
    if status:
        rows.append(canvas.style.yellow(f"  {canvas.line(f'{status}: {title}' if title else status, 2)}"))
    return rows, hidden


def output_rows(lines: Sequence[str], canvas: RowCanvas) -> list[str]:
    return [canvas.style.dim(row) for line in lines for row in fenced(line, canvas.columns)]


def hidden_row(lines: int, canvas: RowCanvas, hint: str = "") -> str:
    return canvas.style.yellow(f"  … {lines} more line{'s' if lines != 1 else ''}{hint}")


def plan_rows(plan: Plan, lane: str | None, canvas: RowCanvas, *, is_bounded: bool = False) -> list[str]:
    """A checklist; if it is bounded, the steps around the one that is being done."""
    steps = list(plan.steps)
    looks: dict[str, Callable[[str], str]] = {"completed": canvas.style.dim, "running": canvas.style.bold}
    rows = [
        looks.get(step.status, str)(f"  {STEPS[step.status]} {canvas.line(step.text, 4)}") for step in steps
    ]
    if is_bounded and len(rows) > MAX_PLAN_ROWS:
        now = next((at for at, step in enumerate(steps) if step.status != "completed"), len(rows))
        start = max(0, min(now - MAX_PLAN_ROWS // 3, len(rows) - MAX_PLAN_ROWS))
        rows = rows[start : start + MAX_PLAN_ROWS]
    head = f"  {lane_name(lane)} plan:" if lane else "  plan:"
    return [canvas.style.dim(head), *rows]


def thought_row(text: str, canvas: RowCanvas) -> tuple[str, bool]:
    """A thought, folded to its first line, and whether there is more of it."""
    lines = [line for line in text.split("\n") if line.strip()]
    first = canvas.line(lines[0].replace("**", ""), len(THOUGHT) + 2) if lines else ""
    return canvas.style.dim(f"{THOUGHT}{first}{' …' if len(lines) > 1 else ''}"), len(lines) > 1


# ── questions and Laneway itself ───────────────────────────────────────────


def over_row(over: QuestionOver, canvas: RowCanvas) -> str:
    by = f" by {label(over.by, MAX_NAME_CHARS)}" if over.by else ""
    text = f": {label(over.text)}" if over.text else ""
    how = {
        "answered": f"answered{by}{text}",
        "declined": f"declined{by}{text}",
        "expired": "declined: no answer came in time",
        "withdrawn": "no answer is needed any more",
        "void": f"void: {lane_name(over.lane)} asked it before Laneway ended",
    }[over.how]
    return canvas.style.dim(f"  ↳ {canvas.line(f'question {over.number}: {how}', 4)}")


def told_rows(told: Told, canvas: RowCanvas) -> list[str]:
    """A warning or an error; what is said as information is Markdown, and rendered as such."""
    colour = canvas.style.red if told.level == "error" else canvas.style.yellow
    return [colour(row) for row in fenced(told.text, canvas.columns, mark="  ! ", goes_on="    ")]


def button_rows(buttons: Sequence[Button], canvas: RowCanvas) -> list[str]:
    """What can be typed instead of pressing them."""
    return [canvas.style.dim(f"    {canvas.line(f'{each.data}: {each.label}', 4)}") for each in buttons]


def file_row(file: FileShown, canvas: RowCanvas) -> str:
    caption = f" ({label(file.caption)})" if file.caption else ""
    return f"  ⇩ {canvas.line(f'{lane_name(file.lane)} sends {code_label(file.path)}{caption}', 4)}"
