"""The removed `codex mcp-server`, repaired: the same two tools, the same words, on today's Codex.

No identity, no limit, no timeout, no context of ours: what the old server did, and what it
should have done. The texts of its results are its own, because programs match them.
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
from laneway.doors.mcp.events import Script, Teller
from laneway.doors.mcp.presets import House, spec_of
from laneway.doors.mcp.runs import InputRequired, Parking, Run
from laneway.doors.mcp.schemas import CODEX, CODEX_REPLY, dropin_front
from laneway.doors.mcp.server import Call, Offer, Server
from laneway.doors.mcp.unattended import UnattendedQuestions

log = logging.getLogger(__name__)


class DropIn:
    """Serves `codex` and `codex-reply` on a hub. `house` is what its flags say."""

    def __init__(
        self,
        hub: Hub,
        clock: Clock,
        house: House,
        script: Callable[[], Script],
    ) -> None:
        self._hub = hub
        self._clock = clock
        self._house = house
        self._script = script
        self._parking = Parking(clock)
        self._tellers: dict[str, Teller] = {}

    def server(self, version: str) -> Server:
        offers = (Offer(CODEX, self._codex), Offer(CODEX_REPLY, self._reply))
        info = dropin_front(version).info
        return Server(info, offers, on_unknown_tool=lambda name: error(f"Unknown tool '{name}'"))

    # ── the two tools ──────────────────────────────────────────────────────

    async def _codex(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        if call.params.get("requestState") is not None:
            return await self._go_on(call)
        if call.params.get("arguments") is None:
            return error("Missing arguments for codex tool-call; the `prompt` field is required.")
        try:
            wanted = check.of_codex(arguments)
        except check.Refused as problem:
            return error(f"Failed to parse configuration for Codex tool: {problem}")
        teller = self._teller(call)
        try:
            spec = await asyncio.to_thread(spec_of, self._house, wanted)
            session = await self._start(call, spec, teller)
        except ConfigRefused as problem:
            return error(f"Failed to load Codex configuration from overrides: {problem}")
        except EngineRefused as problem:
            return error(f"Failed to load Codex configuration from overrides: {problem.message}")
        except LanewayError as problem:
            return error(f"Failed to start Codex session: {problem}")
        return await self._run(call, session, teller, wanted["prompt"], is_new=True)

    def _teller(self, call: Call) -> Teller:
        return Teller(call.line, self._script(), UnattendedQuestions(call, asks_everybody=True))

    async def _start(self, call: Call, spec: ThreadSpec, teller: Teller) -> Session:
        try:
            return await self._hub.start(call.principal, spec, readers=(teller,))
        except LimitReached:
            # The old server had no limit. What has been quiet for longest can be resumed when it is wanted.
            idle = next((s for s in self._hub.sessions(call.principal) if s.status == "idle"), None)
            if idle is None:
                raise
            await idle.close()
            return await self._hub.start(call.principal, spec, readers=(teller,))

    async def _reply(self, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        if call.params.get("requestState") is not None:
            return await self._go_on(call)
        if call.params.get("arguments") is None:
            needed = "the `thread_id` and `prompt` fields are required."
            return error(f"Missing arguments for codex-reply tool-call; {needed}")
        try:
            wanted = check.of_reply(arguments)
        except check.Refused as problem:
            return error(f"Failed to parse configuration for Codex tool: {problem}")
        given = wanted.get("threadId", wanted.get("conversationId"))
        if given is None:
            return error("Failed to parse thread_id: either threadId or conversationId must be provided")
        try:
            thread_id = check.thread_id(given)
        except check.Refused as problem:
            return error(f"Failed to parse thread_id: {problem}")
        try:
            session, teller = await self._session(call, thread_id)
        except ThreadUnknown:
            return result(thread_id, f"Session not found for thread_id: {thread_id}", is_error=True)
        except LanewayError as problem:
            return result(thread_id, f"Failed to resume Codex session: {problem}", is_error=True)
        return await self._run(call, session, teller, wanted["prompt"], is_new=False)

    async def _session(self, call: Call, thread_id: str) -> tuple[Session, Teller]:
        """The thread's session: the one that is open, or the thread resumed."""
        session = self._hub.by_thread(thread_id)
        if session is not None and session.principal == call.principal:
            return session, self._tellers[session.agent_id]
        self._tellers = {key: told for key, told in self._tellers.items() if not told.is_closed}
        teller = self._teller(call)
        # A resumed thread is as it was; nothing of our flags but where Codex must know it again.
        spec = ThreadSpec(cwd=self._house.cwd, config=self._house.config)
        session = await self._hub.resume(call.principal, thread_id, spec, readers=(teller,))
        return session, self._tellers.get(session.agent_id, teller)  # another call may have been quicker

    # ── turns ──────────────────────────────────────────────────────────────

    async def _run(
        self, call: Call, session: Session, teller: Teller, prompt: str, *, is_new: bool
    ) -> dict[str, Any]:
        teller.unattended.bind(session, {}, lambda question, how: log.info("%s: %s", question.kind, how))
        turn = session.say(TurnSpec(parts=(TextPart(prompt),)), events=False)
        run = Run(call, session, turn, teller, self._clock, asks_everybody=True)
        self._tellers[session.agent_id] = teller
        teller.open(session.info, {}, run, is_new=is_new)
        return await self._outcome(run)

    async def _go_on(self, call: Call) -> dict[str, Any]:
        run = self._parking.take(call.principal, call.params.get("requestState"))
        run.attend(call)
        replies = call.params.get("inputResponses")
        await run.take(replies if isinstance(replies, dict) else {})
        return await self._outcome(run)

    async def _outcome(self, run: Run) -> dict[str, Any]:
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
        return told(thread_id, outcome, run.notes)


def told(thread_id: str, outcome: TurnResult, notes: list[str]) -> dict[str, Any]:
    """A turn's end in the old server's shape."""
    if outcome.status == "completed":
        return result(thread_id, "\n\n".join((outcome.text, *notes)))
    why = plain(outcome.failure.message) if outcome.failure else "the turn was interrupted"
    return result(thread_id, "\n\n".join((why, *notes)), is_error=True)


def result(thread_id: str, text: str, *, is_error: bool = False) -> dict[str, Any]:
    shown = {
        "content": [{"type": "text", "text": text}],
        "structuredContent": {"threadId": thread_id, "content": text},
    }
    return {**shown, "isError": True} if is_error else shown


def error(text: str) -> dict[str, Any]:
    """A failure before there was a thread."""
    return {"content": [{"type": "text", "text": plain(text)}], "isError": True}
