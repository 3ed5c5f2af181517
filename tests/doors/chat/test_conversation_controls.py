"""Commands of a conversation, who leads it, and how other places come to show it."""

from __future__ import annotations

import asyncio
import itertools
import os
from pathlib import Path

from laneway.core.conversations import ConversationRecord
from laneway.doors.chat.messages import Place
from laneway.doors.chat.outputs import Said, StatusNow, Told, TurnBegan
from laneway.lanes.contract import Lane, LaneAbilities, LaneCommand
from laneway.testing.chat_script import ScriptedLane, ScriptedLanes, ScriptedTurn, echo
from tests.doors.chat.chats import BEN, HERE, Talk, chatting, talking

NO_CLAUDE = "Claude not authenticated. Run 'laneway login --engine claude' in terminal to log in."
NO_CODEX = "Codex not authenticated. Run 'codex' in terminal to log in."
COMMANDS = {
    "claude": LaneAbilities(steers=True, resumes=True, commands=(LaneCommand("compact"),)),
    "codex": LaneAbilities(
        steers=True, resumes=True, commands=(LaneCommand("compact"), LaneCommand("review", "Review edits"))
    ),
}


async def accepting(turn: ScriptedTurn) -> None:
    turn.accept()
    turn.text("working")


# ── who leads ──────────────────────────────────────────────────────────────


async def test_claude_leads_and_nothing_is_said_about_it(tmp_path: Path) -> None:
    """Where it can be used."""
    async with talking(tmp_path, ScriptedLanes(play=echo)) as talk:
        await talk.say("hello")
        assert (await talk.view.ended("claude")).text == "You said: hello"
        assert not talk.view.all(Told)


async def test_without_a_login_of_claudes_codex_leads_with_one_notice(tmp_path: Path) -> None:
    """The first message already goes there; in the next process nothing is said again."""
    lanes = ScriptedLanes(play=echo, unusable={"claude": NO_CLAUDE})
    async with talking(tmp_path, lanes) as talk:
        await talk.say("hello")
        ended = await talk.view.ended("codex")
        assert not ended.has_banner
        (notice,) = talk.view.all(Told)
        assert (
            notice.text == f"{NO_CLAUDE} Until then, codex leads this conversation (Run a task with Codex)."
        )
    async with talking(tmp_path, ScriptedLanes(play=echo, unusable={"claude": NO_CLAUDE})) as talk:
        await talk.say("again")
        await talk.view.ended("codex")
        assert not talk.view.all(Told)


class SlowLane(ScriptedLane):
    """Says whether it can be used when the test lets it."""

    may_tell: asyncio.Event

    async def probe(self) -> str | None:
        await self.may_tell.wait()
        return await super().probe()


class SlowLanes(ScriptedLanes):
    def __init__(self, *, unusable: dict[str, str]) -> None:
        super().__init__(unusable=unusable)
        self.may_tell = asyncio.Event()

    def make(self, name: str, cwd: Path) -> Lane:
        lane = SlowLane(name, problem=self.unusable.get(name), play=echo)
        lane.may_tell = self.may_tell
        self.made.append(lane)
        return lane


async def test_who_leads_instead_is_in_the_status_before_anybody_says_anything(tmp_path: Path) -> None:
    """Else a page or a terminal names a lane that will not answer."""
    lanes = SlowLanes(unusable={"claude": NO_CLAUDE})
    async with talking(tmp_path, lanes) as talk:
        lanes.may_tell.set()
        await talk.view.told("codex leads")
        await talk.view.wait(StatusNow, lambda status: status.default_lane == "codex")


async def test_with_neither_login_the_rehearsal_leads(tmp_path: Path) -> None:
    """It needs none; the others can still be named, and say what they miss."""
    lanes = ScriptedLanes(play=echo, unusable={"claude": NO_CLAUDE, "codex": NO_CODEX})
    async with talking(tmp_path, lanes) as talk:
        await talk.say("hello")
        await talk.view.ended("rehearse")
        (notice,) = talk.view.all(Told)
        assert notice.text.endswith(
            "Until then, rehearse leads this conversation (Run a task with Rehearse)."
        )


async def test_the_default_lane_is_a_setting_and_lane_changes_it(tmp_path: Path) -> None:
    """For this conversation, also after a restart; banners are for the others."""
    async with talking(tmp_path, ScriptedLanes(play=echo), default_lane="codex") as talk:
        await talk.say("one")
        assert not (await talk.view.ended("codex")).has_banner
        await talk.say("/lane CLAUDE")
        await talk.view.told("Plain words go to claude from now on.")
        await talk.say("two")
        assert not (await talk.view.ended("claude")).has_banner
        await talk.say("/codex three")
        assert (await talk.view.ended("codex", 2)).has_banner
        await talk.say("/lane nobody")
        told = await talk.view.told("There is no lane `nobody`")
        assert "claude, codex, rehearse" in told.text
    async with talking(tmp_path, ScriptedLanes(play=echo), default_lane="codex") as talk:
        await talk.say("four")
        await talk.view.ended("claude")


