"""The common part of `UpdatesV1` and `UpdatesV2`: keeps updates in order, and holds them until `open`.

A `core.audience.Reader` of one session, called on the engine's reader: it renders and sends, and never
waits. Until the client knows the session, events are held. All updates of a turn have been sent when
`push` returns from its `TurnDone`, so that the answer to the prompt follows them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

import msgspec

from laneway.base.engines import CODEX
from laneway.base.ids import new_id
from laneway.base.plain import label
from laneway.core.early_events import EarlyEvents
from laneway.core.model import (
    Activity,
    Diff,
    EngineGone,
    Event,
    FromSubagent,
    Notice,
    Other,
    Outlived,
    Output,
    Question,
    SettingsChanged,
    Text,
    Thought,
    ThreadKnown,
    Titled,
    TurnDone,
    Usage,
)
from laneway.core.ports import Clock
from laneway.doors.acp.client_channel import ClientChannel
from laneway.doors.acp.ids import tool_call_id
from laneway.doors.acp.updates.open_calls import Key, OpenCall, key_of
from laneway.doors.acp.updates.text_chunks import TextChunks
from laneway.doors.acp.updates.update_sink import UpdateListener
from laneway.rendering.outputs import PacedOutputs

Handlers: TypeAlias = Mapping[type[Event], Callable[[Any, Any], None]]


class UpdateBase(ABC):
    handlers: ClassVar[Handlers]
    """By kind of event, except for the three on the hot path."""

    def __init__(self, channel: ClientChannel, clock: Clock) -> None:
        self.lost = 0
        self._channel = channel
        self._clock = clock
        self._early: EarlyEvents[Event | dict[str, Any] | msgspec.Raw] | None = EarlyEvents()
        self._session_id = self._thread_id = self._cwd = ""
        self._engine = CODEX
        self._listener: UpdateListener
        self._chunks: TextChunks
        self._outputs: PacedOutputs
        self._open: dict[Key, OpenCall] = {}

    @abstractmethod
    def _make_outputs(self) -> PacedOutputs:
        """Make the buffer that paces the output of commands."""

    @abstractmethod
    def _end_all(self, why: str, thread_id: str | None = None) -> None:
        """End all tool calls that are still open, or those of one thread."""

    @abstractmethod
    def _activity(self, activity: Activity, thread_id: str = "") -> None:
        """Send an activity of a thread; none for the session's own."""

    @abstractmethod
    def _outlived(self, event: Outlived, thread_id: str = "") -> None:
        """Send the real end of a command that outlived its turn."""

    @abstractmethod
    def send_notice(self, level: str, title: str) -> None:
        """Send a notice of ours."""

    def open(
        self, session_id: str, thread_id: str, cwd: str, listener: UpdateListener, *, engine: str = CODEX
    ) -> None:
        """Send what was held, and everything from now on: the client knows the session's id.

        `engine` is the name of the engine that works.
        """
        self._engine = engine
        self._session_id, self._thread_id = session_id, thread_id
        self._cwd, self._listener = cwd, listener
        self._chunks = TextChunks(self._channel, session_id)
        self._outputs = self._make_outputs()
        early, self._early = self._early, None
        for item in early.take() if early is not None else ():
            if isinstance(item, Event):
                self.push(item)
            else:
                self.send(item)

    def push(self, event: Event) -> None:
        if self._early is not None:
            self.lost += not self._early.add(event)
            return
        kind = type(event)
        if kind is Text:
            self._chunks.add("agent_message_chunk", event.item_id, event.text)  # type: ignore[attr-defined]
        elif kind is Thought:
            self._chunks.add("agent_thought_chunk", event.item_id, event.text)  # type: ignore[attr-defined]
        elif kind is Output:
            self._outputs.add(event.item_id, event.turn_id, event.text)  # type: ignore[attr-defined]
        else:
            handler = self.handlers.get(kind)
            if handler is not None:
                self._chunks.flush()
                handler(self, event)

    def close(self) -> None:
        """End all open tool calls: the session is closed."""
        if self._early is None:
            self._end_all("The session was closed.")
            self._outputs.clear()
            self._chunks.close()

    def flush(self) -> None:
        """Send the text gathered so far, because something else follows."""
        if self._early is None:
            self._chunks.flush()

    def send(self, update: dict[str, Any] | msgspec.Raw) -> None:
        if self._early is not None:
            self.lost += not self._early.add(update)
            return
        self._chunks.flush()
        self._channel.update(self._session_id, update)

    def call_id_of(self, question: Question) -> str | None:
        """The tool call that a question is about, if it was announced to the client and still runs."""
        key = key_of(question, self._open)
        if key is None:
            return None
        return tool_call_id(key[0], self._open[key].activity.turn_id, key[1])

    def _new_message_id(self) -> str:
        """A new id for a message of ours. Unique over restarts: the client may have older ones."""
        return new_id("laneway")

    # ── events for the listener ────────────────────────────────────────────

    def _settings(self, event: SettingsChanged) -> None:
        self._listener.on_settings(event.settings)

    def _diff(self, event: Diff) -> None:
        self._listener.on_diff(event.diff)

    def _thread(self, event: ThreadKnown) -> None:
        self._thread_id = event.thread_id
        self._listener.on_thread(event.thread_id)

    def _gone(self, event: EngineGone) -> None:
        self._end_all(f"{self._engine} ended unexpectedly.")
        self._listener.on_gone()

    def _subagent(self, event: FromSubagent) -> None:
        """Activities of subagents are shown; their messages are for the parent thread."""
        if isinstance(event.inner, Activity):
            self._activity(event.inner, event.thread_id)
        elif isinstance(event.inner, Outlived):
            self._outlived(event.inner, event.thread_id)
        elif isinstance(event.inner, TurnDone):
            self._end_all("The subagent's turn is over.", event.thread_id)

    def _usage(self, usage: Usage) -> None:
        if usage.window:
            self.send({"sessionUpdate": "usage_update", "used": usage.last.total, "size": usage.window})

    def _title(self, event: Titled) -> None:
        if event.title:
            self.send({"sessionUpdate": "session_info_update", "title": label(event.title)})

    def _notice(self, event: Notice) -> None:
        if event.will_retry:
            self.send_notice("warning", f"Trying again: {event.message}")
        elif event.level != "error":  # an error ends the turn, and is told with its end
            self.send_notice(event.level, event.message)

    def _other(self, event: Other) -> None:
        if event.notice:
            self.send_notice("warning", event.notice)


COMMON_HANDLERS: Handlers = {
    SettingsChanged: UpdateBase._settings,
    Diff: UpdateBase._diff,
    ThreadKnown: UpdateBase._thread,
    EngineGone: UpdateBase._gone,
    FromSubagent: UpdateBase._subagent,
    Usage: UpdateBase._usage,
    Titled: UpdateBase._title,
    Notice: UpdateBase._notice,
    Other: UpdateBase._other,
}
"""The handlers that are the same in all versions."""
