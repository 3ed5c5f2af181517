"""What the narrators of all protocol versions have in common: the order of things, and holding back.

A session's reader (`core.audience.Reader`), called on the engine's reader: it renders and posts,
and waits for nobody. Until its client knows the session, everything is held. Everything of a
turn has been said when its `TurnDone` has been pushed, so that the answer to the prompt comes behind it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

import msgspec

from laneway.base.ids import new_id
from laneway.core.model import (
    Diff,
    EngineGone,
    Event,
    Output,
    Question,
    SettingsChanged,
    Text,
    Thought,
    ThreadKnown,
)
from laneway.core.ports import Clock
from laneway.doors.acp.client_channel import ClientChannel
from laneway.doors.acp.ids import tool_call_id
from laneway.doors.acp.updates.open_calls import Key, OpenCall, key_of
from laneway.doors.acp.updates.text_chunks import TextChunks
from laneway.doors.acp.updates.update_sink import UpdateListener
from laneway.rendering.outputs import PacedOutputs

MAX_HELD = 1000
"""Events of a thread that is still being opened: a line or two for each MCP server of the user."""


Handlers: TypeAlias = Mapping[type[Event], Callable[[Any, Any], None]]


class UpdateBase(ABC):
    handlers: ClassVar[Handlers]
    """By kind of event, but for the three that are on the hot path."""

    def __init__(self, line: ClientChannel, clock: Clock) -> None:
        self.lost = 0
        self._line = line
        self._clock = clock
        self._held: list[Event | dict[str, Any] | msgspec.Raw] | None = []
        self._session_id = self._thread_id = self._cwd = ""
        self._listener: UpdateListener
        self._speech: TextChunks
        self._outputs: PacedOutputs
        self._open: dict[Key, OpenCall] = {}

    @abstractmethod
    def _make_outputs(self) -> PacedOutputs:
        """How what commands print is gathered."""

    @abstractmethod
    def _end_all(self, why: str, thread_id: str | None = None) -> None:
        """Whatever the client still takes for running ends."""

    def open(self, session_id: str, thread_id: str, cwd: str, listener: UpdateListener) -> None:
        """The session is there, and its client knows its id: tell what has happened meanwhile."""
        self._session_id, self._thread_id = session_id, thread_id
        self._cwd, self._listener = cwd, listener
        self._speech = TextChunks(self._line, session_id)
        self._outputs = self._make_outputs()
        held, self._held = self._held or [], None
        for each in held:
            if isinstance(each, Event):
                self.push(each)
            else:
                self.tell(each)

    def push(self, event: Event) -> None:
        if self._held is not None:
            self._hold(event)
            return
        kind = type(event)
        if kind is Text:
            self._speech.say("agent_message_chunk", event.item_id, event.text)  # type: ignore[attr-defined]
        elif kind is Thought:
            self._speech.say("agent_thought_chunk", event.item_id, event.text)  # type: ignore[attr-defined]
        elif kind is Output:
            self._outputs.add(event.item_id, event.turn_id, event.text)  # type: ignore[attr-defined]
        else:
            handler = self.handlers.get(kind)
            if handler is not None:
                self._speech.flush()
                handler(self, event)

    def _hold(self, told: Event | dict[str, Any] | msgspec.Raw) -> None:
        assert self._held is not None
        if len(self._held) < MAX_HELD:
            self._held.append(told)
        else:
            self.lost += 1

    def close(self) -> None:
        """The session is over: nothing stays open."""
        if self._held is None:
            self._end_all("The session was closed.")
            self._outputs.clear()
            self._speech.close()

    def flush(self) -> None:
        """Say what is gathered, because something else follows."""
        if self._held is None:
            self._speech.flush()

    def tell(self, update: dict[str, Any] | msgspec.Raw) -> None:
        if self._held is not None:
            self._hold(update)
            return
        self._speech.flush()
        self._line.update(self._session_id, update)

    def call_of(self, question: Question) -> str | None:
        """The tool call that a question is about, if the client was told of it and it still runs."""
        key = key_of(question, self._open)
        if key is None:
            return None
        return tool_call_id(key[0], self._open[key].activity.turn_id, key[1])

    def _own_id(self) -> str:
        """Of a message that is ours and not the model's. A client may have older ones of the session."""
        return new_id("laneway")

    # ── handed on as it is ─────────────────────────────────────────────────

    def _settings(self, event: SettingsChanged) -> None:
        self._listener.on_settings(event.settings)

    def _diff(self, event: Diff) -> None:
        self._listener.on_diff(event.diff)

    def _thread(self, event: ThreadKnown) -> None:
        self._thread_id = event.thread_id
        self._listener.on_thread(event.thread_id)

    def _gone(self, event: EngineGone) -> None:
        self._end_all("Codex ended unexpectedly.")
        self._listener.on_gone()


HANDED_ON: Handlers = {
    SettingsChanged: UpdateBase._settings,
    Diff: UpdateBase._diff,
    ThreadKnown: UpdateBase._thread,
    EngineGone: UpdateBase._gone,
}
"""What all versions treat alike."""
