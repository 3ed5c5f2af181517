"""A lane gives work to another one within its turn: seen in the chat, stopped with it, told once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import LanewayError
from laneway.core.model import Text, TurnDone, TurnStarted
from laneway.doors.chat.messages import ReplyTarget
from laneway.doors.chat.outputs import TextDone, TurnBegan
from laneway.doors.chat.ports import DelegatingHost
from laneway.testing.chat_script import ScriptedLanes, ScriptedTurn
from tests.doors.chat.chats import ANNA, Talk, talking


class Delegating:
    def __init__(self, talk: Talk, lanes: ScriptedLanes, claude: ScriptedTurn) -> None:
        self.talk = talk
        self.lanes = lanes
        self.claude = claude

    def call(self, task: str, lane: str = "codex") -> asyncio.Task[str]:
        host = self.lanes.lane("claude").host
        assert isinstance(host, DelegatingHost)
        return asyncio.create_task(_called(host, lane, task))


async def _called(host: DelegatingHost, lane: str, task: str) -> str:
    return await host.delegate(lane, task)


@asynccontextmanager
async def delegating(folder: Path, **options: Any) -> AsyncIterator[Delegating]:
    lanes = ScriptedLanes()
    async with talking(folder, lanes, **options) as talk:
        await talk.say("go")
        claude = await lanes.given("go")
        claude.accept()
        yield Delegating(talk, lanes, claude)


async def test_the_work_is_shown_in_the_same_chat_and_its_result_is_the_calls(tmp_path: Path) -> None:
    """With banners that name the caller; Claude is not told a second time, a third lane is."""
    async with delegating(tmp_path) as here:
        call = here.call("paint the shed")
        codex = await here.lanes.given("paint the shed")
        began = await here.talk.view.wait(TurnBegan, lambda each: each.lane == "codex")
        assert (began.caller, began.has_banner) == ("claude", True)
        codex.command("brush", status="completed", exit_code=0)
        codex.say("The shed is red.")
        result = await call
        assert result.startswith("codex, completed. Task: paint the shed\nCommands:\n- brush (exit 0)")
        assert "The shed is red." in result
        await here.talk.view.ended("codex")
        assert [each.text for each in here.talk.view.all(TextDone)] == ["The shed is red."]
        assert not here.claude.is_interrupted
        here.claude.done()
        await here.talk.view.ended("claude")
        await here.talk.say("and?")
        assert (await here.lanes.given("and?")).given.context == ""
        await here.talk.say("/rehearse %say hi")
        assert "paint the shed" in (await here.lanes.given("%say hi")).given.context


async def test_a_question_of_the_other_lane_is_for_whoever_asked_the_first(tmp_path: Path) -> None:
    """Its answer goes there, and to nobody else."""
    async with delegating(tmp_path) as here:
        call = here.call("paint")
        codex = await here.lanes.given("paint")
        question = codex.ask_words("Which colour?")
        shown = await here.talk.view.question()
        assert (shown.lane, shown.asked_by) == ("codex", ANNA.user_id)
        await here.talk.say("red")
        assert (await codex.answered(question)).values == {"answer": "red"}
        codex.say("red")
        await call
        here.claude.done()


@pytest.mark.parametrize("words", ["/stop", "something else"])
async def test_stopping_the_caller_stops_both_and_claude_is_told_later(words: str, tmp_path: Path) -> None:
    """Its call got no result, so its next prompt says what was done."""
    async with delegating(tmp_path) as here:
        call = here.call("paint")
        codex = await here.lanes.given("paint")
        codex.command("brush", status="completed", exit_code=0)
        here.lanes.lane("codex").obeys = False
        await here.talk.say(words)
        await codex.interrupted()
        call.cancel()
        await here.talk.view.ended("claude")
        codex.done(status="interrupted")
        assert (await here.talk.view.ended("codex")).status == "interrupted"
        if words == "/stop":
            await here.talk.say("something else")
        context = (await here.lanes.given("something else")).given.context
        assert "codex, interrupted. Task: paint" in context
        assert "- brush (exit 0)" in context


async def test_a_call_that_is_cancelled_stops_its_turn_and_the_caller_goes_on(tmp_path: Path) -> None:
    """Claude gave up waiting."""
    async with delegating(tmp_path) as here:
        call = here.call("paint")
        codex = await here.lanes.given("paint")
        call.cancel()
        await codex.interrupted()
        ended = await here.talk.view.ended("codex")
        assert (ended.stopped_by, ended.caller) == ("delegation", "claude")
        assert not here.claude.is_interrupted
        second = here.call("paint again")
        (await here.lanes.given("paint again")).say("done")
        assert "done" in await second
        here.claude.done()
        await here.talk.view.ended("claude")


async def test_a_caller_that_ends_takes_its_work_with_it(tmp_path: Path) -> None:
    """Nothing works on unseen."""
    async with delegating(tmp_path) as here:
        call = here.call("paint")
        codex = await here.lanes.given("paint")
        here.claude.fail()
        await codex.interrupted()
        await here.talk.view.ended("codex")
        assert "codex, interrupted" in await call


async def test_what_cannot_be_delegated_is_refused_with_the_reason(tmp_path: Path) -> None:
    """A lane that is not there, one that works already, a caller without a turn."""
    async with delegating(tmp_path) as here:
        with pytest.raises(LanewayError, match="There is no lane nobody"):
            await here.call("x", "nobody")
        call = here.call("paint")
        codex = await here.lanes.given("paint")
        with pytest.raises(LanewayError, match="codex works already"):
            await here.call("more")
        codex.say("done")
        await call
        here.claude.done()
        await here.talk.view.ended("claude")
        with pytest.raises(LanewayError, match="is over"):
            await here.call("late")


async def test_a_reply_to_the_caller_steers_it_while_the_other_lane_works(tmp_path: Path) -> None:
    """And so do /steer words for it; the delegated turn goes on."""
    async with delegating(tmp_path) as here:
        call = here.call("paint")
        codex = await here.lanes.given("paint")
        first = await here.talk.say("not too dark", reply=ReplyTarget(lane="claude"))
        assert (await here.talk.view.receipt(first)).kind == "steered"
        assert here.claude.steers[0].text == "not too dark"
        second = await here.talk.say("/steer in red")
        assert (await here.talk.view.receipt(second)).lane == "codex"
        assert codex.steers[0].text == "in red"
        codex.say("done")
        await call
        here.claude.done()
        await here.talk.view.ended("claude")


async def test_a_lane_that_begins_a_turn_by_itself_is_shown_and_can_be_stopped(tmp_path: Path) -> None:
    """As Claude does when work in the background has ended."""
    async with delegating(tmp_path) as here:
        here.claude.done()
        await here.talk.view.ended("claude")
        lane = here.lanes.lane("claude")
        lane.tell(TurnStarted(turn_id="own", ticket=None))
        lane.tell(Text(turn_id="own", item_id="t", text="The build has ended."))
        began = await here.talk.view.wait(TurnBegan, count=2)
        assert (began.lane, began.task) == ("claude", "")
        lane.tell(TurnDone(turn_id="own", status="completed", text="The build has ended."))
        assert (await here.talk.view.ended("claude", 2)).text == "The build has ended."
