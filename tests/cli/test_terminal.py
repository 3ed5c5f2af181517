"""What a person sees at a terminal: readable, and never what a hostile command wants to be seen."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.base.plain import plain
from laneway.cli.terminal import Screen, Style, show_question
from laneway.core.model import (
    Activity,
    Choice,
    Diff,
    Event,
    FileChange,
    Notice,
    Plan,
    PlanStep,
    Question,
    Text,
    TurnDone,
)

HIDE = "\x1b[2K\rls\x1b[8m; rm -rf ~\x9b0m\x07\u202e"


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        return True


def drawn(*events: Event, out: io.StringIO | None = None) -> tuple[str, str]:
    out, side = out or io.StringIO(), io.StringIO()
    screen = Screen(out, side)
    for event in events:
        screen.show(event)
    return out.getvalue(), side.getvalue()


def is_clean(text: str) -> bool:
    return not any((ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 or c == "\u202e" for c in text)


def activity(**fields: Any) -> Activity:
    return Activity(turn_id="t", item_id="i", kind="command", **fields)


@pytest.mark.parametrize(
    "event",
    [
        activity(title=HIDE, status="running"),
        activity(title=HIDE, status="failed", output=f"{HIDE}\n{HIDE}", exit_code=1),
        Notice(level="warning", message=HIDE),
        Notice(level="error", message=HIDE, will_retry=True),
        Plan(turn_id="t", steps=(PlanStep(text=HIDE, status="pending"),)),
    ],
)
def test_no_control_character_of_theirs_reaches_a_terminal(event: Event) -> None:
    """Not from commands, outputs, notices or plans."""
    _, side = drawn(event)
    assert is_clean(side)
    assert "rm -rf" in side


def test_a_diff_is_shown_without_its_control_characters() -> None:
    """File names are theirs too."""
    _, side = drawn(Diff(turn_id="t", diff=f"+++ b/{HIDE}\n+x"), TurnDone(turn_id="t", status="completed"))
    assert is_clean(side)
    assert "+x" in side


def test_a_command_cannot_hide_itself_from_whoever_must_approve_it() -> None:
    """All of it is seen, escapes made visible."""
    side = io.StringIO()
    question = Question(
        question_id="q",
        kind="command",
        thread_id="t",
        turn_id="t",
        item_id=None,
        message=HIDE,
        command=HIDE,
        cwd=HIDE,
        reason=HIDE,
        changes=(FileChange(path=HIDE, kind="add", diff=""),),
        choices=(Choice(choice_id="accept", label=HIDE, grants="once"),),
    )
    show_question(question, side, Style(side))
    assert is_clean(side.getvalue())
    assert side.getvalue().count("; rm -rf ~") == 5


def test_the_answer_is_cleaned_for_a_terminal_and_untouched_in_a_pipe() -> None:
    """A program may want exactly what the model said."""
    said = Text(turn_id="t", item_id="i", text=HIDE)
    assert drawn(said)[0] == HIDE
    assert is_clean(drawn(said, out=Terminal())[0])


@given(st.text())
def test_what_is_plain_stays_as_it_is(text: str) -> None:
    """And everything else is made visible, not dropped."""
    shown = plain(text)
    assert is_clean(shown)
    assert plain(shown) == shown
    assert len(shown) >= len(text)
