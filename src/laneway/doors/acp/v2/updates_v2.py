"""Sends a session's events as the updates of ACP 2: messages, upserts, terminals, states.

It also knows which message of the user Codex has recorded last, which answers the prompt
(`laneway.doors.acp.v2.prompts`).
"""

from __future__ import annotations

from typing import Any

from laneway.base.errors import RemoteError
from laneway.base.plain import plain
from laneway.core.model import (
    Accepted,
    Activity,
    Asked,
    Outlived,
    Plan,
    TurnDone,
    TurnStarted,
    UserSaid,
    Withdrawn,
)
from laneway.core.ports import Clock
from laneway.doors.acp.client_channel import ClientChannel
from laneway.doors.acp.history import user_blocks
from laneway.doors.acp.questions.permission_request import PermissionRequest
from laneway.doors.acp.updates.open_calls import OpenCall
from laneway.doors.acp.updates.update_base import COMMON_HANDLERS, UpdateBase
from laneway.doors.acp.v2 import calls, shapes
from laneway.doors.acp.v2.pending_prompts import PendingPrompts, not_recorded
from laneway.doors.acp.v2.permission_request import PermissionRequestV2
from laneway.doors.acp.v2.session_state import ForegroundState, outcome_of
from laneway.rendering.activities import is_verdict
from laneway.rendering.outputs import PacedOutputs


