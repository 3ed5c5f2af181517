"""A Codex that is slow, or silent, in the one place where somebody else depends on the next word."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from laneway.base.clock import LoopClock
from laneway.codex.engine import CodexEngine
from laneway.core import thread_handle
from laneway.core.hub import Hub
from laneway.core.ports import TextPart, ThreadSpec, TurnSpec
from tests.codex.transports import Asked, HandTransport

SPEC = ThreadSpec(cwd=Path("/"), sandbox="read-only")
MAIN, SUBAGENT = "main", "subagent"
RESULTS: dict[str, Any] = {"turn/start": {"turn": {"id": "turn"}}}


class Scripted(HandTransport):
    """Does as `answers` says with each request: True to answer, an error, or nothing."""

    def __init__(self, answers: Callable[[Asked], bool | str]) -> None:
        super().__init__()
        self.asked: list[tuple[str, str]] = []
        self._answers = answers

    def on_request(self, asked: Asked) -> None:
        method = asked["method"]
        self.asked.append((method, asked.get("params", {}).get("threadId", "")))
        answer = self._answers(asked)
        if answer is True:
            self.tell(id=asked["id"], result=RESULTS.get(method, {"thread": {"id": MAIN}}))
        elif answer:
            self.tell(id=asked["id"], error={"code": -32600, "message": answer})

    def say(self, method: str, thread: str, **turn: Any) -> None:
        self.tell(method=method, params={"threadId": thread, "turn": turn})


async def test_a_subagent_that_does_not_answer_does_not_keep_its_turn_from_being_stopped() -> None:
    """All are told to stop; only what the turn itself answers counts."""

    def answers(asked: Asked) -> bool:
        if asked["method"] != "turn/interrupt":
            return True
        if asked["params"]["threadId"] == MAIN:
            codex.say("turn/completed", MAIN, id="turn", status="interrupted", items=[])
            return True
        return False

    codex = Scripted(answers)
    async with asyncio.timeout(20), Hub(CodexEngine(codex.connect), LoopClock()) as hub:
        session = await hub.start("me", SPEC)
        turn = session.say(TurnSpec(parts=(TextPart("work"),)))
        while ("turn/start", MAIN) not in codex.asked:
            await asyncio.sleep(0)
        codex.say("turn/started", MAIN, id="turn")
        codex.say("turn/started", SUBAGENT, id="below", rootTurnId="turn")
        turn.cancel()
        assert (await turn.result()).status == "interrupted"
    stopped = [thread for method, thread in codex.asked if method == "turn/interrupt"]
    assert stopped == [SUBAGENT, MAIN]


async def test_a_thread_is_fetched_back_though_nobody_waited_until_it_was_put_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread that stays archived is missing from every list."""
    monkeypatch.setattr(thread_handle, "RELEASE_S", 0.05)
    codex = Scripted(lambda asked: asked["method"] not in ("thread/archive", "thread/unarchive"))
    async with asyncio.timeout(20), Hub(CodexEngine(codex.connect), LoopClock()) as hub:
        session = await hub.resume("me", MAIN, SPEC)
        await session.close()
    assert codex.asked[-2:] == [("thread/archive", MAIN), ("thread/unarchive", MAIN)]


@pytest.mark.parametrize("refusals", [1, 2])
async def test_a_thread_that_came_too_early_to_be_fetched_back_is_fetched_again(
    refusals: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Should Codex take the second word before it is done with the first. What cannot be helped is told."""
    left = ["not archived"] * refusals
    codex = Scripted(lambda asked: left.pop() if asked["method"] == "thread/unarchive" and left else True)
    async with asyncio.timeout(20), Hub(CodexEngine(codex.connect), LoopClock()) as hub:
        session = await hub.resume("me", MAIN, SPEC)
        await session.close()
    assert [method for method, _ in codex.asked[-3:]] == [
        "thread/archive",
        "thread/unarchive",
        "thread/unarchive",
    ]
    warned = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert ["stays archived" in message for message in warned] == [True] * (refusals - 1)
