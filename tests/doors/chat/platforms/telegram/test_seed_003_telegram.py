"""The points and cases of the document about lanes on Telegram, most with the real Claude Code and Codex."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from laneway.core.hand_back_tag import START
from laneway.core.model import Compacted, PlanStep
from laneway.testing.chat_script import ScriptedLanes, ScriptedTurn
from laneway.testing.clock import HandClock
from laneway.testing.fake_telegram import BotApiChat, BotApiMessage, FakeTelegram
from laneway.wire.guardian import descendants
from tests.doors.chat.engine_lanes import LONG
from tests.doors.chat.platforms.bot_scenes import begun
from tests.doors.chat.platforms.telegram.scene import Process, Scene, scene
from tests.doors.chat.real_chat import RealLanes, real_lanes

DEADLINE_S = 90.0
PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
    b"\x00\x00\x00\nIDATx\x9cc\x00\x01\x00\x00\x05\x00\x01\r\n-\xb4\x00\x00\x00\x00IEND\xaeB`\x82"
)


class RealScene(msgspec.Struct, frozen=True):
    place: Scene
    process: Process
    lanes: RealLanes

    @property
    def telegram(self) -> FakeTelegram:
        return self.place.telegram

    @property
    def home(self) -> BotApiChat:
        return self.place.home

    def say(self, text: str) -> BotApiMessage:
        return self.place.ada.write(self.home, text)

    async def see(self, words: str, count: int = 1) -> BotApiMessage:
        def found() -> list[BotApiMessage]:
            return [message for message in self.telegram.shown(self.home) if words in message.text]

        await self.telegram.until(lambda: len(found()) >= count)
        return found()[-1]

    async def answer(self, text: str) -> BotApiMessage:
        """A message with these words alone: the banner of a turn has its task."""
        await self.telegram.until(lambda: any(m.text == text for m in self.telegram.shown(self.home)))
        return next(m for m in self.telegram.shown(self.home) if m.text == text)

    async def offered(self, label: str) -> BotApiMessage:
        """The message with a button of this label."""
        await self.telegram.until(lambda: any(label in m.labels for m in self.telegram.shown(self.home)))
        return next(m for m in self.telegram.shown(self.home) if label in m.labels)

    def order(self, *words: str) -> bool:
        """Whether the first messages with these words came in this order."""
        texts = [message.text for message in self.telegram.shown(self.home)]
        places = [next(number for number, text in enumerate(texts) if each in text) for each in words]
        return places == sorted(places)


@asynccontextmanager
async def real_scene(folder: Path, **codex: object) -> AsyncIterator[RealScene]:
    async with (
        scene(folder, deadline_s=DEADLINE_S) as place,
        real_lanes(**codex) as lanes,
        place.running(lanes, cwd=lanes.stages["codex"].work) as process,
    ):
        yield RealScene(place, process, lanes)


@pytest.mark.covers("003-verify.3", "003-verify.5", "003-verify.9", "003-case.8", "003-case.9", "003-case.11")
async def test_a_task_of_codex_on_telegram_and_what_claude_is_told_of_it(tmp_path: Path) -> None:
    """Usage, banners, calls, a thought, the plan, words, the diff at the end; then Claude's next prompt."""
    async with real_scene(tmp_path) as here:
        here.say("/codex")
        await here.see("Usage: /codex <task>")
        assert here.lanes.stages["codex"].requests == []
        script = "%think I look first\n%plan Look; Mend\n%run false\n%patch notes.txt one\\ntwo"
        here.say(f"/codex {script}\n%say It is done.")
        await here.see("CODEX COMPLETED")
        await here.process.settled()
        plan = await here.see("CODEX plan")
        assert plan.text.splitlines()[1:] == ["🔄 Look", "⬜ Mend"]
        work = [m.text for m in here.telegram.shown(here.home) if "codex::" in m.text or "💭" in m.text]
        assert "💭 I look first" in "\n".join(work)
        assert "codex::Bash" in "\n".join(work)
        assert "codex::Edit" in "\n".join(work)
        diff = await here.see("+one")
        assert "1 file changed (+2 −0)" in diff.text
        assert [each["language"] for each in diff.now.entities if each["type"] == "pre"] == ["diff"]
        assert here.order("CODEX STARTED", "It is done.", "1 file changed", "CODEX COMPLETED")
        here.say("%say understood")
        await here.answer("understood")
        heard = here.lanes.stages["claude"].heard()
        assert heard.count(START) == 1
        assert heard.index("notes.txt (new, +2)") < heard.index("%say understood")
        assert here.telegram.refused == []


@pytest.mark.covers("003-verify.7", "003-case.5")
async def test_answers_on_telegram_go_to_codex_by_button_and_by_words(tmp_path: Path) -> None:
    async with real_scene(tmp_path, sandbox="workspace-write", approval_policy="on-request") as here:
        here.say("/codex %ask Which database? PostgreSQL | SQLite\n%say thanks")
        asked = await here.offered("SQLite")
        assert "Which database?" in asked.text
        here.place.ada.press(asked, "SQLite")
        await here.answer("thanks")
        assert "SQLite" in here.lanes.stages["codex"].heard()
        here.say("/codex %ask Which colour? red | blue\n%say fine")
        await here.offered("red")
        here.say("a warm green")
        await here.answer("fine")
        assert "a warm green" in here.lanes.stages["codex"].heard()
        outside = tmp_path / "outside"
        here.say(f"/codex %run! touch {outside}\n%say tried")
        asked = await here.offered("Allow once")
        assert "touch " in asked.text
        assert (asked.labels[0], asked.labels[-1]) == ("Allow once", "Decline and stop")
        here.place.ada.press(asked, "Allow once")
        await here.answer("tried")
        await here.telegram.until(lambda: "Answered by Ada" in asked.text)
        assert outside.exists()
        assert here.lanes.stages["claude"].requests == []
        await here.process.settled()
        assert here.telegram.refused == []


