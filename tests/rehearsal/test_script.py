"""The script language of rehearsals: every verb, and unreadable lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.rehearsal import script
from laneway.rehearsal.script import Step, parse


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("%say Hello there", script.SayStep("Hello there")),
        ("%say one\\ntwo", script.SayStep("one\ntwo")),
        ("%stream 20 words over 1.5 seconds", script.StreamStep(20, 1.5)),
        ("%stream 1 word", script.StreamStep(1)),
        ("%stream 7", script.StreamStep(7)),
        ("%think hm", script.Think("hm")),
        ("%run ls -la | wc", script.RunStep("ls -la | wc")),
        ("%run! rm x", script.RunStep("rm x", escalated=True)),
        ("%patch a.txt one\\ntwo", script.AddFile("a.txt", "one\ntwo")),
        ("%edit a.txt old line => new line", script.EditFile("a.txt", "old line", "new line")),
        ('%tool send {"to": "x"}', script.CallTool("send", {"to": "x"})),
        ("%tool ping", script.CallTool("ping", {})),
        ("%ask Which? a | b", script.Ask("Which?", ("a", "b"))),
        ("%plan a; b", script.MakePlan(("a", "b"))),
        ("%usage 5000", script.UsageStep(5000)),
        ("%fail 503 busy", script.Fail(503, "busy")),
        ("%break", script.Break()),
        ("%hang", script.Hang()),
        ("%help", script.SayStep(script.HELP)),
    ],
)
def test_every_verb_of_the_help_is_a_step(line: str, step: Step) -> None:
    """And the help lists exactly the verbs there are."""
    assert parse(f"  {line}  ") == [step]


def test_the_help_names_every_verb() -> None:
    """What is documented exists, and the other way round."""
    named = {line.split()[0].removeprefix("%") for line in script.HELP.splitlines()}
    assert named == set(script._VERBS)


@pytest.mark.parametrize(
    "line",
    [
        "%stream lots",
        "%stream 99999999999999999 words",
        "%tool x " + "[" * 5000,
        "%patch",
        "%edit a.txt",
        "%tool x [1]",
        "%tool x {",
        "%ask now",
        "%fail soon",
        "%dance",
    ],
)
def test_a_step_that_cannot_be_read_says_so(line: str) -> None:
    """In the answer, where whoever wrote it will see it."""
    (step,) = parse(line)
    assert isinstance(step, script.SayStep)
    assert line.split()[0] in step.text


def test_lines_that_are_no_steps_are_left_alone() -> None:
    """A prompt may explain itself; `%%` and a lone `%` are text."""
    assert parse("Please do this:\n%say hi\n100%\n%\n%% comment\n") == [script.SayStep("hi")]
    assert parse("how are you?") == []


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    """Whatever people type, the model answers something."""
    parse(text)
    parse("%" + text)