# ── texts ──────────────────────────────────────────────────────────────────


async def test_a_lanes_command_alone_shows_its_usage(tmp_path: Path) -> None:
    """And starts nothing."""
    lanes = ScriptedLanes()
    async with talking(tmp_path, lanes) as talk:
        await talk.view.receipt(await talk.say("/codex"), "done")
        assert (await talk.view.told("Usage: /codex")).only == HERE
        assert not any(lane.turns for lane in lanes.made)


async def test_an_unknown_command_is_answered_with_help_and_sent_nowhere(tmp_path: Path) -> None:
    """Its text can be sent with two slashes; one with another bot's name is not ours, and that is told."""
    lanes = ScriptedLanes(play=echo)
    async with talking(tmp_path, lanes) as talk:
        refused = await talk.view.receipt(await talk.say("/deploy now"))
        assert refused.text == "/deploy is not a command here and was not sent to a lane."
        assert "`/stop`" in (await talk.view.told("There is no command `/deploy`")).text
        other = await talk.view.receipt(await talk.say("/codex@otherbot fix"))
        assert (other.kind, other.text) == (
            "refused",
            "/codex@otherbot is for another bot and was not sent to a lane.",
        )
        await talk.say("//deploy now")
        assert (await talk.view.ended("claude")).text == "You said: /deploy now"
        assert len(talk.view.all(TurnBegan)) == 1


async def test_help_status_and_lanes_say_what_there_is(tmp_path: Path) -> None:
    """Only in the place that asked."""
    problem = "The module `my.lane` cannot be imported: ImportError: no."
    lanes = ScriptedLanes(play=accepting, problems=(problem,))
    async with talking(tmp_path, lanes) as talk:
        await talk.say("/help")
        help_text = (await talk.view.told("Lanes:")).text
        for word in ("/codex …", "`/stop`: stop all work", "`/join`", "`//x` sends `/x`"):
            assert word in help_text
        await talk.say("/status")
        assert "Nothing runs" in (await talk.view.told("Nothing runs")).text
        await talk.say("/codex paint")
        turn = await lanes.given("paint")
        turn.approve()
        await talk.view.question()
        await talk.say("/queue /claude later")
        await talk.view.receipt(await talk.say("/status"), "done")
        status = (await talk.view.told("codex works")).text
        assert "- codex asks (#1)" in status
        assert "waits (1, for claude)" in status
        await talk.view.receipt(await talk.say("/lanes"), "done")
        listed = (await talk.view.told(problem)).text
        assert "**claude** (plain words go there)" in listed
        assert all(each.only == HERE for each in talk.view.all(Told))


async def test_an_engines_command_goes_to_a_lane_that_has_it(tmp_path: Path) -> None:
    """To the default lane, else to the only one; named, to that. What others did waits for a prompt."""
    lanes = ScriptedLanes(play=echo, abilities=COMMANDS)
    async with talking(tmp_path, lanes, busy="queue") as talk:
        await talk.say("hello")
        await talk.say("/review the tests")
        await talk.say("/compact")
        await talk.say("/codex /compact")
        await talk.say("/codex go")
        await talk.view.ended("codex", 3)
        claude, codex = lanes.lane("claude"), lanes.lane("codex")
        assert [(turn.given.command, turn.given.text) for turn in codex.turns] == [
            ("review", "the tests"),
            ("compact", ""),
            ("", "go"),
        ]
        assert [turn.given.command for turn in claude.turns] == ["", "compact"]
        assert [bool(turn.given.context) for turn in codex.turns] == [False, False, True]
        assert "Task: hello" in codex.turns[2].given.context
        listed = {
            each.name: (each.kind, each.lane) for each in talk.chat.commands(await talk.conversation_id)
        }
        assert listed["review"] == ("engine", "codex")
        assert listed["compact"] == ("engine", "claude")
        assert listed["codex"] == ("lane", "codex")
        assert listed["stop"] == ("control", None)


async def test_the_status_line_follows_what_works_and_waits(tmp_path: Path) -> None:
    """Not stored; each change once."""
    lanes = ScriptedLanes(play=accepting)
    async with talking(tmp_path, lanes) as talk:
        await talk.say("/codex paint")
        turn = await lanes.given("paint")
        turn.usage(1234, 10_000)
        await talk.view.wait(StatusNow, lambda each: each.tokens == 1234 and each.active_lane == "codex")
        await talk.say("/queue more")
        await talk.view.wait(StatusNow, lambda each: each.queued == 1)
        turn.approve()
        await talk.view.wait(StatusNow, lambda each: each.is_waiting)
        await talk.say("/stop")
        await talk.view.wait(StatusNow, lambda each: each.active_lane is None and each.queued == 0)
        shown = talk.view.all(StatusNow)
        assert all(one != two for one, two in itertools.pairwise(shown))


