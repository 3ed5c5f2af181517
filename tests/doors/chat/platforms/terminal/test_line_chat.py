"""A conversation in lines: when they are read, where output goes, what the exit code says."""

from __future__ import annotations

import asyncio
import io
import os
from pathlib import Path
from typing import TextIO

import pytest

from laneway.base.errors import ConversationUnknown
from laneway.core.model import Failure, Field, Plan, PlanStep
from laneway.doors.chat.messages import Incoming
from laneway.doors.chat.outputs import InputReceipt, PlanShown, Told, TurnEnded
from laneway.doors.chat.platforms.terminal.line_chat import LineChat
from laneway.doors.chat.platforms.terminal.typed_lines import LineTooLong, TypedLines
from tests.doors.chat.platforms.terminal.hand_chat import HandChat, approval, command, form, text

DEADLINE_S = 30.0


class Piped:
    """`laneway chat` in a pipe: a test writes its input, and reads both outputs."""

    def __init__(self, chat: HandChat, *, stdout: TextIO | None = None, is_typed: bool = False) -> None:
        read, self._write = os.pipe()
        self.out, self.side = stdout or io.StringIO(), io.StringIO()
        self.chat = chat
        self._read = os.fdopen(read, "rb", buffering=0)
        self._lines = LineChat(
            chat, Path("/work"), lines=TypedLines(read), stdout=self.out, stderr=self.side, is_typed=is_typed
        )
        self._running = asyncio.create_task(self._lines.run(None))

    def type(self, *lines: str) -> None:
        os.write(self._write, "".join(f"{line}\n" for line in lines).encode())

    async def see_side(self, end: str) -> None:
        """Wait until standard error ends with this."""
        async with asyncio.timeout(DEADLINE_S):
            while not self.side.getvalue().endswith(end):
                await asyncio.sleep(0.01)

    async def end(self) -> int:
        """No more input: the exit code."""
        os.close(self._write)
        code = await asyncio.wait_for(self._running, DEADLINE_S)
        self._read.close()
        return code


def answers(chat: HandChat) -> None:
    """Each message gets a turn that repeats it."""

    def on_take(message: Incoming) -> None:
        ticket = message.message_id
        chat.begin(ticket=ticket)
        chat.show(*text(f"You said: {message.text}", part=ticket))
        chat.end(TurnEnded(lane="claude", ticket=ticket, status="completed", has_banner=False))

    chat.on_take = on_take


async def test_each_line_is_a_message_and_answers_go_to_standard_output() -> None:
    piped = Piped(HandChat())
    answers(piped.chat)
    piped.type("one", "", "two **bold**")
    assert await piped.end() == 0
    assert isinstance(piped.out, io.StringIO)
    assert piped.out.getvalue() == "You said: one\nYou said: two **bold**\n"
    assert [message.text for message in piped.chat.taken] == ["one", "two **bold**"]


async def test_the_last_line_needs_no_end() -> None:
    piped = Piped(HandChat())
    answers(piped.chat)
    os.write(piped._write, b"one\r\ntwo")
    assert await piped.end() == 0
    assert [message.text for message in piped.chat.taken] == ["one", "two"]


async def test_the_next_line_is_read_when_no_lane_works() -> None:
    chat = HandChat()
    chat.on_take = lambda message: chat.begin()
    piped = Piped(chat)
    piped.type("one", "two")
    await chat.wait_taken(1)
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(chat.taken) == 1
    chat.end(TurnEnded(lane="claude", ticket="t1", status="completed", has_banner=False))
    await chat.wait_taken(2)
    chat.end(TurnEnded(lane="claude", ticket="t1", status="completed", has_banner=False))
    assert await piped.end() == 0


