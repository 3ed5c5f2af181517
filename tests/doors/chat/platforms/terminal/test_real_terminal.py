"""`laneway chat` in a terminal, with the real Claude Code and the real Codex and scripted models.

Each test is one conversation of several turns, because each start takes seconds.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from laneway.rehearsal.answer import Piece, answer
from laneway.testing.rehearse import rehearsal
from tests.doors.chat.engine_lanes import PNG
from tests.doors.chat.platforms.terminal.at_terminal import (
    BEGUN,
    STREAM,
    at_chat,
)
from tests.own_processes import OwnProcesses

REHEARSE = "--rehearse"
READY = "/help lists the commands"


@pytest.mark.covers("003-verify.5", "003-case.8", "003-case.9", "003-case.11")
async def test_a_task_for_codex_is_shown_and_claude_leads_without_banners(tmp_path: Path) -> None:
    """Calls by name, thoughts folded, the plan changed in place, the diff at the end."""
    (tmp_path / "hello.txt").write_text("hello\n")
    async with at_chat(tmp_path, REHEARSE) as person:
        await person.see(READY)
        greeting = "\n".join(row.strip() for row in person.rows)
        assert "Messages go to claude; /NAME TASK gives a task to another lane, such as /codex." in greeting
        assert "A rehearsal: scripted models answer, and nothing is kept." in greeting
        await person.say("/codex")
        await person.see("Usage: /codex <task>")
        await person.say(
            "/codex greet them",
            "%think **Reading** the file",
            "%plan Read it; Change it",
            "%run cat hello.txt; exit 3",
            "%plan Change it; Say so",
            "%edit hello.txt hello => goodbye",
            "%say It is **done**.",
        )
        await person.see("━━━ CODEX COMPLETED")
        await person.idle()
        shown = [row.strip() for row in person.rows]
        for row in (
            "┄ Reading the file",
            "▸ codex::Bash(cat hello.txt; exit 3)",
            "│ hello",
            "exit code 3",
            "▸ codex::Edit(hello.txt)",
            "It is done.",
            "codex plan:",
            "◐ Change it",
            "☐ Say so",
            "│ -hello",
            "│ +goodbye",
        ):
            assert shown.count(row) == 1, row
        assert "Read it" not in person.text.partition("STARTED")[2].partition("━━━")[2]
        (began,) = [row for row in shown if "CODEX STARTED" in row]
        assert began.startswith("━━━ CODEX STARTED: greet them %think")
        assert (tmp_path / "hello.txt").read_text() == "goodbye\n"

        await person.say("Thanks.", "%say You are **welcome**.")
        await person.hear("You are welcome.")
        await person.see("claude · claude-")  # the model, in the status row
        await person.idle()
        assert person.count("━━━") == 4
        person.screen.press("ctrl-d")
        assert (await person.screen.wait_end()).code == 0


@pytest.mark.covers("003-verify.7", "003-verify.8", "003-case.1", "003-case.2", "003-case.3", "003-case.5")
async def test_questions_are_answered_and_messages_stop_what_works(
    tmp_path: Path, processes: OwnProcesses
) -> None:
    """A lane's question, an approval, and who is stopped for whom."""
    async with at_chat(tmp_path, REHEARSE) as person:
        await person.see(READY)
        await person.say("/codex choose", "%ask Which database? PostgreSQL | SQLite", "%say chosen")
        await person.see("codex asks: a number, or your own words")
        await person.answer("2")
        await person.see("question 1: answered by you: SQLite")
        await person.hear("chosen")
        await person.see("━━━ CODEX COMPLETED")
        assert not processes.named("stream-json"), "the answer was for Codex: Claude was not even started"

        await person.say("/codex %run! touch granted")
        await person.see("? Run this command?")
        await person.answer("perhaps")
        await person.see("“perhaps” is none of these")
        assert not (tmp_path / "granted").exists()
        await person.answer("y")
        await person.see("question 2: answered by you: Allow once")
        await person.screen.wait_until(lambda: person.count("CODEX COMPLETED") == 2, "the second end")
        assert (tmp_path / "granted").exists()

        await person.say(f"/codex {STREAM}")
        await person.see(BEGUN)
        await person.say("Actually, never mind.", "%say As you like.")
        await person.see("■ codex: stopped for your message")
        await person.see("━━━ CODEX STOPPED")
        await person.hear("As you like.")
        await person.idle()

        await person.say(f"Claude, go on {STREAM}", STREAM)
        await person.screen.wait_until(lambda: person.count(BEGUN) == 2, "words of Claude")
        await person.say(f"/codex {STREAM}")
        await person.see("■ claude: stopped for your message")
        await person.screen.wait_until(lambda: person.count(BEGUN) == 3, "words of Codex")
        await person.say("/codex %say the second")
        await person.screen.wait_until(lambda: person.count("CODEX STOPPED") == 2, "another stop")
        await person.screen.wait_until(lambda: person.count("CODEX COMPLETED") == 3, "the third end")
        assert person.rows.count("the second") == 1

        await person.say(f"/codex {STREAM}")
        await person.screen.wait_until(lambda: person.count(BEGUN) == 4, "words of Codex")
        person.screen.press("ctrl-c")
        await person.see("■ codex: stopped\n")
        await person.see("Ctrl-C again leaves")
        person.screen.press("ctrl-c")
        assert (await person.screen.wait_end()).code == 130


