"""What a person sees at a terminal: readable, and never what a hostile command wants to be seen."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.base.plain import plain
from laneway.core.model import (
    Activity,
    Choice,
    Diff,
    Event,
    FileChange,
    Look,
    Notice,
    Output,
    Plan,
    PlanStep,
    Question,
    Text,
    Thought,
    TurnDone,
)
from laneway.terminal import Style
from laneway.terminal.prompting.drawing import draw_question, menu_rows
from laneway.terminal.prompting.menu import menu
from laneway.terminal.screen import Detail, Screen

HIDE = "\x1b[2K\rls\x1b[8m; rm -rf ~\x9b0m\x07\u202e"


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        return True


def drawn(
    *events: Event,
    out: io.StringIO | None = None,
    detail: Detail = Detail(),  # noqa: B008  frozen
) -> tuple[str, str]:
    out, side = out or io.StringIO(), io.StringIO()
    screen = Screen(out, side, detail=detail)
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
        Notice(level="info", message=HIDE),
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
    drawn = draw_question(question, Style(side), 80)
    rows = [drawn.title, *drawn.subject, *drawn.about, *menu_rows(menu(question), 80)]
    assert is_clean("\n".join(rows))
    assert "\n".join(rows).count("; rm -rf ~") == 5
    assert menu(question) == (), "a choice that hides something is not offered"


def test_the_answer_is_cleaned_for_a_terminal_and_untouched_in_a_pipe() -> None:
    """A program may want exactly what the model said."""
    said = Text(turn_id="t", item_id="i", text=HIDE)
    assert drawn(said)[0] == HIDE
    assert is_clean(drawn(said, out=Terminal())[0])


def test_an_answer_in_pieces_is_cleaned_wherever_it_was_cut() -> None:
    """A line end between two deltas is one line end; what was held back comes before what follows."""

    def said(text: str, item_id: str = "i") -> Text:
        return Text(turn_id="t", item_id=item_id, text=text)

    pieces = [said("a\x1b"), said("[2Kb\r"), said("\nc\u200d"), said("d\r"), said("next", "j")]
    done = TurnDone(turn_id="t", status="completed")
    shown, _ = drawn(*pieces, done, out=Terminal())
    assert shown == "a\\x1b[2Kb\nc\\u200dd\\x0d\nnext\n"


@given(st.text())
def test_what_is_plain_stays_as_it_is(text: str) -> None:
    """And everything else is made visible, not dropped."""
    shown = plain(text)
    assert is_clean(shown)
    assert plain(shown) == shown
    assert len(shown) >= len(text)


# ── what commands print ────────────────────────────────────────────────────


def printed(text: str) -> Output:
    return Output(turn_id="t", item_id="i", text=text)


def numbered(first: int, last: int) -> str:
    return "".join(f"line {number}\n" for number in range(first, last + 1))


def test_lines_that_are_hidden_are_counted_and_the_way_to_see_them_is_named() -> None:
    """The first and the last are shown."""
    end = activity(title="seq", status="completed", output=numbered(1, 400), exit_code=0)
    _, side = drawn(end, detail=Detail(hint="--full"))
    assert side.splitlines() == [
        *(f"  │ line {number}" for number in range(1, 6)),
        "  … 390 lines hidden (run with --full to see them)",
        *(f"  │ line {number}" for number in range(396, 401)),
    ]
    _, side = drawn(end, detail=Detail(is_full=True))
    assert side == "".join(f"  │ line {number}\n" for number in range(1, 401))


def test_what_a_command_prints_is_there_once_and_complete() -> None:
    """Though Codex lost the first piece on the way."""
    end = activity(title="x", status="completed", output=numbered(1, 3), exit_code=0)
    _, side = drawn(printed(numbered(2, 3)), end)
    assert side == "  │ line 1\n  │ line 2\n  │ line 3\n"


def test_a_printed_line_is_shown_as_a_terminal_would_have_left_it() -> None:
    """Progress bars, colours and titles."""
    output = "10%\r55%\r100%\r\n\x1b[32mok\x1b[0m\r\n\x1b]0;title\x07done\n"
    _, side = drawn(activity(title="x", status="completed", output=output, exit_code=0))
    assert side == "  │ 100%\n  │ ok\n  │ done\n"


# ── thoughts ───────────────────────────────────────────────────────────────


def thought(text: str) -> Thought:
    return Thought(turn_id="t", item_id="r", text=text)


def test_a_thought_is_folded_into_one_line() -> None:
    """All of it where somebody wants it."""
    thoughts = (thought("**Looking"), thought(" around**\n\nFirst the tests.\n"), thought("Then the code."))
    done = TurnDone(turn_id="t", status="completed")
    assert drawn(*thoughts, done)[1] == "  ┄ Looking around …\n"
    _, side = drawn(*thoughts, done, detail=Detail(with_thoughts=True))
    assert side == "  ┄ **Looking around**\n  ┄ \n  ┄ First the tests.\n  ┄ Then the code.\n"


def test_an_answer_in_a_pipe_is_not_broken_by_what_is_drawn_beside_it() -> None:
    """A warning in the middle of a sentence."""
    says = [Text(turn_id="t", item_id="m", text=text) for text in ("half a ", "sentence")]
    out, side = drawn(
        says[0], Notice(level="warning", message="noise"), says[1], TurnDone(turn_id="t", status="completed")
    )
    assert out == "half a sentence\n"
    assert side == "  ! noise\n"


def test_messages_stand_on_lines_of_their_own() -> None:
    """Byte for byte as ever: a line break between two, one at the end, none too many."""
    says = [Text(turn_id="t", item_id=item, text=text) for item, text in (("a", "one"), ("b", "two\n"))]
    assert drawn(*says, TurnDone(turn_id="t", status="completed"))[0] == "one\ntwo\n"


def test_a_long_diff_is_cut_with_a_count() -> None:
    """`--full` shows all of it."""
    diff = Diff(turn_id="t", diff="".join(f"+line {number}\n" for number in range(100)))
    done = TurnDone(turn_id="t", status="completed")
    _, side = drawn(diff, done, detail=Detail(hint="--full"))
    assert side.splitlines()[-1] == "  … 40 lines hidden (run with --full to see them)"
    assert drawn(diff, done, detail=Detail(is_full=True))[1].count("\n") == 100


def test_what_is_read_is_said_in_words_and_cut_output_says_so() -> None:
    """Paths below the session's folder are short; a retry names its engine."""
    out, side = io.StringIO(), io.StringIO()
    screen = Screen(out, side)
    screen.engine, screen.cwd = "Claude", "/work"
    look = Look(purpose="read", path="/work/a\n.py")
    read = Activity(turn_id="u", item_id="r", kind="read", title="x", status="running", look=look)
    command = Activity(
        turn_id="u", item_id="c", kind="command", title="make", status="completed", output="a", is_cut=True
    )
    for event in (read, command, Notice(level="warning", message="overloaded", will_retry=True)):
        screen.show(event)
    assert side.getvalue().splitlines() == [
        "▸ Read a …",
        "  │ a",
        "  The output was cut: this is not all of it.",
        "  ! overloaded (Claude tries again)",
    ]
