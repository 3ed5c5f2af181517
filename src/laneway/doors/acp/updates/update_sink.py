"""What a session says to its client, in whichever version of the protocol: `Narrator` and its like."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from laneway.core.audience import Reader
from laneway.core.model import Activity, Question, TurnDone, TurnStarted, Withdrawn
from laneway.doors.acp.questions.permission_request import PermissionRequest


class UpdateListener(Protocol):
    """Who else wants to know: the room. Called on the engine's reader."""

    def on_question(self, question: Question) -> None: ...

    def on_withdrawn(self, gone: Withdrawn) -> None: ...

    def on_turn(self, event: TurnStarted | TurnDone) -> None: ...

    def on_settings(self, settings: Any) -> None: ...

    def on_edit(self, activity: Activity) -> None: ...

    def on_diff(self, diff: str) -> None: ...

    def on_thread(self, thread_id: str) -> None: ...

    def on_gone(self) -> None: ...


class UpdateSink(Reader, Protocol):
    def open(self, session_id: str, thread_id: str, cwd: str, listener: UpdateListener) -> None:
        """The session is there, and its client knows its id: tell what has happened meanwhile."""
        ...

    def flush(self) -> None:
        """Say what is gathered, because something else follows."""
        ...

    def tell(self, update: dict[str, Any] | msgspec.Raw) -> None:
        """An update that is the same in all versions."""
        ...

    def tell_options(self, options: list[dict[str, Any]]) -> None: ...

    def say(self, text: str) -> None:
        """A message that is ours and not the model's."""
        ...

    def notice(self, level: str, title: str) -> None:
        """For the user's eyes."""
        ...

    def call_of(self, question: Question) -> str | None:
        """The tool call that a question is about, if the client was told of it and it still runs."""
        ...

    def permits(self, call_id: str | None) -> PermissionRequest:
        """How to ask for a permission, about this tool call if there is one."""
        ...

    def retell(self, call_id: str) -> None:
        """A question about this call is over."""
        ...