@pytest.mark.covers("003-verify.6", "003-case.4", "003-case.7", "003-case.15")
async def test_a_crash_a_compaction_an_image_and_the_end(tmp_path: Path, processes: OwnProcesses) -> None:
    """Nothing restarts by itself, and nothing is left."""
    (tmp_path / "pixel.png").write_bytes(PNG)
    async with at_chat(tmp_path, REHEARSE) as person:
        await person.see(READY)
        await person.say(f"/codex {STREAM}")
        await person.see(BEGUN)
        (codex,) = processes.named("app-server")
        os.kill(codex, signal.SIGKILL)
        await person.see("The next /codex starts it again.")
        await person.see("━━━ CODEX FAILED")
        await person.idle()
        assert processes.named("app-server") == []
        await person.say("/codex %say I am back.")
        await person.see("━━━ CODEX COMPLETED")
        assert person.count("ended unexpectedly") == 1
        assert person.rows.count("I am back.") == 1

        await person.say("/codex /compact")
        await person.see("codex has compacted its context.")
        await person.idle()

        await person.say("/attach pixel.png")
        await person.see("kept for your next message")
        await person.say("/codex %say I see it.")
        await person.hear("I see it.")
        await person.idle()
        await person.say("/quit")
        assert (await person.screen.wait_end()).code == 0
        assert processes.named("app-server") == []


@pytest.mark.covers("003-case.6")
async def test_a_silent_lane_is_told_and_then_interrupted(tmp_path: Path) -> None:
    """The times are settings."""
    times = {"LANEWAY_CHAT_WARN_SECS": "1", "LANEWAY_CHAT_SILENCE_SECS": "6"}
    async with at_chat(tmp_path, REHEARSE, **times) as person:
        await person.see(READY)
        await person.say("/codex %hang")
        await person.see("codex has been silent for ")
        await person.see("/stop ends it.")
        await person.see("■ codex: stopped: it was silent for too long")
        await person.see("━━━ CODEX STOPPED")
        person.screen.press("ctrl-d")
        assert (await person.screen.wait_end()).code == 0


