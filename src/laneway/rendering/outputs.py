"""What commands print, on its way to a client: paced while it comes, bounded when it is done.

`PacedOutputs` gathers the pieces of running commands and tells them a few times a second: every
character once where the client keeps a terminal, else the tail so far. Called on the engine's
reader: it never waits.
"""

from __future__ import annotations

from collections.abc import Callable

from laneway.core.ports import Clock

EVERY_S = 0.1
"""Between two tellings of one command: faster than an eye follows, slow enough for an editor."""
LATEST_S = 1.0
"""A tail is told by then, however little of it is new."""
TAIL_CHARS = 4096
"""Of a running command: two screens. The whole comes when it is done."""
NEW_SHARE = 8
"""A tail of which less than one part in so many is new can wait: what is resent stays linear."""
MAX_PIECE_CHARS = 64 * 1024
"""A piece this long is told at once: gathering more would only use memory."""
MAX_OUTPUT_CHARS = 4 * 1024 * 1024
"""Of one finished command as text. At worst six bytes each in JSON: half of the 50 MB line that
the official Python client reads."""


def shortened(text: str, max_chars: int) -> str:
    """All of it, or its head and its tail and a sentence about the middle. The sentence comes on top."""
    if len(text) <= max_chars:
        return text
    head = text[: max_chars // 2]
    tail = text[len(text) - (max_chars - len(head)) :]
    return f"{head}\n[{len(text) - max_chars:,} of {len(text):,} characters are left out here.]\n{tail}"


class PacedOutputs:
    """The running commands of one session. `tell` gets the item, its turn and the text."""

    def __init__(
        self,
        clock: Clock,
        tell: Callable[[str, str, str], None],
        *,
        whole: bool,
        is_behind: Callable[[], bool] = lambda: False,
    ) -> None:
        self._clock = clock
        self._tell = tell
        self._whole = whole
        self._is_behind = is_behind
        self._runs: dict[str, _OutputRun] = {}

    def add(self, item_id: str, turn_id: str, text: str) -> None:
        if not text:
            return
        run = self._runs.get(item_id)
        if run is None:
            run = self._runs[item_id] = _OutputRun(turn_id)
        run.add(text, keep=None if self._whole else TAIL_CHARS)
        if self._whole and run.kept_chars >= MAX_PIECE_CHARS:
            self._say(item_id, run)
        elif run.cancel is None:
            self._plan(item_id, run, at=run.told_at_s + EVERY_S)

    def flush(self, item_id: str) -> None:
        """Tell now what is still to be told of this command."""
        run = self._runs.get(item_id)
        if run is not None and run.new_chars:
            self._say(item_id, run)

    def drop(self, item_id: str) -> None:
        """Forget a command; nothing more is told of it."""
        run = self._runs.pop(item_id, None)
        if run is not None:
            run.stop()

    def clear(self) -> None:
        for item_id in list(self._runs):
            self.drop(item_id)

    def _plan(self, item_id: str, run: _OutputRun, at: float) -> None:
        delay_s = at - self._clock.now()
        if delay_s <= 0:
            self._due(item_id, run)
        else:
            run.cancel = self._clock.after(delay_s, lambda: self._due(item_id, run))

    def _due(self, item_id: str, run: _OutputRun) -> None:
        run.cancel = None
        now = self._clock.now()
        can_wait = run.new_chars * NEW_SHARE < run.kept_chars and now < run.told_at_s + LATEST_S
        if not self._whole and (can_wait or self._is_behind()):
            self._plan(item_id, run, at=now + EVERY_S)
        else:
            self._say(item_id, run)

    def _say(self, item_id: str, run: _OutputRun) -> None:
        run.stop()
        run.told_at_s = self._clock.now()
        self._tell(item_id, run.turn_id, run.take() if self._whole else run.tail())


class _OutputRun:
    """One running command: what is kept of its output, and when it was last told."""

    def __init__(self, turn_id: str) -> None:
        self.turn_id = turn_id
        self.told_at_s = float("-inf")
        self.cancel: Callable[[], None] | None = None
        self.kept_chars = 0
        self.new_chars = 0
        self._pieces: list[str] = []
        self._total_chars = 0

    def add(self, text: str, keep: int | None) -> None:
        self._pieces.append(text)
        self._total_chars += len(text)
        self.kept_chars += len(text)
        self.new_chars += len(text)
        if keep is not None and self.kept_chars > 2 * keep:
            self._keep("".join(self._pieces)[-keep:])

    def take(self) -> str:
        """What is kept, which is forgotten by that."""
        text = "".join(self._pieces)
        self._pieces.clear()
        self.kept_chars = self.new_chars = 0
        return text

    def tail(self) -> str:
        """The end of the output so far, from the start of a line where one is near."""
        text = "".join(self._pieces)[-TAIL_CHARS:]
        self._keep(text)
        self.new_chars = 0
        if self._total_chars > len(text):
            text = text[text.find("\n", 0, TAIL_CHARS // 2) + 1 :]
            return f"[{self._total_chars - len(text):,} characters before this come at the end.]\n{text}"
        return text

    def stop(self) -> None:
        if self.cancel is not None:
            self.cancel()
            self.cancel = None

    def _keep(self, text: str) -> None:
        self._pieces = [text]
        self.kept_chars = len(text)
