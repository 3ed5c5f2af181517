"""One session of one client: its settings, its questions, its prompts, its past, its end.

Owns the parts and their lifetime. Each part is asked directly: `settings`, `questions`, `prompts`,
`commands`; what the narrator hears beside telling goes to `events`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.errors import SessionClosed
from laneway.commands.last_turns import LastTurns
from laneway.core import session_settings
from laneway.core.editor_sessions import SessionRecord
from laneway.core.kept_settings import KeptSettings
from laneway.core.ports import Part
from laneway.core.prompt_queue import PromptQueue, QueuePlace
from laneway.core.session import Session
from laneway.core.session_settings import Choices, Facts
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.client_channel import ClientChannel
from laneway.doors.acp.questions.open_questions import OpenQuestions
from laneway.doors.acp.sessions import options, prompts
from laneway.doors.acp.sessions.prompt_service import PromptService
from laneway.doors.acp.sessions.session_commands import SessionCommands
from laneway.doors.acp.sessions.session_events import SessionEvents
from laneway.doors.acp.shared import Shared
from laneway.doors.acp.updates.update_sink import UpdateSink


class SessionOwner(msgspec.Struct, frozen=True):
    """The client that a session belongs to, and what it lets a session ask for."""

    client: EditorClient
    line: ClientChannel
    fork: Callable[[EditorSession], Awaitable[str]]
    """Copy a session; the id of the new one."""
    login: Callable[[EditorSession], Awaitable[None]]


class OpenedSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session as it was opened."""

    session: Session
    narrator: UpdateSink
    """What its client hears of it."""
    session_id: str
    cwd: Path
    directories: tuple[str, ...] = ()
    choices: Choices = Choices()
    facts: Facts
    notes: tuple[str, ...] = ()
    """What the user should be told once the client knows the session."""
    is_titled: bool = False


class EditorSession:
    def __init__(self, house: Shared, owner: SessionOwner, opened: OpenedSession) -> None:
        self._owner = owner
        self.session = opened.session
        self.session_id = opened.session_id
        self.narrator = opened.narrator
        self.client = owner.client
        self.cwd = opened.cwd
        self.directories = opened.directories
        self.notes = opened.notes
        self.queue = PromptQueue()
        self.settings = KeptSettings(
            house.records,
            SessionRecord(
                session_id=opened.session_id,
                thread_id=opened.session.thread_id,
                cwd=str(opened.cwd),
                directories=opened.directories,
            ),
            opened.choices,
            opened.facts,
            lambda text: opened.narrator.notice("warning", text),
            lambda: None if opened.session.has_history else house.codex_home,
        )
        self.questions = OpenQuestions(
            opened.session,
            opened.narrator,
            owner.line,
            owner.client,
            self.queue,
            session_id=opened.session_id,
            cwd=str(opened.cwd),
        )
        last_turns = LastTurns()
        self.commands = SessionCommands(self, house, last_turns)
        self.prompts = PromptService(
            opened.session,
            opened.narrator,
            self.questions,
            self.queue,
            self.commands,
            self.settings.equipped,
            steers=house.steers,
            is_titled=opened.is_titled,
        )
        self.events = SessionEvents(self.questions, self.settings, last_turns, self.commands)
        self._works: set[asyncio.Task[None]] = set()
        self._pasts: set[asyncio.Task[None]] = set()
        """Histories that are being told, or wait for that."""
        self._is_closed = False

    @property
    def thread_id(self) -> str:
        return self.session.thread_id

    @property
    def turns(self) -> PromptService:
        """For commands that run one."""
        return self.prompts

    async def fork(self) -> str:
        """Copy this session; the id of the new one."""
        return await self._owner.fork(self)

    async def login(self) -> None:
        await self._owner.login(self)

    def parts(self, blocks: Any) -> tuple[Part, ...]:
        """A prompt's content blocks, as the session's model takes them."""
        images = session_settings.takes_images(self.settings.choices, self.settings.facts)
        return prompts.parts(blocks, images=images)

    def introduce(self) -> None:
        """The client knows the session: tell what has happened meanwhile, and go on telling."""
        self.narrator.open(self.session_id, self.thread_id, str(self.cwd), self.events)

    # ── what it is set to ──────────────────────────────────────────────────

    async def choose(self, config_id: str, value: Any) -> bool:
        """Change an option, for the next turn on; whether that changed the mode."""
        settings = self.settings
        return await settings.change(options.choose(settings.choices, settings.facts, config_id, value))

    def options(self) -> list[dict[str, Any]]:
        """All of them, as the client knows them."""
        return options.render(self.settings.choices, self.settings.facts, self.client)

    def modes(self) -> dict[str, Any]:
        return options.modes(self.settings.choices, self.settings.facts)

    def tell_options(self) -> None:
        self.narrator.tell_options(self.options())

    def tell_mode(self) -> None:
        mode = self.settings.choices.mode
        self.narrator.tell({"sessionUpdate": "current_mode_update", "currentModeId": mode})

    # ── its life ───────────────────────────────────────────────────────────

    def go_on(self, work: Coroutine[Any, Any, None]) -> None:
        """Serve a prompt that is answered before it is done (protocol 2), at the latest until `close`."""
        task = asyncio.get_running_loop().create_task(work)
        self._works.add(task)
        task.add_done_callback(self._works.discard)

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

    async def close(self) -> None:
        """Cancel, end everything that is open, give the thread up. Nothing is told behind it."""
        self._is_closed = True
        for telling in list(self._pasts):
            telling.cancel()
        if self._pasts:
            await asyncio.wait(self._pasts)
        self.prompts.cancel()
        await self.session.close()
        if self._works:
            await asyncio.wait(self._works)
        await self.settings.wait_kept()


async def _told(place: QueuePlace, tell: Callable[[], Coroutine[Any, Any, None]]) -> None:
    await place.reached()
    await tell()
