"""The platform `terminal`: an interactive screen, plain lines in a dumb terminal, or lines in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from laneway.base.errors import UsageError
from laneway.doors.chat.platforms.terminal.line_chat import LineChat
from laneway.doors.chat.platforms.terminal.shown_conversation import NAME, ShownConversation
from laneway.doors.chat.ports import Chat
from laneway.terminal.style import Style, is_dumb


def is_interactive() -> bool:
    """Whether a person is at a terminal that can move its cursor: else lines are read and written."""
    return sys.stdin.isatty() and sys.stdout.isatty() and not is_dumb()


def check_streams() -> None:
    """Raises `UsageError` where there is nothing to read from or to write to. Called before files are opened:
    they would take the numbers of closed streams."""
    streams = {"input": sys.stdin, "output": sys.stdout, "error": sys.stderr}
    closed = [name for name, stream in streams.items() if stream is None]
    if closed:
        raise UsageError(f"Standard {' and '.join(closed)} is closed: a chat at a terminal needs it.")


class TerminalInterrupts(Protocol):
    """Signals of the process, as far as a terminal has a say in them."""

    def on_interrupt(self, handler: Callable[[], bool]) -> None:
        """Called with Ctrl-C; if it returns true, the process goes on."""
        ...

    def at_forced_exit(self, work: Callable[[], None]) -> None:
        """Called before the process ends at once."""
        ...


def welcome(default_lane: str, *, is_rehearsal: bool) -> list[str]:
    """What a person reads before the first message, a line each."""
    other = "/claude" if default_lane == "codex" else "/codex"
    lines = [f"Messages go to {default_lane}; /NAME TASK gives a task to another lane, such as {other}."]
    if is_rehearsal:
        lines.append("A rehearsal: scripted models answer, and nothing is kept. Try %help, or /codex %run ls")
    return [*lines, "/help lists the commands · Ctrl-D leaves"]


class TerminalPlatform:
    """A `ChatPlatform` on standard input and output."""

    name = NAME

    def __init__(
        self,
        cwd: Path,
        *,
        resume: str | None = None,
        is_rehearsal: bool = False,
        interrupts: TerminalInterrupts | None = None,
    ) -> None:
        self._cwd = cwd
        self._resume = resume
        self._is_rehearsal = is_rehearsal
        self._interrupts = interrupts

    async def run(self, chat: Chat) -> int:
        if is_interactive():
            return await self._interact(chat)
        lines = LineChat(chat, self._cwd)
        if self._interrupts is not None:
            self._interrupts.at_forced_exit(lines.restore)
            self._interrupts.on_interrupt(lines.on_interrupt)
        return await lines.run(self._resume)

    async def _interact(self, chat: Chat) -> int:
        # Not before a person needs them: they take a tenth of a second each.
        from prompt_toolkit.history import InMemoryHistory

        from laneway.doors.chat.platforms.terminal.completing import ChatCompleter
        from laneway.doors.chat.platforms.terminal.interactive import InteractiveScreen
        from laneway.doors.chat.platforms.terminal.typed_history import TypedHistory

        screen = InteractiveScreen(history=InMemoryHistory() if self._is_rehearsal else TypedHistory())
        conversation = ShownConversation(chat, screen, self._cwd, is_live=True)
        if self._interrupts is not None:
            self._interrupts.at_forced_exit(screen.restore)
        state = await conversation.open(self._resume)
        try:
            for line in welcome(state.status.default_lane, is_rehearsal=self._is_rehearsal):
                conversation.transcript.note(line)
            completer = ChatCompleter(lambda: chat.commands(conversation.conversation_id))
            code = await screen.run(conversation, completer)
            if not self._is_rehearsal and conversation.has_spoken:
                again = f"laneway chat --resume {conversation.conversation_id}"
                sys.stdout.write(Style(sys.stdout).dim(f"  {again}   continues this conversation") + "\n")
            return code
        finally:
            await conversation.close()
