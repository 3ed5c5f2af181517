"""Output of commands for a client: rate-limited while a command runs, shortened when it is done.

`PacedOutputs` collects the pieces of running commands and sends them a few times a second: every
character once where the client has a terminal, else the tail so far. Called on the engine's
reader, so it never blocks.
"""

from __future__ import annotations

from collections.abc import Callable

from laneway.core.ports import Clock

INTERVAL_S = 0.1
"""Seconds between two updates of one command: faster than an eye follows, slow enough for an editor."""
MAX_DELAY_S = 1.0
"""Seconds after which a tail is sent, however little of it is new."""
TAIL_CHARS = 4096
"""Of a running command: two screens. The full output comes when it is done."""
NEW_SHARE = 8
"""A tail waits while less than one part in this many is new, so that the resent bytes stay linear."""
MAX_PIECE_CHARS = 64 * 1024
"""A piece of this length is sent at once: collecting more would only use memory."""
MAX_OUTPUT_CHARS = 4 * 1024 * 1024
"""Of one finished command as text. At worst six bytes each in JSON: half of the 50 MB line that
the official Python client reads."""


def shortened(text: str, max_chars: int) -> str:
    """The text, or its head and tail with a note on what is left out between; the note is not counted."""
    if len(text) <= max_chars:
        return text
    head = text[: max_chars // 2]
    tail = text[len(text) - (max_chars - len(head)) :]
    return f"{head}\n[{len(text) - max_chars:,} of {len(text):,} characters are left out here.]\n{tail}"


class PacedOutputs:
    """Output of the running commands of one session. `send` gets the item's id, its turn's id and the text.

    `sends_all`: every character once; otherwise the tail so far, each time.
    """

    def __init__(
        self,
        clock: Clock,
        send: Callable[[str, str, str], None],
        *,
        sends_all: bool,
        is_behind: Callable[[], bool] = lambda: False,
    ) -> None:
        self._clock = clock
        self._send = send
        self._sends_all = sends_all
        self._is_behind = is_behind
        self._runs: dict[str, _OutputRun] = {}

    def add(self, item_id: str, turn_id: str, text: str) -> None:
        if not text:
            return
        run = self._runs.get(item_id)
        if run is None:
            run = self._runs[item_id] = _OutputRun(turn_id)
        run.add(text, keep=None if self._sends_all else TAIL_CHARS)
        if self._sends_all and run.buffered_chars >= MAX_PIECE_CHARS:
            self._flush(item_id, run)
        elif run.cancel is None:
            self._schedule(item_id, run, at=run.sent_at_s + INTERVAL_S)

    def flush(self, item_id: str) -> None:
        """Send now what has not been sent of this command."""
        run = self._runs.get(item_id)
        if run is not None and run.new_chars:
            self._flush(item_id, run)

    def drop(self, item_id: str) -> None:
        """Forget a command; nothing more is sent of it."""
        run = self._runs.pop(item_id, None)
        if run is not None:
            run.stop()

    def clear(self) -> None:
        for item_id in list(self._runs):
            self.drop(item_id)

    def _schedule(self, item_id: str, run: _OutputRun, at: float) -> None:
        delay_s = at - self._clock.now()
        if delay_s <= 0:
            self._on_timer(item_id, run)
        else:
            run.cancel = self._clock.after(delay_s, lambda: self._on_timer(item_id, run))

    def _on_timer(self, item_id: str, run: _OutputRun) -> None:
        run.cancel = None
        now = self._clock.now()
        can_wait = run.new_chars * NEW_SHARE < run.buffered_chars and now < run.sent_at_s + MAX_DELAY_S
        if not self._sends_all and (can_wait or self._is_behind()):
            self._schedule(item_id, run, at=now + INTERVAL_S)
        else:
            self._flush(item_id, run)

    def _flush(self, item_id: str, run: _OutputRun) -> None:
        run.stop()
        run.sent_at_s = self._clock.now()
        self._send(item_id, run.turn_id, run.take() if self._sends_all else run.tail())


class _OutputRun:
    """One running command: the buffered part of its output, and when it was last sent."""

    def __init__(self, turn_id: str) -> None:
        self.turn_id = turn_id
        self.sent_at_s = float("-inf")
        self.cancel: Callable[[], None] | None = None
        self.buffered_chars = 0
        self.new_chars = 0
        self._pieces: list[str] = []
        self._total_chars = 0

    def add(self, text: str, keep: int | None) -> None:
        self._pieces.append(text)
        self._total_chars += len(text)
        self.buffered_chars += len(text)
        self.new_chars += len(text)
        if keep is not None and self.buffered_chars > 2 * keep:
            self._set_buffer("".join(self._pieces)[-keep:])

    def take(self) -> str:
        """Remove and return the buffered text."""
        text = "".join(self._pieces)
        self._pieces.clear()
        self.buffered_chars = self.new_chars = 0
        return text

    def tail(self) -> str:
        """The end of the output so far, from the start of a line where one is near."""
        text = "".join(self._pieces)[-TAIL_CHARS:]
        self._set_buffer(text)
        self.new_chars = 0
        if self._total_chars > len(text):
            text = text[text.find("\n", 0, TAIL_CHARS // 2) + 1 :]
            return f"[{self._total_chars - len(text):,} characters before this come at the end.]\n{text}"
        return text

    def stop(self) -> None:
        if self.cancel is not None:
            self.cancel()
            self.cancel = None

    def _set_buffer(self, text: str) -> None:
        self._pieces = [text]
        self.buffered_chars = len(text)
