"""Begin and end of a turn in the old `codex mcp-server`'s events, and the start-up of MCP servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laneway.codex.legacy_shapes import Message, frame_params, without_none
from laneway.core.model import TurnDone


class TurnRecord:
    """The running turn, or the last one."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._started_s = 0.0
        self._first_output_s: float | None = None
        self.error: Message | None = None
        """The last error that was sent in this turn."""

    def begin(self, turn_id: str, window: int | None) -> Message:
        self._started_s, self._first_output_s, self.error = self._now(), None, None
        return {
            "type": "task_started",
            "turn_id": turn_id,
            "started_at": int(self._started_s),
            "model_context_window": window,
            "collaboration_mode_kind": "default",
        }

    def note_first_output(self) -> None:
        """The model has produced something."""
        if self._first_output_s is None:
            self._first_output_s = self._now()

    def end(self, event: TurnDone) -> list[Message]:
        times = self._times(event.frame)
        if event.status == "interrupted":
            return [{"type": "turn_aborted", "turn_id": event.turn_id, "reason": "interrupted", **times}]
        messages: list[Message] = []
        if event.failure is not None and self.error is None:
            # Codex reports an error before the turn fails; its own death it cannot report.
            self.error = {"message": event.failure.message, "codex_error_info": event.failure.kind}
            messages.append({"type": "error", **self.error})
        error = {"error": self.error if event.status == "failed" else None}
        first_ms = (
            None if self._first_output_s is None else int((self._first_output_s - self._started_s) * 1000)
        )
        message = {
            "type": "task_complete",
            "turn_id": event.turn_id,
            "last_agent_message": event.text or None,
        }
        return [
            *messages,
            {**message, **without_none(error), **times, **without_none({"time_to_first_token_ms": first_ms})},
        ]

    def _times(self, frame: bytes) -> Message:
        """The turn's times: Codex's own, if it reports them, else ours."""
        turn: dict[str, Any] = frame_params(frame).get("turn", {})
        now = self._now()
        ours = {"started_at": int(self._started_s), "completed_at": int(now)}
        codex_times = {"started_at": turn.get("startedAt"), "completed_at": turn.get("completedAt")}
        duration_ms = turn.get("durationMs")
        return {
            **ours,
            **without_none(codex_times),
            "duration_ms": int((now - self._started_s) * 1000) if duration_ms is None else duration_ms,
        }


class McpStartups:
    """The start-up states of the user's MCP servers."""

    def __init__(self) -> None:
        self._states: dict[str, tuple[str, Any]] = {}
        self._is_complete_sent = False

    def on_status(self, params: Message) -> list[Message]:
        """A server has changed its state; when none is starting any more, a summary follows."""
        name, state, error = str(params["name"]), str(params["status"]), params.get("error")
        self._states[name] = state, error
        status = without_none({"state": state, "error": error})
        messages: list[Message] = [{"type": "mcp_startup_update", "server": name, "status": status}]
        if all(each != "starting" for each, _ in self._states.values()):
            messages.append(self._complete())
        return messages

    def at_first_turn(self) -> list[Message]:
        """The summary for a thread without MCP servers: by its first turn no status has come."""
        return [] if self._is_complete_sent or self._states else [self._complete()]

    def _complete(self) -> Message:
        self._is_complete_sent = True
        by_state: dict[str, list[tuple[str, Any]]] = {}
        for name, (state, error) in self._states.items():
            by_state.setdefault(state, []).append((name, error))
        return {
            "type": "mcp_startup_complete",
            "ready": [name for name, _ in by_state.get("ready", ())],
            "failed": [{"server": name, "error": error} for name, error in by_state.get("failed", ())],
            "cancelled": [name for name, _ in by_state.get("cancelled", ())],
        }
