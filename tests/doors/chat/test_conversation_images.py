"""Images in a conversation, and lanes that are silent for too long."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from laneway.doors.chat.outputs import InputReceipt, Told, TurnBegan
from laneway.doors.chat.ports import DelegatingHost
from laneway.lanes.contract import LaneAbilities
from laneway.testing.chat_script import ScriptedLanes, ScriptedTurn, echo
from laneway.testing.clock import HandClock
from tests.doors.chat.chats import BEN, Talk, talking


def picture(folder: Path, name: str = "a.png") -> Path:
    path = folder / name
    path.write_bytes(b"\x89PNG")
    return path


async def accepting(turn: ScriptedTurn) -> None:
    turn.accept()
    turn.text("working")


# ── images ─────────────────────────────────────────────────────────────────


async def test_an_image_goes_with_its_words(tmp_path: Path) -> None:
    """To the lane that the words name."""
    lanes = ScriptedLanes(play=echo)
    async with talking(tmp_path, lanes) as talk:
        await talk.say("/codex what is this?", images=(picture(tmp_path),))
        assert (await lanes.given("what is this?")).given.images == (tmp_path / "a.png",)
        await talk.view.ended("codex")


async def test_an_image_alone_waits_for_its_senders_next_words(tmp_path: Path) -> None:
    """Not for anybody else's; also one that came with a lane's command alone."""
    lanes = ScriptedLanes(play=echo)
    async with talking(tmp_path, lanes, busy="queue") as talk:
        first = await talk.say("", images=(picture(tmp_path),))
        assert (await talk.view.receipt(first)).kind == "kept"
        second = await talk.say("/codex", images=(picture(tmp_path, "b.png"),))
        assert (await talk.view.receipt(second)).kind == "kept"
        assert "Usage: /codex" in (await talk.view.told("Usage")).text
        await talk.say("hello", sender=BEN)
        assert (await lanes.given("hello")).given.images == ()
        await talk.say("/codex what is this?")
        turn = await lanes.given("what is this?")
        assert [path.name for path in turn.given.images] == ["a.png", "b.png"]
        await talk.say("and now?")
        assert (await lanes.given("and now?")).given.images == ()
        await talk.chat.wait_ready(await talk.conversation_id)


async def test_an_image_that_comes_with_an_answer_waits_for_the_next_words(tmp_path: Path) -> None:
    """No question takes an image: it is kept, not lost. Words that were no answer keep none."""

    async def asking(turn: ScriptedTurn) -> None:
        turn.accept()
        if turn.given.text == "ask":
            answer = await turn.answered(turn.approve())
            turn.say(f"choice {answer.choice_id}")
        else:
            turn.say("seen")

    lanes = ScriptedLanes(play=asking)
    async with talking(tmp_path, lanes) as talk:
        await talk.say("/codex ask")
        await talk.view.question()
        again = await talk.say("hm", images=(picture(tmp_path, "b.png"),))
        await talk.view.receipt(again, "refused")
        answer = await talk.say("yes", images=(picture(tmp_path),))
        await talk.view.receipt(answer, "kept")
        assert talk.view.receipts(answer) == ["answered", "kept"]
        assert (await talk.view.ended("codex")).text == "choice accept"
        assert talk.view.receipts(again) == ["refused"]
        await talk.say("what is this?")
        assert (await lanes.given("what is this?")).given.images == (tmp_path / "a.png",)


async def test_an_image_that_nobody_says_anything_about_is_told_after_ten_minutes(tmp_path: Path) -> None:
    """It does not come along later."""
    clock, lanes = HandClock(), ScriptedLanes(play=echo)
    async with talking(tmp_path, lanes, clock=clock) as talk:
        image = await talk.say("", images=(picture(tmp_path),))
        await talk.view.receipt(image)
        clock.advance(599)
        assert talk.view.receipts(image) == ["kept"]
        clock.advance(2)
        late = await talk.view.receipt(image, "refused")
        assert "was not used in time" in late.text
        await talk.say("hello")
        assert (await lanes.given("hello")).given.images == ()


async def test_attach_takes_an_image_by_its_path(tmp_path: Path) -> None:
    """With spaces, in quotes, relative to the conversation's folder; what is none is refused."""
    picture(tmp_path, "a b.png")
    (tmp_path / "notes.txt").write_text("no")
    os.mkfifo(tmp_path / "pipe.png")
    with (tmp_path / "large.png").open("wb") as large:
        large.truncate(21 * 1024 * 1024)
    lanes = ScriptedLanes(play=echo)
    async with talking(tmp_path, lanes) as talk:
        for words in ("/attach a b.png", "/attach 'a b.png'", f"/attach {tmp_path}/a b.png"):
            assert (await talk.view.receipt(await talk.say(words))).kind == "kept"
        await talk.say("what is this?")
        images = (await lanes.given("what is this?")).given.images
        assert list(images) == [tmp_path / "a b.png"] * 3
        for words, reason in (
            ("/attach", "Usage: /attach PATH"),
            ("/attach notes.txt", "is not an image"),
            ("/attach none.png", "There is no file"),
            ("/attach pipe.png", "There is no file"),
            ("/attach large.png", "`large.png` is too large: 20 MB at most."),
        ):
            refused = await talk.view.receipt(await talk.say(words))
            assert refused.kind == "refused"
            assert reason in refused.text
        guest = await talk.view.receipt(await talk.say("/attach a b.png", sender=BEN))
        assert guest.text == "Only an owner may use /attach."


