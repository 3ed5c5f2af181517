"""The interactive screen: how questions are shown, and which keys answer them."""

from __future__ import annotations

import pytest
from prompt_toolkit.history import InMemoryHistory

from laneway.core.model import Field, FieldOption
from laneway.doors.chat.messages import TapResult
from tests.doors.chat.platforms.terminal.hand_chat import HandChat, approval, form
from tests.doors.chat.platforms.terminal.stage import seat


@pytest.mark.covers("003-case.5")
async def test_an_approval_shows_its_choices_and_a_key_answers_it() -> None:
    async with seat() as person:
        person.chat.begin("codex", banner=True)
        person.chat.ask(approval("rm -rf build"))
        await person.see("? Run rm -rf build?")
        await person.see("│ rm -rf build")
        await person.see("1  Allow once")
        await person.see("y, n or a number")
        person.type("maybe")
        person.press("enter")
        await person.see("“maybe” is none of these")
        assert person.chat.taps == []
        person.type("y")
        person.press("enter")
        tap = await person.chat.wait_tapped()
        person.chat.over(text="Allow once")
        await person.see("question 1: answered: Allow once")
    assert tap.data == "q:1:0"
    assert person.chat.taken == []


async def test_enter_alone_answers_no_approval() -> None:
    async with seat() as person:
        person.chat.ask(approval())
        await person.see("1  Allow once")
        person.press("enter", "enter")
        person.type("n")
        person.press("enter")
        assert (await person.chat.wait_tapped()).data == "q:1:2"
    assert len(person.chat.taps) == 1


async def test_a_no_may_say_why() -> None:
    async with seat() as person:
        person.chat.ask(approval())
        await person.see("w to say why not")
        person.type("w")
        person.press("enter")
        await person.see("what should codex do instead")
        person.type("use pytest")
        person.press("enter")
        tap = await person.chat.wait_tapped()
    assert (tap.data, tap.words) == ("q:1:2", "use pytest")


async def test_a_form_is_filled_field_by_field() -> None:
    fields = (
        Field(
            field_id="db",
            header="DB",
            text="Which database?",
            options=(FieldOption(label="PostgreSQL"), FieldOption(label="SQLite")),
        ),
        Field(field_id="why", header="Why", text="Why that one?"),
    )
    async with seat() as person:
        person.chat.ask(form(*fields))
        await person.see("Which database?")
        await person.see("2  SQLite")
        person.type("2")
        person.press("enter")
        await person.see("Why that one?")
        person.type("it is small")
        person.press("enter")
        tap = await person.chat.wait_tapped()
    assert (tap.data, tap.values) == ("q:1", {"db": "SQLite", "why": "it is small"})


async def test_a_secret_is_neither_echoed_nor_kept() -> None:
    history = InMemoryHistory()
    async with seat(history=history) as person:
        person.chat.ask(form(Field(field_id="token", header="Token", text="Your token?", is_secret=True)))
        await person.see("Your token?")
        person.type("/hunter2 x")
        await person.see("? **********")
        person.press("enter")
        tap = await person.chat.wait_tapped()
        person.chat.over(text="")
        await person.see("question 1: answered")
    assert tap.values == {"token": "/hunter2 x"}
    assert "hunter2" not in person.raw
    assert history.get_strings() == []
    assert person.chat.taken == []


async def test_what_was_being_typed_when_a_question_came_is_not_its_answer() -> None:
    async with seat(settle_s=1.0) as person:
        person.type("y")
        await person.see("› y")
        person.chat.ask(approval())
        await person.see("1  Allow once")
        person.press("enter")  # too early to have been meant
        person.type("n")
        await person.see("? n")
        assert person.chat.taps == []
        person.time += 2.0
        person.press("enter")
        assert (await person.chat.wait_tapped()).data == "q:1:2"
        person.chat.over(text="Decline")
        await person.see("› y")  # it is there again
    assert person.chat.taken == []


async def test_of_several_questions_the_oldest_is_in_front() -> None:
    async with seat() as person:
        person.chat.ask(approval("first"), 1)
        person.chat.ask(approval("second"), 2, lane="claude")
        await person.see("(1 more question: #2)")
        assert "second" not in person.text
        person.type("y")
        person.press("enter")
        assert (await person.chat.wait_tapped(1)).data == "q:1:0"
        person.chat.over(1)
        await person.see("? Run second?")
        person.type("y")
        person.press("enter")
        assert (await person.chat.wait_tapped(2)).data == "q:2:0"


async def test_a_number_answers_another_question_or_brings_it_to_the_front() -> None:
    """A secret is never named: what is typed for it may begin in any way."""
    async with seat() as person:
        person.chat.ask(approval("first"), 1)
        person.chat.ask(approval("second"), 2, lane="claude")
        person.chat.ask(form(Field(field_id="k", header="Key", text="Key?", is_secret=True)), 3)
        await person.see("(2 more questions: #2, #3)")
        person.type("#2 y")
        person.press("enter")
        assert (await person.chat.wait_tapped(1)).data == "q:2:0"
        person.chat.over(2)
        await person.see("(1 more question: #3)")
        person.type("#3 seen")
        person.press("enter")
        await person.see("Key?")
        person.type("#1 y")
        person.press("enter")
        assert (await person.chat.wait_tapped(2)).values == {"k": "#1 y"}
        person.chat.over(3)
        await person.see_gone("more question")
        person.type("#1: y")
        person.press("enter")
        assert (await person.chat.wait_tapped(3)).data == "q:1:0"


async def test_a_command_is_no_answer_to_a_question() -> None:
    async with seat() as person:
        person.chat.ask(approval())
        await person.see("1  Allow once")
        person.type("/stop")
        person.press("enter")
        assert (await person.chat.wait_taken()).text == "/stop"
    assert person.chat.taps == []


async def test_an_answer_that_came_too_late_is_told() -> None:
    chat = HandChat()
    chat.tap_result = TapResult("Somebody else has answered.", is_done=False, is_stale=True)
    async with seat(chat) as person:
        chat.ask(approval())
        await person.see("1  Allow once")
        person.type("y")
        person.press("enter")
        await person.see("Somebody else has answered.")
        await person.see_gone("y, n or a number")
