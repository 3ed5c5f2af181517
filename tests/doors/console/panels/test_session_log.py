"""What a console keeps of a watched session: items that grow and change, by version."""

from __future__ import annotations

from laneway.core.model import (
    Activity,
    Asked,
    Closed,
    EngineGone,
    Failure,
    Notice,
    Output,
    Plan,
    PlanStep,
    Text,
    TurnDone,
    TurnStarted,
    UserSaid,
    Withdrawn,
)
from laneway.doors.console.panels.ports import LiveSessionRow
from laneway.doors.console.panels.session_log import MAX_ITEMS, MAX_TEXT_CHARS, SessionLog
from tests.doors.console.panels.support import HOSTILE, command_question


def log_of(*events: object) -> SessionLog:
    log = SessionLog()
    log.begin(LiveSessionRow(agent_id="a1", cwd="/work"), ())
    for event in events:
        log.show(event)  # type: ignore[arg-type]
    return log


def said(log: SessionLog, version: int = 0) -> list[tuple[str, str, str, str]]:
    return [(item.kind, item.title, item.text, item.status) for item in log.since(version)["items"]]


def test_a_turn_becomes_its_items_in_order() -> None:
    """Deltas of one text are one item; a command has its output and how it ended."""
    log = log_of(
        TurnStarted(turn_id="t"),
        UserSaid(turn_id="t", item_id="u", text="go"),
        Activity(turn_id="t", item_id="c", kind="command", title="make", status="running"),
        Output(turn_id="t", item_id="c", text="half"),
        Text(turn_id="t", item_id="x", text="Do"),
        Text(turn_id="t", item_id="x", text="ne."),
        Activity(
            turn_id="t", item_id="c", kind="command", title="make", status="failed", output="all", exit_code=2
        ),
        Plan(turn_id="t", steps=(PlanStep(text="one", status="completed"),)),
        TurnDone(turn_id="t", status="completed", text="Done."),
    )
    assert said(log) == [
        ("turn", "A turn begins", "", "running"),
        ("person", "", "go", ""),
        ("activity", "make", "all", "failed, exit code 2"),
        ("text", "", "Done.", ""),
        ("plan", "Plan", "✓ one", ""),
        ("turn", "The turn is completed", "", "completed"),
    ]


def test_only_what_has_changed_is_told_again() -> None:
    """By the version that a browser knows."""
    log = log_of(TurnStarted(turn_id="t"), Text(turn_id="t", item_id="x", text="a"))
    known = log.version
    assert said(log, known) == []
    log.show(Text(turn_id="t", item_id="x", text="b"))
    assert said(log, known) == [("text", "", "ab", "")]


def test_whoever_came_in_the_middle_of_a_turn_gets_its_last_message_whole() -> None:
    """The first half was said before."""
    log = log_of(
        Text(turn_id="t", item_id="x", text="of it"),
        TurnDone(turn_id="t", status="completed", text="All of it"),
    )
    assert [text for kind, _, text, _ in said(log) if kind == "text"] == ["of it", "All of it"]


def test_questions_are_open_until_they_are_settled() -> None:
    """Also by rule, which is said; and at the end of the session none is left."""
    log = log_of(Asked(question=command_question("q1")), Asked(question=command_question("q2")))
    assert [each["question_id"] for each in log.since(0)["questions"]] == ["q1", "q2"]
    log.show(Withdrawn(question_id="q1", is_declined=True))
    assert [each["question_id"] for each in log.since(0)["questions"]] == ["q2"]
    assert said(log) == [("notice", "", "The question is declined: nobody decided in time.", "info")]
    log.show(Closed())
    assert (log.since(0)["questions"], log.is_closed) == ([], True)


def test_problems_are_told() -> None:
    """Of the engine, of a turn, of ourselves."""
    log = log_of(
        Notice(level="error", message="no quota"),
        Notice(level="warning", message="again", will_retry=True),
        EngineGone(how="exit code 1"),
        TurnDone(turn_id="t", status="failed", failure=Failure(kind="x", message="it broke")),
    )
    log.miss(3)
    log.lose("Process 7 has ended.")
    assert [(text or title, status) for _, title, text, status in said(log)] == [
        ("no quota", "error"),
        ("The engine has ended: exit code 1", "error"),
        ("The turn is failed: it broke", "failed"),
        ("3 events were lost: this console was too slow.", "warning"),
        ("Process 7 has ended.", "error"),
    ]


def test_characters_that_hide_or_reorder_are_spelt_out() -> None:
    """Markup stays text: the page never parses it."""
    log = log_of(
        Text(turn_id="t", item_id="x", text=HOSTILE),
        Activity(turn_id="t", item_id="c", kind="command", title=HOSTILE, status="running"),
    )
    for _, title, text, _ in said(log):
        assert "\u202e" not in title + text
        assert "\\u202e" in title + text
        assert "<img" in title + text


def test_what_is_kept_is_bounded() -> None:
    """In items and in their texts; a browser is told the first that is kept."""
    log = log_of(*(Text(turn_id="t", item_id=str(n), text="x") for n in range(MAX_ITEMS + 10)))
    told = log.since(0)
    assert (len(told["items"]), told["first"]) == (MAX_ITEMS, 10)
    for _ in range(30):
        log.show(Output(turn_id="t", item_id="c", text="y" * 1000))
    (_, _, text, _) = said(log)[-1]
    assert MAX_TEXT_CHARS <= len(text) <= MAX_TEXT_CHARS + 10
