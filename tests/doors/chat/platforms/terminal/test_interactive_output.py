"""The interactive screen: what a person sees of a conversation."""

from __future__ import annotations

from typing import Literal, TypeAlias

import pytest

from laneway.core.model import Failure, Plan, PlanStep
from laneway.doors.chat.messages import Place
from laneway.doors.chat.outputs import (
    Button,
    InputReceipt,
    OutputDelta,
    PlanShown,
    Said,
    StatusNow,
    TextDelta,
    TextDone,
    Told,
    TurnEnded,
)
from tests.doors.chat.platforms.terminal.hand_chat import HandChat, approval, command, done, text
from tests.doors.chat.platforms.terminal.stage import seat

StepStatus: TypeAlias = Literal["pending", "running", "completed"]


async def test_markdown_is_rendered_as_it_streams() -> None:
    async with seat() as person:
        person.chat.begin()
        person.chat.show(
            TextDelta(lane="claude", ticket="t1", part="p", offset=0, text="# Title\n\nSome **bo")
        )
        await person.see("Some **bo")  # what is not complete is shown, too
        person.chat.show(TextDelta(lane="claude", ticket="t1", part="p", offset=18, text="ld** words"))
        await person.see("Some bold words")
        person.chat.show(
            TextDone(lane="claude", ticket="t1", part="p", text="# Title\n\nSome **bold** words\n\nEnd")
        )
        person.chat.end(done())
        await person.see("End")
    assert "#" not in person.text
    assert person.text.count("Some bold words") == 1


async def test_a_text_that_was_cut_goes_on_after_one_empty_line() -> None:
    async with seat() as person:
        person.chat.begin()
        person.chat.show(TextDelta(lane="claude", ticket="t1", part="p", offset=0, text="before "))
        await person.see("before")
        person.type("and this?")
        person.press("enter")
        await person.chat.wait_taken()
        person.chat.show(TextDone(lane="claude", ticket="t1", part="p", text="before after"))
        person.chat.end(done())
        await person.see("after")
    rows = [row.strip() for row in person.rows]
    at = rows.index("› and this?")
    assert rows[at - 2 : at + 3] == ["before", "", "› and this?", "", "after"]


async def test_a_text_whose_pieces_were_missed_is_shown_once_and_whole() -> None:
    async with seat() as person:
        person.chat.begin()
        person.chat.show(TextDelta(lane="claude", ticket="t1", part="p", offset=8, text="two"))
        person.chat.show(TextDone(lane="claude", ticket="t1", part="p", text="one and two"))
        await person.see("one and two")


@pytest.mark.covers("003-case.9")
async def test_a_plan_is_a_checklist_that_changes_in_place() -> None:
    def plan(first: StepStatus, second: StepStatus) -> PlanShown:
        steps = (
            PlanStep(text="Read test files", status=first),
            PlanStep(text="Fix failing assertions", status=second),
            PlanStep(text="Run tests", status="pending"),
        )
        return PlanShown(lane="codex", ticket="t1", plan=Plan(turn_id="t1", steps=steps))

    async with seat() as person:
        person.chat.begin("codex", banner=True)
        person.chat.show(plan("running", "pending"))
        await person.see("◐ Read test files")
        person.chat.show(plan("completed", "running"))
        await person.see("☑ Read test files")
        await person.see("◐ Fix failing assertions")
        assert person.text.count("Read test files") == 1
        person.chat.end(done("codex", banner=True))
        await person.see("CODEX COMPLETED")
    assert person.text.count("Read test files") == 1
    assert "☐ Run tests" in person.text


async def test_a_lane_that_is_not_the_default_has_banners_and_its_name_before_its_calls() -> None:
    async with seat() as person:
        person.chat.begin("codex", task="fix the tests", banner=True)
        person.chat.show(command("npm test"))
        await person.see("▸ codex::Bash(npm test)")
        person.chat.show(OutputDelta(lane="codex", ticket="t1", item_id="npm test", text="1 passed\n"))
        await person.see("│ 1 passed")
        person.chat.show(command("npm test", output="1 passed\n2 failed\n", exit_code=1))
        person.chat.end(done("codex", banner=True))
        await person.see("━━━ CODEX COMPLETED · 7 s · 1.2k tokens ━━━")
    assert "━━━ CODEX STARTED: fix the tests ━━━" in person.text
    assert person.text.count("│ 1 passed") == 1
    assert "exit code 1" in person.text


async def test_the_default_lane_speaks_without_banners() -> None:
    async with seat() as person:
        person.chat.begin()
        person.chat.show(command("ls", lane="claude"), *text("There is nothing."))
        person.chat.end(done())
        await person.see("There is nothing.")
        await person.see("▸ Bash(ls)")
    assert "━━━" not in person.text


@pytest.mark.covers("003-case.8")
async def test_thoughts_are_folded_to_a_line_and_can_be_unfolded() -> None:
    async with seat() as person:
        person.chat.begin("codex", banner=True)
        thought = "**Reading the code**\nIt is long.\nThe bug is in line 7."
        person.chat.show(TextDone(lane="codex", ticket="t1", part="th", text=thought, kind="thought"))
        await person.see("┄ Reading the code …")
        assert "line 7" not in person.text
        person.press("ctrl-o")
        await person.see("│ The bug is in line 7.")