async def test_a_lane_that_takes_no_images_refuses_them_aloud(tmp_path: Path) -> None:
    """The first time when it is opened, later before anything is sent; a kept image stays."""
    lanes = ScriptedLanes(play=echo, abilities={"codex": LaneAbilities()})
    async with talking(tmp_path, lanes) as talk:
        image = picture(tmp_path)
        await talk.say("/codex what is this?", images=(image,))
        ended = await talk.view.ended("codex")
        assert ended.failure is not None
        assert "codex takes no images" in ended.failure.message
        await talk.say("", images=(image,))
        refused = await talk.view.receipt(await talk.say("/codex and this?"))
        assert (refused.kind, refused.text) == ("refused", "codex takes no images: nothing was sent to it.")
        await talk.say("what is this?")
        assert (await lanes.given("what is this?")).given.images == (image,)
        assert lanes.lane("codex").turns == []


# ── silence ────────────────────────────────────────────────────────────────


async def painting(talk: Talk, lanes: ScriptedLanes) -> ScriptedTurn:
    await talk.say("/codex paint")
    turn = await lanes.given("paint")
    await talk.view.wait(TurnBegan)
    return turn


def warnings(talk: Talk) -> list[str]:
    return [each.text for each in talk.view.all(Told) if each.level == "warning"]


async def test_silence_is_told_after_five_minutes_and_ends_the_turn_after_ten(tmp_path: Path) -> None:
    """Counted from the last event."""
    clock, lanes = HandClock(), ScriptedLanes(play=accepting)
    async with talking(tmp_path, lanes, clock=clock) as talk:
        turn = await painting(talk, lanes)
        clock.advance(200)
        turn.text("more")
        await heard(talk)
        clock.advance(299)
        await heard(talk)
        assert warnings(talk) == []
        clock.advance(2)
        await talk.view.told("codex has been silent for 5 minutes. /stop ends it.")
        clock.advance(300)
        ended = await talk.view.ended("codex")
        assert (ended.status, ended.stopped_by) == ("interrupted", "silence")
        assert len(warnings(talk)) == 2


async def test_an_event_after_the_warning_begins_the_count_anew(tmp_path: Path) -> None:
    """And the next warning is one more."""
    clock, lanes = HandClock(), ScriptedLanes(play=accepting)
    async with talking(tmp_path, lanes, clock=clock) as talk:
        turn = await painting(talk, lanes)
        clock.advance(301)
        await talk.view.told("silent for 5 minutes")
        turn.text("more")
        await heard(talk)
        clock.advance(299)
        await heard(talk)
        assert not turn.is_interrupted
        clock.advance(2)
        await talk.view.wait(Told, lambda each: "silent for 5" in each.text, 2)
        assert not turn.is_interrupted


async def test_a_running_command_may_be_silent_for_an_hour(tmp_path: Path) -> None:
    """Then its turn is stopped."""
    clock, lanes = HandClock(), ScriptedLanes(play=accepting)
    async with talking(tmp_path, lanes, clock=clock) as talk:
        turn = await painting(talk, lanes)
        turn.command("make all")
        await heard(talk)
        clock.advance(3599)
        await heard(talk)
        assert warnings(talk) == []
        clock.advance(2)
        assert (await talk.view.ended("codex")).stopped_by == "silence"


async def test_time_does_not_count_while_a_question_is_open(tmp_path: Path) -> None:
    """A person may take as long as the question lasts."""
    clock, lanes = HandClock(), ScriptedLanes(play=accepting)
    async with talking(tmp_path, lanes, clock=clock) as talk:
        turn = await painting(talk, lanes)
        turn.approve()
        await talk.view.question()
        clock.advance(1500)
        await heard(talk)
        assert warnings(talk) == []
        await talk.say("yes")
        await talk.view.wait(InputReceipt, lambda each: each.kind == "answered")
        await heard(talk)
        clock.advance(299)
        await heard(talk)
        assert warnings(talk) == []
        clock.advance(2)
        await talk.view.told("silent for 5 minutes")


async def test_a_lane_that_has_delegated_may_be_silent_and_the_other_may_not(tmp_path: Path) -> None:
    """Its own time goes on with the result."""
    clock, lanes = HandClock(), ScriptedLanes(play=accepting)
    async with talking(tmp_path, lanes, clock=clock) as talk:
        await talk.say("go")
        claude = await lanes.given("go")
        host = lanes.lane("claude").host
        assert isinstance(host, DelegatingHost)
        work = asyncio.ensure_future(host.delegate("codex", "help"))
        codex = await lanes.given("help")
        await heard(talk)
        for _ in range(3):
            clock.advance(299)
            codex.text("more")
            await heard(talk)
        assert warnings(talk) == []
        clock.advance(601)
        assert (await talk.view.ended("codex")).stopped_by == "silence"
        assert "codex, interrupted" in await work
        assert not claude.is_interrupted
        claude.done()
        await talk.view.ended("claude")


async def heard(talk: Talk) -> None:
    """Everything that was told so far has reached the conversation."""
    await talk.view.receipt(await talk.say("/status"), "done")
