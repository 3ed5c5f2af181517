"""The interactive screen at the keyboard: how messages are typed, and how a person leaves."""

from __future__ import annotations

import asyncio
from pathlib import Path

from prompt_toolkit.history import InMemoryHistory

from laneway.doors.chat.platforms.terminal.typed_history import TypedHistory
from tests.doors.chat.platforms.terminal.stage import seat

# ── typing ─────────────────────────────────────────────────────────────────


async def test_what_is_typed_is_sent_with_enter_and_stays_on_the_screen() -> None:
    async with seat() as person:
        person.type("what does this folder do?")
        person.press("enter")
        message = await person.chat.wait_taken()
        await person.see("› what does this folder do?")
    assert message.text == "what does this folder do?"
    assert message.place == person.chat.place
    assert message.sender.is_owner


async def test_a_message_may_have_several_lines() -> None:
    async with seat() as person:
        person.type("first")
        person.press("newline")
        person.type("second\\")
        person.press("enter")
        person.type("third")
        person.press("enter")
        assert (await person.chat.wait_taken()).text == "first\nsecond\nthird"


async def test_pasted_lines_are_one_message() -> None:
    async with seat() as person:
        person.type("\x1b[200~one\ntwo\nthree\x1b[201~")
        person.press("enter")
        assert (await person.chat.wait_taken()).text == "one\ntwo\nthree"


async def test_an_empty_line_is_not_sent() -> None:
    async with seat() as person:
        person.press("enter")
        person.type("hello")
        person.press("enter")
        assert (await person.chat.wait_taken()).text == "hello"
    assert len(person.chat.taken) == 1


async def test_what_was_typed_before_comes_back() -> None:
    async with seat(history=InMemoryHistory()) as person:
        person.type("one")
        person.press("enter")
        await person.chat.wait_taken(1)
        async with asyncio.timeout(30):
            while person.interactive.typed_text != "one":  # it is read in the background
                person.press("up")
                await asyncio.sleep(0.01)
        person.press("enter")
        assert (await person.chat.wait_taken(2)).text == "one"


def test_history_is_kept_for_the_user_alone_and_bounded(tmp_path: Path) -> None:
    path = tmp_path / "state" / "history"
    history = TypedHistory(path)
    for entry in ("one", "two\nlines", "x" * 30_000):
        history.store_string(entry)
    assert list(TypedHistory(path).load_history_strings()) == ["two\nlines", "one"]
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text('"good"\n"cut')
    assert list(TypedHistory(path).load_history_strings()) == ["good"]


async def test_commands_and_lanes_are_completed() -> None:
    async with seat() as person:
        person.type("/co")
        await person.see("OpenAI Codex")
        person.press("tab")
        await person.see("› /codex")
        person.press("enter")  # takes the completion
        person.type(" fix it")
        person.press("enter")
        assert (await person.chat.wait_taken()).text == "/codex fix it"


async def test_the_commands_of_a_lanes_engine_are_completed_behind_it() -> None:
    async with seat() as person:
        person.type("/codex /re")
        await person.see("review the changes")


# ── leaving ────────────────────────────────────────────────────────────────


async def test_ctrl_c_stops_the_turn_and_a_second_one_leaves() -> None:
    async with seat() as person:
        person.chat.begin()
        await person.see("Ctrl-C stops")
        person.press("ctrl-c")
        assert (await person.chat.wait_taken()).text == "/stop"
        await person.see("Ctrl-C again leaves")
        person.press("ctrl-c")
        assert await person.left() == 130


async def test_ctrl_c_empties_the_line_where_nothing_works() -> None:
    async with seat() as person:
        person.type("half a thou")
        await person.see("› half a thou")
        person.press("ctrl-c")
        await person.see_gone("half a thou")
        person.type("x")
        await person.see("› x")
        person.press("ctrl-c")  # another key was pressed since
        await person.see_gone("› x")
        person.press("ctrl-c")
        assert await person.left() == 130


async def test_ctrl_d_on_an_empty_line_leaves() -> None:
    async with seat() as person:
        person.press("ctrl-d")
        assert await person.left() == 0


async def test_quit_stops_every_lane_and_leaves() -> None:
    async with seat() as person:
        person.type("/quit")
        person.press("enter")
        assert await person.left() == 0
    assert person.chat.has_quit