async def test_the_next_line_answers_a_question_that_waits_for_it() -> None:
    chat = HandChat()

    def on_take(message: Incoming) -> None:
        chat.begin()
        chat.ask(form(Field(field_id="db", header="DB", text="Which database?")))
        chat.be_ready(asks=True)

    chat.on_take = on_take
    piped = Piped(chat)
    piped.type("choose", "PostgreSQL")
    tap = await chat.wait_tapped()
    chat.over()
    chat.end(TurnEnded(lane="claude", ticket="t1", status="completed", has_banner=False))
    assert await piped.end() == 0
    assert tap.values == {"db": "PostgreSQL"}
    assert "Which database?" in piped.side.getvalue()


async def test_at_the_end_of_input_open_questions_are_declined() -> None:
    chat = HandChat()

    def on_take(message: Incoming) -> None:
        chat.begin()
        chat.ask(approval())
        chat.be_ready(asks=True)

    chat.on_take = on_take
    piped = Piped(chat)
    piped.type("choose")
    await chat.wait_taken()
    assert await piped.end() == 0
    assert chat.declines == 1


@pytest.mark.parametrize("what", ["turn", "message"])
async def test_a_turn_that_failed_or_a_message_that_was_not_taken_is_exit_code_1(what: str) -> None:
    chat = HandChat()

    def on_take(message: Incoming) -> None:
        if what == "message":
            refused = InputReceipt(
                input_id=1, place=message.place, message_id="1", kind="refused", text="There is no /nope."
            )
            chat.show(refused)
            return
        chat.begin()
        failure = Failure(kind="other", message="it did not work")
        chat.end(TurnEnded(lane="claude", ticket="t1", status="failed", has_banner=False, failure=failure))

    chat.on_take = on_take
    piped = Piped(chat)
    piped.type("/nope")
    await chat.wait_taken()
    assert await piped.end() == 1
    assert ("it did not work" if what == "turn" else "There is no /nope.") in piped.side.getvalue()


async def test_a_message_that_cannot_be_stored_is_told_and_exit_code_1() -> None:
    chat = HandChat()

    def on_take(message: Incoming) -> None:
        raise ConversationUnknown("c1")

    chat.on_take = on_take
    piped = Piped(chat)
    piped.type("hello")
    await chat.wait_taken()
    assert await piped.end() == 1
    assert "There is no conversation c1." in piped.side.getvalue()


async def test_the_work_is_told_on_standard_error() -> None:
    chat = HandChat()

    def on_take(message: Incoming) -> None:
        chat.begin("codex", banner=True, task="fix it")
        chat.show(command("npm test"), command("npm test", output="ok\n"))
        for status in ("pending", "completed"):
            steps = (PlanStep(text="Only step", status=status),)
            chat.show(PlanShown(lane="codex", ticket="t1", plan=Plan(turn_id="t1", steps=steps)))
        chat.show(*text("Done.", lane="codex"), Told(text="Something else.", level="warning"))
        chat.end(TurnEnded(lane="codex", ticket="t1", status="completed", has_banner=True, seconds=3.0))

    chat.on_take = on_take
    piped = Piped(chat)
    piped.type("/codex fix it")
    assert await piped.end() == 0
    assert isinstance(piped.out, io.StringIO)
    assert piped.out.getvalue() == "Done.\n"
    assert piped.side.getvalue().splitlines() == [
        "━━━ CODEX STARTED: fix it ━━━",
        "▸ codex::Bash(npm test)",
        "  │ ok",
        "  codex plan:",
        "  ☐ Only step",
        "  ! Something else.",
        "  codex plan:",
        "  ☑ Only step",
        "━━━ CODEX COMPLETED · 3 s ━━━",
    ]


async def test_what_an_output_cannot_encode_is_escaped_not_lost() -> None:
    """In a locale of ASCII; a lone surrogate goes into no output at all."""
    data = io.BytesIO()
    piped = Piped(HandChat(), stdout=io.TextIOWrapper(data, encoding="ascii"))
    answers(piped.chat)
    piped.type("h\u00e4llo \u2713")
    assert await piped.end() == 0
    assert data.getvalue() == b"You said: h\\xe4llo \\u2713\n"


