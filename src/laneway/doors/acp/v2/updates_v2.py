"""A session's events as the updates of protocol 2: messages, upserts, terminals, states.

The session's reader (`core.audience.Reader`), called on the engine's reader: it renders and posts,
and waits for nobody. It also knows which message of the user's Codex has recorded last: by that a
prompt is accepted (`laneway.doors.acp.v2.prompts`).
"""

from __future__ import annotations

from typing import Any

from laneway.base.errors import RemoteError
from laneway.base.plain import label, plain
from laneway.core.model import (
    Accepted,
    Activity,
    Asked,
    FromSubagent,
    Notice,
    Other,
    Outlived,
    Plan,
    Titled,
    TurnDone,
    TurnStarted,
    Usage,
    UserSaid,
    Withdrawn,
)
from laneway.core.ports import Clock
from laneway.doors.acp.client_channel import ClientChannel
from laneway.doors.acp.history import user_blocks
from laneway.doors.acp.questions.permission_request import PermissionRequest
from laneway.doors.acp.updates.open_calls import OpenCall
from laneway.doors.acp.updates.update_base import HANDED_ON, UpdateBase
from laneway.doors.acp.v2 import calls, shapes
from laneway.doors.acp.v2.foreground import Foreground, how_it_ended
from laneway.doors.acp.v2.pending_prompts import PendingPrompts, not_taken
from laneway.doors.acp.v2.permission_request import PermissionRequestV2
from laneway.rendering.activities import is_verdict
from laneway.rendering.engine_news import words_of
from laneway.rendering.outputs import PacedOutputs


