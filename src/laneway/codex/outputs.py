"""Output of running commands: matches the live deltas with the complete output at the command's end.

Keeps all deltas of a command and compares them with Codex's aggregated output: what is complete, and
which parts no delta contained. A command may outlive its turn (it is *detached*); then it is kept, with
what it prints meanwhile, until Codex reports its end. Emits no events and knows no frames. Only
`Translator` makes one.
"""

from __future__ import annotations

import re

import msgspec

from laneway.core.model import Activity, Outlived

_OMITTED = re.compile(r"\n\.\.\. (\d+) bytes omitted \.\.\.\n")
"""Codex's mark for the middle that it leaves out of an aggregated output of more than a MiB."""
MAX_LIVE_CHARS = 64 * 1024 * 1024
"""Of live output that is kept: for the running turn, and as much for detached commands."""
MAX_DETACHED = 64
"""Detached commands. Codex itself keeps no more processes for a thread (0.163)."""


class _DetachedCommand:
    """A command that still runs after its turn."""

    __slots__ = ("chars", "emitted", "printed_since")

    def __init__(self, emitted: list[str]) -> None:
        self.emitted = emitted
        self.printed_since: list[str] = []
        """What it printed after its turn, which no event contained."""
        self.chars = sum(map(len, emitted))


class CommandOutputs:
    """The output of one thread's commands."""

    def __init__(self) -> None:
        self._live: dict[str, list[str]] = {}
        self._live_chars = 0
        self._detached: dict[tuple[str, str], _DetachedCommand] = {}
        """By turn and item, the oldest first."""
        self._detached_chars = 0

    # ── in the running turn ────────────────────────────────────────────────

    def add(self, item_id: str, text: str) -> None:
        """A delta, which is also emitted as an event."""
        if self._live_chars < MAX_LIVE_CHARS:
            self._live_chars += len(text)
            self._live.setdefault(item_id, []).append(text)

    def end(self, ended: Activity) -> Activity:
        """The end of an activity, with its complete output and the parts that no delta contained."""
        live = self._live.pop(ended.item_id, None)
        if live is None and ended.kind != "command":
            return ended
        if live is None:
            return msgspec.structs.replace(ended, late_output=ended.output or "")
        complete, gaps, rest = reconcile(live, ended.output)
        return msgspec.structs.replace(ended, output=complete, late_output=gaps + rest)

    def detach(self, activity: Activity) -> Activity:
        """The turn ends before this activity. A command that still runs is kept until its own end."""
        if activity.kind == "command" and activity.status == "detached":
            command = _DetachedCommand(self._live.get(activity.item_id, []))
            self._detached[activity.turn_id, activity.item_id] = command
            self._detached_chars += command.chars
            while len(self._detached) > MAX_DETACHED or self._detached_chars > MAX_LIVE_CHARS:
                self._forget(next(iter(self._detached)))
        return self.end(activity)

    def end_turn(self) -> None:
        self._live.clear()
        self._live_chars = 0

    # ── after the turn ─────────────────────────────────────────────────────

    def add_detached(self, turn_id: str, item_id: str, text: str) -> None:
        """A delta of a detached command, kept for its end because Codex's aggregate may lack it."""
        command = self._detached.get((turn_id, item_id))
        if command is not None and self._detached_chars < MAX_LIVE_CHARS:
            command.printed_since.append(text)
            command.chars += len(text)
            self._detached_chars += len(text)

    def is_detached(self, turn_id: str, item_id: str) -> bool:
        return (turn_id, item_id) in self._detached

    def end_detached(self, ended: Activity) -> Outlived:
        """The end of a detached command (`is_detached`)."""
        command = self._forget((ended.turn_id, ended.item_id))
        complete, _, _ = reconcile([*command.emitted, *command.printed_since], ended.output)
        _, gaps, rest = reconcile(command.emitted, complete)
        activity = msgspec.structs.replace(ended, output=complete or ended.output, late_output=gaps + rest)
        return Outlived(activity=activity, rest=rest)

    def _forget(self, key: tuple[str, str]) -> _DetachedCommand:
        command = self._detached.pop(key)
        self._detached_chars -= command.chars
        return command


def reconcile(live: list[str], aggregated: str | None) -> tuple[str, str, str]:
    """Return the complete output, and the parts that no live delta contained: the gaps, and the rest.

    Codex may lose live deltas (most often the first) and may shorten the aggregate of a very long
    output. The deltas are searched for in the aggregate, in order; the text before and between them
    are the gaps, the text after the last one is the rest. From the first delta that is not found on,
    the aggregate was shortened, and the deltas are used. If none is found, both are kept, the deltas first:
    nothing tells where they belong.
    """
    streamed = "".join(live)
    if not aggregated or aggregated == streamed:
        return streamed, "", ""
    if not any(delta in aggregated for delta in live) and not _reaches_end(aggregated, streamed):
        return streamed + aggregated, "", aggregated
    complete: list[str] = []
    gaps: list[str] = []
    position = 0
    for index, delta in enumerate(live):
        start = aggregated.find(delta, position)
        if start < 0:
            head = _head_of(aggregated, streamed) if index == 0 else ""
            return "".join((head, *complete, *live[index:])), "".join((head, *gaps)), ""
        gaps.append(aggregated[position:start])
        complete += (aggregated[position:start], delta)
        position = start + len(delta)
    return aggregated, "".join(gaps), aggregated[position:]


def _reaches_end(aggregated: str, streamed: str) -> bool:
    """Whether the deltas go on to the end of a shortened aggregate, each too long to be found in it."""
    cut = _OMITTED.search(aggregated)
    return cut is not None and streamed.endswith(aggregated[cut.end() :])


def _head_of(aggregated: str, streamed: str) -> str:
    """The text before the deltas, if they begin inside the part that a shortened aggregate leaves out."""
    cut = _OMITTED.search(aggregated)
    if cut is None:
        return ""
    head, tail = aggregated[: cut.start()], aggregated[cut.end() :]
    missing = len(tail.encode()) + int(cut[1]) - len(streamed.encode())
    if missing >= 0:
        return f"{head}\n... {missing} bytes omitted ...\n" if missing else head
    return head.encode()[:missing].decode(errors="replace")  # the deltas contain the end of the head, too
