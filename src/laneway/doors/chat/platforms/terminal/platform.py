"""The platform `terminal`: an interactive screen, plain lines in a dumb terminal, or lines in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from laneway.doors.chat.platforms.terminal.line_chat import LineChat
from laneway.doors.chat.platforms.terminal.shown_conversation import NAME, ShownConversation
from laneway.doors.chat.ports import Chat
from laneway.terminal.style import Style, is_dumb


def is_interactive() -> bool:
    """Whether a person is at a terminal that can move its cursor: else lines are read and written."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty() and not is_dumb()


class TerminalInterrupts(Protocol):
    """Signals of the process, as far as a terminal has a say in them."""

    def on_interrupt(self, handler: Callable[[], bool]) -> None:
        """Called with Ctrl-C; if it returns true, the process goes on."""
        ...

    def at_forced_exit(self, work: Callable[[], None]) -> None:
        """Called before the process ends at once."""
        ...


class TerminalPlatform:
    """A `ChatPlatform` on standard input and output."""

    name = NAME

    def __init__(
        self,
        cwd: Path,
        *,
        resume: str | None = None,
        keeps_history: bool = True,
        interrupts: TerminalInterrupts | None = None,
    ) -> None:
        self._cwd = cwd
        self._resume = resume
        self._keeps_history = keeps_history
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

        screen = InteractiveScreen(history=TypedHistory() if self._keeps_history else InMemoryHistory())
        conversation = ShownConversation(chat, screen, self._cwd, is_live=True)
        if self._interrupts is not None:
            self._interrupts.at_forced_exit(screen.restore)
        await conversation.open(self._resume)
        try:
            conversation.transcript.note("/help lists the commands · Ctrl-D leaves")
            completer = ChatCompleter(lambda: chat.commands(conversation.conversation_id))
            code = await screen.run(conversation, completer)
            if self._keeps_history and conversation.has_spoken:
                again = f"laneway chat --resume {conversation.conversation_id}"
                sys.stdout.write(Style(sys.stdout).dim(f"  {again}   goes on with this conversation") + "\n")
            return code
        finally:
            await conversation.close()