class UpdatesV2(UpdateBase):
    """`laneway.doors.acp.updates.update_sink.Voice`."""

    def __init__(self, line: ClientChannel, clock: Clock) -> None:
        super().__init__(line, clock)
        self.foreground = Foreground(self.tell)
        self.inserts = PendingPrompts()

    def _make_outputs(self) -> PacedOutputs:
        return PacedOutputs(self._clock, self._print, whole=True)

    # ── questions ──────────────────────────────────────────────────────────

    def permits(self, call_id: str | None) -> PermissionRequest:
        return PermissionRequestV2(self._line, self._session_id, self._thread_id, self._cwd, call_id)

    def retell(self, call_id: str) -> None:
        """Nothing to restore: a request has words of its own and leaves the call as it is."""

    # ── what we say ourselves ──────────────────────────────────────────────

    def tell_options(self, options: list[dict[str, Any]]) -> None:
        self.tell({"sessionUpdate": "config_option_update", "configOptions": shapes.options(options)})

    def say(self, text: str) -> None:
        self.tell(shapes.message("agent_message", self._own_id(), [shapes.text(plain(text))]))
        if not self.inserts.is_serving:  # a question of a turn that no prompt waits for: the next one answers
            self.foreground.rest("end_turn")

    def notice(self, level: str, title: str) -> None:
        self.tell({"sessionUpdate": "notice", "severity": level, "title": plain(title) or level})

    def insert(self, blocks: list[dict[str, Any]]) -> str:
        """A message of the user's that Codex is not given as it stands: a command, an answer."""
        message_id = self._own_id()
        self.tell(shapes.message("user_message", message_id, blocks))
        self.foreground.run()
        return message_id

    # ── turns ──────────────────────────────────────────────────────────────

    def _started(self, event: TurnStarted) -> None:
        self.inserts.turn(event.ticket)
        self.foreground.begin()
        self._listener.on_turn(event)

    def _done(self, event: TurnDone) -> None:
        self.foreground.end()
        self._listener.on_turn(event)
        if not self.inserts.is_serving:  # else the prompt tells: it may go on
            self.end(*how_it_ended(event))

    def end(self, stop: str, error: RemoteError | None, *, is_asking: bool = False) -> None:
        """A prompt has been served, or a turn is over that none waits for.

        `is_asking`: the turn of that prompt goes on when another one has answered its question.
        """
        self.foreground.rest(stop, error)
        self.inserts.end(None if is_asking else error or not_taken(stop))

    def close(self) -> None:
        super().close()
        if not self.inserts.is_serving:  # a turn that no prompt waits for, and that did not stop
            self.end("cancelled", None)

    def _user_said(self, event: UserSaid) -> None:
        if self.inserts.said(event.item_id):
            self.tell(shapes.message("user_message", event.item_id, user_blocks.blocks(event)))

    def _accepted(self, event: Accepted) -> None:
        self.inserts.recorded(event.client_id)

    def _asked(self, event: Asked) -> None:
        self.foreground.ask(event.question.question_id, self.call_of(event.question))
        self._look()
        self._listener.on_question(event.question)

    def _withdrawn(self, event: Withdrawn) -> None:
        self.foreground.settle(event.question_id)
        self._look()
        self._listener.on_withdrawn(event)

    def _look(self) -> None:
        self.foreground.look([calls.call_id(call.activity, key[0]) for key, call in self._open.items()])

    # ── activities ─────────────────────────────────────────────────────────

    def _activity(self, activity: Activity, thread_id: str = "") -> None:
        if activity.kind == "compaction":
            self.tell(shapes.compaction(activity))
        elif not is_verdict(activity):  # the text of a review follows as a message
            self._tell_call(activity, thread_id or self._thread_id)
        if activity.kind == "edit":
            self._listener.on_edit(activity)

    def _tell_call(self, activity: Activity, thread_id: str) -> None:
        key = (thread_id, activity.item_id)
        call = self._open.get(key)
        if call is None:
            call = self._open[key] = OpenCall(activity)
            if calls.has_terminal(activity):
                self.tell(calls.terminal(activity, thread_id, cwd=self._cwd))
        call.activity = activity
        if activity.status != "running":
            self._outputs.flush(activity.item_id)
            self._outputs.drop(activity.item_id)
            del self._open[key]
            self._tell_exit(activity, thread_id)
        call.tell(self.tell, calls.call(activity, thread_id, cwd=self._cwd))
        self._look()

    def _tell_exit(self, activity: Activity, thread_id: str) -> None:
        if calls.has_terminal(activity):
            # What came late may belong further up, and what subagents print was not told at all.
            is_whole = bool(activity.late_output) or thread_id != self._thread_id
            self.tell(calls.exited(activity, thread_id, is_whole=is_whole))

    def _outlived(self, event: Outlived, thread_id: str = "") -> None:
        """Its call has ended with its turn; its terminal exits now, and the call is told as it went."""
        thread_id = thread_id or self._thread_id
        self._tell_exit(event.activity, thread_id)
        self.tell(calls.call(event.activity, thread_id, cwd=self._cwd))

    def _print(self, item_id: str, turn_id: str, text: str) -> None:
        call = self._open.get((self._thread_id, item_id))
        if call is not None:
            self.tell(calls.printed(calls.call_id(call.activity, self._thread_id), text))

    def _subagent(self, event: FromSubagent) -> None:
        """What subagents do is shown; what they say is for their parent."""
        if isinstance(event.inner, Activity):
            self._activity(event.inner, event.thread_id)
        elif isinstance(event.inner, Outlived):
            self._outlived(event.inner, event.thread_id)
        elif isinstance(event.inner, TurnDone):
            self._end_all("The subagent's turn is over.", event.thread_id)

    def _end_all(self, why: str, thread_id: str | None = None) -> None:
        """Whatever the client still takes for running ends here."""
        for (thread, item_id), call in list(self._open.items()):
            if thread_id in (None, thread):
                self._outputs.flush(item_id)
                self._outputs.drop(item_id)
                del self._open[thread, item_id]
                if calls.has_terminal(call.activity):
                    self.tell(calls.exited(call.activity, thread, is_whole=False))
                call.tell(self.tell, calls.ended_without(call.activity, thread, why, cwd=self._cwd))

    # ── the rest ───────────────────────────────────────────────────────────

    def _plan(self, plan: Plan) -> None:
        self.tell(shapes.plan(plan))

    def _usage(self, usage: Usage) -> None:
        if usage.window:
            self.tell({"sessionUpdate": "usage_update", "used": usage.last.total, "size": usage.window})

    def _titled(self, event: Titled) -> None:
        if event.title:
            self.tell({"sessionUpdate": "session_info_update", "title": label(event.title)})

    def _notice(self, event: Notice) -> None:
        if event.will_retry:
            self.notice("warning", f"Trying again: {event.message}")
        elif event.level != "error":  # an error ends the turn, and is told with its state
            self.notice(event.level, event.message)

    def _other(self, event: Other) -> None:
        text = words_of(event)
        if text:
            self.notice("warning", text)


UpdatesV2.handlers = {
    **HANDED_ON,
    TurnStarted: UpdatesV2._started,
    TurnDone: UpdatesV2._done,
    UserSaid: UpdatesV2._user_said,
    Accepted: UpdatesV2._accepted,
    Activity: UpdatesV2._activity,
    Outlived: UpdatesV2._outlived,
    FromSubagent: UpdatesV2._subagent,
    Plan: UpdatesV2._plan,
    Usage: UpdatesV2._usage,
    Titled: UpdatesV2._titled,
    Notice: UpdatesV2._notice,
    Asked: UpdatesV2._asked,
    Withdrawn: UpdatesV2._withdrawn,
    Other: UpdatesV2._other,
}
