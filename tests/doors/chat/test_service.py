"""Conversations of a process: messages become turns, what lanes do is shown, all of it is stored."""

from __future__ import annotations

from pathlib import Path

from laneway.doors.chat.outputs import InputReceipt, Said, TextDelta, TextDone, TurnBegan, TurnEnded
from laneway.testing.chat_script import ScriptedLanes, echo
from tests.doors.chat.chats import talking


async def test_a_message_becomes_a_turn_of_the_default_lane_which_is_shown_and_stored(
    tmp_path: Path,
) -> None:
    """From the first words to the end of the turn."""
    async with talking(tmp_path, ScriptedLanes(play=echo)) as talk:
        input_id = await talk.say("hello")
        ended = await talk.view.ended("claude")
        assert ended.status == "completed"
        assert ended.text == "You said: hello"
        assert not ended.has_banner
        kinds = [type(each) for each in talk.view.stored]
        assert kinds == [Said, InputReceipt, TurnBegan, TextDone, TurnEnded]
        assert talk.view.receipts(input_id) == ["begun"]
        (delta,) = talk.view.all(TextDelta)
        assert delta.text == "You said: hello"
        stored = await talk.chat.outputs(await talk.conversation_id, 0)
        assert [each.output for each in stored] == talk.view.stored
        assert [each.number for each in stored] == list(range(1, 6))
