"""What conversations tell of lanes: the model for a status line, the task as it was typed, a crash, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from laneway.core.model import EngineGone, Failure, SettingsChanged, Tokens, Usage
from laneway.doors.chat.outputs import StatusNow, Told, TurnBegan
from laneway.testing.chat_script import ScriptedLanes
from laneway.testing.lane_host import HeardLane
from tests.doors.chat.chats import talking
from tests.doors.chat.engine_lanes import on_claude, on_codex


async def test_the_status_names_the_model_of_the_lane_that_works(tmp_path: Path) -> None:
    """By its settings, or by its answers: engines differ in that."""
    lanes = ScriptedLanes()
    async with talking(tmp_path, lanes) as talk:
        await talk.say("hello")
        turn = await lanes.lane("claude").begun()
        lanes.lane("claude").tell(
            Usage(turn_id=turn.turn_id, last=Tokens(), total=Tokens(total=7), model="sonnet")
        )
        await talk.view.wait(StatusNow, lambda status: (status.model, status.tokens) == ("sonnet", 7))
        turn.done()
        await talk.view.ended("claude")
        await talk.say("/codex hello")
        turn = await lanes.lane("codex").begun()
        lanes.lane("codex").tell(SettingsChanged(settings={"model": "gpt"}))
        await talk.view.wait(StatusNow, lambda status: (status.active_lane, status.model) == ("codex", "gpt"))
        turn.done()
        await talk.view.ended("codex")
        assert talk.view.all(StatusNow)[-1].model == "sonnet"


async def test_the_engines_tell_their_models() -> None:
    """The real ones."""
    async with on_codex() as stage:
        heard = HeardLane(stage.lane())
        await heard.lane.open(stage.work, heard)
        await heard.play("%say hello")
        told = [each.settings for each in heard.events if isinstance(each, SettingsChanged)]
        assert told[0]["model"]
        await heard.lane.close()
    async with on_claude() as stage:
        heard = HeardLane(stage.lane())
        await heard.lane.open(stage.work, heard)
        await heard.play("%say hello")
        assert heard.only(Usage)[0].model.startswith("claude")
        await heard.lane.close()


async def test_the_task_of_a_turn_is_told_as_it_was_typed(tmp_path: Path) -> None:
    """Each platform draws it in its own way: it must know the lines."""
    lanes = ScriptedLanes()
    async with talking(tmp_path, lanes) as talk:
        await talk.say("/codex fix\nthis")
        assert (await talk.view.wait(TurnBegan)).task == "fix\nthis"
        (await lanes.lane("codex").begun()).done()
        await talk.say("/codex " + "x" * 1000)
        began = await talk.view.wait(TurnBegan, count=2)
        assert len(began.task) == 400
        assert began.task.endswith("x…")
        (await lanes.lane("codex").begun()).done()


@pytest.mark.parametrize("is_told_first", [True, False])
async def test_a_crash_in_a_turn_is_told_once_and_one_between_turns_too(
    tmp_path: Path, is_told_first: bool
) -> None:
    """The engine's own word may come before the end of the turn, or after it."""
    lanes = ScriptedLanes()
    gone = EngineGone(how="killed by SIGKILL")
    async with talking(tmp_path, lanes) as talk:
        await talk.say("/codex hello")
        turn, lane = await lanes.lane("codex").begun(), lanes.lane("codex")
        for is_word in (is_told_first, not is_told_first):
            if is_word:
                lane.tell(gone)
            else:
                turn.done(status="failed", failure=Failure(kind="engine_lost", message="it died"))
        await talk.view.ended("codex")
        await talk.say("/codex again")
        (await lane.begun(2)).done()
        await talk.view.ended("codex", 2)
        assert [each.text for each in talk.view.all(Told)] == []
        lane.tell(gone)
        told = await talk.view.told("ended unexpectedly")
        assert told.text.endswith("The next /codex starts it again.")


async def test_the_status_in_words_is_a_list_and_then_a_sentence(tmp_path: Path) -> None:
    """Without an empty line between them Markdown makes one of both."""
    lanes = ScriptedLanes()
    async with talking(tmp_path, lanes) as talk:
        await talk.say("hello")
        turn = await lanes.lane("claude").begun()
        await talk.say("/status")
        told = await talk.view.told("Plain words")
        assert told.text == "- claude works: `hello`\n\nPlain words go to claude."
        turn.done()
