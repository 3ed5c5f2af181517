"""The edge cases of the document about lanes, with the real Claude Code and the real Codex.

Case 1 is in `test_seed_003_points`, case 10 (one limit for both agents' messages) is the outbox's, and case
12 (no login) is in `test_seed_003_logins`. What a terminal shows of them is in its own folder.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from laneway.doors.chat.messages import Place
from laneway.doors.chat.outputs import (
    ActivityShown,
    PlanShown,
    QuestionOver,
    TextDelta,
    TextDone,
    Told,
    TurnBegan,
    TurnEnded,
)
from laneway.testing.clock import HandClock
from tests.doors.chat.chats import Talk
from tests.doors.chat.engine_lanes import LONG, PNG
from tests.doors.chat.real_chat import RealTalk, real_lanes, real_talk

ASKING = {"sandbox": "workspace-write", "approval_policy": "on-request"}


@pytest.mark.covers("003-case.2")
async def test_case_2_codex_while_claude_is_in_a_turn_interrupts_claude(tmp_path: Path) -> None:
    """Codex begins once Claude has settled."""
    async with real_talk(tmp_path) as here:
        talk = here.talk
        await talk.say(LONG)
        await talk.view.wait(TextDelta)
        await talk.say("/codex %say deployed")
        assert (await talk.view.ended("codex")).text == "deployed"
        kinds = [
            (type(each).__name__, each.lane)
            for each in talk.view.stored
            if isinstance(each, TurnBegan | TurnEnded)
        ]
        assert kinds == [
            ("TurnBegan", "claude"),
            ("TurnEnded", "claude"),
            ("TurnBegan", "codex"),
            ("TurnEnded", "codex"),
        ]
        assert talk.view.all(TurnEnded)[0].stopped_by == "message"


@pytest.mark.covers("003-case.3")
async def test_case_3_of_two_tasks_in_quick_succession_the_second_runs(tmp_path: Path) -> None:
    """The first is interrupted, even before Codex has started."""
    async with real_talk(tmp_path) as here:
        talk = here.talk
        first = await talk.say(f"/codex {LONG}")
        second = await talk.say("/codex %say tests fixed")
        assert (await talk.view.ended("codex", 2)).text == "tests fixed"
        assert [each.status for each in talk.view.all(TurnEnded)] == ["interrupted", "completed"]
        assert talk.view.receipts(first) == ["begun"]
        assert talk.view.receipts(second) == ["queued", "begun"]


@pytest.mark.covers("003-case.4")
async def test_case_4_a_crash_in_a_turn_is_told_and_the_next_task_starts_codex_again(tmp_path: Path) -> None:
    """In every conversation that has it; nothing starts by itself, and the thread goes on."""
    async with real_talk(tmp_path) as here:
        talk = here.talk
        other = Talk(talk.chat, Place("web", "two"))
        await other.join()
        await other.say("/codex %say quiet")
        await other.view.ended("codex")
        await talk.say("/codex %run kill -9 $PPID\n%say never")
        ended = await talk.view.ended("codex")
        assert ended.status == "failed"
        assert ended.failure is not None
        assert ended.failure.kind == "engine_lost"
        assert "The next /codex starts it again." in ended.failure.message
        told = await other.view.wait(Told, lambda each: each.level == "warning")
        assert "The next /codex starts it again." in told.text
        assert not [each for each in talk.view.all(Told) if "ended unexpectedly" in each.text], "told once"
        requests = len(here.codex.requests)
        await talk.say("/codex %say back")
        assert (await talk.view.ended("codex", 2)).text == "back"
        assert len(here.codex.requests) == requests + 1
        assert "kill -9" in here.codex.heard()
        await other.say("/codex %say and here")
        assert (await other.view.ended("codex", 2)).text == "and here"


@pytest.mark.covers("003-case.5")
async def test_case_5_an_approval_is_shown_and_the_answer_goes_back_to_codex(tmp_path: Path) -> None:
    """Yes runs the command, no does not, and words that are neither ask again."""
    async with real_talk(tmp_path, codex=ASKING) as here:
        talk = here.talk
        for number, (word, how) in enumerate((("yes", "answered"), ("no", "declined")), 1):
            made = tmp_path / word
            await talk.say(f"/codex %run! touch {made}\n%say done")
            shown = await talk.view.question(number)
            assert shown.for_owners
            assert {button.style for button in shown.buttons} == {"yes", "no"}
            assert "none of the choices" in (await talk.view.receipt(await talk.say("perhaps"))).text
            await talk.say(word)
            over = await talk.view.wait(QuestionOver, count=number)
            assert over.how == how
            await talk.view.ended("codex", number)
            assert made.exists() is (word == "yes")


@pytest.mark.covers("003-case.6")
async def test_case_6_silence_is_told_after_five_minutes_and_ends_the_turn_after_ten(tmp_path: Path) -> None:
    """A model that answers nothing; the next task finds Codex ready."""
    clock = HandClock()
    async with real_talk(tmp_path, clock=clock) as here:
        talk = here.talk
        await talk.say("/codex %say first\n%hang")
        while not here.codex.requests:
            await asyncio.sleep(0.01)
        await talk.view.receipt(await talk.say("/status"), "done")
        clock.advance(301)
        await talk.view.told("codex has been silent for 5 minutes. /stop ends it.")
        clock.advance(300)
        ended = await talk.view.ended("codex")
        assert (ended.status, ended.stopped_by) == ("interrupted", "silence")
        await talk.say("/codex %say ready")
        assert (await talk.view.ended("codex", 2)).text == "ready"


@pytest.mark.covers("003-case.7")
async def test_case_7_an_image_reaches_codex_with_the_words_or_before_them(tmp_path: Path) -> None:
    """As an image, not as a path."""
    image = tmp_path / "a.png"
    image.write_bytes(PNG)
    async with real_talk(tmp_path) as here:
        talk = here.talk
        await talk.say("/codex %say a dot", images=(image,))
        await talk.view.ended("codex")
        assert here.codex.heard().count("input_image") == 1
        await talk.say("", images=(image,))
        await talk.say("/codex %say the same")
        await talk.view.ended("codex", 2)
        assert here.codex.heard().count("data:image/png;base64") == 2


@pytest.mark.covers("003-case.8", "003-case.9", "003-case.11", "003-case.15")
async def test_cases_8_9_11_and_15_thoughts_plans_diffs_and_a_compaction_are_shown(tmp_path: Path) -> None:
    """Each as what it is: a thought to fold, a plan to edit in place, one diff at the end, a notice."""
    async with real_talk(tmp_path) as here:
        talk = here.talk
        await talk.say("/codex %think hm, the tests\n%plan read; fix; run\n%patch a.txt one\n%say done")
        ended = await talk.view.ended("codex")
        thoughts = [each for each in talk.view.all(TextDone) if each.kind == "thought"]
        assert "hm, the tests" in thoughts[0].text
        plan = talk.view.all(PlanShown)[-1]
        assert [step.text for step in plan.plan.steps] == ["read", "fix", "run"]
        assert {each.ticket for each in talk.view.all(PlanShown)} == {ended.ticket}
        edits = [each.activity for each in talk.view.all(ActivityShown) if each.activity.kind == "edit"]
        assert edits[-1].status == "completed"
        assert "+one" in ended.diff
        assert not [each for each in talk.view.all(TurnEnded)[:-1] if each.diff]
        await talk.say("/codex /compact")
        assert (await talk.view.told("compacted its context")).lane == "codex"
        await talk.view.ended("codex", 2)


@pytest.mark.covers("003-case.13")
async def test_case_13_threads_of_both_go_on_after_a_restart(tmp_path: Path) -> None:
    """The models get what was said before; what one had done is still told to the other."""
    async with real_lanes() as lanes:
        first = RealTalk(None, lanes, tmp_path)  # type: ignore[arg-type] # nothing runs yet
        async with first.restarted() as here:
            await here.talk.say("%say claude was here")
            await here.talk.view.ended("claude")
            await here.talk.say("/codex %say codex was here")
            await here.talk.view.ended("codex")
        async with first.restarted() as here:
            await here.talk.say("/codex %say again")
            await here.talk.view.ended("codex")
            assert "codex was here" in here.codex.heard()
            await here.talk.say("%say again")
            await here.talk.view.ended("claude")
            heard = here.claude.heard()
            assert "%say claude was here" in heard
            assert "Task: %say codex was here" in heard


@pytest.mark.covers("003-case.14")
async def test_case_14_turns_of_several_conversations_do_not_touch_each_other(tmp_path: Path) -> None:
    """One is interrupted, the other goes on; each sees its own words."""
    async with real_talk(tmp_path) as here:
        talk = here.talk
        other = Talk(talk.chat, Place("web", "two"))
        await other.join()
        await talk.say(f"/codex {LONG}")
        await other.say("/codex %stream 30 words over 0.5 seconds\n%say finished")
        await talk.view.wait(TextDelta)
        await talk.say("/stop")
        assert (await talk.view.ended("codex")).status == "interrupted"
        ended = await other.view.ended("codex")
        assert (ended.status, ended.text) == ("completed", "finished")
        assert len(other.view.all(TurnEnded)) == 1


async def test_a_stop_ends_commands_that_codex_runs(tmp_path: Path) -> None:
    """Nothing of them is left; the session stays."""
    async with real_talk(tmp_path) as here:
        talk = here.talk
        await talk.say("/codex %run sleep 600")
        await talk.view.wait(ActivityShown)
        await talk.say("/stop")
        assert (await talk.view.ended("codex")).stopped_by == "stop"
        await talk.say("/codex %say still here")
        assert (await talk.view.ended("codex", 2)).text == "still here"
        assert "sleep 600" in here.codex.heard()


async def test_claude_killed_in_a_turn_is_told_and_goes_on_with_its_thread(tmp_path: Path) -> None:
    """By a command of its own; what was cut can be continued."""
    async with real_talk(tmp_path) as here:
        talk = here.talk
        await talk.say("%say remember me\n%run kill -9 $PPID\n%say never")
        ended = await talk.view.ended("claude")
        assert ended.failure is not None
        assert ended.failure.kind == "engine_lost"
        assert ended.buttons[0].label == "Continue"
        assert not [each for each in talk.view.all(Told) if "ended unexpectedly" in each.text], "told once"
        await talk.say("%say back")
        assert (await talk.view.ended("claude", 2)).text == "back"
        assert "%say remember me" in here.claude.heard()
