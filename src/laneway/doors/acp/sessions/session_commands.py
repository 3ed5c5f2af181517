"""The `CommandSession` of an ACP session: what slash commands can read and do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from laneway.base.errors import EngineLost, ThreadUnknown
from laneway.commands.last_turns import LastTurns
from laneway.commands.undo import LastTurn
from laneway.core.model import Usage
from laneway.core.offers import Offers, PlanMode, SpecialTurn
from laneway.core.ports import Part
from laneway.core.session import Session
from laneway.core.session_settings import Choices, Facts
from laneway.core.stored_settings import StoredSettings
from laneway.doors.acp.shared import Shared
from laneway.doors.acp.updates.update_sink import UpdateSink

T = TypeVar("T")


class Turns(Protocol):
    """Runs the session's turns."""

    async def turn(self, parts: tuple[Part, ...], plan_mode: PlanMode | None = None) -> str: ...

    async def special_turn(self, special_turn: SpecialTurn) -> str: ...


class CommandedSession(Protocol):
    """The part of `EditorSession` that commands need."""

    session: Session
    session_id: str
    cwd: Path
    sink: UpdateSink
    settings: StoredSettings

    @property
    def turns(self) -> Turns: ...

    async def choose(self, config_id: str, value: Any) -> bool: ...

    def send_options(self) -> None: ...

    async def fork(self) -> str: ...

    async def login(self) -> None: ...


class SessionCommands:
    def __init__(self, editor: CommandedSession, shared: Shared, last_turns: LastTurns) -> None:
        self._editor = editor
        self._shared = shared
        self._last_turns = last_turns
        self.is_planning = False
        self.on_settings(editor.session.info.native)

    # ── state ──────────────────────────────────────────────────────────────

    @property
    def session_id(self) -> str:
        return self._editor.session_id

    @property
    def thread_id(self) -> str:
        return self._editor.session.thread_id

    @property
    def cwd(self) -> Path:
        return self._editor.cwd

    @property
    def offers(self) -> Offers:
        return self._shared.engine.offers

    @property
    def choices(self) -> Choices:
        return self._editor.settings.choices

    @property
    def facts(self) -> Facts:
        return self._editor.settings.facts

    @property
    def usage(self) -> Usage | None:
        return self._editor.session.usage

    @property
    def engine_name(self) -> str:
        return self._shared.engine.name

    @property
    def engine_version(self) -> str:
        return self._shared.engine_version

    @property
    def last_turn(self) -> LastTurn | None:
        return self._last_turns.last

    def on_settings(self, settings: Any) -> None:
        """The engine reported its settings, which tell whether plan mode is on."""
        if isinstance(settings, dict) and self.offers.planning is not None:
            self.is_planning = self.offers.planning.is_on(settings)

    # ── actions ────────────────────────────────────────────────────────────

    async def say(self, text: str) -> None:
        self._editor.sink.send_message(text)

    async def turn(self, parts: tuple[Part, ...], plan_mode: PlanMode | None = None) -> str:
        return await self._editor.turns.turn(parts, plan_mode)

    async def special_turn(self, special_turn: SpecialTurn) -> str:
        return await self._editor.turns.special_turn(special_turn)

    async def call_engine(self, call: Callable[[], Awaitable[T]], *, may_repeat: bool = True) -> T:
        session = self._editor.session
        await session.wake()
        try:
            return await call()
        except (EngineLost, ThreadUnknown):
            # Codex had died unnoticed, or a new one was started that does not have this thread loaded.
            if not (may_repeat and session.is_engine_lost):
                raise
        await session.wake()
        return await call()

    async def choose(self, setting_id: str, value: Any) -> None:
        """Change an option and send the options to the client, which did not request the change."""
        await self._editor.choose(setting_id, value)
        self._editor.send_options()

    async def fork(self) -> str:
        return await self._editor.fork()

    async def login(self) -> None:
        await self._editor.login()

    async def logout(self) -> None:
        await self._shared.login.logout()

    def forget_turn(self, turn_id: str) -> None:
        self._last_turns.forget(turn_id)
