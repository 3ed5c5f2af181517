"""A Codex that is slow or silent where another call depends on its next message."""

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
from tests.codex.transports import HandTransport, Request

SPEC = ThreadSpec(cwd=Path("/"), sandbox="read-only")
MAIN, SUBAGENT = "main", "subagent"
RESULTS: dict[str, Any] = {"turn/start": {"turn": {"id": "turn"}}}


class Scripted(HandTransport):
    """Handles each request as `answers` decides: True to answer, an error text, or nothing."""

    def __init__(self, answers: Callable[[Request], bool | str]) -> None:
        super().__init__()
        self.requests: list[tuple[str, str]] = []
        self._answers = answers

    def on_request(self, request: Request) -> None:
        method = request["method"]
        self.requests.append((method, request.get("params", {}).get("threadId", "")))
        answer = self._answers(request)
        if answer is True:
            self.send(id=request["id"], result=RESULTS.get(method, {"thread": {"id": MAIN}}))
        elif answer:
            self.send(id=request["id"], error={"code": -32600, "message": answer})

    def notify(self, method: str, thread: str, **turn: Any) -> None:
        self.send(method=method, params={"threadId": thread, "turn": turn})


async def test_a_subagent_that_does_not_answer_does_not_keep_its_turn_from_being_stopped() -> None:
    """All are told to stop; only what the turn itself answers counts."""

    def answers(request: Request) -> bool:
        if request["method"] != "turn/interrupt":
            return True
        if request["params"]["threadId"] == MAIN:
            codex.notify("turn/completed", MAIN, id="turn", status="interrupted", items=[])
            return True
        return False

    codex = Scripted(answers)
    async with asyncio.timeout(20), Hub(CodexEngine(codex.connect), LoopClock()) as hub:
        session = await hub.start("me", SPEC)
        turn = session.say(TurnSpec(parts=(TextPart("work"),)))
        while ("turn/start", MAIN) not in codex.requests:
            await asyncio.sleep(0)
        codex.notify("turn/started", MAIN, id="turn")
        codex.notify("turn/started", SUBAGENT, id="below", rootTurnId="turn")
        turn.cancel()
        assert (await turn.result()).status == "interrupted"
    stopped = [thread for method, thread in codex.requests if method == "turn/interrupt"]
    assert stopped == [SUBAGENT, MAIN]


async def test_a_thread_is_fetched_back_though_nobody_waited_until_it_was_put_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread that stays archived is missing from every list."""
    monkeypatch.setattr(thread_handle, "RELEASE_S", 0.05)
    codex = Scripted(lambda request: request["method"] not in ("thread/archive", "thread/unarchive"))
    async with asyncio.timeout(20), Hub(CodexEngine(codex.connect), LoopClock()) as hub:
        session = await hub.resume("me", MAIN, SPEC)
        await session.close()
    assert codex.requests[-2:] == [("thread/archive", MAIN), ("thread/unarchive", MAIN)]


@pytest.mark.parametrize("refusals", [1, 2])
async def test_a_thread_that_came_too_early_to_be_fetched_back_is_fetched_again(
    refusals: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Should Codex take the second word before it is done with the first. What cannot be helped is told."""
    left = ["not archived"] * refusals
    codex = Scripted(lambda request: left.pop() if request["method"] == "thread/unarchive" and left else True)
    async with asyncio.timeout(20), Hub(CodexEngine(codex.connect), LoopClock()) as hub:
        session = await hub.resume("me", MAIN, SPEC)
        await session.close()
    assert [method for method, _ in codex.requests[-3:]] == [
        "thread/archive",
        "thread/unarchive",
        "thread/unarchive",
    ]
    warned = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert ["stays archived" in message for message in warned] == [True] * (refusals - 1)