@pytest.mark.covers("003-case.13")
async def test_a_conversation_goes_on_after_it_was_left(tmp_path: Path) -> None:
    """With the lane's own memory; its latest outputs are on the screen again."""
    requests: list[dict[str, Any]] = []

    def spy(request: dict[str, Any]) -> Iterator[Piece]:
        requests.append(request)
        return answer(request)

    async with rehearsal(spy) as stage:
        env = {"CODEX_HOME": str(stage.home), "HOME": str(stage.home.parent)}
        async with at_chat(stage.work, "--lane", "codex", **env) as person:
            await person.see(READY)
            await person.say("Remember the herring.", "%say I will.")
            await person.hear("I will.")
            await person.idle()
            person.screen.press("ctrl-d")
            assert (await person.screen.wait_end()).code == 0
            (hint,) = [row for row in person.rows if "continues this conversation" in row]
        words = hint.split("continues")[0].split()
        assert words[:3] == ["laneway", "chat", "--resume"]
        async with at_chat(stage.work, *words[2:], **env) as person:
            await person.hear("I will.")
            await person.say("What was it?", "%say A herring.")
            await person.hear("A herring.")
            await person.idle()
        assert "Remember the herring." in str(requests[-1])


async def test_a_kill_in_the_middle_of_a_question_is_told_at_the_next_start(
    tmp_path: Path, processes: OwnProcesses
) -> None:
    """The question is void, the turn is told as cut, and goes on only when it is asked to."""
    async with rehearsal() as stage:
        env = {"CODEX_HOME": str(stage.home), "HOME": str(tmp_path)}
        async with at_chat(stage.work, "--lane", "codex", **env) as person:
            await person.see(READY)
            await person.say("%ask Which database? PostgreSQL | SQLite")
            await person.see("codex asks: a number")
            (laneway,) = processes.named("laneway chat")
            os.kill(laneway, signal.SIGKILL)
            await person.screen.wait_end()
        async with at_chat(stage.work, "--resume", **env) as person:
            await person.see(READY)
            await person.see("Laneway ended in the middle of this turn")
            assert person.count("Laneway ended in the middle") == 1
            assert person.count("question 1: void: codex asked it before Laneway ended") == 1
            assert "Ctrl-C stops" not in person.text, "nothing is repeated by itself"
            assert "codex asks" not in person.text
            (offer,) = [row.strip() for row in person.rows if row.endswith(": Continue")]
            await person.say(offer.removesuffix(": Continue"))
            await person.see("I heard “Go on with what you were doing")
            await person.idle()


async def test_a_terminal_that_cannot_move_its_cursor_has_lines(tmp_path: Path) -> None:
    """`TERM=dumb`: what works can be stopped there, too."""
    async with at_chat(tmp_path, REHEARSE, "--lane", "codex", TERM="dumb") as person:
        await person.see("> ")
        await person.say("%run! touch granted")
        await person.see("5  Decline and stop")
        await person.say("y")
        await person.hear("Done.")
        assert (tmp_path / "granted").exists()
        await person.screen.wait_until(lambda: person.text.endswith("\n>"), "a prompt at the end of")
        await person.say(STREAM)
        await person.see(BEGUN)
        person.screen.press("ctrl-c")
        await person.see("■ codex: stopped")
        await person.screen.wait_until(lambda: person.text.endswith("\n>"), "a prompt at the end of")
        assert b"\x1b" not in person.screen.raw
        person.screen.press("ctrl-d")
        assert (await person.screen.wait_end()).code == 0


async def test_without_colours_there_are_none(tmp_path: Path) -> None:
    """`NO_COLOR`: bold and dim are no colours."""
    async with at_chat(tmp_path, REHEARSE, NO_COLOR="1") as person:
        await person.see(READY)
        await person.say("/nope")
        await person.see("! not taken")
        await person.screen.wait_until(lambda: "/nope is not a command" in person.text, "the refusal")
        person.screen.press("ctrl-d")
        await person.screen.wait_end()
        codes = {
            code for part in person.screen.raw.split(b"\x1b[")[1:] for code in part.split(b"m")[0].split(b";")
        }
        assert not codes & {b"%d" % number for number in (*range(30, 38), *range(90, 98), 38)}
