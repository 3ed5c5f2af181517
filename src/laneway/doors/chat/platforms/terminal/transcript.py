"""The conversation as it is drawn on a terminal: outputs in, rows out, in order and never redrawn.

What is still changing (a text that is being written, a plan, a running command's output) is not among the
rows: `live_rows` has it, for a screen that can redraw its end. It is written out once it is complete.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from laneway.core.model import Activity, Plan
from laneway.doors.chat.messages import Place
from laneway.doors.chat.outputs import (
    ActivityShown,
    AnyOutput,
    FileShown,
    InputReceipt,
    OutputDelta,
    PlanShown,
    QuestionOver,
    QuestionShown,
    Said,
    TextDelta,
    TextDone,
    Told,
    TurnBegan,
    TurnEnded,
)
from laneway.doors.chat.platforms.terminal import drawing
from laneway.doors.chat.platforms.terminal.drawing import RowCanvas
from laneway.doors.chat.platforms.terminal.streamed import StreamedText, Writer
from laneway.rendering.lane_titles import call_title
from laneway.terminal.changes import diff_rows
from laneway.terminal.foreign import fenced
from laneway.terminal.output import LiveOutput

MAX_DIFF_ROWS = 60
"""Of the diff of a turn."""
MAX_FOLDED = 20
"""Folded things that can still be unfolded."""
MAX_LIVE_OUTPUTS = 4
"""Commands whose newest lines are shown at once."""


class Paper(Protocol):
    """Where a transcript is written."""

    @property
    def canvas(self) -> RowCanvas: ...
    def rows(self, *rows: str, has_gap: bool = False) -> None:
        """Write rows about the work, after an empty one if there is to be a gap."""
        ...

    def writer(self) -> Writer:
        """For one text of a lane."""
        ...

    def answer(self, text: str) -> None:
        """Write a text of Laneway's own (Markdown), which answers a command."""
        ...


class Folded(msgspec.Struct, frozen=True):
    """Something that was shown in part."""

    what: str
    draw: Callable[[RowCanvas], list[str]]


class _Turn(msgspec.Struct):
    lane: str
    has_banner: bool
    plan: Plan | None = None
    is_plan_shown: bool = False

    @property
    def prefix(self) -> str | None:
        return self.lane if self.has_banner else None


