"""The output of `laneway ask`: a turn drawn on a terminal, or one JSON object per event and line."""

from __future__ import annotations

import asyncio
import logging
import sys
import time

import msgspec

from laneway.base.engines import CODEX
from laneway.core.model import Event, public
from laneway.core.session import Session
from laneway.terminal import markdown
from laneway.terminal.answer import PlainAnswer
from laneway.terminal.screen import Detail, Screen
from laneway.terminal.status import StatusLine
from laneway.terminal.style import Style

log = logging.getLogger(__name__)


class TerminalView:
    """Shows a turn to a person: a `Canvas` with a status line, which is removed on exit."""

    def __init__(self, *, is_full: bool, with_thoughts: bool, engine: str = CODEX) -> None:
        """`engine` is the name of the engine that will work."""
        self._engine = engine
        is_rendered = markdown.can_render(sys.stdout)
        self._status = StatusLine(sys.stderr)
        self._screen = Screen(
            answer=markdown.MarkdownAnswer(sys.stdout) if is_rendered else None,
            status=self._status,
            detail=Detail(is_full=is_full, with_thoughts=with_thoughts, hint="--full"),
        )
        self._loading: asyncio.Future[None] | None = None
        self._began = time.monotonic()
        if is_rendered:
            # Loaded while Codex starts, and never when the answer goes to a pipe.
            self._loading = asyncio.ensure_future(asyncio.to_thread(markdown.load))

    def __enter__(self) -> TerminalView:
        self._status.start(f"Starting {self._engine}", lambda: self._screen.is_free)
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop drawing on the screen. Safe to call again."""
        self._status.close()

    def begin(self, session: Session) -> None:
        self._screen.engine, self._screen.cwd = session.engine.name, str(session.spec.cwd)
        self._status.update("Thinking")

    async def wait_drawable(self) -> None:
        """Wait until text can be drawn."""
        loading, self._loading = self._loading, None
        if loading is not None:
            try:
                await loading
            except ImportError as problem:
                log.warning("Markdown is not rendered: %s", problem)
                self._screen.answer_with(PlainAnswer(sys.stdout))

    def on_event(self, event: Event) -> None:
        pass

    def show(self, event: Event) -> None:
        self._screen.show(event)

    def pause(self) -> None:
        self._screen.pause()

    def resume(self) -> None:
        self._screen.resume()

    def say(self, text: str) -> None:
        self._screen.say(text)

    def note_end(self, summary: str, continue_hint: str | None) -> None:
        """Print the last lines: time and tokens, and how to continue the thread."""
        style = Style(sys.stderr)
        self._screen.note(*(style.dim(line) for line in (summary, continue_hint) if line is not None))

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def tokens(self) -> int:
        return self._screen.tokens


class JsonLines:
    """Prints events for a program: each one at once, even while a person is asked something."""

    seconds = 0.0
    tokens = 0

    def __enter__(self) -> JsonLines:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def close(self) -> None:
        pass

    def begin(self, session: Session) -> None:
        self._print({"event": "session", "thread_id": session.thread_id, "agent_id": session.agent_id})

    async def wait_drawable(self) -> None:
        pass

    def on_event(self, event: Event) -> None:
        self._print(public(event))

    def show(self, event: Event) -> None:
        pass  # printed as it came

    def pause(self) -> None:
        pass

    def resume(self) -> None:
        pass

    def say(self, text: str) -> None:
        print(f"laneway: {text}", file=sys.stderr)

    def note_end(self, summary: str, continue_hint: str | None) -> None:
        pass  # the events say both

    def _print(self, data: dict[str, object]) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(data) + b"\n")
        sys.stdout.buffer.flush()
