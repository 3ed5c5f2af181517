"""The `CommandSession` of an engine's lane: what `/review`, `/diff`, `/undo`, `/model` … read and do there.

Commands about accounts and about Laneway itself are left out: a conversation has its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from laneway.base.errors import EngineLost, ThreadUnknown, UsageError
from laneway.commands import slash
from laneway.commands.last_turns import LastTurns
from laneway.commands.undo import LastTurn
from laneway.core import session_settings
from laneway.core.access import Permit, whole
from laneway.core.model import Activity, Diff, Event, SettingsChanged, TurnDone, TurnStarted, Usage
from laneway.core.offers import Offers, PlanMode, SpecialTurn
from laneway.core.ports import ImagePart, Part, TurnSpec
from laneway.core.session import Session
from laneway.core.session_settings import Choices, Facts
from laneway.core.turn import TurnResult
from laneway.lanes.contract import LaneCommand

T = TypeVar("T")
RunTurn = Callable[[TurnSpec], Awaitable[TurnResult]]
_LEFT_OUT = frozenset({"fork", "help", "login", "logout"})


def lane_commands(offers: Offers) -> tuple[LaneCommand, ...]:
    """The commands of a lane whose engine has these offers."""
    return tuple(
        LaneCommand(command.name, command.description)
        for command in slash.available(offers)
        if command.name not in _LEFT_OUT
    )


async def facts_of(session: Session) -> Facts:
    """What holds in a session without a choice of the user's. Asks the engine, not its model."""
    engine = session.engine
    models = await engine.models()
    access = engine.offers.access
    if access is None:
        model = session.spec.model or (models[0].model if models else "")
        unknown = Permit(sandbox=whole(None))
        return Facts(models=models, model=model, running=unknown, configured=unknown)
    state = access.state(session.info.native)
    return session_settings.new_facts(state, models, await access.config(str(session.spec.cwd)))


class EngineCommands:
    """One for each session: it remembers the last turns, for `/undo`, and what the user chose."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._facts: Facts | None = None
        self.engine_version = ""
        self.choices = Choices()
        self.is_planning = False
        self._last_turns = LastTurns()
        self._run_turn: RunTurn | None = None
        self._say: Callable[[str], None] | None = None

    async def run(
        self,
        name: str,
        arguments: str,
        images: tuple[ImagePart, ...],
        run_turn: RunTurn,
        say: Callable[[str], None],
    ) -> None:
        """Run one command: `run_turn` runs a turn of the engine, `say` shows a text."""
        if name in _LEFT_OUT:
            raise UsageError(f"/{name} is not a command of a lane.")
        await self._look()
        self._run_turn, self._say = run_turn, say
        try:
            await slash.run(self, slash.Invocation(name, arguments, images))
        finally:
            self._run_turn = self._say = None

    def with_choices(self, spec: TurnSpec) -> TurnSpec:
        """The turn with the model that the user chose."""
        return msgspec.structs.replace(
            spec, model=spec.model or self.choices.model, effort=spec.effort or self.choices.effort
        )

    async def _look(self) -> None:
        """Ask the engine, once, for what commands need to know of it."""
        if self._facts is None:
            self.engine_version = (await self._session.engine.abilities()).version
            self._facts = await facts_of(self._session)

    async def no_images(self) -> str | None:
        """Why the model takes no images, if so."""
        await self._look()
        if session_settings.takes_images(self.choices, self.facts):
            return None
        model = session_settings.current_model(self.choices, self.facts)
        return f"The model {model} takes no images. Choose another with /model, or describe the image."

    def on_event(self, event: Event) -> None:
        """An event of the session, on the engine's reader."""
        match event:
            case TurnStarted():
                self._last_turns.begin()
            case Activity(kind="edit"):
                self._last_turns.add_edit(event)
            case Diff(diff=diff):
                self._last_turns.set_diff(diff)
            case TurnDone():
                self._last_turns.end(event)
            case SettingsChanged(settings=settings) if self.offers.planning is not None:
                self.is_planning = self.offers.planning.is_on(settings)
            case _:
                pass

    # ── state ──────────────────────────────────────────────────────────────

    @property
    def facts(self) -> Facts:
        assert self._facts is not None, "asked before a command runs"
        return self._facts

    @property
    def session_id(self) -> str:
        return self._session.thread_id

    @property
    def thread_id(self) -> str:
        return self._session.thread_id

    @property
    def cwd(self) -> Path:
        return self._session.spec.cwd

    @property
    def offers(self) -> Offers:
        return self._session.engine.offers

    @property
    def usage(self) -> Usage | None:
        return self._session.usage

    @property
    def engine_name(self) -> str:
        return self._session.engine.name

    @property
    def last_turn(self) -> LastTurn | None:
        return self._last_turns.last

    # ── actions ────────────────────────────────────────────────────────────

    async def say(self, text: str) -> None:
        assert self._say is not None
        self._say(text)

    async def turn(self, parts: tuple[Part, ...], plan_mode: PlanMode | None = None) -> str:
        return await self._run(TurnSpec(parts=parts, plan_mode=plan_mode))

    async def special_turn(self, special_turn: SpecialTurn) -> str:
        return await self._run(TurnSpec(parts=(), special_turn=special_turn))

    async def _run(self, spec: TurnSpec) -> str:
        assert self._run_turn is not None
        return (await self._run_turn(spec)).status

    async def call_engine(self, call: Callable[[], Awaitable[T]], *, may_repeat: bool = True) -> T:
        session = self._session
        await session.wake()
        try:
            return await call()
        except (EngineLost, ThreadUnknown):
            # It had died unnoticed, or another process was started that does not have this thread loaded.
            if not (may_repeat and session.is_engine_lost):
                raise
        await session.wake()
        return await call()

    async def choose(self, setting_id: str, value: Any) -> None:
        self.choices = session_settings.choose(self.choices, self.facts, setting_id, value)

    async def fork(self) -> str:
        raise UsageError("A lane's session cannot be copied here.")

    async def login(self) -> None:
        raise UsageError("Log in in a terminal.")

    async def logout(self) -> None:
        raise UsageError("Log out in a terminal.")

    def forget_turn(self, turn_id: str) -> None:
        self._last_turns.forget(turn_id)
