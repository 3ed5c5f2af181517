"""One session of one client: its options, its questions, its past, its end.

Its prompts are served by `laneway.doors.acp.sessions.service`; this is the desk of their commands, and
the one whom the narrator tells what is more than telling.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from laneway.base.errors import EngineLost, SessionClosed, ThreadUnknown
from laneway.core.model import Activity, Question, TurnDone, TurnStarted, Usage, Withdrawn
from laneway.core.ports import Part
from laneway.core.session import Session
from laneway.doors.acp.asking.floor import Floor
from laneway.doors.acp.client import Client
from laneway.doors.acp.house import House
from laneway.doors.acp.line import Line
from laneway.doors.acp.sessions import prompts
from laneway.doors.acp.sessions.memory import Memory
from laneway.doors.acp.sessions.options import Choices, Facts
from laneway.doors.acp.sessions.queue import Place, Queue
from laneway.doors.acp.sessions.service import Service
from laneway.doors.acp.sessions.standing import Standing
from laneway.doors.acp.slash.undo import LastTurn
from laneway.doors.acp.telling.voice import Voice
from laneway.store.editor_sessions import SessionRecord

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
            house.records,
            record,
            choices,
            facts,
            client,
            lambda text: narrator.notice("warning", text),
            lambda: None if session.has_history else house.codex_home,
        )
        self._floor = Floor(
            session,
            narrator,
            line,
            client,
            self.queue,
            session_id=session_id,
            cwd=str(cwd),
        )
        self.service = Service(
            session,
            narrator,
            self._floor,
            self.queue,
            self,
            self.standing.equipped,
            steers=house.steers,
            is_titled=is_titled,
        )
        self._memory = Memory()
        self._fork = fork
        self._login = login
        self._works: set[asyncio.Task[None]] = set()
        self._pasts: set[asyncio.Task[None]] = set()
        """Histories that are being told, or wait for that."""
        self._is_closed = False

    @property
    def thread_id(self) -> str:
        return self.session.thread_id

    # ── prompts ────────────────────────────────────────────────────────────

    async def prompt(self, blocks: Any) -> dict[str, Any]:
        return await self.service.prompt(self.parts(blocks))

    def parts(self, blocks: Any) -> tuple[Part, ...]:
        return prompts.parts(blocks, images=self.standing.takes_images)

    def cancel(self) -> None:
        """Everything that was asked for: what runs and what waits."""
        self.service.cancel()

    def go_on(self, work: Coroutine[Any, Any, None]) -> None:
        """Serve a prompt that is answered before it is done (protocol 2), at the latest until `close`."""
        task = asyncio.get_running_loop().create_task(work)
        self._works.add(task)
        task.add_done_callback(self._works.discard)

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
            self.standing.spoken()
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

    async def turn(self, parts: tuple[Part, ...], native: dict[str, Any] | None = None) -> str:
        return await self.service.turn(parts, native)

    async def errand(self, method: str, params: dict[str, Any]) -> str:
        return await self.service.errand(method, params)

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