async def test_at_a_dumb_terminal_what_is_shown_begins_a_line_and_the_prompt_follows() -> None:
    """A person may be typing when it comes. While a lane works there is no prompt to be overwritten."""
    chat = HandChat()
    chat.on_take = lambda message: chat.begin("codex", banner=True, task="fix it")
    piped = Piped(chat, is_typed=True)
    await piped.see_side("> ")
    piped.type("/codex fix it")
    await chat.wait_taken()
    await piped.see_side("> ━━━ CODEX STARTED: fix it ━━━\n")  # the terminal itself shows Enter
    chat.ask(approval())
    await piped.see_side("\n> ")
    chat.over()
    chat.end(TurnEnded(lane="codex", ticket="t1", status="completed", has_banner=True))
    await piped.see_side("\n━━━ CODEX COMPLETED · 0 s ━━━\n> ")
    assert "5  Decline and stop\n> \n  ↳ question 1" in piped.side.getvalue()
    assert await piped.end() == 0


async def test_quit_ends_it_whatever_follows() -> None:
    piped = Piped(HandChat())
    piped.type("/quit", "hello")
    assert await asyncio.wait_for(piped._running, DEADLINE_S) == 0
    assert piped.chat.has_quit
    assert piped.chat.taken == []
    assert await piped.end() == 0


async def test_a_reader_that_has_gone_ends_it() -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    piped = Piped(HandChat(), stdout=Gone())
    answers(piped.chat)
    piped.type("one")
    await piped.chat.wait_taken()
    assert await asyncio.wait_for(piped._running, DEADLINE_S) == 1
    await piped.end()


async def test_a_person_at_a_dumb_terminal_may_type_while_a_lane_works() -> None:
    chat = HandChat()
    chat.on_take = lambda message: chat.begin() if message.text == "one" else None
    piped = Piped(chat, is_typed=True)
    piped.type("one", "two")
    assert (await chat.wait_taken(2)).text == "two"
    chat.end(TurnEnded(lane="claude", ticket="t1", status="completed", has_banner=False))
    assert await piped.end() == 0


async def test_ctrl_c_at_a_dumb_terminal_stops_the_turn_first_and_then_ends_the_process() -> None:
    chat = HandChat()
    piped = Piped(chat, is_typed=True)
    piped.type("one")
    await chat.wait_taken(1)
    assert not piped._lines.on_interrupt()  # nothing works
    piped._lines._interrupts = 0
    chat.begin()
    assert piped._lines.on_interrupt()
    assert (await chat.wait_taken(2)).text == "/stop"
    assert not piped._lines.on_interrupt()
    chat.end(TurnEnded(lane="claude", ticket="t1", status="interrupted", has_banner=False, stopped_by="stop"))
    assert await piped.end() == 0


async def test_ctrl_c_in_a_pipe_is_not_taken() -> None:
    piped = Piped(HandChat())
    piped.chat.begin()
    assert not piped._lines.on_interrupt()
    piped.chat.end(TurnEnded(lane="claude", ticket="t1", status="completed", has_banner=False))
    assert await piped.end() == 0


async def test_a_line_without_an_end_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "endless"
    with path.open("wb") as file:
        file.truncate(5 * 1024 * 1024)
    with path.open("rb", buffering=0) as file:
        lines = TypedLines(file.fileno())
        with pytest.raises(LineTooLong):
            await lines.line()


async def test_a_wait_for_a_line_that_was_cancelled_loses_nothing() -> None:
    read, write = os.pipe()
    try:
        lines = TypedLines(read)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(lines.line(), 0)
        os.write(write, b"one\ntwo\n")
        assert await lines.line() == "one"
        assert await lines.line() == "two"
    finally:
        os.close(write)
        assert await lines.line() is None
        os.close(read)