@pytest.mark.covers("003-verify.8", "003-case.1", "003-case.2", "003-case.3")
async def test_a_message_on_telegram_stops_the_lane_that_works_and_goes_where_it_should(
    tmp_path: Path,
) -> None:
    """Plain words to Claude; /codex to Codex, also while Claude works; of two /codex the second one runs."""
    async with real_scene(tmp_path) as here:
        here.say(f"/codex {LONG}")
        await here.telegram.until(lambda: bool(here.telegram.drafts(here.home)))
        here.say("%say never mind then")
        stopped = await here.see("CODEX STOPPED")
        assert stopped.labels == ["Continue"]
        await here.answer("never mind then")
        assert here.order("CODEX STOPPED", "never mind then")
        drafts = len(here.telegram.drafts(here.home))
        here.say(LONG)
        await here.telegram.until(lambda: len(here.telegram.drafts(here.home)) > drafts)
        here.say(f"/codex {LONG}")
        await here.see("Claude was stopped")
        await here.see("CODEX STARTED", 2)
        here.say("/codex %say the second one")
        await here.answer("the second one")
        await here.see("CODEX STOPPED", 2)
        await here.see("CODEX COMPLETED")


@pytest.mark.covers("003-verify.6", "003-case.4", "003-case.7", "003-case.13")
async def test_images_a_crash_and_the_end_of_codex_on_telegram(tmp_path: Path) -> None:
    """Its thread goes on after a crash and after a restart of the bot."""
    before = set(descendants(os.getpid()))
    async with (
        scene(tmp_path, deadline_s=DEADLINE_S) as place,
        real_lanes() as lanes,
    ):
        async with place.running(lanes, cwd=lanes.stages["codex"].work) as process:
            here = RealScene(place, process, lanes)
            place.ada.send_files(here.home, [("a.png", PNG)], "/codex %say I see it", as_photos=False)
            await here.answer("I see it")
            assert "data:image/png;base64" in lanes.stages["codex"].heard()
            here.say("/codex %run kill -9 $PPID")
            crash = await here.see("starts it again")
            assert "❌" in crash.text
            here.say("/codex %say back again")
            await here.answer("back again")
            assert "I see it" in lanes.stages["codex"].heard()
            here.say("/quit")
            await here.see("Every lane is stopped")
            await gone(before)
        async with place.running(lanes, cwd=lanes.stages["codex"].work) as process:
            here = RealScene(place, process, lanes)
            here.say("/codex %say after the restart")
            await here.answer("after the restart")
            assert "back again" in lanes.stages["codex"].heard()
            await process.settled()


async def gone(before: set[int]) -> None:
    while set(descendants(os.getpid())) - before:
        await asyncio.sleep(0.01)


# ── with scripted lanes: what no healthy engine shows ──────────────────────


@pytest.mark.covers("003-case.6", "003-case.12", "003-case.15")
async def test_silence_a_compaction_and_a_missing_login_are_told_on_telegram(tmp_path: Path) -> None:
    login = "Codex not authenticated. Run 'codex' in terminal to log in."
    lanes = ScriptedLanes()
    clock = HandClock()
    async with scene(tmp_path) as place, place.running(lanes, clock=clock) as process:
        place.ada.write(place.home, "/codex hello")
        (await begun(lanes, "codex")).fail(login, "login")
        await place.telegram.message_with(place.home, login)
        place.ada.write(place.home, "work")
        turn = await begun(lanes)
        lanes.lane("claude").tell(Compacted(turn_id=turn.turn_id))
        await place.telegram.message_with(place.home, "ompact")
        clock.advance(301)
        await place.telegram.message_with(place.home, "silent")
        clock.advance(301)
        await turn.interrupted()
        await place.telegram.message_with(place.home, "It was silent for too long.")
        await process.settled()


async def given(lanes: ScriptedLanes, text: str) -> ScriptedTurn:
    """The turn with these words, whichever lane has got them."""
    while True:
        for lane in lanes.made:
            for turn in lane.turns:
                if turn.given.text == text:
                    return turn
        await asyncio.sleep(0.002)


@pytest.mark.covers("003-case.10", "003-case.14")
async def test_both_agents_and_several_conversations_share_one_limit_on_telegram(tmp_path: Path) -> None:
    """Claude delegates nothing here: two people work at once, each in their own conversation."""
    lanes = ScriptedLanes()
    async with scene(tmp_path) as place, place.running(lanes) as process:
        telegram = place.telegram
        place.ada.write(place.home, "/codex mine")
        place.ben.write(place.bens, "theirs")
        mine = await given(lanes, "mine")
        theirs = await given(lanes, "theirs")
        for number in range(40):
            mine.text(f"codex{number} ")
            mine.plan(PlanStep(text=f"step {number}", status="running"))
            mine.command(f"make {number}", item_id=f"c{number}")
            theirs.text(f"claude{number} ")
            await asyncio.sleep(0.004)
        mine.done()
        theirs.done()
        await telegram.message_with(place.home, "codex39")
        await telegram.message_with(place.bens, "claude39")
        await telegram.message_with(place.home, "CODEX COMPLETED")
        await process.settled()
        assert "codex" not in telegram.text(place.bens).lower()
        assert "claude" not in telegram.text(place.home).lower()
        assert (telegram.limits.told, telegram.limits.broken, telegram.refused) == (0, 0, [])
