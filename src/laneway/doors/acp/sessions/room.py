"""One session of one client: its prompts in order, its options, its questions, its end.

A prompt is a turn of the core's `Session`, or a command (`laneway.doors.acp.slash.commands`), whose desk
this is. Events go to the narrator; this module decides what a prompt is answered with.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from laneway.base.errors import (
    EngineLost,
    EngineRefused,
    LanewayError,
    NoTurn,
    SessionClosed,
    ThreadUnknown,
)
from laneway.core.model import Activity, Question, TurnDone, TurnStarted, Usage, Withdrawn
from laneway.core.ports import Errand, Part, TextPart, TurnSpec
from laneway.core.session import Session
from laneway.core.turn import Turn, TurnResult
from laneway.doors.acp.asking.floor import Floor
from laneway.doors.acp.asking.spoken import SKIP
from laneway.doors.acp.client import Client
from laneway.doors.acp.faults import bad_params, in_words, stop_reason
from laneway.doors.acp.history.listing import short_title
from laneway.doors.acp.house import House
from laneway.doors.acp.line import Line
from laneway.doors.acp.sessions import prompts
from laneway.doors.acp.sessions.memory import Memory
from laneway.doors.acp.sessions.options import Choices, Facts
from laneway.doors.acp.sessions.queue import Place, Queue
from laneway.doors.acp.sessions.standing import Standing
from laneway.doors.acp.slash import commands
from laneway.doors.acp.slash.undo import LastTurn
from laneway.doors.acp.telling.voice import Voice
from laneway.store.editor_sessions import SessionRecord

log = logging.getLogger(__name__)

ONCE = frozenset({"thread/rollback"})
"""Calls about a thread that would do more if they were sent again; the others say or set what is."""


class Room:
    """A `voice.Listener` and a `commands.Desk`."""

    def __init__(
        self,
        house: House,
        session: Session,
        narrator: Voice,
        line: Line,
        client: Client,
        *,
        session_id: str,
        cwd: Path,
        choices: Choices,
        facts: Facts,
        directories: tuple[str, ...] = (),
        is_titled: bool = False,
        fork: Callable[[Room], Awaitable[str]],
        login: Callable[[Room], Awaitable[None]],
    ) -> None:
        self.house = house
        self.session = session
        self.session_id = session_id
        self.narrator = narrator
        self.client = client
        self.cwd = cwd
        self.directories = directories
        self.queue = Queue()
        self.notes: tuple[str, ...] = ()
        """What the user should be told once the client knows the session."""
        self.is_planning = False
        record = SessionRecord(
            session_id=session_id, thread_id=self.thread_id, cwd=str(cwd), directories=directories
        )
        self.standing = Standing(
            house.records, record, choices, facts, client, lambda text: narrator.notice("warning", text)
        )
        self._floor = Floor(
            session,
            narrator,
            line,
            client,
            self.queue,
            session_id=session_id,
            cwd=str(cwd),
            is_cancelling=self._is_cancelling,
        )
        self._memory = Memory()
        self._fork = fork
        self._login = login
        self._is_titled = is_titled
        self._turn: Turn | None = None
        self._command: asyncio.Future[str] | None = None
        self._works: set[asyncio.Task[None]] = set()
        self._pasts: set[asyncio.Task[None]] = set()
        """Histories that are being told, or wait for that."""
        self._is_closed = False

    @property
    def thread_id(self) -> str:
        return self.session.thread_id

    # ── prompts ────────────────────────────────────────────────────────────

    async def prompt(self, blocks: Any) -> dict[str, Any]:
        """Serve a prompt when its turn comes. Joins the queue before it first waits."""
        parts = self.parts(blocks)
        if self.may_steer(parts):
            return await self._steer(parts)
        return {"stopReason": await self.served(parts, self.queue.join())}

    def parts(self, blocks: Any) -> tuple[Part, ...]:
        return prompts.parts(blocks, images=self.standing.takes_images)

    def may_steer(self, parts: tuple[Part, ...]) -> bool:
        is_free = self._turn is not None and not self._floor.waits_for_words
        return self.house.steers and is_free and commands.find(parts) is None

    async def served(
        self, parts: tuple[Part, ...], place: Place, begin: Callable[[], None] | None = None
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
            self.queue.leave(place)
        return "cancelled" if place.is_cancelled else stop

    async def _reached(self, place: Place) -> bool:
        """Wait for a prompt's turn. It may answer a question, if it was sent after that was asked."""
        while await place.reached():
            if self.is_asking and self.queue.may_go(place):
                return True
            if await self._turn_over():
                return not place.is_cancelled
            self.queue.step_back(place)
        return False

    async def _turn_over(self) -> bool:
        """A turn whose question went unanswered may still run: its prompt was answered long ago.

        Wait for its end; false if it asks something else meanwhile.
        """
        turn = self._turn
        if turn is None:
            return True
        if not await self._ended(turn):
            return False
        self._leave_turn(turn)
        try:
            await turn.result()
        except LanewayError as error:
            log.info("a turn nobody waited for: %s", error)
        return True

    async def _serve(self, parts: tuple[Part, ...], place: Place) -> str:
        if self.is_asking:
            return await self._hear(parts, place)
        command = commands.find(parts)
        if command is None:
            self._entitle(parts)
            return await self.turn(parts)
        self._command = asyncio.ensure_future(commands.run(self, command))
        try:
            return await self._command
        except asyncio.CancelledError:
            self._command.cancel()
            if not place.is_cancelled:
                raise
            return "cancelled"
        finally:
            self._command = None

    async def turn(self, parts: tuple[Part, ...], native: dict[str, Any] | None = None) -> str:
        """A turn of the model."""
        return await self._run(TurnSpec(parts=parts, native=native or {}))

    async def errand(self, method: str, params: dict[str, Any]) -> str:
        """A turn that begins by another call."""
        return await self._run(TurnSpec(parts=(), errand=Errand(method, params)))

    async def _run(self, spec: TurnSpec) -> str:
        self._turn = self.session.say(self.standing.equipped(spec), events=False)
        place = self.queue.current
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
            self.narrator.notice("warning", in_words(result.failure.message))
        return reason

    async def _steer(self, parts: tuple[Part, ...]) -> dict[str, Any]:
        """By setting: into the running turn, whose end answers this prompt, too."""
        turn = self._turn
        assert turn is not None
        try:
            await self.session.steer(parts)
        except (NoTurn, EngineRefused):  # over in this instant, or a review or a compaction, which takes none
            return {"stopReason": await self.served(parts, self.queue.join())}
        return {"stopReason": stop_reason(await turn.result())}

    def cancel(self) -> None:
        """Everything that was asked for: what runs and what waits."""
        self.queue.cancel()
        self._floor.forget_words()
        self.session.cancel_all()
        if self._command is not None and self._turn is None:
            self._command.cancel()  # one that waits for something else than a turn

    def withdraw(self, place: Place) -> None:
        """One prompt: its client does not want it any more."""
        place.is_cancelled = True
        place.call()
        if place is self.queue.current and self._turn is not None:
            self._turn.cancel()

    def go_on(self, work: Coroutine[Any, Any, None]) -> None:
        """Serve a prompt that is answered before it is done (protocol 2), at the latest until `close`."""
        task = asyncio.get_running_loop().create_task(work)
        self._works.add(task)
        task.add_done_callback(self._works.discard)

    @property
    def is_asking(self) -> bool:
        """Whether the next prompt answers a question."""
        return self._floor.waits_for_words and self._turn is not None

    async def _hear(self, parts: tuple[Part, ...], place: Place) -> str:
        """A prompt that answers a question: its turn goes on, unless there is more to ask."""
        if not all(isinstance(part, TextPart) for part in parts):
            raise bad_params("A question is open, and only words can answer it. Send the image after that.")
        command = commands.find(parts)
        if command is not None and command.name != SKIP:
            self.narrator.say(
                f"/{command.name} was not run, because a question is open."
                f" Answer it, or say `{SKIP}` to give no answer, and try again."
            )
            return "end_turn"
        text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
        if not await self._floor.hear(text):
            return "end_turn"
        if place.is_cancelled and self._turn is not None:
            self._turn.cancel()
        return await self._wait()

    def _is_cancelling(self) -> bool:
        return self.queue.current is not None and self.queue.current.is_cancelled

    def _entitle(self, parts: tuple[Part, ...]) -> None:
        """The first words are the title, as Codex's own list shows it; no model is asked for a better one."""
        texts = (short_title(part.text) for part in parts if isinstance(part, TextPart))
        title = next(filter(None, texts), "")
        if title and not self._is_titled:
            self._is_titled = True
            self.narrator.tell({"sessionUpdate": "session_info_update", "title": title})

    # ── what the narrator tells ────────────────────────────────────────────

    def on_question(self, question: Question) -> None:
        self._floor.on_question(question)

    def on_withdrawn(self, gone: Withdrawn) -> None:
        self._floor.on_withdrawn(gone)

    def on_turn(self, event: TurnStarted | TurnDone) -> None:
        if isinstance(event, TurnStarted):
            self.standing.told()
            self._memory.begin()
        else:
            self._memory.end(event)
            self._floor.forget_words()

    def on_edit(self, activity: Activity) -> None:
        self._memory.edited(activity)

    def on_diff(self, diff: str) -> None:
        self._memory.differs(diff)

    def on_settings(self, settings: Any) -> None:
        """Codex says how it runs: shown where it differs from what the client was told."""
        if not isinstance(settings, dict):
            return
        mode = settings.get("collaborationMode")
        self.is_planning = isinstance(mode, dict) and mode.get("mode") == "plan"

    def on_thread(self, thread_id: str) -> None:
        self.standing.has_thread(thread_id)

    def on_gone(self) -> None:
        self._floor.on_gone()

    # ── options ────────────────────────────────────────────────────────────

    async def choose(self, config_id: str, value: Any) -> None:
        """As a command: the client is told, since it did not ask."""
        await self.chosen(config_id, value)
        self.tell_options()

    async def chosen(self, config_id: str, value: Any) -> bool:
        """Change an option, for the next turn on; whether that changed the mode."""
        return await self.standing.choose(config_id, value)

    def tell_options(self) -> None:
        self.narrator.tell_options(self.standing.shown())

    def tell_mode(self) -> None:
        self.narrator.tell({"sessionUpdate": "current_mode_update", "currentModeId": self.choices.mode})

    def shown_options(self) -> list[dict[str, Any]]:
        return self.standing.shown()

    def state(self) -> dict[str, Any]:
        """What `session/new`, `load` and `resume` answer with."""
        return {"modes": self.standing.modes(), "configOptions": self.standing.shown()}

    # ── the desk of the commands ───────────────────────────────────────────

    @property
    def choices(self) -> Choices:
        return self.standing.choices

    @property
    def facts(self) -> Facts:
        return self.standing.facts

    @property
    def usage(self) -> Usage | None:
        return self.session.usage

    @property
    def codex_version(self) -> str:
        return self.house.codex_version

    @property
    def last_turn(self) -> LastTurn | None:
        return self._memory.last

    def forget_turn(self, turn_id: str) -> None:
        self._memory.forget(turn_id)

    async def say(self, text: str) -> None:
        self.narrator.say(text)

    async def codex(self, method: str, params: dict[str, Any]) -> Any:
        if "threadId" not in params:
            return await self.house.engine.call(method, params)
        await self.session.wake()
        try:
            return await self.house.engine.call(method, params)
        except (EngineLost, ThreadUnknown):
            # Codex had died and nobody knew it, or a new one was started that knows nothing of this thread.
            if method in ONCE or not self.session.is_engine_lost:
                raise
        await self.session.wake()
        return await self.house.engine.call(method, params)

    async def fork(self) -> str:
        return await self._fork(self)

    async def login(self) -> None:
        await self._login(self)

    async def logout(self) -> None:
        await self.house.login.logout()

    # ── the past ───────────────────────────────────────────────────────────

    async def tell_past(self, tell: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Tell the history when its turn has come: prompts wait. `SessionClosed` if that comes first."""
        if self._is_closed:
            raise SessionClosed(f"Session {self.session_id} is closed")
        place = self.queue.join(is_prompt=False)  # before anything that the client sent after it
        telling = asyncio.get_running_loop().create_task(_told(place, tell))
        self._pasts.add(telling)
        telling.add_done_callback(self._pasts.discard)
        try:
            await telling
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if caller is None or caller.cancelling():
                raise
            raise SessionClosed(f"Session {self.session_id} was closed while it was told") from None
        finally:
            self.queue.leave(place)

    def ask_again(self) -> None:
        """Whoever has just been told the past was not told what is asked: no model said that."""
        self._floor.ask_again()

    # ── the end ────────────────────────────────────────────────────────────

    async def close(self) -> None:
        """Cancel, end everything that is open, give the thread up. Nothing is told behind it."""
        self._is_closed = True
        for telling in list(self._pasts):
            telling.cancel()
        if self._pasts:
            await asyncio.wait(self._pasts)
        self.cancel()
        await self.session.close()
        if self._works:
            await asyncio.wait(self._works)
        await self.standing.wait_kept()


async def _told(place: Place, tell: Callable[[], Coroutine[Any, Any, None]]) -> None:
    await place.reached()
    await tell()
