"""Scripted lanes keep the contract of lanes, so that what is tested on them holds for others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from laneway.testing.chat_script import ScriptedLane, ScriptedTurn
from laneway.testing.lane_kit import LaneKit, LaneStage


async def _play(turn: ScriptedTurn) -> None:
    """What the kit asks for, by the words of the turn."""
    turn.accept()
    match turn.given.text:
        case "long":
            turn.text("at it")
        case "asks":
            answer = await turn.answered(turn.ask_words("Which colour?"))
            turn.say(str(answer.values.get("answer", "none")))
        case "fails":
            turn.fail()
        case "dies":
            turn.die()
        case text:
            turn.say(f"done: {text}")


class TestScriptedLane(LaneKit):
    @asynccontextmanager
    async def stage(self) -> AsyncIterator[LaneStage]:
        made: list[ScriptedLane] = []

        def make() -> ScriptedLane:
            lane = ScriptedLane("codex", play=_play)
            made.append(lane)
            return lane

        def heard() -> str:
            given = made[-1].turn.given
            return f"{given.context}\n{given.text}"

        yield LaneStage(
            make=make,
            cwd=Path("/"),
            long="long",
            asks="asks",
            fails="fails",
            dies="dies",
            heard=heard,
        )
