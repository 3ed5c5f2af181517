"""What comes before a client knows its session: in order, bounded, and what must be acted upon is kept."""

from __future__ import annotations

from laneway.core.early_events import MAX_EARLY, EarlyEvents
from laneway.core.model import Asked, Choice, Event, Notice, Question

QUESTION = Question(
    question_id="q",
    kind="command",
    thread_id="t",
    turn_id="u",
    item_id=None,
    message="ls",
    choices=(Choice(choice_id="decline", label="Decline", grants="nothing"),),
)


def test_what_came_early_is_handed_over_once_and_in_order() -> None:
    """A client reads the start of its session as it happened."""
    early: EarlyEvents[str] = EarlyEvents()
    assert all([early.add("a"), early.add("b")])
    assert early.take() == ["a", "b"]
    assert early.take() == []


def test_a_question_is_kept_however_much_came_before_it() -> None:
    """Notices beyond the bound are lost and counted; a question that is lost would hang its turn."""
    early: EarlyEvents[Event] = EarlyEvents()
    notice = Notice(level="info", message="A server has started.")
    assert all(early.add(notice) for _ in range(MAX_EARLY))
    assert not early.add(notice)
    assert early.add(Asked(question=QUESTION))
    assert early.take() == [*[notice] * MAX_EARLY, Asked(question=QUESTION)]
