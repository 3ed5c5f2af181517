"""A replacement for the removed `codex mcp-server`: the same two tools, the same texts, on today's Codex.

No identity, limit, timeout or context of ours: it does what the old server did, or should have done.
The texts of its results are the old server's, because programs match them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from laneway.base.errors import (
    ConfigRefused,
    EngineLost,
    EngineRefused,
    LanewayError,
    LimitReached,
    ThreadUnknown,
)
from laneway.base.plain import plain
from laneway.core.hub import Hub
from laneway.core.ports import Clock, TextPart, ThreadSpec, TurnSpec
from laneway.core.session import Session
from laneway.core.turn import TurnResult
from laneway.doors.mcp import arguments as check
from laneway.doors.mcp.events import EventForwarder, Script
from laneway.doors.mcp.presets import SessionDefaults, spec_of
from laneway.doors.mcp.runs import ClientRun, InputRequired, Parking
from laneway.doors.mcp.schemas import CODEX, CODEX_REPLY, dropin_front
from laneway.doors.mcp.server import Call, McpServer, Offer
from laneway.doors.mcp.unattended import UnattendedQuestions

log = logging.getLogger(__name__)


class DropIn:
    """Serves `codex` and `codex-reply` on a hub. `defaults` come from the command line."""

    def __init__(
        self,
        hub: Hub,
        clock: Clock,
        defaults: SessionDefaults,
        script: Callable[[], Script],
    ) -> None:
        self._hub = hub
        self._clock = clock
        self._defaults = defaults
        self._script = script
        self._parking = Parking(clock)
        self._forwarders: dict[str, EventForwarder] = {}

    def server(self, version: str) -> McpServer:
        offers = (Offer(CODEX, self._codex), Offer(CODEX_REPLY, self._reply))
        info = dropin_front(version).info
        return McpServer(info, offers, on_unknown_tool=lambda name: error(f"Unknown tool '{name}'"))

    # ── the two tools ──────────────────────────────────────────────────────

    async def _codex(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        if call.params.get("requestState") is not None:
            return await self._continue_run(call)
        if call.params.get("arguments") is None:
            return error("Missing arguments for codex tool-call; the `prompt` field is required.")
        try:
            checked = check.of_codex(arguments)
        except check.BadArgument as problem:
            return error(f"Failed to parse configuration for Codex tool: {problem}")
        forwarder = self._new_forwarder(call)
        try:
            spec = await asyncio.to_thread(spec_of, self._defaults, checked)
            session = await self._start(call, spec, forwarder)
        except ConfigRefused as problem:
            return error(f"Failed to load Codex configuration from overrides: {problem}")
        except EngineRefused as problem:
            return error(f"Failed to load Codex configuration from overrides: {problem.message}")
        except LanewayError as problem:
            return error(f"Failed to start Codex session: {problem}")
        return await self._run(call, session, forwarder, checked["prompt"], is_new=True)

    def _new_forwarder(self, call: Call) -> EventForwarder:
        return EventForwarder(call.channel, self._script(), UnattendedQuestions(call, asks_everybody=True))

    async def _start(self, call: Call, spec: ThreadSpec, forwarder: EventForwarder) -> Session:
        try:
            return await self._hub.start(call.principal, spec, readers=(forwarder,))
        except LimitReached:
            # The old server had no limit. The session that was idle for longest can be resumed when needed.
            idle = next((s for s in self._hub.sessions(call.principal) if s.status == "idle"), None)
            if idle is None:
                raise
            await idle.close()
            return await self._hub.start(call.principal, spec, readers=(forwarder,))

    async def _reply(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        if call.params.get("requestState") is not None:
            return await self._continue_run(call)
        if call.params.get("arguments") is None:
            needed = "the `thread_id` and `prompt` fields are required."
            return error(f"Missing arguments for codex-reply tool-call; {needed}")
        try:
            checked = check.of_reply(arguments)
        except check.BadArgument as problem:
            return error(f"Failed to parse configuration for Codex tool: {problem}")
        thread_id_text = checked.get("threadId", checked.get("conversationId"))
        if thread_id_text is None:
            return error("Failed to parse thread_id: either threadId or conversationId must be provided")
        try:
            thread_id = check.thread_id(thread_id_text)
        except check.BadArgument as problem:
            return error(f"Failed to parse thread_id: {problem}")
        try:
            session, forwarder = await self._session(call, thread_id)
        except ThreadUnknown:
            return result(thread_id, f"Session not found for thread_id: {thread_id}", is_error=True)
        except LanewayError as problem:
            return result(thread_id, f"Failed to resume Codex session: {problem}", is_error=True)
        return await self._run(call, session, forwarder, checked["prompt"], is_new=False)

    async def _session(self, call: Call, thread_id: str) -> tuple[Session, EventForwarder]:
        """The thread's open session, or the thread resumed."""
        session = self._hub.by_thread(thread_id)
        if session is not None and session.principal == call.principal:
            return session, self._forwarders[session.agent_id]
        self._forwarders = {key: known for key, known in self._forwarders.items() if not known.is_closed}
        forwarder = self._new_forwarder(call)
        # A resumed thread keeps its settings; only what Codex must be given again comes from our flags.
        spec = ThreadSpec(cwd=self._defaults.cwd, config=self._defaults.config)
        session = await self._hub.resume(call.principal, thread_id, spec, readers=(forwarder,))
        # Another call may have resumed it first.
        return session, self._forwarders.get(session.agent_id, forwarder)

    # ── turns ──────────────────────────────────────────────────────────────

    async def _run(
        self, call: Call, session: Session, forwarder: EventForwarder, prompt: str, *, is_new: bool
    ) -> dict[str, Any]:
        forwarder.unattended.bind(session, {}, lambda question, how: log.info("%s: %s", question.kind, how))
        turn = session.say(TurnSpec(parts=(TextPart(prompt),)), events=False)
        run = ClientRun(call, session, turn, forwarder, self._clock, asks_everybody=True)
        self._forwarders[session.agent_id] = forwarder
        forwarder.open(session.info, {}, run, is_new=is_new)
        return await self._outcome(run)

    async def _continue_run(self, call: Call) -> dict[str, Any]:
        run = self._parking.take(call.principal, call.params.get("requestState"))
        run.attend(call)
        replies = call.params.get("inputResponses")
        await run.take_replies(replies if isinstance(replies, dict) else {})
        return await self._outcome(run)

    async def _outcome(self, run: ClientRun) -> dict[str, Any]:
        thread_id = run.session.thread_id
        try:
            outcome = await run.wait()
        except EngineLost as lost:
            return result(thread_id, f"{lost}. The next call starts it again.", is_error=True)
        except LanewayError as problem:
            return result(thread_id, str(problem), is_error=True)
        if isinstance(outcome, InputRequired):
            return {
                "resultType": "input_required",
                "inputRequests": run.inputs(outcome),
                "requestState": self._parking.park(run),
            }
        return turn_result(thread_id, outcome, run.notes)


def turn_result(thread_id: str, outcome: TurnResult, notes: list[str]) -> dict[str, Any]:
    """The tool result of a finished turn, in the old server's shape."""
    if outcome.status == "completed":
        return result(thread_id, "\n\n".join((outcome.text, *notes)))
    why = plain(outcome.failure.message) if outcome.failure else "the turn was interrupted"
    return result(thread_id, "\n\n".join((why, *notes)), is_error=True)


def result(thread_id: str, text: str, *, is_error: bool = False) -> dict[str, Any]:
    tool_result = {
        "content": [{"type": "text", "text": text}],
        "structuredContent": {"threadId": thread_id, "content": text},
    }
    return {**tool_result, "isError": True} if is_error else tool_result


def error(text: str) -> dict[str, Any]:
    """The tool result of a failure before there was a thread."""
    return {"content": [{"type": "text", "text": plain(text)}], "isError": True}
