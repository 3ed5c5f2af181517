"""What commands print: every live piece is kept until the command's end tells the output whole.

Owns the reckoning between the pieces and Codex's aggregate: what is complete, and what of it nobody
was told yet. A command may outlive its turn; it is kept then, with what it prints meanwhile, until
Codex tells its end. Emits nothing and knows no frames; only `Translator` has one.
"""

from __future__ import annotations

import re

import msgspec

from laneway.core.model import Activity, Outlived

_OMITTED = re.compile(r"\n\.\.\. (\d+) bytes omitted \.\.\.\n")
"""How Codex marks the middle that it leaves out of an aggregated output of more than a MiB."""
MAX_LIVE_CHARS = 64 * 1024 * 1024
"""Of live output, kept for the reckoning: of the running turn, and as much of what earlier turns left."""
MAX_LEFT = 64
"""Commands that turns have left running. Codex itself keeps no more processes for a thread (0.163)."""


class _Left:
    """A command that runs on behind its turn."""

    __slots__ = ("chars", "since", "told")

    def __init__(self, told: list[str]) -> None:
        self.told = told
        self.since: list[str] = []
        """What it printed behind its turn, which nobody was told."""
        self.chars = sum(map(len, told))


class CommandOutputs:
    """Of one thread's commands."""

    def __init__(self) -> None:
        self._live: dict[str, list[str]] = {}
        self._live_chars = 0
        self._left: dict[tuple[str, str], _Left] = {}
        """By turn and item, the oldest first."""
        self._left_chars = 0

    # ── in the running turn ────────────────────────────────────────────────

    def add(self, item_id: str, text: str) -> None:
        """A piece that is told as it comes."""
        if self._live_chars < MAX_LIVE_CHARS:
            self._live_chars += len(text)
            self._live.setdefault(item_id, []).append(text)

    def end(self, ended: Activity) -> Activity:
        """The end of an activity, with its complete output and what of it is late."""
        live = self._live.pop(ended.item_id, None)
        if live is None and ended.kind != "command":
            return ended
        if live is None:
            return msgspec.structs.replace(ended, late_output=ended.output or "")
        complete, gaps, rest = reconcile(live, ended.output)
        return msgspec.structs.replace(ended, output=complete, late_output=gaps + rest)

    def leave(self, left: Activity) -> Activity:
        """The turn ends before this does. A command that runs on is kept: Codex tells its end yet."""
        if left.kind == "command" and left.status == "detached":
            run = _Left(self._live.get(left.item_id, []))
            self._left[left.turn_id, left.item_id] = run
            self._left_chars += run.chars
            while len(self._left) > MAX_LEFT or self._left_chars > MAX_LIVE_CHARS:
                self._forget(next(iter(self._left)))
        return self.end(left)

    def end_turn(self) -> None:
        self._live.clear()
        self._live_chars = 0

    # ── behind its turn ────────────────────────────────────────────────────

    def add_late(self, turn_id: str, item_id: str, text: str) -> None:
        """A piece of a command that was left: told with its end, for Codex's aggregate may lack it."""
        run = self._left.get((turn_id, item_id))
        if run is not None and self._left_chars < MAX_LIVE_CHARS:
            run.since.append(text)
            run.chars += len(text)
            self._left_chars += len(text)

    def has_left(self, turn_id: str, item_id: str) -> bool:
        return (turn_id, item_id) in self._left

    def end_late(self, ended: Activity) -> Outlived:
        """The end of a command that was left (`has_left`)."""
        run = self._forget((ended.turn_id, ended.item_id))
        complete, _, _ = reconcile([*run.told, *run.since], ended.output)
        _, gaps, rest = reconcile(run.told, complete)
        told = msgspec.structs.replace(ended, output=complete or ended.output, late_output=gaps + rest)
        return Outlived(activity=told, rest=rest)

    def _forget(self, key: tuple[str, str]) -> _Left:
        run = self._left.pop(key)
        self._left_chars -= run.chars
        return run


def reconcile(live: list[str], aggregated: str | None) -> tuple[str, str, str]:
    """Return the complete output, and what of it the live pieces did not carry: the gaps, and the rest.

    Codex may lose live pieces (the first one, most often) and may shorten the aggregate of a
    very long output. Each live piece is found in the aggregate in order; what is before and between
    them are gaps, what is behind the last one is the rest. Behind the first piece that is not there,
    the aggregate has been cut and the stream rules.
    """
    streamed = "".join(live)
    if not aggregated or aggregated == streamed:
        return streamed, "", ""
    if not any(piece in aggregated for piece in live):
        return aggregated, "", aggregated if not streamed else ""
    whole: list[str] = []
    gaps: list[str] = []
    at = 0
    for number, piece in enumerate(live):
        found = aggregated.find(piece, at)
        if found < 0:
            head = _head_of(aggregated, streamed) if number == 0 else ""
            return "".join((head, *whole, *live[number:])), "".join((head, *gaps)), ""
        gaps.append(aggregated[at:found])
        whole += (aggregated[at:found], piece)
        at = found + len(piece)
    return aggregated, "".join(gaps), aggregated[at:]


def _head_of(aggregated: str, streamed: str) -> str:
    """What comes before a stream that began within what a shortened aggregate leaves out."""
    cut = _OMITTED.search(aggregated)
    if cut is None:
        return ""
    head, tail = aggregated[: cut.start()], aggregated[cut.end() :]
    missing = len(tail.encode()) + int(cut[1]) - len(streamed.encode())
    if missing >= 0:
        return f"{head}\n... {missing} bytes omitted ...\n" if missing else head
    return head.encode()[:missing].decode(errors="replace")  # the stream has the end of the head, too
