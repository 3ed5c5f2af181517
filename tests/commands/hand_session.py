"""A `CommandSession` driven by hand: records what commands show and ask; a test sets the answers of Codex."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from laneway.base.errors import EngineRefused
from laneway.codex import special_turns
from laneway.codex.account import LoginLink
from laneway.codex.offers import offers
from laneway.codex.turn_settings import plan_settings
from laneway.commands.undo import LastTurn
from laneway.core.access import Permit
from laneway.core.model import Usage
from laneway.core.models import Effort, Model
from laneway.core.offers import PlanMode, SpecialTurn
from laneway.core.ports import Part
from laneway.core.session_settings import Choices, Facts
from laneway.doors.acp.sessions import options

T = TypeVar("T")
READ_ONLY = Permit(sandbox={"type": "readOnly", "networkAccess": False})
MODELS = (
    Model("gpt-5.5", name="GPT-5.5", description="Thinks\nlong.", efforts=(Effort("low"), Effort("high"))),
    Model("gpt-5.5-mini", name="GPT-5.5 mini", description="Is quick."),
    Model("gpt-old", is_hidden=True),
)


class HandSession:
    session_id = "sess_t1"
    thread_id = "t1"
    engine_name = "Codex"
    engine_version = "0.163.0"

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        self.offers = offers(self, None)
        self.choices = Choices()
        self.facts = Facts(
            models=MODELS, model="gpt-5.5", effort="high", running=READ_ONLY, configured=READ_ONLY
        )
        self.usage: Usage | None = None
        self.is_planning = False
        self.turns: list[LastTurn] = []
        self.said: list[str] = []
        self.done: list[tuple[Any, ...]] = []
        """Everything that was asked for, in order."""
        self.answers: dict[str, Any] = {}
        """By method: a value, a list with one for each call, or an error. This Codex knows no others."""
        self.stop = "end_turn"

    @property
    def last_turn(self) -> LastTurn | None:
        return self.turns[-1] if self.turns else None

    async def say(self, text: str) -> None:
        self.said.append(text)

    async def turn(self, parts: tuple[Part, ...], plan_mode: PlanMode | None = None) -> str:
        self.done.append(("turn", parts, None if plan_mode is None else plan_settings(plan_mode)))
        return self.stop

    async def special_turn(self, special_turn: SpecialTurn) -> str:
        self.done.append(("special_turn", *special_turns.call_of(special_turn)))
        return self.stop

    async def call_engine(self, call: Callable[[], Awaitable[T]], *, may_repeat: bool = True) -> T:
        return await call()

    async def link(self) -> LoginLink:
        raise NotImplementedError

    async def call(self, method: str, params: Any = None) -> Any:
        return await self.codex(method, params)

    async def codex(self, method: str, params: dict[str, Any]) -> Any:
        self.done.append((method, params))
        unknown = EngineRefused(
            method, -32600, f"Invalid request: unknown variant `{method}`, expected one of `initialize`"
        )
        answer = self.answers.get(method, unknown)
        if isinstance(answer, list):
            answer = answer.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def choose(self, config_id: str, value: Any) -> None:
        self.choices = options.choose(self.choices, self.facts, config_id, value)

    async def fork(self) -> str:
        return "sess_t2"

    async def login(self) -> None:
        self.done.append(("login",))

    async def logout(self) -> None:
        self.done.append(("logout",))

    def forget_turn(self, turn_id: str) -> None:
        self.turns = [turn for turn in self.turns if turn.turn_id != turn_id]
