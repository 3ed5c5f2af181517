"""The interactive screen and conversations that go on, or are left: what is shown of them."""

from __future__ import annotations

from laneway.core.model import Plan, PlanStep
from laneway.doors.chat.outputs import (
    AnyOutput,
    PlanShown,
    StatusNow,
    TextDelta,
    TurnBegan,
    TurnEnded,
)
from tests.doors.chat.platforms.terminal.hand_chat import HandChat, command, text
from tests.doors.chat.platforms.terminal.stage import seat


async def test_a_conversation_that_is_resumed_shows_its_latest_outputs() -> None:
    chat = HandChat()
    chat.show(*text("Earlier words."))
    async with seat(chat, resume="c1") as person:
        await person.see("Earlier words.")
    assert chat.joined == "c1"


def cut_work() -> list[AnyOutput]:
    """A turn that has a plan, a text and a command, and no end."""
    step = PlanStep(text="paint", status="running")
    return [
        TurnBegan(lane="codex", ticket="t1", task="task", has_banner=True),
        PlanShown(lane="codex", ticket="t1", plan=Plan(turn_id="t1", steps=(step,))),
        TextDelta(lane="codex", ticket="t1", part="p9", offset=0, text="half a sent"),
        command("sleep 30"),
    ]


async def test_a_turn_that_was_cut_before_a_restart_is_not_shown_as_if_it_ran() -> None:
    """Neither its plan nor its command; also not once another turn has run."""
    chat = HandChat()
    chat.show(*cut_work())
    async with seat(chat, resume="c1") as person:
        await person.see("sleep 30")
        chat.begin("claude", "t2")
        chat.show(*text("All done."))
        chat.end(TurnEnded(lane="claude", ticket="t2", status="completed", has_banner=False))
        await person.see("All done.")
        person.type("next")
        await person.see("› next")  # all that is live has been drawn again
        assert "paint" not in person.text
        assert "sleep 30" not in person.status_row


async def test_what_works_in_a_conversation_that_was_left_is_not_shown_in_the_next() -> None:
    """Its command was in the status row for ever, its plan and its text above the input."""
    async with seat() as person:
        person.chat.show(*cut_work(), StatusNow(default_lane="claude", active_lane="codex"))
        await person.see("half a sent")
        await person.see("◐ paint")
        person.chat.status = StatusNow(default_lane="claude", active_lane=None)
        person.chat.shown.clear()
        assert person.chat.view is not None
        person.chat.view.on_moved("c2")
        await person.see("conversation c2")
        person.type("next")
        await person.see("› next")
        assert "◐ paint" not in person.text
        assert "sleep 30" not in person.status_row