@pytest.mark.covers("003-case.11")
async def test_the_diff_of_a_turn_is_shown_at_its_end_and_a_long_one_is_cut() -> None:
    lines = "\n".join(f"+line {number}" for number in range(100))
    diff = (
        f"diff --git a/a.py b/a.py\nindex 1..2 100644\n--- a/a.py\n+++ b/a.py\n@@ -0,0 +1,100 @@\n{lines}\n"
    )
    async with seat() as person:
        person.chat.begin()
        person.chat.end(done(diff=diff))
        await person.see("more lines (Ctrl-O shows them)")
        assert "│ +line 1" in person.text
        assert "│ +line 99" not in person.text
        person.press("ctrl-o")
        await person.see("│ +line 99")


async def test_long_output_of_a_command_is_folded() -> None:
    output = "".join(f"line {number}\n" for number in range(10_000))
    async with seat() as person:
        person.chat.begin()
        for start in range(0, len(output), 4000):
            piece = output[start : start + 4000]
            person.chat.show(OutputDelta(lane="claude", ticket="t1", item_id="seq", text=piece))
        person.chat.show(command("seq", output=output))
        await person.see("… 9990 more lines")
    assert "line 5000" not in person.text


async def test_nothing_that_a_model_writes_moves_the_cursor() -> None:
    evil = "before\x1b[2J\x1b[H\x1b]0;title\x07after"
    async with seat() as person:
        person.chat.begin("codex", task=evil, banner=True)
        person.chat.show(*text(evil), command(evil, output=evil), Told(text=evil, level="warning"))
        person.chat.show(TextDone(lane="codex", ticket="t1", part="th", text=evil, kind="thought"))
        person.chat.show(
            Said(input_id=1, place=Place("web", "x"), message_id="1", sender=evil, platform="web", text=evil)
        )
        person.chat.ask(approval(evil))
        await person.see("? ")
        person.chat.over()
        person.chat.end(done("codex", banner=True, failure=Failure(kind="other", message=evil)))
        await person.see("CODEX FAILED")
    assert "\x1b[2J" not in person.raw
    assert "\x1b]0;" not in person.raw
    assert "\\x1b" in person.text


async def test_a_message_from_another_place_is_shown_with_its_sender() -> None:
    async with seat() as person:
        said = Said(
            input_id=1,
            place=Place("telegram", "7"),
            message_id="1",
            sender="Ann",
            platform="telegram",
            text="hi",
        )
        person.chat.show(said)
        await person.see("Ann (telegram):")
        await person.see("› hi")


async def test_what_a_button_does_elsewhere_can_be_typed() -> None:
    async with seat() as person:
        person.chat.begin()
        go_on = Button("/continue 7", "Continue")
        ended = TurnEnded(
            lane="claude",
            ticket="t1",
            status="interrupted",
            has_banner=False,
            stopped_by="stop",
            buttons=(go_on,),
        )
        person.chat.end(ended)
        await person.see("/continue 7: Continue")
        person.chat.show(Told(text="It waited.", buttons=(Button("/continue 8", "Run it now"),)))
        await person.see("/continue 8: Run it now")
    assert "  ■ claude: stopped\n    /continue 7: Continue" in person.text


async def test_what_comes_while_earlier_outputs_are_read_is_shown_once_and_after_them() -> None:
    chat = HandChat()
    chat.show(
        Said(
            input_id=1,
            place=Place("terminal", "before"),
            message_id="1",
            sender="you",
            platform="terminal",
            text="earlier",
        )
    )
    chat.on_join = lambda: chat.show(Told(text="It was cut."), Told(text="And more."))
    async with seat(chat, resume="c1") as person:
        await person.see("And more.")
        chat.show(Told(text="Now."))
        await person.see("Now.")
    rows = [row.strip() for row in person.rows if row.strip()]
    assert rows[:4] == ["› earlier", "It was cut.", "And more.", "Now."]


async def test_our_own_message_is_not_shown_twice() -> None:
    async with seat() as person:
        person.type("hello")
        person.press("enter")
        message = await person.chat.wait_taken()
        person.chat.show(
            Said(
                input_id=1,
                place=message.place,
                message_id="1",
                sender="you",
                platform="terminal",
                text="hello",
            ),
            InputReceipt(
                input_id=1, place=message.place, message_id="1", kind="queued", lane="codex", position=2
            ),
        )
        await person.see("· queued for codex, 2nd")
    assert person.text.count("hello") == 1


async def test_the_answer_to_a_command_of_another_place_is_not_shown() -> None:
    async with seat() as person:
        person.chat.show(
            Told(text="secret **status**", only=Place("web", "x")),
            Told(text="our **status**", only=person.chat.place),
        )
        await person.see("our status")
    assert "secret" not in person.text


async def test_the_status_row_has_lane_model_tokens_and_time() -> None:
    async with seat() as person:
        person.chat.show(
            StatusNow(
                default_lane="claude",
                active_lane="codex",
                model="gpt-5.5",
                tokens=12_300,
                window=100_000,
                working_since=-11.0,
            )
        )
        await person.see("codex · gpt-5.5 · 12.3k tokens (12 %) · 12 s")
        await person.see("Ctrl-C stops")


async def test_no_color_leaves_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with seat() as person:
        person.chat.begin("codex", banner=True)
        person.chat.show(command("ls", output="x\n", exit_code=2), *text("`code` and [a](https://b.example)"))
        person.chat.end(done("codex", banner=True))
        await person.see("CODEX COMPLETED")
    assert not any(f"\x1b[{code}m" in person.raw for code in (31, 32, 33, 34, 35, 36))
    assert "\x1b[38;" not in person.raw
