"""The port by which a session sends updates to its client, in any version of the protocol."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from laneway.base.engines import CODEX
from laneway.core.audience import Reader
from laneway.core.model import Activity, Question, TurnDone, TurnStarted, Withdrawn
from laneway.doors.acp.questions.permission_request import PermissionRequest


class UpdateListener(Protocol):
    """Gets the events that are more than updates: `SessionEvents`. Called on the engine's reader."""

    def on_question(self, question: Question) -> None: ...

    def on_withdrawn(self, gone: Withdrawn) -> None: ...

    def on_turn(self, event: TurnStarted | TurnDone) -> None: ...

    def on_settings(self, settings: Any) -> None: ...

    def on_edit(self, activity: Activity) -> None: ...

    def on_diff(self, diff: str) -> None: ...

    def on_thread(self, thread_id: str) -> None: ...

    def on_gone(self) -> None: ...


class UpdateSink(Reader, Protocol):
    """`UpdatesV1` or `UpdatesV2`."""

    def open(
        self, session_id: str, thread_id: str, cwd: str, listener: UpdateListener, *, engine: str = CODEX
    ) -> None:
        """Send what was held, and everything from now on: the client knows the session's id."""
        ...

    def flush(self) -> None:
        """Send the text gathered so far, because something else follows."""
        ...

    def send(self, update: dict[str, Any] | msgspec.Raw) -> None:
        """Send an update that is the same in all versions."""
        ...

    def send_options(self, options: list[dict[str, Any]]) -> None: ...

    def send_message(self, text: str) -> None:
        """Send a message of ours, not of the model."""
        ...

    def send_notice(self, level: str, title: str) -> None:
        """Send a notice for the user."""
        ...

    def call_id_of(self, question: Question) -> str | None:
        """The tool call that a question is about, if it was announced to the client and still runs."""
        ...

    def permission_request(self, call_id: str | None) -> PermissionRequest:
        """A new permission request, about this tool call if there is one."""
        ...

    def restore_call(self, call_id: str) -> None:
        """Show this tool call again after a question about it."""
        ...
