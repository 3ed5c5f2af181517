"""Reads what one Claude Code says and makes it a thread's events: texts, turns, subagents, questions, tools.

Called on the process's reader; decides when a turn may be over: not before its input stands in the
transcript, so what comes after a result that is too early is held back for that long.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from laneway.base.errors import EngineLost
from laneway.claude.open_questions import Respond, ThreadQuestions
from laneway.claude.process import StreamEvent
from laneway.claude.subagents import Subagents
from laneway.claude.tool_server import ToolServer
from laneway.claude.transcript import Recorded
from laneway.claude.translate import MessageTranslator
from laneway.claude.turns import ThreadTurns
from laneway.core.model import Compacted, Event, TurnDone

log = logging.getLogger(__name__)

LOOK_S = 0.01
"""Between two looks into the transcript; doubled each time …"""
MAX_LOOK_S = 0.2
"""… up to this: Claude Code writes it some 0.1 s after the input's echo."""
HOLD_S = 5.0
"""The longest that the end of a turn waits for the transcript."""
MAX_HELD = 10_000
"""Messages that may come in that time: an ordinary turn has some ten, a long answer some thousands."""
_TASKS = frozenset({"task_started", "task_notification"})


class ThreadReader:
    """The listener of a thread's processes, one after the other."""

    def __init__(
        self,
        emit: Callable[[Event], None],
        thread_id: str,
        cwd: str,
        recorded: Recorded,
        tools: ToolServer,
        respond: Respond,
        refuse: Callable[[str, str], None],
        on_end: Callable[[str], None],
        on_session: Callable[[str], None],
    ) -> None:
        """`respond` answers a request of Claude Code's, `refuse` one that nobody serves.

        `on_session` hears the id of the session that it works in, before each answer.
        """
        self.thread_id = thread_id
        self.recorded = recorded
        self.is_ephemeral = False
        """Whether nothing is written down, so that an input is taken as soon as it comes back."""
        self.background: tuple[str, ...] = ()
        """The ids of tasks that go on in the background."""
        self.questions = ThreadQuestions(emit, cwd)
        self.translator = MessageTranslator(self._emit_own, cwd, self.questions.declined)
        self.turns = ThreadTurns(self.translator, emit)
        self._emit = emit
        self._subagents = Subagents(emit, thread_id, cwd, self.questions.declined)
        self._tools = tools
        self._respond = respond
        self._refuse = refuse
        self._on_end = on_end
        self._on_session = on_session
        self._watch: asyncio.Task[None] | None = None
        self._held: list[Callable[[], None]] | None = None
        """What has come since a result that is too early."""
        self.compactions = 0
        self._has_run = False
        """Whether this process has said that it works, and not yet that it is idle."""

    @property
    def is_busy(self) -> bool:
        waits = self.translator.turn_id is not None or bool(self.questions)
        return waits or bool(self.background) or bool(self.turns.waiting)

    def _emit_own(self, event: Event) -> None:
        """On the way out of the thread's own translator."""
        if type(event) is Compacted:
            self.compactions += 1
        elif type(event) is TurnDone:
            # What the turn had started is over before the turn is.
            self._subagents.end_turn(event.status)
            self.questions.decline_all(self._respond)
            self.questions.declined.clear()
        self._emit(event)

    # ── called by the process ──────────────────────────────────────────────

    def on_stream(self, event: StreamEvent, frame: bytes) -> None:
        if self._holds(partial(self.on_stream, event, frame)):
            return
        if event.parent_tool_use_id is not None:
            self._subagents.stream(event.parent_tool_use_id, event, frame)
        else:
            self.turns.ensure_turn()
            self.translator.stream(event, frame)

    def on_message(self, message: dict[str, Any], frame: bytes) -> None:
        if self._holds(partial(self.on_message, message, frame)):
            return
        kind, subtype = message.get("type"), message.get("subtype")
        parent = message.get("parent_tool_use_id")
        if isinstance(parent, str):
            self._subagents.message(parent, message, frame)
        elif kind == "command_lifecycle":
            self.turns.lifecycle(message, frame)
            self._watch_transcript()
        elif kind == "result":
            self._result(message, frame)
        elif kind == "user" and message.get("isReplay") is True:
            self.turns.echo(message, frame)
        elif kind == "system" and subtype == "session_state_changed":
            self._state_changed(message.get("state"), frame)
        elif kind == "system" and subtype in _TASKS and self._subagents.task(message):
            pass
        elif kind == "system" and subtype == "background_tasks_changed":
            tasks = message.get("tasks")
            listed = [task for task in tasks if isinstance(task, dict)] if isinstance(tasks, list) else []
            self.background = tuple(str(task.get("task_id")) for task in listed)
        elif kind == "system" and subtype == "init":
            self._on_session(str(message.get("session_id")))
        else:
            if kind == "assistant":
                self.turns.ensure_turn()
            self.translator.message(message, frame)

    def _result(self, message: dict[str, Any], frame: bytes) -> None:
        self._look()
        turn_id = self.translator.turn_id
        early = [each for each in self.turns.unaccepted if turn_id is not None and each.turn_id == turn_id]
        if early and "local_command" in message:
            self.turns.accept({each.uuid for each in early})  # answered by Claude Code itself
            early = []
        if early:
            self._held = [partial(self._end_turn, message, frame)]
            self._watch_transcript()
        else:
            self._end_turn(message, frame)

    def _state_changed(self, state: Any, frame: bytes) -> None:
        """Its last word on a turn, behind the result: whoever is idle runs none."""
        has_run, self._has_run = self._has_run, state != "idle"
        if has_run and not self._has_run and self.translator.turn_id is not None:
            log.warning("Claude Code is idle, and its turn had no result")
            reason = "aborted" if self.translator.is_stopping else None
            self._result({"terminal_reason": reason}, frame)

    def _end_turn(self, message: dict[str, Any], frame: bytes) -> None:
        turn_id = self.translator.turn_id
        if turn_id is not None:
            usage = self.translator.tokens.take_sums(turn_id, message.get("modelUsage"))
            if usage is not None:
                self._emit(usage)
        self.turns.result(message, frame)

    def on_request(self, request_id: str, request: dict[str, Any]) -> None:
        if self._holds(partial(self.on_request, request_id, request)):
            return
        try:
            if request.get("subtype") == "mcp_message":
                self._tools.take(request_id, request)
                return
            if self.questions.ask(request_id, request, self.thread_id, self.translator.turn_id):
                return
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            log.warning("a request of an unknown shape (%r): %.200r", problem, request)
        self._refuse(request_id, f"Laneway does not serve {request.get('subtype')}")

    def on_cancel(self, request_id: str) -> None:
        if self._holds(partial(self.on_cancel, request_id)):
            return
        self.questions.cancel(request_id)

    def on_end(self, how: str) -> None:
        self._look()
        self._release_held()
        self.turns.begin_accepted()
        self._has_run = False
        self._on_end(how)

    # ── the transcript ─────────────────────────────────────────────────────

    def _look(self) -> None:
        """Also for inputs whose start is reported later or never: each part is read only once."""
        unaccepted = self.turns.unaccepted
        if self.is_ephemeral:
            self.turns.accept({each.uuid for each in unaccepted if each.state == "started"})
        elif unaccepted:
            self.turns.accept(self.recorded.look({each.uuid for each in unaccepted}))

    def _watch_transcript(self) -> None:
        self._look()
        if self.turns.unaccepted and (self._watch is None or self._watch.done()):
            self._watch = asyncio.get_running_loop().create_task(self._keep_looking())

    async def _keep_looking(self) -> None:
        pause_s, waited_s = LOOK_S, 0.0
        while self._held is not None or any(each.state == "started" for each in self.turns.unaccepted):
            await asyncio.sleep(pause_s)
            waited_s = waited_s + pause_s if self._held is not None else 0.0
            pause_s = min(2 * pause_s, MAX_LOOK_S)
            self._look()
            turn_id = self.translator.turn_id
            is_early = any(each.turn_id == turn_id for each in self.turns.unaccepted)
            if self._held is not None and is_early and waited_s > HOLD_S:
                self._give_up()
            elif self._held is not None and not is_early:
                self._release_held()

    def _holds(self, work: Callable[[], None]) -> bool:
        """Whether this has to wait for the end of a turn that is not over yet."""
        if self._held is None:
            return False
        self._held.append(work)
        if len(self._held) > MAX_HELD:
            self._give_up()
        return True

    def _give_up(self) -> None:
        if not self.recorded.is_there:
            log.warning("Claude Code writes no transcript here: this session cannot be resumed")
            self.is_ephemeral = True
            self._look()
        else:
            log.warning("an input does not stand in the transcript, long after its answer")
        for given in self.turns.unaccepted:
            self.turns.forget(given)
        self._release_held()

    def _release_held(self) -> None:
        held, self._held = self._held, None
        for work in held or ():
            work()

    # ── the end ────────────────────────────────────────────────────────────

    def lost(self, loss: EngineLost) -> None:
        """The process is gone, and nothing is sent again."""
        self.questions.withdraw_all()
        self._subagents.lost(loss)
        for given in self.turns.unaccepted:
            self.turns.forget(given)
            given.fail(loss)
        self.translator.lost(loss)

    async def aclose(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