class Transcript:
    """Draws one output after the other. `place` is ours: what came from here has been shown already."""

    def __init__(self, paper: Paper, place: Place, cwd: str, *, is_live: bool) -> None:
        """`is_live`: whether what changes is looked at through `live_rows`; else it is written at once."""
        self._paper = paper
        self._place = place
        self._is_live = is_live
        self.cwd = cwd
        self.folded: list[Folded] = []
        """What can be unfolded, the latest last."""
        self._turns: dict[str, _Turn] = {}
        """By ticket."""
        self._texts: dict[str, StreamedText] = {}
        """By part: texts that are being written."""
        self._outputs: dict[str, LiveOutput] = {}
        """By item: what running commands print."""
        self._newest = ""
        """The item that was drawn last, if nothing was drawn after it."""
        self._doing: dict[str, str] = {}

    # ── outputs ────────────────────────────────────────────────────────────

    def show(self, output: AnyOutput) -> None:
        match output:
            case TextDelta(kind="text"):
                self._text(output.part, output.lane).add(output.offset, output.text)
            case TextDelta():
                pass  # thoughts are folded: one row at their end
            case TextDone(kind="text"):
                self._finish_text(output)
            case TextDone():
                self._thought(output)
            case OutputDelta():
                self._outputs.setdefault(output.item_id, LiveOutput()).feed(output.text)
            case ActivityShown():
                self._activity(output.ticket, output.lane, output.activity)
            case PlanShown():
                self._plan(output)
            case TurnBegan():
                self._begin(output)
            case TurnEnded():
                self._end(output)
            case _:
                self._other(output)

    def _other(self, output: AnyOutput) -> None:
        canvas = self._paper.canvas
        match output:
            case Said() if output.place != self._place:
                self._rows(*drawing.said_rows(output, canvas), has_gap=True)
            case InputReceipt() if output.place == self._place:
                self._receipt(output)
            case QuestionOver():
                self._rows(drawing.over_row(output, canvas))
            case Told() if output.only in (None, self._place):
                self._told(output)
            case FileShown():
                self._rows(drawing.file_row(output, canvas))
            case _:
                pass  # questions and the status have places of their own

    def _rows(self, *rows: str, has_gap: bool = False) -> None:
        """Rows of our own; texts that are being written are cut there."""
        if rows:
            self._cut_texts()
            self._paper.rows(*rows, has_gap=has_gap)

    def _cut_texts(self) -> None:
        for text in self._texts.values():
            text.writer.end()
        self._newest = ""

    def question(self, shown: QuestionShown, rows: list[str]) -> None:
        """A question that has come to the front, drawn already."""
        self._rows(*rows)

    def note(self, text: str) -> None:
        """A remark of ours."""
        self._rows(self._paper.canvas.style.dim(f"  {text}"))

    def own(self, text: str, images: int = 0) -> None:
        """A message that was typed here."""
        self._rows(*drawing.own_rows(text, images, self._paper.canvas), has_gap=True)

    # ── turns ──────────────────────────────────────────────────────────────

    def _begin(self, began: TurnBegan) -> None:
        self._turns[began.ticket] = _Turn(began.lane, began.has_banner)
        self._rows(*drawing.began_rows(began, self._paper.canvas))

    def _end(self, ended: TurnEnded) -> None:
        turn = self._turns.pop(ended.ticket, None)
        for part in [part for part, text in self._texts.items() if text.lane == ended.lane]:
            self._texts.pop(part).writer.end()
        if turn is not None and turn.plan is not None and not turn.is_plan_shown:
            self._rows(*drawing.plan_rows(turn.plan, turn.prefix, self._paper.canvas))
        if not self._turns:
            self._outputs.clear()
            self._doing.clear()
        if ended.diff:
            self._diff(ended.diff)
        self._rows(*drawing.ended_rows(ended, self._paper.canvas, tells_counts=not self._is_live))

    def settle(self) -> None:
        """Nothing works any more, or another conversation is shown: what was begun changes no more.

        A turn may have no end: Laneway ended in its middle, or it goes on where nobody looks.
        """
        for text in self._texts.values():
            text.writer.end()
        for live in (self._texts, self._turns, self._outputs, self._doing):
            live.clear()
        self._newest = ""

    def _diff(self, diff: str) -> None:
        canvas = self._paper.canvas
        rows = diff_rows(diff, canvas.style, canvas.columns)
        if len(rows) > MAX_DIFF_ROWS and self._is_live:
            left_out = len(rows) - MAX_DIFF_ROWS
            rows = [*rows[:MAX_DIFF_ROWS], drawing.hidden_row(left_out, canvas, " (Ctrl-O shows them)")]
            self._fold("diff", lambda canvas: diff_rows(diff, canvas.style, canvas.columns))
        self._rows(*rows)

    # ── texts and thoughts ─────────────────────────────────────────────────

    def _text(self, part: str, lane: str) -> StreamedText:
        text = self._texts.get(part)
        if text is None:
            for other in self._texts.values():
                other.writer.end()
            self._newest = ""
            text = self._texts[part] = StreamedText(lane, self._paper.writer())
        return text

    def partial(self, part: str, lane: str, text: str) -> None:
        """A text whose beginning came before we did."""
        self._text(part, lane).add(0, text)

    def _finish_text(self, done: TextDone) -> None:
        text = self._text(done.part, done.lane)
        del self._texts[done.part]
        text.finish(done.text)

    def _thought(self, done: TextDone) -> None:
        row, has_more = drawing.thought_row(done.text, self._paper.canvas)
        if has_more:
            self._fold("thought", lambda canvas: drawing.output_rows(done.text.split("\n"), canvas))
        if done.text.strip():
            self._rows(row)

    # ── calls and plans ────────────────────────────────────────────────────

    def _activity(self, ticket: str, lane: str, activity: Activity) -> None:
        turn = self._turns.get(ticket) or _Turn(lane, has_banner=False)
        canvas = self._paper.canvas
        title = call_title(activity, self.cwd, turn.prefix)
        is_new = activity.item_id not in self._doing
        if activity.status == "running":
            self._doing[activity.item_id] = title
            if is_new:
                self._rows(drawing.call_row(activity, turn.prefix, self.cwd, canvas))
                self._newest = activity.item_id
            return
        if is_new:  # its beginning was not shown
            self._rows(drawing.call_row(activity, turn.prefix, self.cwd, canvas))
            self._newest = activity.item_id
        self._doing.pop(activity.item_id, None)
        self._outputs.pop(activity.item_id, None)
        is_last = activity.item_id == self._newest
        rows, hidden = drawing.call_end_rows(activity, "" if is_last else title, canvas)
        if hidden and self._is_live:
            self._fold(
                "output", lambda canvas: drawing.call_end_rows(activity, title, canvas, is_full=True)[0]
            )
        if rows and not is_last and not (activity.status != "completed" or activity.exit_code):
            rows = [canvas.style.dim(f"▸ {canvas.line(title, 2)}"), *rows]
        self._rows(*rows)

    def _plan(self, shown: PlanShown) -> None:
        turn = self._turns.setdefault(shown.ticket, _Turn(shown.lane, has_banner=False))
        is_first = turn.plan is None
        turn.plan, turn.is_plan_shown = shown.plan, False
        if not self._is_live and is_first:
            self._rows(*drawing.plan_rows(shown.plan, turn.prefix, self._paper.canvas))
            turn.is_plan_shown = True

    # ── Laneway itself ─────────────────────────────────────────────────────

    def _receipt(self, receipt: InputReceipt) -> None:
        text = drawing.receipt_text(receipt)
        if not text:
            return
        canvas = self._paper.canvas
        if receipt.kind == "refused":
            self._rows(*(canvas.style.yellow(row) for row in fenced(text, canvas.columns, mark="  ! ")))
        else:
            self._rows(canvas.style.dim(f"  · {canvas.line(text, 4)}"))

    def _told(self, told: Told) -> None:
        if told.level == "info":
            self._cut_texts()
            self._paper.answer(told.text)
        else:
            self._rows(*drawing.told_rows(told, self._paper.canvas))
        self._rows(*drawing.button_rows(told.buttons, self._paper.canvas))

    # ── what changes, and what is folded ───────────────────────────────────

    def live_rows(self, max_rows: int) -> list[str]:
        """What changes: the text that is being written, the newest output, the plan; its last rows."""
        canvas = self._paper.canvas
        texts = [row for text in self._texts.values() for row in text.writer.open_rows()]
        live = list(self._outputs.values())[-MAX_LIVE_OUTPUTS:]
        outputs = [row for output in live for row in drawing.output_rows(output.lines, canvas)]
        plans = [
            row
            for turn in self._turns.values()
            if turn.plan is not None
            for row in drawing.plan_rows(turn.plan, turn.prefix, canvas, is_bounded=True)
        ]
        room = max(max_rows - len(plans), 1)
        return [*[*texts, *outputs][-room:], *plans][-max_rows:]

    @property
    def doing(self) -> str:
        """The call that began last and runs; empty if none does."""
        return next(reversed(self._doing.values()), "")

    def _fold(self, what: str, draw: Callable[[RowCanvas], list[str]]) -> None:
        self.folded = [*self.folded, Folded(what, draw)][-MAX_FOLDED:]

    def unfold(self) -> bool:
        """Write out what was folded last, in full; whether there was anything."""
        if not self.folded:
            return False
        folded = self.folded.pop()
        canvas = self._paper.canvas
        self._rows(canvas.style.dim(f"  {folded.what} in full:"), *folded.draw(canvas))
        return True
