"""Claude gives work to Codex within a conversation: real engines, our tool between them, scripted models."""

from __future__ import annotations

import json
from pathlib import Path

from laneway.doors.chat.outputs import ActivityShown, TextDelta, TextDone, TurnBegan, TurnEnded
from tests.doors.chat.chats import Talk
from tests.doors.chat.engine_lanes import LONG
from tests.doors.chat.real_chat import real_talk


def delegated(task: str) -> str:
    return f"%tool mcp__laneway__codex {json.dumps({'task': task})}\n%say passed on"


async def test_what_claude_has_codex_do_streams_into_the_chat_and_comes_back_as_the_tools_result(
    tmp_path: Path,
) -> None:
    """Between banners that name Claude; the question of Codex is answered in the chat."""
    async with real_talk(tmp_path) as here:
        talk = here.talk
        await talk.say(delegated("%run echo painted\n%ask Which colour? blue | red\n%say the shed is done"))
        shown = await talk.view.question()
        assert shown.lane == "codex"
        await talk.say("blue")
        ended = await talk.view.ended("claude")
        assert (ended.status, ended.text) == ("completed", "passed on")
        began = await talk.view.wait(TurnBegan, lambda each: each.lane == "codex")
        assert (began.caller, began.has_banner) == ("claude", True)
        work = [each.activity.title for each in talk.view.all(ActivityShown) if each.lane == "codex"]
        assert any("echo painted" in title for title in work)
        assert "the shed is done" in [each.text for each in talk.view.all(TextDone) if each.lane == "codex"]
        assert "blue" in here.codex.heard()
        heard = here.claude.heard()
        assert "codex, completed. Task:" in heard
        assert "the shed is done" in heard
        order = [
            (type(each), each.lane) for each in talk.view.stored if isinstance(each, TurnBegan | TurnEnded)
        ]
        assert order == [
            (TurnBegan, "claude"),
            (TurnBegan, "codex"),
            (TurnEnded, "codex"),
            (TurnEnded, "claude"),
        ]


async def test_a_stop_ends_both_and_claude_is_told_later_what_codex_had_done(tmp_path: Path) -> None:
    """Both sessions go on afterwards."""
    async with real_talk(tmp_path) as here:
        talk = here.talk
        await talk.say(delegated(f"%run echo begun\n{LONG}"))
        await talk.view.wait(TextDelta, lambda each: each.lane == "codex")
        await talk.say("/stop")
        codex, claude = await talk.view.ended("codex"), await talk.view.ended("claude")
        assert (codex.status, claude.status) == ("interrupted", "interrupted")
        await talk.say("%say what was that?")
        await talk.view.ended("claude", 2)
        assert "codex, interrupted. Task:" in here.claude.heard()
        await talk.say("/codex %say still here")
        assert (await talk.view.ended("codex", 2)).text == "still here"


async def test_a_message_for_claude_in_the_middle_stops_codex_first(tmp_path: Path) -> None:
    """Then it goes to Claude, once both have settled."""
    async with real_talk(tmp_path) as here:
        talk = here.talk
        await talk.say(delegated(LONG))
        await talk.view.wait(TextDelta, lambda each: each.lane == "codex")
        await talk.say("%say another thing")
        assert (await talk.view.ended("claude", 2)).text == "another thing"
        ends = [(each.lane, each.status) for each in talk.view.all(TurnEnded)]
        assert sorted(ends[:2]) == [("claude", "interrupted"), ("codex", "interrupted")]
        assert ends[2] == ("claude", "completed")


async def test_steered_words_reach_the_engine_that_works(tmp_path: Path) -> None:
    """Codex in its turn; Claude, if they come too late, in one of its own: never lost, never twice."""
    async with real_talk(tmp_path, busy="steer") as here:
        for lane, stage in (("codex", here.codex), ("claude", here.claude)):
            more = f"mind the paint of {lane}"
            await steered(here.talk, lane, more)
            said = [each for each in stage.requests[-1][stage.key] if each.get("role") != "assistant"]
            assert json.dumps(said).count(more) == 1


async def steered(talk: Talk, lane: str, more: str) -> None:
    """A turn with words that were put into it, and one after it."""
    await talk.say(f"/{lane} %stream 20 words over 0.6 seconds\n%run true\n%say done")
    await talk.view.wait(TextDelta, lambda each: each.lane == lane)
    receipt = await talk.view.receipt(await talk.say(more))
    assert (receipt.kind, receipt.lane) == ("steered", lane)
    await talk.view.ended(lane)
    await talk.say(f"/{lane} %say that is all")
    await talk.view.wait(TextDone, lambda each: (each.lane, each.text) == (lane, "that is all"))