class UpdatesV2(UpdateBase):
    """The `UpdateSink` of protocol 2."""

    def __init__(self, channel: ClientChannel, clock: Clock) -> None:
        super().__init__(channel, clock)
        self.state = ForegroundState(self.send)
        self.pending_prompts = PendingPrompts()

    def _make_outputs(self) -> PacedOutputs:
        return PacedOutputs(self._clock, self._send_output, sends_all=True)

    # ── questions ──────────────────────────────────────────────────────────

    def permission_request(self, call_id: str | None) -> PermissionRequest:
        return PermissionRequestV2(self._channel, self._session_id, self._thread_id, self._cwd, call_id)

    def restore_call(self, call_id: str) -> None:
        """Nothing to restore: a permission request does not change the call."""

    # ── updates of our own ─────────────────────────────────────────────────

    def send_options(self, options: list[dict[str, Any]]) -> None:
        self.send({"sessionUpdate": "config_option_update", "configOptions": shapes.options(options)})

    def send_message(self, text: str) -> None:
        self.send(shapes.message("agent_message", self._new_message_id(), [shapes.text(plain(text))]))
        if not self.pending_prompts.is_serving:
            # A question of a turn that no prompt waits for; the next prompt answers it.
            self.state.become_idle("end_turn")

    def send_notice(self, level: str, title: str) -> None:
        self.send({"sessionUpdate": "notice", "severity": level, "title": plain(title) or level})

    def send_user_message(self, blocks: list[dict[str, Any]]) -> str:
        """Send a user's message that Codex does not get as it is: a command, an answer. Returns its id."""
        message_id = self._new_message_id()
        self.send(shapes.message("user_message", message_id, blocks))
        self.state.run()
        return message_id

    # ── turns ──────────────────────────────────────────────────────────────

    def _started(self, event: TurnStarted) -> None:
        self.pending_prompts.on_turn(event.ticket)
        self.state.begin_turn()
        self._listener.on_turn(event)

    def _done(self, event: TurnDone) -> None:
        self.state.end_turn()
        self._listener.on_turn(event)
        if not self.pending_prompts.is_serving:  # else the prompt calls `end`, since it may continue
            self.end(*outcome_of(event))

    def end(self, stop: str, error: RemoteError | None, *, is_asking: bool = False) -> None:
        """A prompt has been served, or a turn is over that no prompt waits for.

        `is_asking`: the turn continues when another prompt has answered its question.
        """
        self.state.become_idle(stop, error)
        self.pending_prompts.end(None if is_asking else error or not_recorded(stop))

    def close(self) -> None:
        super().close()
        if not self.pending_prompts.is_serving:  # a turn that no prompt waits for, still running
            self.end("cancelled", None)

    def _user_said(self, event: UserSaid) -> None:
        if self.pending_prompts.is_shown(event.client_id):
            self.send(shapes.message("user_message", event.item_id, user_blocks.blocks(event)))

    def _accepted(self, event: Accepted) -> None:
        self.pending_prompts.on_recorded(event.client_id, event.item_id)

    def _asked(self, event: Asked) -> None:
        self.state.add_question(event.question.question_id, self.call_id_of(event.question))
        self._update_state()
        self._listener.on_question(event.question)

    def _withdrawn(self, event: Withdrawn) -> None:
        self.state.remove_question(event.question_id)
        self._update_state()
        self._listener.on_withdrawn(event)

    def _update_state(self) -> None:
        self.state.update([calls.call_id(call.activity, key[0]) for key, call in self._open.items()])

    # ── activities ─────────────────────────────────────────────────────────

    def _activity(self, activity: Activity, thread_id: str = "") -> None:
        if activity.kind == "compaction":
            self.send(shapes.compaction(activity))
        elif not is_verdict(activity):  # the text of a review follows as a message
            self._send_call(activity, thread_id or self._thread_id)
        if activity.kind == "edit":
            self._listener.on_edit(activity)

    def _send_call(self, activity: Activity, thread_id: str) -> None:
        key = (thread_id, activity.item_id)
        call = self._open.get(key)
        if call is None:
            call = self._open[key] = OpenCall(activity)
            if calls.has_terminal(activity):
                self.send(calls.terminal(activity, thread_id, cwd=self._cwd))
        call.activity = activity
        if activity.status != "running":
            self._outputs.flush(activity.item_id)
            self._outputs.drop(activity.item_id)
            del self._open[key]
            self._send_exit(activity, thread_id)
        call.send(self.send, calls.call(activity, thread_id, cwd=self._cwd, engine=self._engine))
        self._update_state()

    def _send_exit(self, activity: Activity, thread_id: str) -> None:
        if calls.has_terminal(activity):
            # Late output may belong further up, and the output of subagents has not been sent at all.
            is_whole = bool(activity.late_output) or thread_id != self._thread_id
            self.send(calls.exited(activity, thread_id, is_whole=is_whole))

    def _outlived(self, event: Outlived, thread_id: str = "") -> None:
        """The call was ended with its turn; now its terminal exits, and the call gets its real status."""
        thread_id = thread_id or self._thread_id
        self._send_exit(event.activity, thread_id)
        self.send(calls.call(event.activity, thread_id, cwd=self._cwd, engine=self._engine))

    def _send_output(self, item_id: str, turn_id: str, text: str) -> None:
        call = self._open.get((self._thread_id, item_id))
        if call is not None:
            self.send(calls.printed(calls.call_id(call.activity, self._thread_id), text))

    def _end_all(self, why: str, thread_id: str | None = None) -> None:
        """End all tool calls that are still open, or those of one thread."""
        for (thread, item_id), call in list(self._open.items()):
            if thread_id in (None, thread):
                self._outputs.flush(item_id)
                self._outputs.drop(item_id)
                del self._open[thread, item_id]
                if calls.has_terminal(call.activity):
                    self.send(calls.exited(call.activity, thread, is_whole=False))
                call.send(self.send, calls.ended_without(call.activity, thread, why, cwd=self._cwd))

    # ── the rest ───────────────────────────────────────────────────────────

    def _plan(self, plan: Plan) -> None:
        self.send(shapes.plan(plan))


UpdatesV2.handlers = {
    **COMMON_HANDLERS,
    TurnStarted: UpdatesV2._started,
    TurnDone: UpdatesV2._done,
    UserSaid: UpdatesV2._user_said,
    Accepted: UpdatesV2._accepted,
    Activity: UpdatesV2._activity,
    Outlived: UpdatesV2._outlived,
    Plan: UpdatesV2._plan,
    Asked: UpdatesV2._asked,
    Withdrawn: UpdatesV2._withdrawn,
}
