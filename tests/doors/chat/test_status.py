"""What a status line is told: the model, as an engine says it; and the task of a turn, as it was typed."""

from __future__ import annotations

from pathlib import Path

from laneway.core.model import SettingsChanged, Tokens, Usage
from laneway.doors.chat.outputs import StatusNow, TurnBegan
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
