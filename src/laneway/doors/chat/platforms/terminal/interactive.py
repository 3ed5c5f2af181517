"""The screen of a conversation in a terminal: output scrolls by; what changes, input and status stand below.

Only this part of Laneway knows `prompt_toolkit`. What is complete is written above the input and never
redrawn, so the terminal's own scrolling and copying work; only the rows from the live part down are redrawn.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, DynamicCompleter
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
from prompt_toolkit.history import History
from prompt_toolkit.input import Input
from prompt_toolkit.input.defaults import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import BeforeInput, ConditionalProcessor, PasswordProcessor
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style as PromptStyle

from laneway.base.counting import counted
from laneway.doors.chat.outputs import StatusNow
from laneway.doors.chat.platforms.terminal.dialog import QuestionDialog
from laneway.doors.chat.platforms.terminal.drawing import RowCanvas
from laneway.doors.chat.platforms.terminal.shown_conversation import ShownConversation
from laneway.doors.chat.platforms.terminal.status_row import MARKS_PER_S, status_row
from laneway.doors.chat.platforms.terminal.streamed import StreamedMarkdown, Writer
from laneway.rendering.lane_titles import lane_name
from laneway.terminal.style import Style, size

MAX_INPUT_ROWS = 10
MENU_ROWS = 8
LEFT_ROWS = 6
"""Of the screen, for input, status and what stands around them: the live part gets no more than the rest."""
MIN_LIVE_ROWS = 3
REDRAW_S = 0.05
"""Between two redrawings: faster than an eye follows, and a stream of words costs little."""
SETTLE_S = 0.4
"""From a question on the screen to the first Enter that counts: nobody reads faster, but a person who was
typing something else may go on for that long."""
LEAVE_S = 10.0
"""In which a second Ctrl-C leaves: as long as a turn has to stop."""
HINT = "Ctrl-C stops"
LEAVE_HINT = "Ctrl-C again leaves"
STYLE = PromptStyle.from_dict(
    {
        "status": "noreverse dim",
        "hint": "ansiyellow",
        "prompt": "bold",
        "completion-menu": "noreverse bg:default",
        "completion-menu.completion": "noreverse bg:default fg:default",
        "completion-menu.completion.current": "reverse",
        "completion-menu.meta.completion": "noreverse bg:default fg:default dim",
        "completion-menu.meta.completion.current": "reverse",
    }
)


class InteractiveScreen:
    """`await run(...)` until the user leaves. A `TerminalScreen` of one conversation."""

    def __init__(
        self,
        *,
        history: History,
        stdout: TextIO | None = None,
        keys: Input | None = None,
        columns_rows: Callable[[], tuple[int, int]] | None = None,
        settle_s: float = SETTLE_S,
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        stream = stdout or sys.stdout
        self._style = Style(stream)
        self._size = columns_rows or (lambda: size(stream))
        self._settle_s, self._now, self._wall = settle_s, now, wall
        self._conversation: ShownConversation | None = None
        self._completer: Completer | None = None
        self._pending: list[str] = []
        """Written, and not on the screen yet."""
        self._last = ""
        """What was written last: work, an answer."""
        self._draft = Document()
        """What was being typed when a question came."""
        self._settled_at = 0.0
        self._armed_at: float | None = None
        """When Ctrl-C was pressed last, with no other key since."""
        self._modes: list[Any] | None = None
        """The terminal's, before we changed them."""
        self._flushing: asyncio.TimerHandle | None = None
        self._flushed_at = 0.0
        self._spinning: asyncio.TimerHandle | None = None
        encoding = (getattr(stream, "encoding", None) or "").lower().replace("-", "")
        self._is_ascii = encoding != "utf8"
        self._buffer = Buffer(
            multiline=True,
            history=history,
            completer=DynamicCompleter(lambda: self._completer),
            complete_while_typing=Condition(lambda: self._buffer.text.startswith("/")),
        )
        self._output: Output = Vt100_Output(stream, self._prompt_size, enable_cpr=False, enable_bell=False)
        self._app: Application[int] = Application(
            layout=self._layout(),
            key_bindings=self._bindings(),
            style=STYLE,
            erase_when_done=True,
            color_depth=None if self._style.is_on else ColorDepth.DEPTH_1_BIT,
            input=keys or create_input(),
            output=self._output,
        )
        self._app.ttimeoutlen = 0.05

    # ── its life ───────────────────────────────────────────────────────────

    async def run(self, conversation: ShownConversation, completer: Completer) -> int:
        """Returns the exit code. What is still to be written is written before."""
        self._conversation, self._completer = conversation, completer
        conversation.on_front = self._on_front
        self._modes = _modes()
        self._on_front(conversation.front)
        try:
            return await self._app.run_async(pre_run=self._flush, handle_sigint=False)
        except EOFError:
            return 0
        finally:
            for timer in (self._flushing, self._spinning):
                if timer is not None:
                    timer.cancel()
            self._flushing = self._modes = None
            self._flush()

    def restore(self) -> None:
        """The terminal as it was, for a process that ends at once."""
        modes, self._modes = self._modes, None
        if modes is not None:
            import termios

            self._app.renderer.erase()
            try:
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, modes)
            except termios.error:
                pass  # hung up

    def leave(self, code: int) -> None:
        if self._app.is_running and not self._app.is_done:
            self._app.exit(result=code)

    @property
    def typed_text(self) -> str:
        """What stands in the input."""
        return self._buffer.text

    # ── paper ──────────────────────────────────────────────────────────────

    @property
    def canvas(self) -> RowCanvas:
        return RowCanvas(self._style, self._columns())

    @property
    def max_question_rows(self) -> int:
        return max(self._size()[1] - LEFT_ROWS, MIN_LIVE_ROWS)

    def rows(self, *rows: str, has_gap: bool = False) -> None:
        self._separate("work", has_gap=has_gap)
        self._write("".join(f"{row}\n" for row in rows))

    def writer(self) -> Writer:
        self._last = ""
        return StreamedMarkdown(self._write_text, self._columns)

    def answer(self, text: str) -> None:
        streamed = self.writer()
        streamed.feed(text)
        streamed.end()

    def changed(self) -> None:
        self._flush_soon()

    def _write_text(self, text: str) -> None:
        self._separate("answer")
        self._write(text)

    def _separate(self, kind: str, *, has_gap: bool = False) -> None:
        """An empty line between what was done and what is said."""
        if has_gap or self._last != kind:
            self._write("\n")
        self._last = kind

    def _write(self, text: str) -> None:
        self._pending.append(text)
        self._flush_soon()

    # ── drawing ────────────────────────────────────────────────────────────

    def _columns(self) -> int:
        return self._size()[0]

    def _prompt_size(self) -> Size:
        columns, rows = self._size()
        return Size(rows=rows, columns=columns)

    def _flush_soon(self) -> None:
        if self._flushing is None and self._app.is_running:
            loop = asyncio.get_running_loop()
            at = max(self._flushed_at + REDRAW_S, loop.time())
            self._flushing = loop.call_at(at, self._flush)

    def _flush(self) -> None:
        """Write what is complete above the input, and redraw what is below."""
        self._flushing = None
        if self._app.is_running:
            self._flushed_at = asyncio.get_running_loop().time()
        text, self._pending = "".join(self._pending), []
        if text:
            if self._app.is_running:
                self._app.renderer.erase(leave_alternate_screen=False)
            self._output.write_raw(text.replace("\n", "\r\n"))
            self._output.flush()
        if self._app.is_running:
            self._app.invalidate()
            self._spin()

    def _spin(self) -> None:
        """Redraw while something works: the mark turns, the seconds count."""
        if self._spinning is None and self._status.active_lane is not None and not self._status.is_waiting:
            self._spinning = asyncio.get_running_loop().call_later(1 / MARKS_PER_S, self._on_spin)

    def _on_spin(self) -> None:
        self._spinning = None
        if self._app.is_running:
            self._app.invalidate()
            self._spin()

    @property
    def _status(self) -> StatusNow:
        if self._conversation is None:
            return StatusNow(default_lane="", active_lane=None)
        return self._conversation.status

    @property
    def _front(self) -> QuestionDialog | None:
        return None if self._conversation is None else self._conversation.front

    def _layout(self) -> Layout:
        asks = Condition(lambda: self._front is not None)
        is_secret = Condition(lambda: self._front is not None and self._front.is_secret)
        live = Window(FormattedTextControl(self._live_text), dont_extend_height=True)
        hint = Window(FormattedTextControl(self._hint_text), height=1)
        field = Window(
            BufferControl(
                self._buffer,
                input_processors=[
                    ConditionalProcessor(PasswordProcessor(), is_secret),
                    BeforeInput(self._prompt_text),
                ],
            ),
            height=lambda: Dimension(min=1, max=min(MAX_INPUT_ROWS, max(self._size()[1] - LEFT_ROWS, 1))),
            wrap_lines=True,
            dont_extend_height=True,
        )
        menu = CompletionsMenu(max_height=MENU_ROWS, scroll_offset=1)
        status = Window(FormattedTextControl(self._status_text), height=1, style="class:status")
        return Layout(
            HSplit(
                [
                    ConditionalContainer(live, Condition(lambda: bool(self._live_rows()))),
                    ConditionalContainer(hint, asks),
                    ConditionalContainer(Window(height=1), ~asks),
                    field,
                    menu,
                    status,
                ]
            ),
            focused_element=field,
        )

    def _live_rows(self) -> list[str]:
        if self._conversation is None:
            return []
        rows = self._conversation.transcript.live_rows(max(self._size()[1] - LEFT_ROWS, MIN_LIVE_ROWS))
        return ["", *rows] if rows and self._last != "answer" else rows

    def _live_text(self) -> AnyFormattedText:
        return ANSI("\n".join(self._live_rows()))

    def _hint_text(self) -> AnyFormattedText:
        front = self._front
        if front is None or self._conversation is None:
            return ""
        others = [f"#{dialog.shown.number}" for dialog in self._conversation.dialogs if dialog is not front]
        more = f"   ({counted(len(others), 'more question')}: {', '.join(others[:5])})" if others else ""
        return [("class:hint", f"  {lane_name(front.shown.lane)} asks: {front.hint}{more}")]

    def _prompt_text(self) -> AnyFormattedText:
        return [("class:prompt", "› " if self._front is None else "? ")]

    def _status_text(self) -> AnyFormattedText:
        doing = "" if self._conversation is None else self._conversation.transcript.doing
        hint = LEAVE_HINT if self._armed_at is not None else HINT if self._status.active_lane else ""
        columns = max(self._columns() - 1, 1)
        return status_row(self._status, doing, self._wall(), columns, hint=hint, is_ascii=self._is_ascii)

    # ── questions ──────────────────────────────────────────────────────────

    def _on_front(self, dialog: QuestionDialog | None) -> None:
        """What was being typed is not its answer: it is put aside, and comes back afterwards."""
        if dialog is not None:
            if self._buffer.text and not self._draft.text:
                self._draft = self._buffer.document
            self._buffer.reset()
            self._settled_at = self._now() + self._settle_s
        else:
            draft, self._draft = self._draft, Document()
            self._buffer.reset(draft)
        self.changed()

    # ── keys ───────────────────────────────────────────────────────────────

    def _bindings(self) -> KeyBindings:
        bindings = KeyBindings()
        bindings.add("enter")(self._on_enter)
        bindings.add("escape", "enter")(self._on_newline)
        bindings.add("c-j")(self._on_newline)
        bindings.add("c-c")(self._on_interrupt)
        bindings.add("<sigint>")(self._on_interrupt)
        bindings.add("c-d", filter=Condition(lambda: not self._buffer.text))(lambda event: self.leave(0))
        bindings.add("c-o")(self._on_unfold)
        bindings.add("c-z")(lambda event: event.app.suspend_to_background())
        return bindings

    def _on_newline(self, event: KeyPressEvent) -> None:
        self._buffer.newline(copy_margin=False)

    def _on_enter(self, event: KeyPressEvent) -> None:
        buffer = self._buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None
            return
        front = self._front
        if front is not None and self._now() < self._settled_at:
            return
        if front is None and buffer.document.current_line_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
            return
        text = buffer.text
        self._armed_at = None
        if front is None:
            if not text.strip():
                return
            buffer.reset(append_to_history=True)
        else:
            buffer.reset()
        assert self._conversation is not None
        if front is None or not front.is_secret:
            self._conversation.transcript.own(text)
        event.app.create_background_task(self._conversation.send(text))

    def _on_interrupt(self, event: KeyPressEvent) -> None:
        """The first stops what works, or empties the line; the second leaves."""
        now = self._now()
        if self._armed_at is not None and now - self._armed_at < LEAVE_S:
            self.leave(130)
            return
        self._armed_at = now
        assert self._conversation is not None
        if self._status.active_lane is not None or self._status.queued:
            event.app.create_background_task(self._conversation.stop())
        else:
            self._buffer.reset()

    def _on_unfold(self, event: KeyPressEvent) -> None:
        assert self._conversation is not None
        if not self._conversation.transcript.unfold():
            self._conversation.transcript.note("nothing is folded")


def _modes() -> list[Any] | None:
    import termios

    try:
        return termios.tcgetattr(sys.stdin.fileno())
    except (termios.error, OSError, ValueError):
        return None  # no terminal: keys come from elsewhere