# ── conversations ──────────────────────────────────────────────────────────


async def test_new_begins_another_conversation_and_resume_goes_back(tmp_path: Path) -> None:
    """By its number in the list; the lanes of the first work on meanwhile."""
    lanes = ScriptedLanes(play=accepting)
    async with talking(tmp_path, lanes) as talk:
        first = await talk.conversation_id
        await talk.say("paint the shed")
        turn = await lanes.given("paint the shed")
        new = await talk.say("/new")
        await talk.view.told("A new conversation.")
        assert talk.view.receipts(new) == ["done"]
        second = await talk.conversation_id
        assert talk.view.moved == [second] != [first]
        await talk.say("hello")
        await lanes.given("hello")
        assert not turn.is_interrupted
        await talk.say("/resume")
        listed = (await talk.view.told("goes on with one")).text
        assert listed.index("`hello`") < listed.index("`paint the shed`")
        assert "this one" in listed.splitlines()[0]
        back = await talk.say("/resume 2")
        await talk.view.told("Back in `paint the shed`")
        assert talk.view.receipts(back) == ["done"]
        assert await talk.conversation_id == first
        turn.say("painted")
        assert (await talk.view.ended("claude")).text == "painted"
        await talk.say("/resume 7")
        await talk.view.told("There is no conversation `7`")


async def test_resume_of_a_conversation_that_another_process_holds_says_which(tmp_path: Path) -> None:
    """And the place keeps its own."""
    async with talking(tmp_path, ScriptedLanes(play=echo)) as talk:
        await talk.say("first")
        await talk.view.ended("claude")
        held = await talk.conversation_id
        async with chatting(tmp_path, ScriptedLanes(play=echo)) as second:
            other = Talk(second, Place("web", "two"))
            await other.join()
            mine = await other.conversation_id
            refused = await other.view.receipt(await other.say(f"/resume {held}"))
            assert refused.kind == "refused"
            assert f"process {os.getpid()}" in refused.text
            assert await other.conversation_id == mine


async def test_link_and_join_show_one_conversation_in_two_places(tmp_path: Path) -> None:
    """The code works once, for ten minutes, and for owners only; both places see what either says."""
    now = [1000.0]
    lanes = ScriptedLanes(play=echo)
    async with talking(tmp_path, lanes, wall=lambda: now[0], busy="queue") as talk:
        other = Talk(talk.chat, Place("web", "two"))
        await other.join()
        refused = await talk.view.receipt(await talk.say("/link", sender=BEN))
        assert refused.text == "Only an owner may use /link."
        await talk.say("/link")
        told = await talk.view.told("/join ")
        assert told.only == talk.place
        code = told.text.split("`")[1].split()[1]
        assert len(code) == 10
        await other.say(f"/join {code}", sender=BEN)
        assert not other.view.moved
        joined = await other.say(f"/join {code.upper()}")
        await other.view.told("This place shows the conversation now.")
        assert other.view.receipts(joined) == ["done"]
        assert await other.conversation_id == await talk.conversation_id
        await talk.say("hello")
        assert (await other.view.ended("claude")).text == "You said: hello"
        await other.say("and you?")
        await talk.view.wait(Said, lambda each: each.text == "and you?")
        third = Talk(talk.chat, Place("web", "three"))
        await third.join()
        again = await third.view.receipt(await third.say(f"/join {code}"))
        assert "not valid" in again.text
        await talk.say("/link")
        fresh = await talk.view.wait(Told, lambda each: "/join " in each.text, 2)
        now[0] += 601
        late = await third.view.receipt(await third.say(f"/join {fresh.text.split('`')[1].split()[1]}"))
        assert "not valid" in late.text


async def test_a_place_keeps_its_conversation_and_the_latest_are_listed(tmp_path: Path) -> None:
    """Over a restart; one in which nothing was said is not listed."""
    async with talking(tmp_path, ScriptedLanes(play=echo)) as talk:
        first = await talk.conversation_id
        assert await talk.chat.latest() == []
        await talk.say("  paint\n the   shed ")
        await talk.view.ended("claude")
    async with talking(tmp_path, ScriptedLanes(play=echo)) as talk:
        assert await talk.conversation_id == first
        (record,) = await talk.chat.latest()
        assert isinstance(record, ConversationRecord)
        assert (record.title, record.lane_threads) == ("paint the shed", {"claude": "claude-thread"})
