"""The prompts of one session: served one at a time, by a turn of the model or by a command.

Decides what a prompt is answered with. A question that can only be asked in the conversation ends the
prompt; whether a later one answers it is told by the queue, and what it means by the floor.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from laneway.base.errors import EngineRefused, LanewayError, NoTurn
from laneway.commands import slash
from laneway.commands.session import CommandSession
from laneway.commands.words import one_line
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
from laneway.rendering.refusals import in_words

log = logging.getLogger(__name__)


class PromptService:
    def __init__(
        self,
        session: Session,
        voice: UpdateSink,
        floor: OpenQuestions,
        queue: PromptQueue,
        commands: CommandSession,
        equip: Callable[[TurnSpec], TurnSpec],
        *,
        steers: bool,
        is_titled: bool,
    ) -> None:
        """`equip` adds what the session is set to; `commands` is the session as its commands see it."""
        self._session = session
        self._voice = voice
        self._floor = floor
        self._queue = queue
        self._commands = commands
        self._equip = equip
        self._steers = steers
        self._is_titled = is_titled
        self._turn: Turn | None = None
        self._command: asyncio.Future[str | None] | None = None

    async def prompt(self, parts: tuple[Part, ...]) -> dict[str, Any]:
        """Serve a prompt when its turn comes. Joins the queue before it first waits."""
        if self.may_steer(parts):
            return await self._steer(parts)
        return {"stopReason": await self.served(parts, self._queue.join())}

    def may_steer(self, parts: tuple[Part, ...]) -> bool:
        is_free = self._turn is not None and not self._floor.waits_for_words
        return self._steers and is_free and slash.find(parts) is None

    async def served(
        self, parts: tuple[Part, ...], place: QueuePlace, begin: Callable[[], None] | None = None
    ) -> str:
        """The stop reason of a prompt; `begin` is called when its turn has come."""
        try:
            if not await self._reached(place):
                return "cancelled"
            if begin is not None:
                begin()
            stop = await self._serve(parts, place)
        except LanewayError:
            if not place.is_cancelled:
                raise
            return "cancelled"  # whatever it ended with, this is what the client wanted
        finally:
            self._queue.leave(place)
        return "cancelled" if place.is_cancelled else stop

    async def _reached(self, place: QueuePlace) -> bool:
        """Wait for a prompt's turn. It may answer a question, if it was sent after that was asked."""
        while await place.reached():
            if self.is_asking and self._queue.may_go(place):
                return True
            if await self._turn_over():
                return not place.is_cancelled
            self._queue.step_back(place)
        return False

    async def _turn_over(self) -> bool:
        """A turn whose question went unanswered may still run: its prompt was answered long ago.

        Wait for its end; false if something is asked meanwhile.
        """
        turn = self._turn
        if turn is None:
            return not self.is_asking  # a turn of Codex's own may ask, too
        if not await self._ended(turn):
            return False
        self._leave_turn(turn)
        try:
            await turn.result()
        except LanewayError as error:
            log.info("a turn nobody waited for: %s", error)
        return True

    async def _serve(self, parts: tuple[Part, ...], place: QueuePlace) -> str:
        if self.is_asking:
            return await self._hear(parts, place)
        command = slash.find(parts)
        if command is None:
            self._entitle(parts)
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
        """A turn of the model."""
        return await self._run(TurnSpec(parts=parts, plan_mode=plan_mode))

    async def errand(self, errand: SpecialTurn) -> str:
        """A turn that begins otherwise."""
        return await self._run(TurnSpec(parts=(), errand=errand))

    async def _run(self, spec: TurnSpec) -> str:
        self._turn = self._session.say(self._equip(spec), events=False)
        place = self._queue.current
        if place is not None and place.is_cancelled:
            self._turn.cancel()
        return await self._wait()

    async def _wait(self) -> str:
        """A prompt's stop reason: its turn is over, or waits for words that only another prompt can bring."""
        turn = self._turn
        assert turn is not None
        try:
            if not await self._ended(turn):
                return "end_turn"
        except asyncio.CancelledError:
            turn.cancel()
            raise
        self._leave_turn(turn)
        return self._stop_of(await turn.result())

    async def _ended(self, turn: Turn) -> bool:
        """Wait until it is over; false if it waits for words before that."""
        result = asyncio.ensure_future(turn.result())
        words = asyncio.ensure_future(self._floor.wait_words())
        try:
            await asyncio.wait((result, words), return_when=asyncio.FIRST_COMPLETED)
            return result.done()
        finally:
            for each in (result, words):
                each.cancel()
            await asyncio.gather(result, words, return_exceptions=True)

    def _leave_turn(self, turn: Turn) -> None:
        if self._turn is turn:
            self._turn = None

    def _stop_of(self, result: TurnResult) -> str:
        self._floor.end_pages()
        reason = stop_reason(result)
        if result.failure is not None:  # max_tokens, refusal: one word, to which Codex has more to say
            self._voice.notice("warning", in_words(result.failure.message))
        return reason

    async def _steer(self, parts: tuple[Part, ...]) -> dict[str, Any]:
        """By setting: into the running turn, whose end answers this prompt, too."""
        turn = self._turn
        assert turn is not None
        try:
            await self._session.steer(parts)
        except (NoTurn, EngineRefused):  # over in this instant, or a review or a compaction, which takes none
            return {"stopReason": await self.served(parts, self._queue.join())}
        return {"stopReason": stop_reason(await turn.result())}

    def cancel(self) -> None:
        """Everything that was asked for: what runs and what waits."""
        self._queue.cancel()
        self._floor.forget_words()
        self._session.cancel_all()
        if self._command is not None and self._turn is None:
            self._command.cancel()  # one that waits for something else than a turn

    def withdraw(self, place: QueuePlace) -> None:
        """One prompt: its client does not want it any more."""
        place.is_cancelled = True
        place.call()
        if place is self._queue.current and self._turn is not None:
            self._turn.cancel()

    @property
    def is_asking(self) -> bool:
        """Whether the next prompt answers a question, whoever asked for the turn that has it."""
        return self._floor.waits_for_words

    async def _hear(self, parts: tuple[Part, ...], place: QueuePlace) -> str:
        """A prompt that answers a question: its turn goes on, unless there is more to ask."""
        if not all(isinstance(part, TextPart) for part in parts):
            raise bad_params("A question is open, and only words can answer it. Send the image after that.")
        command = slash.find(parts)
        if command is not None and command.name != SKIP:
            self._voice.say(
                f"/{one_line(command.name)} was not run, because a question is open."
                f" Answer it, or say `{SKIP}` to give no answer, and try again."
            )
            return "end_turn"
        text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
        if not await self._floor.hear(text):
            return "end_turn"
        if self._turn is None:
            return "end_turn"  # it was asked in a turn that no prompt waits for
        if place.is_cancelled:
            self._turn.cancel()
        return await self._wait()

    def _entitle(self, parts: tuple[Part, ...]) -> None:
        """The first words are the title, as Codex's own list shows it; no model is asked for a better one."""
        texts = (short_title(part.text) for part in parts if isinstance(part, TextPart))
        title = next(filter(None, texts), "")
        if title and not self._is_titled:
            self._is_titled = True
            self._voice.tell({"sessionUpdate": "session_info_update", "title": title})
