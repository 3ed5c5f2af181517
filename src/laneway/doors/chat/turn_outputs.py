"""What a lane tells in one turn, as outputs: texts put together, activities, the plan, the diff, tokens.

Gathers also what other lanes will be told (`TurnDigest`), and which commands run. One for each turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePath

import msgspec
from msgspec.structs import replace

from laneway.base.plain import label
from laneway.core.model import (
    Activity,
    Compacted,
    Diff,
    Event,
    FromSubagent,
    Notice,
    Other,
    Outlived,
    Output,
    Plan,
    Text,
    Thought,
    Tokens,
    TurnDone,
    Usage,
)
from laneway.doors.chat.hand_back import TurnDigest
from laneway.doors.chat.outputs import (
    ActivityShown,
    AnyOutput,
    FileShown,
    OutputDelta,
    PlanShown,
    TextDelta,
    TextDone,
    Told,
)
from laneway.doors.chat.ports import PartialText
from laneway.lanes.contract import LaneFile

MAX_NOTICE_CHARS = 2000


class _WrittenText(msgspec.Struct, kw_only=True):
    part: str
    kind: str
    pieces: list[str] = []
    chars: int = 0


class TurnOutputs:
    def __init__(self, lane: str, ticket: str, task: str, digest: TurnDigest, began_at: float) -> None:
        self.lane = lane
        self.ticket = ticket
        self.task = task
        self.digest = digest
        self.began_at = began_at
        self.diff = ""
        self.tokens: Tokens | None = None
        self.window: int | None = None
        self.model = ""
        self.thread_tokens = 0
        """Of the lane's whole conversation."""
        self.running_commands: set[str] = set()
        self._written: dict[str, _WrittenText] = {}
        """By kind and item: texts that are being written."""
        self._parts = 0
        self._has_text = False

    @property
    def partial_texts(self) -> Iterator[PartialText]:
        for each in self._written.values():
            text = "".join(each.pieces)
            yield PartialText(lane=self.lane, ticket=self.ticket, part=each.part, text=text, kind=each.kind)

    def hear(self, event: Event) -> Iterable[AnyOutput]:
        self.digest.add(event)
        match event:
            case Text(item_id=item_id, text=text):
                self._has_text = True
                return self._write(f"text:{item_id}", "text", text)
            case Thought(item_id=item_id, text=text):
                return self._write(f"thought:{item_id}", "thought", text)
            case Output(item_id=item_id, text=text):
                return (OutputDelta(lane=self.lane, ticket=self.ticket, item_id=item_id, text=text),)
            case Activity():
                return (*self.close_texts(), self._show_activity(event))
            case FromSubagent(inner=Activity() as inner):
                return (self._show_activity(inner),)
            case Plan():
                return (PlanShown(lane=self.lane, ticket=self.ticket, plan=replace(event, frame=b"")),)
            case Diff(diff=diff):
                self.diff = diff
            case Usage():
                self._count(event)
            case LaneFile():
                return (*self.close_texts(), self._file(event))
            case _:
                return told_of(self.lane, event)
        return ()

    def close(self, done: TurnDone) -> Iterable[AnyOutput]:
        """The turn is over: what was being written is complete."""
        closed = self.close_texts()
        if done.text.strip() and not self._has_text:  # the lane told its words only with the end
            return (*closed, self._done(_WrittenText(part=self._part(), kind="text", pieces=[done.text])))
        return closed

    def close_texts(self) -> tuple[AnyOutput, ...]:
        closed = tuple(self._done(each) for each in self._written.values())
        self._written.clear()
        return closed

    def _write(self, key: str, kind: str, text: str) -> tuple[AnyOutput, ...]:
        closed: tuple[AnyOutput, ...] = ()
        written = self._written.get(key)
        if written is None:
            closed = self.close_texts()
            written = self._written[key] = _WrittenText(part=self._part(), kind=kind, pieces=[])
        delta = TextDelta(
            lane=self.lane,
            ticket=self.ticket,
            part=written.part,
            offset=written.chars,
            text=text,
            kind="thought" if kind == "thought" else "text",
        )
        written.pieces.append(text)
        written.chars += len(text)
        return (*closed, delta)

    def _part(self) -> str:
        self._parts += 1
        return f"{self.ticket}.{self._parts}"

    def _done(self, written: _WrittenText) -> TextDone:
        return TextDone(
            lane=self.lane,
            ticket=self.ticket,
            part=written.part,
            text="".join(written.pieces),
            kind="thought" if written.kind == "thought" else "text",
        )

    def _show_activity(self, activity: Activity) -> ActivityShown:
        if activity.kind == "command" and activity.status == "running":
            self.running_commands.add(activity.item_id)
        else:
            self.running_commands.discard(activity.item_id)
        return ActivityShown(lane=self.lane, ticket=self.ticket, activity=bare(activity))

    def _file(self, file: LaneFile) -> FileShown:
        return FileShown(
            lane=self.lane,
            path=file.path,
            name=PurePath(file.path).name,
            caption=file.caption,
            is_approved=file.is_approved,
        )

    def _count(self, usage: Usage) -> None:
        before = self.tokens or Tokens()
        self.tokens = Tokens(
            input=before.input + usage.last.input,
            cached_input=before.cached_input + usage.last.cached_input,
            output=before.output + usage.last.output,
            reasoning=before.reasoning + usage.last.reasoning,
            total=before.total + usage.last.total,
        )
        self.window = usage.window or self.window
        self.model = usage.model or self.model
        self.thread_tokens = usage.total.total


def bare(activity: Activity) -> Activity:
    """Without the engine's own records."""
    return replace(activity, frame=b"", item=None)


def told_of(lane: str, event: Event) -> tuple[AnyOutput, ...]:
    """What an engine says about itself, in a turn or between turns; nothing for most events."""
    match event:
        case Notice(level=level, message=message):
            return (Told(text=label(" ".join(message.split()), MAX_NOTICE_CHARS), level=level, lane=lane),)
        case Compacted():
            return (Told(text=f"{lane} has compacted its context.", lane=lane),)
        case Outlived(activity=activity):
            return (ActivityShown(lane=lane, ticket="", activity=bare(activity)),)
        case Other(notice=text) if text:
            return (Told(text=label(text, MAX_NOTICE_CHARS), lane=lane),)
        case _:
            return ()
