"""Sends a session's events as the `session/update`s of protocol 1.

Each tool call is opened once and ended once. A command that outlives its turn is ended with the turn,
so that no call stays open; when it has really ended, one more update has its status and output.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from laneway.base.log import bound
from laneway.base.plain import plain
from laneway.core.model import (
    Activity,
    Asked,
    Outlived,
    Plan,
    PlanStep,
    TurnDone,
    TurnStarted,
    Withdrawn,
)
from laneway.core.ports import Clock
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.client_channel import ClientChannel
from laneway.doors.acp.ids import tool_call_id
from laneway.doors.acp.questions.permission_request import PermissionRequest, PermissionRequestV1
from laneway.doors.acp.updates import tool_calls
from laneway.doors.acp.updates.open_calls import Key, OpenCall
from laneway.doors.acp.updates.text_chunks import chunk
from laneway.doors.acp.updates.update_base import COMMON_HANDLERS, UpdateBase
from laneway.rendering.activities import is_verdict
from laneway.rendering.outputs import PacedOutputs

log = logging.getLogger(__name__)

CHANGE_EVERY_S = 0.1
"""Between two updates of a tool call that changes: an edit that is being written."""


class UpdatesV1(UpdateBase):
    """The `UpdateSink` of protocol 1."""

    def __init__(self, channel: ClientChannel, client: EditorClient, clock: Clock) -> None:
        super().__init__(channel, clock)
        self._client = client

    def _make_outputs(self) -> PacedOutputs:
        return PacedOutputs(
            self._clock,
            self._send_output,
            sends_all=self._client.takes_terminal_output,
            is_behind=lambda: self._channel.is_behind,
        )

    def permission_request(self, call_id: str | None) -> PermissionRequest:
        return PermissionRequestV1(
            self._channel, self._client, self._session_id, self._thread_id, self._cwd, call_id
        )

    def restore_call(self, call_id: str) -> None:
        """Show a tool call again whose fields a permission request has replaced."""
        for (thread_id, item_id), call in self._open.items():
            if tool_call_id(thread_id, call.activity.turn_id, item_id) == call_id:
                call.sent.clear()
                client = self._client_for(thread_id)
                update = tool_calls.changed(call.activity, thread_id, client, cwd=self._cwd)
                call.send(self.send, update)

    # ── updates of our own ─────────────────────────────────────────────────

    def send_options(self, options: list[dict[str, Any]]) -> None:
        self.send({"sessionUpdate": "config_option_update", "configOptions": options})

    def send_message(self, text: str) -> None:
        """Send a message of ours, not of the model."""
        self.send(chunk("agent_message_chunk", self._new_message_id(), plain(text)))

    def send_notice(self, level: str, title: str) -> None:
        """Send a notice; to a client without notices as a thought, which is not part of an answer."""
        title = plain(title)
        if self._client.takes_notices:
            self.send({"sessionUpdate": "notice", "severity": level, "title": title or level})
        else:
            self.send(chunk("agent_thought_chunk", self._new_message_id(), f"{title}\n\n"))

    # ── events ─────────────────────────────────────────────────────────────

    def _turn(self, event: Any) -> None:
        self._listener.on_turn(event)

    def _activity(self, activity: Activity, thread_id: str = "") -> None:
        if activity.kind == "compaction" and self._client.takes_compaction:
            self._send_compaction(activity)
        elif not is_verdict(activity):  # the text of a review follows as a message
            self._send_call(activity, thread_id or self._thread_id)
        if activity.kind == "edit":
            self._listener.on_edit(activity)

    def _send_call(self, activity: Activity, thread_id: str) -> None:
        key, client = (thread_id, activity.item_id), self._client_for(thread_id)
        self._log(activity, thread_id)
        call = self._open.get(key)
        if call is None:
            call = self._open[key] = OpenCall(activity)
            call.send(self.send, tool_calls.opened(activity, thread_id, client, cwd=self._cwd))
        elif activity.status == "running":
            call.activity = activity
            if call.cancel_change is None:
                call.cancel_change = self._clock.after(CHANGE_EVERY_S, lambda: self._send_change(key))
        if activity.status != "running":
            call.drop_change()
            if client.takes_terminal_output:
                self._outputs.flush(activity.item_id)
            self._outputs.drop(activity.item_id)
            del self._open[key]
            call.send(
                self.send, tool_calls.ended(activity, thread_id, client, cwd=self._cwd, engine=self._engine)
            )

    def _outlived(self, event: Outlived, thread_id: str = "") -> None:
        thread_id = thread_id or self._thread_id
        activity, client = event.activity, self._client_for(thread_id)
        self._log(activity, thread_id)
        self.send(
            tool_calls.ended(activity, thread_id, client, cwd=self._cwd, rest=event.rest, engine=self._engine)
        )

    def _send_change(self, key: Key) -> None:
        """Send the last state of an edit. Codex repeats all of it for every few words, so this is paced."""
        call = self._open[key]
        call.drop_change()
        client = self._client_for(key[0])
        call.send(self.send, tool_calls.changed(call.activity, key[0], client, cwd=self._cwd))

    def _log(self, activity: Activity, thread_id: str) -> None:
        """Log the tool call with its session, thread, turn and item."""
        if not log.isEnabledFor(logging.DEBUG):
            return
        ids = {"session": self._session_id, "thread": thread_id}
        with bound(**ids, turn=activity.turn_id, item=activity.item_id):
            call_id = tool_call_id(thread_id, activity.turn_id, activity.item_id)
            log.debug("tool call %s is %s", call_id, activity.status)

    def _client_for(self, thread_id: str) -> EditorClient:
        """The client's capabilities for calls of a thread: none for terminals of subagents.

        The output of subagents does not come in pieces.
        """
        if thread_id == self._thread_id:
            return self._client
        return msgspec.structs.replace(self._client, takes_terminal_output=False)

    def _send_output(self, item_id: str, turn_id: str, text: str) -> None:
        call = self._open.get((self._thread_id, item_id))
        if call is not None:
            activity, thread_id = call.activity, self._thread_id
            update = tool_calls.printed(activity, thread_id, self._client, text, cwd=self._cwd)
            call.send(self.send, update)

    def _send_compaction(self, activity: Activity) -> None:
        status = {"running": "in_progress", "completed": "completed", "interrupted": "cancelled"}
        self.send(
            {
                "sessionUpdate": "compaction_update",
                "compactionId": activity.item_id,
                "status": status.get(activity.status, "failed"),
            }
        )

    def _plan(self, plan: Plan) -> None:
        entries = [
            {"content": plain(step.text), "priority": "medium", "status": _step_status(step)}
            for step in plan.steps
        ]
        self.send({"sessionUpdate": "plan", "entries": entries})

    def _asked(self, event: Asked) -> None:
        for key, call in list(self._open.items()):
            if call.cancel_change is not None:
                self._send_change(key)  # the client sees the call as it is before the question about it
        self._listener.on_question(event.question)

    def _withdrawn(self, event: Withdrawn) -> None:
        self._listener.on_withdrawn(event)

    def _end_all(self, why: str, thread_id: str | None = None) -> None:
        """End all tool calls that are still open, or those of one thread."""
        for (thread, item_id), call in list(self._open.items()):
            if thread_id in (None, thread):
                del self._open[thread, item_id]
                call.drop_change()
                self._outputs.drop(item_id)
                call_id = tool_call_id(thread, call.activity.turn_id, item_id)
                client = self._client_for(thread)
                update = tool_calls.ended_without(call_id, why, client, last=call.activity, cwd=self._cwd)
                call.send(self.send, update)


UpdatesV1.handlers = {
    **COMMON_HANDLERS,
    TurnStarted: UpdatesV1._turn,
    TurnDone: UpdatesV1._turn,
    Activity: UpdatesV1._activity,
    Outlived: UpdatesV1._outlived,
    Plan: UpdatesV1._plan,
    Asked: UpdatesV1._asked,
    Withdrawn: UpdatesV1._withdrawn,
}
"""Left out on purpose: `Accepted`, `UserSaid` (the client has just sent it), `Compacted` (sent as an
activity), `EngineBack`, `Closed`."""


def _step_status(step: PlanStep) -> str:
    return "in_progress" if step.status == "running" else step.status
