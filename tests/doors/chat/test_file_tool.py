"""A lane's model sends a file to people: the real Claude Code, the real Codex, our tool, scripted models."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from laneway.core.model import DECLINE, Answer, Asked, TurnDone
from laneway.doors.chat.hand_back import TurnDigest
from laneway.doors.chat.outputs import FileShown
from laneway.doors.chat.turn_outputs import TurnOutputs
from laneway.lanes.contract import LaneFile
from laneway.testing.lane_host import HeardLane
from tests.doors.chat.engine_lanes import EngineStage, on_claude, on_codex

DEADLINE_S = 25
ON = {"claude": on_claude, "codex": on_codex}
TOOLS = {"claude": "mcp__laneway__send_file", "codex": "send_file"}
YES = Answer(choice_id="accept")


@asynccontextmanager
async def lane_on(
    stage: Callable[[], AbstractAsyncContextManager[EngineStage]],
) -> AsyncIterator[tuple[EngineStage, HeardLane]]:
    async with asyncio.timeout(DEADLINE_S), stage() as here:
        subprocess.run(["git", "init", "-q", here.work], check=True)  # noqa: ASYNC221
        heard = HeardLane(here.lane())
        await heard.lane.open(here.work, heard)
        try:
            yield here, heard
        finally:
            await heard.lane.close()


def sending(engine: str, path: str, caption: str = "") -> str:
    arguments = json.dumps({"path": path, "caption": caption})
    return f"%tool {TOOLS[engine]} {arguments}\n%say passed on"


@pytest.mark.parametrize("engine", ["claude", "codex"])
async def test_a_file_below_the_folder_is_sent_at_once(engine: str) -> None:
    async with lane_on(ON[engine]) as (here, heard):
        put(here.work / "chart.txt")
        done = await heard.play(sending(engine, "chart.txt", "The chart"))
        assert done.status == "completed"
        (sent,) = heard.only(LaneFile)
        assert (sent.path, sent.caption, sent.is_approved) == (
            str(real(here.work) / "chart.txt"),
            "The chart",
            False,
        )
        assert "was sent" in here.heard()
        assert heard.only(Asked) == []


async def test_a_person_is_asked_before_another_file_is_sent() -> None:
    """A no reaches the model; after a yes the file is sent, and marked as allowed."""
    async with lane_on(on_codex) as (here, heard):
        outside = here.work.parent / "outside.txt"
        put(outside)
        for answer, words, count in ((DECLINE, "the person said no", 0), (YES, "was sent", 1)):
            ticket = heard.begin(sending("codex", str(outside)))
            question = (await heard.wait(Asked)).question
            assert question.kind == "tool"
            assert "is outside of the conversation's folder" in question.message
            heard.lane.answer(question.question_id, answer)
            assert (await heard.ended(ticket)).status == "completed"
            assert [sent.is_approved for sent in heard.only(LaneFile)] == [True] * count
            assert words in here.heard()


async def test_an_interrupt_withdraws_the_question() -> None:
    async with lane_on(on_codex) as (here, heard):
        outside = here.work.parent / "outside.txt"
        put(outside)
        ticket = heard.begin(sending("codex", str(outside)))
        await heard.wait(Asked)
        await heard.lane.interrupt()
        assert (await heard.ended(ticket)).status == "interrupted"
        assert heard.only(LaneFile) == []


async def test_a_file_that_is_not_there_is_told_to_the_model() -> None:
    async with lane_on(on_codex) as (here, heard):
        assert (await heard.play(sending("codex", "missing.txt"))).status == "completed"
        assert heard.only(LaneFile) == []
        assert "is not there any more" in here.heard()


def test_a_conversation_shows_the_file_after_the_words_before_it() -> None:
    digest = TurnDigest(cwd="/work")
    outputs = TurnOutputs("codex", "t1", "draw", digest, 0.0)
    shown = list(outputs.hear(LaneFile(turn_id="t", path="/work/a/chart.png", caption="c", is_approved=True)))
    assert shown == [
        FileShown(lane="codex", path="/work/a/chart.png", name="chart.png", caption="c", is_approved=True)
    ]
    assert list(outputs.close(TurnDone(turn_id="t", status="completed", text=""))) == []


def put(path: Path) -> None:
    path.write_text("content")


def real(path: Path) -> Path:
    return path.resolve()
