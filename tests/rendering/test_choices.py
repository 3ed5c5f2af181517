"""Which choices of a question are offered, with which labels."""

from __future__ import annotations

from laneway.core.model import Choice, LastingRule, Question
from laneway.doors.acp.questions import permission_options
from laneway.rendering import choices

ONCE = Choice(choice_id="accept", label="Allow once", grants="once")
NO = Choice(choice_id="decline", label="Decline", grants="nothing")


def question(*more: Choice) -> Question:
    return Question(
        question_id="q",
        kind="command",
        thread_id="t",
        turn_id=None,
        item_id=None,
        message="Run this command?",
        choices=(ONCE, *more, NO),
    )


def shown(asked: Question) -> list[tuple[str, str]]:
    return [(choice.choice_id, choices.name(asked, choice)) for choice in choices.offered(asked)]


def test_a_lasting_rule_is_known_by_its_value() -> None:
    """Whatever its id is, and whatever the engine's own request looks like."""
    command = Choice(
        choice_id="7", label="A rule", grants="always", rule=LastingRule(command=("git", "pull"))
    )
    asked = question(command)
    assert shown(asked) == [
        ("accept", "Allow once"),
        ("7", "Always allow `git pull` with anything after it"),
        ("decline", "Decline"),
    ]


def test_an_id_alone_makes_no_rule() -> None:
    """A choice of another engine may be called like a rule of Codex."""
    asked = question(Choice(choice_id="amendment-0", label="Not today", grants="nothing"))
    assert ("amendment-0", "Not today") in shown(asked)
    kinds = {option["optionId"]: option["kind"] for option in permission_options.options(asked)}
    assert kinds["amendment-0"] == "reject_once"


def test_a_rule_about_a_host_allows_or_blocks_it_as_the_choice_grants() -> None:
    """The same rule, once behind a yes and once behind a no."""
    rule = LastingRule(host="example.org")
    asked = question(
        Choice(choice_id="yes", label="A rule", grants="always", rule=rule),
        Choice(choice_id="no", label="A rule", grants="nothing", rule=rule),
    )
    names = dict(shown(asked))
    assert names["yes"] == "Always allow connections to `example.org`"
    assert names["no"] == "Always block connections to `example.org`"


def test_a_rule_that_says_nothing_is_not_offered() -> None:
    """Nobody can judge what they would allow."""
    asked = question(
        Choice(choice_id="new", label="Allow by a new rule", grants="always", rule=LastingRule())
    )
    assert [choice_id for choice_id, _ in shown(asked)] == ["accept", "decline"]
