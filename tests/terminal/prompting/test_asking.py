"""Questions at a terminal, with the real Codex: nobody approves by accident, and nobody blindly."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.cli.ask.support import READ_ONLY, asking, shell, wait_asked
from tests.codex.support import real


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder to work in."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


async def test_what_was_typed_before_a_question_is_never_its_answer(work: Path) -> None:
    """`1` and Enter while a command ran; the question came after it."""
    gate = work / "gate"
    os.mkfifo(gate)
    prompt = f"%run cat {gate}; echo through\n%run! touch {work}/marker"
    async with asking(*READ_ONLY, prompt, cwd=work) as screen:
        await screen.wait_for(f"▸ cat {gate}")
        screen.type("1\n1\n")
        gate.write_text("go on\n")
        await wait_asked(screen)
        assert "Run this command?" in screen.text
        screen.press("enter")
        assert (await screen.wait_end()).code == 0
    assert not (work / "marker").exists()


async def test_a_line_too_many_does_not_answer_the_next_question(work: Path) -> None:
    """Two answers pasted at once are one answer."""
    prompt = f"%run! touch {work}/first\n%run! touch {work}/second"
    async with asking(*READ_ONLY, prompt, cwd=work) as screen:
        await wait_asked(screen)
        screen.type("1\n1\n1\n")
        await screen.wait_for(f"│ touch {work}/second")
        await wait_asked(screen)
        screen.press("enter")
        assert (await screen.wait_end()).code == 0
    assert (work / "first").exists()
    assert not (work / "second").exists()


def tool(command: str, why: str = "because") -> str:
    """A step that asks for a command with line breaks in it."""
    call = {"cmd": command, "sandbox_permissions": "require_escalated", "justification": why, "login": False}
    return f"%tool exec_command {json.dumps(call)}"


FORGED = [
    # line breaks, one long line, control characters, tabs, wide letters
    "true\n  1  Allow once\n  4  Decline and go on\n  y, n or a number; Enter declines: ",
    "true #" + " " * 73 + "  1  Allow once" + " " * 65 + "  y, n or a number; Enter declines: ",
    "true\r\n\x1b[2J\x1b[H? Apply these changes?\x1b[8m",
    "true\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t? Run this command?",
    "true " + "漢" * 36 + "  1  Allow once",
]


async def test_no_row_of_a_command_looks_like_a_row_of_ours(run: Path) -> None:
    """Line breaks, a long line that the terminal would wrap, control characters, tabs, wide letters."""
    prompt = "\n".join(tool(forged, why=f"Reason {at}: {forged}") for at, forged in enumerate(FORGED))
    async with asking(*READ_ONLY, prompt, cwd=run, columns=80) as screen:
        for number in range(len(FORGED)):
            await screen.wait_for(f"Reason {number}:")
            await wait_asked(screen)
            rows = [row for row in screen.rows if row]
            *_, at = [number for number, row in enumerate(rows) if row.startswith("? ")]
            assert rows[at] == "? Run this command?"
            marks = ("  │ ", "  ┊ ", "     ┊ ", "  because │ ", "          ")
            ours = [row for row in rows[at:] if not row.startswith(marks)]
            ours[3] = ours[3][: len("  3  Always allow")]
            assert ours == [
                "? Run this command?",
                f"  in {run}",
                "  1  Allow once",
                "  3  Always allow",
                "  4  Decline and go on",
                "  5  Decline and stop",
                "  y, n or a number; Enter declines:",
            ]
            screen.press("enter")
        await screen.wait_end()


async def test_an_edit_is_shown_before_it_is_allowed(work: Path) -> None:
    """The first screen of it; `d` shows all."""
    text = "\\n".join(f"line-{number}" for number in range(80))
    async with asking(*READ_ONLY, f"%patch notes.txt {text}", cwd=work, rows=24) as screen:
        await wait_asked(screen)
        shown = screen.text
        assert "? Apply these changes?\n  add notes.txt (+80 −0)\n  │ +line-0\n  │ +line-1\n" in shown
        assert "more lines: d shows all of it\n  1  Allow once\n" in shown
        assert "line-79" not in shown
        screen.type("d\n")
        await screen.wait_for("+line-79")
        await wait_asked(screen)
        screen.type("y\n")
        assert (await screen.wait_end()).code == 0
    assert (work / "notes.txt").read_text().splitlines()[79] == "line-79"


ANSWERS = [
    ("1\n", True),
    ("y\n", True),
    ("YES\n", True),
    ("4\n", False),
    ("n\n", False),
    ("\n", False),
    ("\x04", False),
]


async def test_y_and_n_and_the_numbers_are_understood(work: Path) -> None:
    """Enter alone declines, and so does the end of input."""
    prompt = "\n".join(f"%run! touch {work}/{number}" for number in range(len(ANSWERS)))
    async with asking(*READ_ONLY, prompt, cwd=work) as screen:
        for number, (typed, _) in enumerate(ANSWERS):
            await screen.wait_for(f"│ touch {work}/{number}")
            await wait_asked(screen)
            screen.type(typed)
        assert (await screen.wait_end()).code == 0
    assert [(work / str(number)).exists() for number in range(len(ANSWERS))] == [runs for _, runs in ANSWERS]


async def test_what_is_no_answer_is_asked_again(work: Path) -> None:
    """Also a number that another kind of question has."""
    async with asking(*READ_ONLY, f"%run! touch {work}/marker", cwd=work) as screen:
        for typed in ("2", "9", "11", "ja", "d", "y n"):
            await wait_asked(screen)
            screen.type(f"{typed}\n")
            await screen.wait_for(f"“{typed}” is none of these.")
        await wait_asked(screen)
        screen.type("y\n")
        assert (await screen.wait_end()).code == 0
    assert (work / "marker").exists()


ASK = "LANEWAY ask --rehearse -s read-only -a on-request"


@pytest.mark.parametrize(
    "line",
    [
        f"echo '%run! touch marker' | {ASK} -",
        f"echo '%run! touch marker' | {ASK} - >out",
        f"echo '%run! touch marker' | {ASK} - 2>log",
        f"{ASK} '%run! touch marker' >out 2>log",
    ],
)
async def test_whoever_sits_there_is_asked_whatever_is_piped(line: str, work: Path) -> None:
    """`git diff | laneway ask -`: the question goes to the terminal."""
    async with shell(line, cwd=work) as screen:
        await wait_asked(screen)
        assert "│ touch marker" in screen.text
        screen.type("1\n")
        assert (await screen.wait_end()).code == 0
    assert (work / "marker").exists()


async def test_questions_of_the_model_are_answered_by_number_or_in_words() -> None:
    """Each option has a number; whatever else is typed is an answer, too."""
    answers = [("colour", "2", "blue"), ("shade", "Blue", "blue"), ("hue", "green", "green")]
    prompt = "\n".join(f"%ask Which {what}? red | blue" for what, _, _ in answers)
    async with real() as here:
        home, cwd = {"CODEX_HOME": str(here.rehearsal.home)}, here.rehearsal.work
        async with asking(prompt, cwd=cwd, env=home, rehearse=False) as screen:
            for what, typed, _ in answers:
                await screen.wait_for(f"Which {what}?")
                await wait_asked(screen)
                assert f"? Codex asks you\n  │ Which {what}?\n  1  red\n  2  blue\n" in screen.text
                screen.type(f"{typed}\n")
            assert (await screen.wait_end()).code == 0
        heard = re.findall(r'{\\"answers\\":\[\\"(\w+)\\"\]}', here.model_input())
        assert heard == [meant for _, _, meant in answers]


async def test_ctrl_c_at_a_question_stops_the_turn(work: Path) -> None:
    """As everywhere else, and the question leaves the screen."""
    async with asking(*READ_ONLY, f"%run! touch {work}/marker", cwd=work) as screen:
        await wait_asked(screen)
        screen.press("ctrl-c")
        assert (await screen.wait_end()).code == 130
        assert "No answer is needed any more." in screen.text
        assert screen.text.endswith("laneway: interrupted")
    assert not (work / "marker").exists()


async def test_who_declines_and_stops_has_not_interrupted(work: Path) -> None:
    """A sentence says whose word it was."""
    async with asking(*READ_ONLY, f"%run! touch {work}/marker", cwd=work) as screen:
        await wait_asked(screen)
        screen.type("5\n")
        assert (await screen.wait_end()).code == 1
        assert screen.text.endswith("laneway: you declined, and the turn was stopped as you chose")
    assert not (work / "marker").exists()
