"""What the old events tell of a turn as a whole: its times, what went wrong, and how it ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from laneway.codex.legacy_shapes import Message, given
from laneway.core.model import TurnDone


class TurnRecord:
    """The running turn, or the last one."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._started_s = 0.0
        self._first_s: float | None = None
        self.error: Message | None = None
        """The last error that was told in this turn."""

    def begin(self, turn_id: str, window: int | None) -> Message:
        self._started_s, self._first_s, self.error = self._now(), None, None
        return {
            "type": "task_started",
            "turn_id": turn_id,
            "started_at": int(self._started_s),
            "model_context_window": window,
            "collaboration_mode_kind": "default",
        }

    def note_first(self) -> None:
        """The model has said or done something."""
        if self._first_s is None:
            self._first_s = self._now()

    def end(self, event: TurnDone) -> list[Message]:
        times = self._times(event.frame)
        if event.status == "interrupted":
            return [{"type": "turn_aborted", "turn_id": event.turn_id, "reason": "interrupted", **times}]
        told: list[Message] = []
        if event.failure is not None and self.error is None:
            # Codex tells of an error before a turn fails of it; of its own death it cannot.
            self.error = {"message": event.failure.message, "codex_error_info": event.failure.kind}
            told.append({"type": "error", **self.error})
        wrong = {"error": self.error if event.status == "failed" else None}
        first = None if self._first_s is None else int((self._first_s - self._started_s) * 1000)
        done = {"type": "task_complete", "turn_id": event.turn_id, "last_agent_message": event.text or None}
        return [*told, {**done, **given(wrong), **times, **given({"time_to_first_token_ms": first})}]

    def _times(self, frame: bytes) -> Message:
        """Codex's own, where it tells them."""
        turn: dict[str, Any] = msgspec.json.decode(frame)["params"]["turn"] if frame else {}
        now = self._now()
        heard = {"started_at": int(self._started_s), "completed_at": int(now)}
        told = {"started_at": turn.get("startedAt"), "completed_at": turn.get("completedAt")}
        took = turn.get("durationMs")
        return {
            **heard,
            **given(told),
            "duration_ms": int((now - self._started_s) * 1000) if took is None else took,
        }


class McpStartups:
    """The user's MCP servers while they start."""

    def __init__(self) -> None:
        self._states: dict[str, tuple[str, Any]] = {}
        self._is_told = False

    def heard(self, params: Message) -> list[Message]:
        """One has moved on; when none is left starting, all are told together."""
        name, state, error = str(params["name"]), str(params["status"]), params.get("error")
        self._states[name] = state, error
        status = given({"state": state, "error": error})
        told: list[Message] = [{"type": "mcp_startup_update", "server": name, "status": status}]
        if all(known != "starting" for known, _ in self._states.values()):
            told.append(self._complete())
        return told

    def at_first_turn(self) -> list[Message]:
        """Where there are none, nothing was heard of them by now."""
        return [] if self._is_told or self._states else [self._complete()]

    def _complete(self) -> Message:
        self._is_told = True
        by_state: dict[str, list[tuple[str, Any]]] = {}
        for name, (state, error) in self._states.items():
            by_state.setdefault(state, []).append((name, error))
        return {
            "type": "mcp_startup_complete",
            "ready": [name for name, _ in by_state.get("ready", ())],
            "failed": [{"server": name, "error": error} for name, error in by_state.get("failed", ())],
            "cancelled": [name for name, _ in by_state.get("cancelled", ())],
        }
