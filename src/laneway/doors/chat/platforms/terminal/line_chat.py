"""A conversation in lines: each line that is read is a message, what lanes write goes to standard output.

For a pipe, and for a person at a terminal that cannot move its cursor. Everything that is no answer (calls,
banners, questions, receipts) goes to standard error. In a pipe the next line is read when no lane works,
or a question waits for it; a person may type at any time. At the end of input nobody answers any more.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any, TextIO

from laneway.base.errors import LanewayError, UsageError
from laneway.core.background import TaskSet
from laneway.doors.chat.platforms.terminal.dialog import QuestionDialog
from laneway.doors.chat.platforms.terminal.drawing import RowCanvas
from laneway.doors.chat.platforms.terminal.shown_conversation import ShownConversation
from laneway.doors.chat.platforms.terminal.streamed import StreamedPlain, Writer
from laneway.doors.chat.platforms.terminal.typed_lines import LineTooLong, TypedLines
from laneway.doors.chat.ports import Chat
from laneway.terminal.foreign import encodable
from laneway.terminal.style import Style, size, width

PROMPT = "> "
SETTLE_S = 0.1
"""From what was shown last to the prompt below it: a message is soon followed by the start of its turn."""
FAILED = 1


class LineChat:
    """A `TerminalScreen`. `await run(...)` until the end of input."""

    def __init__(
        self,
        chat: Chat,
        cwd: Path,
        *,
        lines: TypedLines | None = None,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
        is_typed: bool | None = None,
        settle_s: float = SETTLE_S,
    ) -> None:
        """`is_typed`: whether a person types the lines."""
        self._chat = chat
        self._lines = lines or TypedLines()
        self._out, self._side = stdout or sys.stdout, stderr or sys.stderr
        self._is_typed = sys.stdin.isatty() if is_typed is None else is_typed
        self._settle_s = settle_s
        self._style = Style(self._side)
        self._code: int | None = None
        self._broken = asyncio.Event()
        self._left = asyncio.Event()
        self._tasks = TaskSet()
        self._modes: list[Any] | None = None
        """The terminal's, while what is typed is not echoed."""
        self._interrupts = 0
        self._is_reading = False
        self._is_prompted = False
        """Whether the prompt is the last thing on the screen."""
        self._prompting: asyncio.TimerHandle | None = None
        self.conversation = ShownConversation(chat, self, cwd, is_live=False)
        self.conversation.on_front = self._on_front

    # ── paper ──────────────────────────────────────────────────────────────

    @property
    def canvas(self) -> RowCanvas:
        return RowCanvas(self._style, width(self._side))

    @property
    def max_question_rows(self) -> int:
        """All of a question is written: what scrolls away can be read again."""
        return sys.maxsize if not self._is_typed else size(self._side)[1]

    def rows(self, *rows: str, has_gap: bool = False) -> None:
        self._write(self._side, "".join(f"{row}\n" for row in rows))

    def writer(self) -> Writer:
        return StreamedPlain(self._write_out, is_terminal=self._out.isatty())

    def answer(self, text: str) -> None:
        writer = self.writer()
        writer.feed(text)
        writer.end()

    def changed(self) -> None:
        """The prompt stands after what was shown, once that has settled; not below a lane's work."""
        if self._is_reading and self._prompting is None and not self._is_prompted:
            self._prompting = asyncio.get_running_loop().call_later(self._settle_s, self._prompt)

    def _prompt(self) -> None:
        self._prompting = None
        conversation = self.conversation
        is_idle = conversation.status.active_lane is None
        if self._is_reading and (is_idle or conversation.front is not None):
            self._write(self._side, PROMPT)
            self._is_prompted = True

    def leave(self, code: int) -> None:
        self._code = code
        self._left.set()

    def _write_out(self, text: str) -> None:
        self._write(self._out, text)

    def _write(self, stream: TextIO, text: str) -> None:
        if self._is_prompted:  # what is shown begins a line of its own, whatever was typed so far
            self._is_prompted = False
            text = f"\n{text}" if text else text
        try:
            stream.write(encodable(text, stream))
            stream.flush()
        except OSError:  # the reader has gone: nobody can see what else happens
            self._broken.set()

    # ── its life ───────────────────────────────────────────────────────────

    async def run(self, resume: str | None) -> int:
        await self.conversation.open(resume)
        reading = asyncio.create_task(self._read_all(), name="lines")
        others = [
            asyncio.create_task(event.wait(), name=name)
            for name, event in (("left", self._left), ("broken", self._broken))
        ]
        try:
            await asyncio.wait([reading, *others], return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                reading.result()
            if self._broken.is_set():
                return FAILED
            return FAILED if self.conversation.has_failed else self._code or 0
        finally:
            for task in (reading, *others):
                task.cancel()
            await asyncio.gather(reading, *others, return_exceptions=True)
            await self._tasks.cancel()
            self.restore()
            await self.conversation.close()

    async def _read_all(self) -> None:
        conversation = self.conversation
        while True:
            if not self._is_typed:
                await self._chat.wait_ready(conversation.conversation_id)
            try:
                line = await self._read_line()
            except LineTooLong:
                raise UsageError("A line is too long: no engine takes that much.") from None
            if line is None:
                break
            if line.strip() or conversation.front is not None:
                await self._send(line)
            if self._left.is_set():
                return
        await self._chat.decline_questions(conversation.conversation_id)
        while await self._chat.wait_ready(conversation.conversation_id):
            await self._chat.decline_questions(conversation.conversation_id)

    async def _send(self, line: str) -> None:
        try:
            await self.conversation.typed(line)
        except LanewayError as problem:
            self.conversation.has_failed = True
            self.conversation.transcript.note(str(problem))

    async def _read_line(self) -> str | None:
        if not self._is_typed:
            return await self._lines.line()
        self._on_front(self.conversation.front)
        self._is_reading = True
        self.changed()
        try:
            line = await self._lines.line()
        finally:
            self._is_reading = self._is_prompted = False
            if self._prompting is not None:
                self._prompting.cancel()
                self._prompting = None
        if self._modes is not None:
            self._write(self._side, "\n")  # the one that was typed is not seen
        return line

    # ── a person's keys ────────────────────────────────────────────────────

    def on_interrupt(self) -> bool:
        """Ctrl-C of a person: the first stops what works. Whether that was it; else the process ends."""
        status = self.conversation.status
        is_stop = self._is_typed and not self._interrupts and status.active_lane is not None
        self._interrupts += 1
        if is_stop:
            self._is_prompted = False
            self._write(self._side, "\n")
            self._tasks.spawn(self._stop(), "a stop")
        return is_stop

    async def _stop(self) -> None:
        await self.conversation.send("/stop")
        await self._chat.wait_ready(self.conversation.conversation_id)
        self._interrupts = 0

    def _on_front(self, dialog: QuestionDialog | None) -> None:
        """What is typed next is not echoed while a secret is asked for."""
        is_secret = dialog is not None and dialog.is_secret
        if not self._is_typed or is_secret == (self._modes is not None):
            return
        if not is_secret:
            self.restore()
            return
        import termios

        try:
            self._modes = termios.tcgetattr(0)
            hidden = termios.tcgetattr(0)
            hidden[3] &= ~termios.ECHO
            termios.tcsetattr(0, termios.TCSAFLUSH, hidden)
        except termios.error:
            self._modes = None  # hung up: the next read says so

    def restore(self) -> None:
        """Echo again; also called before the process ends at once."""
        modes, self._modes = self._modes, None
        if modes is not None:
            import termios

            try:
                termios.tcsetattr(0, termios.TCSADRAIN, modes)
            except termios.error:
                pass
