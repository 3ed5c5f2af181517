"""The prompts of one session: runs one at a time, as a turn of the model or as a slash command.

Decides the stop reason of each prompt. A question that can only be asked as text ends the prompt that
led to it; the queue decides which later prompt may answer it, and `OpenQuestions` reads the answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from laneway.base.errors import EngineCannot, EngineRefused, LanewayError, NoTurn
from laneway.commands import slash
from laneway.commands.session import CommandSession
from laneway.commands.texts import one_line
from laneway.core.offers import PlanMode, SpecialTurn
from laneway.core.ports import Part, TextPart, TurnSpec
from laneway.core.prompt_queue import PromptQueue, QueuePlace
from laneway.core.session import Session
from laneway.core.turn import Turn, TurnResult
from laneway.doors.acp.faults import bad_params, stop_reason
from laneway.doors.acp.history.listing import short_title
from laneway.doors.acp.questions.open_questions import OpenQuestions
from laneway.doors.acp.updates.update_sink import UpdateSink
from laneway.rendering.questions_in_text import SKIP
from laneway.rendering.refusals import unwrapped_message

log = logging.getLogger(__name__)


class PromptService:
    def __init__(
        self,
        session: Session,
        sink: UpdateSink,
        questions: OpenQuestions,
        queue: PromptQueue,
        commands: CommandSession,
        apply_settings: Callable[[TurnSpec], TurnSpec],
        *,
        steers: bool,
        is_titled: bool,
    ) -> None:
        """`apply_settings` adds the session's settings to a turn; `commands` is passed to slash commands."""
        self._session = session
        self._sink = sink
        self._questions = questions
        self._queue = queue
        self._commands = commands
        self._apply_settings = apply_settings
        self._steers = steers
        self._is_titled = is_titled
        self._turn: Turn | None = None
        self._command: asyncio.Future[str | None] | None = None

    async def prompt(self, parts: tuple[Part, ...]) -> dict[str, Any]:
        """Serve a prompt when the queue reaches it. Joins the queue before it first waits."""
        if self.may_steer(parts):
            return await self._steer(parts)
        return {"stopReason": await self.serve(parts, self._queue.join())}

    def may_steer(self, parts: tuple[Part, ...]) -> bool:
        is_free = self._turn is not None and not self._questions.waits_for_text
        can_steer = self._steers and self._session.engine.offers.steering
        return can_steer and is_free and slash.find(parts) is None

    async def serve(
        self, parts: tuple[Part, ...], place: QueuePlace, begin: Callable[[], None] | None = None
    ) -> str:
        """Run a prompt and return its stop reason; `begin` is called when the queue has reached it."""
        try:
            if not await self._wait_reached(place):
                return "cancelled"
            if begin is not None:
                begin()
            stop = await self._run_prompt(parts, place)
        except LanewayError:
            if not place.is_cancelled:
                raise
            return "cancelled"  # the client asked for this, whatever error came of it
        finally:
            self._queue.leave(place)
        return "cancelled" if place.is_cancelled else stop

    async def _wait_reached(self, place: QueuePlace) -> bool:
        """Wait until the queue reaches a prompt; false if it was cancelled.

        A prompt that was sent after an open question may answer it, and need not wait for the turn.
        """
        while await place.wait_served():
            if self.is_asking and self._queue.may_serve(place):
                return True
            if await self._wait_turn_over():
                return not place.is_cancelled
            self._queue.requeue(place)
        return False

    async def _wait_turn_over(self) -> bool:
        """Wait for the end of a turn that runs on after its prompt ended with a question.

        False if another question is asked before that.
        """
        turn = self._turn
        if turn is None:
            return not self.is_asking  # a turn that Codex started by itself may ask, too
        if not await self._wait_ended(turn):
            return False
        self._clear_turn(turn)
        try:
            await turn.result()
        except LanewayError as error:
            log.info("a turn nobody waited for: %s", error)
        return True

    async def _run_prompt(self, parts: tuple[Part, ...], place: QueuePlace) -> str:
        if self.is_asking:
            return await self._answer_question(parts, place)
        command = slash.find(parts)
        if command is None:
            self._send_title(parts)
            return await self.turn(parts)
        self._command = asyncio.ensure_future(slash.run(self._commands, command))
        try:
            return await self._command or "end_turn"
        except asyncio.CancelledError:
            self._command.cancel()
            if not place.is_cancelled:
                raise
            return "cancelled"
        finally:
            self._command = None

    async def turn(self, parts: tuple[Part, ...], plan_mode: PlanMode | None = None) -> str:
        """Run a turn of the model; returns its stop reason."""
        return await self._run(TurnSpec(parts=parts, plan_mode=plan_mode))

    async def special_turn(self, special_turn: SpecialTurn) -> str:
        """Run a review or a compaction; returns its stop reason."""
        return await self._run(TurnSpec(parts=(), special_turn=special_turn))

    async def _run(self, spec: TurnSpec) -> str:
        self._turn = self._session.say(self._apply_settings(spec), events=False)
        place = self._queue.current
        if place is not None and place.is_cancelled:
            self._turn.cancel()
        return await self._wait()

    async def _wait(self) -> str:
        """The prompt's stop reason: its turn is over, or has a question that the next prompt must answer."""
        turn = self._turn
        assert turn is not None
        try:
            if not await self._wait_ended(turn):
                return "end_turn"
        except asyncio.CancelledError:
            turn.cancel()
            raise
        self._clear_turn(turn)
        return self._stop_reason(await turn.result())

    async def _wait_ended(self, turn: Turn) -> bool:
        """Wait until the turn is over; false if a question in text is asked before that."""
        result = asyncio.ensure_future(turn.result())
        question = asyncio.ensure_future(self._questions.wait_text_question())
        try:
            await asyncio.wait((result, question), return_when=asyncio.FIRST_COMPLETED)
            return result.done()
        finally:
            for future in (result, question):
                future.cancel()
            await asyncio.gather(result, question, return_exceptions=True)

    def _clear_turn(self, turn: Turn) -> None:
        if self._turn is turn:
            self._turn = None

    def _stop_reason(self, result: TurnResult) -> str:
        self._questions.complete_urls()
        reason = stop_reason(result)
        if result.failure is not None:  # max_tokens, refusal: Codex's message says more
            self._sink.send_notice("warning", unwrapped_message(result.failure.message))
        return reason

    async def _steer(self, parts: tuple[Part, ...]) -> dict[str, Any]:
        """Put a prompt into the running turn, whose end answers this prompt, too (by setting)."""
        turn = self._turn
        assert turn is not None
        try:
            await self._session.steer(parts)
        except (
            NoTurn,
            EngineRefused,
            EngineCannot,
        ):  # just over, or a review or a compaction, which takes no prompts
            return {"stopReason": await self.serve(parts, self._queue.join())}
        return {"stopReason": stop_reason(await turn.result())}

    def cancel(self) -> None:
        """Cancel the prompt that runs and all that wait."""
        self._queue.cancel()
        self._questions.drop_text_questions()
        self._session.cancel_all()
        if self._command is not None and self._turn is None:
            self._command.cancel()  # a command that is not in a turn

    def withdraw(self, place: QueuePlace) -> None:
        """Cancel one prompt."""
        place.is_cancelled = True
        place.serve()
        if place is self._queue.current and self._turn is not None:
            self._turn.cancel()

    @property
    def is_asking(self) -> bool:
        """Whether the next prompt answers a question; its turn may be one that no prompt started."""
        return self._questions.waits_for_text

    async def _answer_question(self, parts: tuple[Part, ...], place: QueuePlace) -> str:
        """A prompt that answers a question: wait for the turn, unless there is more to ask."""
        if not all(isinstance(part, TextPart) for part in parts):
            raise bad_params("A question is open, and only words can answer it. Send the image after that.")
        command = slash.find(parts)
        if command is not None and command.name != SKIP:
            self._sink.send_message(
                f"/{one_line(command.name)} was not run, because a question is open."
                f" Answer it, or say `{SKIP}` to give no answer, and try again."
            )
            return "end_turn"
        text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
        if not await self._questions.answer_by_text(text):
            return "end_turn"
        if self._turn is None:
            return "end_turn"  # asked in a turn that no prompt waits for
        if place.is_cancelled:
            self._turn.cancel()
        return await self._wait()

    def _send_title(self, parts: tuple[Part, ...]) -> None:
        """Send the first line of the first prompt as the session's title, as in Codex's own list."""
        texts = (short_title(part.text) for part in parts if isinstance(part, TextPart))
        title = next(filter(None, texts), "")
        if title and not self._is_titled:
            self._is_titled = True
            self._sink.send({"sessionUpdate": "session_info_update", "title": title})
