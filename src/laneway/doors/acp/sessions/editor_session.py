"""One session of one ACP client: settings, questions, prompts, commands, history replays and the close.

Owns these parts and their lifetime; callers use the parts directly (`settings`, `questions`, `prompts`,
`commands`). `events` gets those events of the sink that are more than updates for the client.
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
from laneway.core.background import TaskSet
from laneway.core.editor_sessions import SessionRecord
from laneway.core.ports import Part
from laneway.core.prompt_queue import PromptQueue, QueuePlace
from laneway.core.session import Session
from laneway.core.session_settings import Choices, Facts
from laneway.core.stored_settings import StoredSettings
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
    """The client that a session belongs to, and the services of its agent that commands need."""

    client: EditorClient
    channel: ClientChannel
    fork: Callable[[EditorSession], Awaitable[str]]
    """Copy a session; returns the id of the copy."""
    login: Callable[[EditorSession], Awaitable[None]]


class OpenedSession(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of a new `EditorSession`: the core session with everything known about it."""

    session: Session
    sink: UpdateSink
    """Sends the session's updates to the client."""
    session_id: str
    cwd: Path
    directories: tuple[str, ...] = ()
    choices: Choices = Choices()
    facts: Facts
    notes: tuple[str, ...] = ()
    """Warnings for the user, sent once the client knows the session."""
    is_titled: bool = False


class EditorSession:
    def __init__(self, shared: Shared, owner: SessionOwner, opened: OpenedSession) -> None:
        self._owner = owner
        self.session = opened.session
        self.session_id = opened.session_id
        self.sink = opened.sink
        self.client = owner.client
        self.cwd = opened.cwd
        self.directories = opened.directories
        self.notes = opened.notes
        self.queue = PromptQueue()
        self.settings = StoredSettings(
            shared.records,
            SessionRecord(
                session_id=opened.session_id,
                thread_id=opened.session.thread_id,
                cwd=str(opened.cwd),
                directories=opened.directories,
            ),
            opened.choices,
            opened.facts,
            lambda text: opened.sink.send_notice("warning", text),
            lambda: None if opened.session.has_history else shared.codex_home,
        )
        self.questions = OpenQuestions(
            opened.session,
            opened.sink,
            owner.channel,
            owner.client,
            self.queue,
            session_id=opened.session_id,
            cwd=str(opened.cwd),
        )
        last_turns = LastTurns()
        self.commands = SessionCommands(self, shared, last_turns)
        self.prompts = PromptService(
            opened.session,
            opened.sink,
            self.questions,
            self.queue,
            self.commands,
            self.settings.turn_with_settings,
            steers=shared.steers,
            is_titled=opened.is_titled,
        )
        self.events = SessionEvents(self.questions, self.settings, last_turns, self.commands)
        self._tasks = TaskSet()
        self._replays = TaskSet()
        """History replays that run or wait for their place in the queue."""
        self._is_closed = False

    @property
    def thread_id(self) -> str:
        return self.session.thread_id

    @property
    def turns(self) -> PromptService:
        """For commands that run turns."""
        return self.prompts

    async def fork(self) -> str:
        """Copy this session; returns the id of the copy."""
        return await self._owner.fork(self)

    async def login(self) -> None:
        await self._owner.login(self)

    def parts(self, blocks: Any) -> tuple[Part, ...]:
        """A prompt's content blocks as parts of a turn; images only if the session's model takes them."""
        engine = self.session.engine
        images = session_settings.takes_images(self.settings.choices, self.settings.facts)
        if not engine.offers.images:
            return prompts.parts(blocks, images=False, no_images=prompts.NO_IMAGES.format(engine.name))
        return prompts.parts(blocks, images=images)

    def start_updates(self) -> None:
        """Send the updates held until now, and all later ones: the client knows the session."""
        self.sink.open(
            self.session_id,
            self.thread_id,
            str(self.cwd),
            self.events,
            engine=self.session.engine.name,
        )

    # ── options ────────────────────────────────────────────────────────────

    async def choose(self, config_id: str, value: Any) -> bool:
        """Change an option, from the next turn on; returns whether that changed the mode."""
        settings = self.settings
        return await settings.change(options.choose(settings.choices, settings.facts, config_id, value))

    def options(self) -> list[dict[str, Any]]:
        """All options as `configOptions`."""
        return options.render(self.settings.choices, self.settings.facts, self.client)

    def modes(self) -> dict[str, Any]:
        return options.modes(self.settings.choices, self.settings.facts)

    def send_options(self) -> None:
        self.sink.send_options(self.options())

    def send_mode(self) -> None:
        mode = self.settings.choices.mode
        self.sink.send({"sessionUpdate": "current_mode_update", "currentModeId": mode})

    # ── tasks, history, close ──────────────────────────────────────────────

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a prompt that was answered before it was done (protocol 2); `close` waits for it."""
        self._tasks.spawn(work, "a prompt")

    async def send_history(self, send: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Send the history at its place in the queue, so that prompts wait for it.

        `SessionClosed` if the session is closed before that.
        """
        if self._is_closed:
            raise SessionClosed(f"Session {self.session_id} is closed")
        place = self.queue.join(is_prompt=False)  # before all prompts that the client sends later
        replay = self._replays.spawn(_send_at(place, send), "a replay")
        try:
            await replay
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if caller is None or caller.cancelling():
                raise
            raise SessionClosed(f"Session {self.session_id} was closed while it was told") from None
        finally:
            self.queue.leave(place)

    async def close(self) -> None:
        """Cancel all prompts and questions, close the thread, and wait. No update is sent after this."""
        self._is_closed = True
        await self._replays.cancel()
        self.prompts.cancel()
        await self.session.close()
        await self._tasks.wait()
        await self.settings.wait_saved()


async def _send_at(place: QueuePlace, send: Callable[[], Coroutine[Any, Any, None]]) -> None:
    await place.wait_served()
    await send()
