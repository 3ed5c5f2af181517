"""Where a message goes: every rule of the order, and what each of them gives way to."""

from __future__ import annotations

from typing import Any

import pytest

from laneway.doors.chat.messages import ReplyTarget
from laneway.doors.chat.routing import (
    CONTROLS,
    ForAnotherBot,
    NotACommand,
    QuestionFacts,
    Route,
    RoutingFacts,
    ShowUsage,
    Speaker,
    ToControl,
    ToLane,
    ToQuestion,
    ToRunningTurn,
    WhichQuestion,
    route,
)
from laneway.lanes.names import CONTROL_COMMANDS

ENGINE_COMMANDS = {"claude": ("compact", "context"), "codex": ("compact", "review", "diff")}
ONE = QuestionFacts(number=1, lane="codex", asked_at=10.0)
TWO = QuestionFacts(number=2, lane="claude", asked_at=20.0)
OWNERS = QuestionFacts(number=3, lane="codex", asked_at=10.0, for_owners=True, asked_by="ben")
BENS = QuestionFacts(number=4, lane="codex", asked_at=10.0, asked_by="ben")
BEN = Speaker("ben", is_owner=False)
CARL = Speaker("carl", is_owner=False)


def routed(text: str, *questions: QuestionFacts, **more: Any) -> Route:
    facts = RoutingFacts(
        lanes=("claude", "codex", "rehearse"),
        default_lane=more.pop("default", "claude"),
        working=more.pop("working", ()),
        questions=questions,
        engine_commands=ENGINE_COMMANDS,
        own_names=more.pop("own_names", ()),
    )
    return route(text, facts, **more)


PLAIN = [
    # control commands
    ("/stop", ToControl("stop")),
    ("/STOP", ToControl("stop")),
    ("  /stop  ", ToControl("stop")),
    ("/lane codex", ToControl("lane", "codex")),
    ("/steer a\nb", ToControl("steer", "a\nb")),
    ("/attach a b.png", ToControl("attach", "a b.png")),
    # lanes
    ("/codex fix it", ToLane("codex", "fix it", is_named=True)),
    ("/codex\nfix it\nand that", ToLane("codex", "fix it\nand that", is_named=True)),
    ("/Codex fix it", ToLane("codex", "fix it", is_named=True)),
    ("/codex", ShowUsage("codex")),
    ("/codex   \n ", ShowUsage("codex")),
    ("/codex /review", ToLane("codex", "", command="review", is_named=True)),
    ("/codex /review the tests", ToLane("codex", "the tests", command="review", is_named=True)),
    ("/claude /review", ToLane("claude", "/review", is_named=True)),
    ("/codex //review", ToLane("codex", "/review", is_named=True)),
    # commands of engines
    ("/context", ToLane("claude", "", command="context")),
    ("/compact", ToLane("claude", "", command="compact")),
    ("/review the tests", ToLane("codex", "the tests", command="review")),
    # texts
    ("hello", ToLane("claude", "hello")),
    ("//stop", ToLane("claude", "/stop")),
    ("//codex x", ToLane("claude", "/codex x")),
    ("///x", ToLane("claude", "//x")),
    ("/usr/bin/env is missing", ToLane("claude", "/usr/bin/env is missing")),
    ("/stop/it", ToLane("claude", "/stop/it")),
    ("/etc@home/passwd", ToLane("claude", "/etc@home/passwd")),
    ("/", ToLane("claude", "/")),
    ("/ stop", ToLane("claude", "/ stop")),
    ("stop", ToLane("claude", "stop")),
    ("a /stop", ToLane("claude", "a /stop")),
    # sent nowhere
    ("/deploy now", NotACommand("deploy")),
    ("/codex@otherbot fix it", ForAnotherBot("/codex@otherbot")),
    ("/stop@otherbot", ForAnotherBot("/stop@otherbot")),
]


@pytest.mark.parametrize(("text", "target"), PLAIN, ids=[repr(text) for text, _ in PLAIN])
def test_without_a_question_a_text_goes_where_its_first_word_says(text: str, target: Route) -> None:
    """Control command, lane, engine command, else words for the default lane."""
    assert routed(text) == target


@pytest.mark.parametrize(("text", "target"), PLAIN, ids=[repr(text) for text, _ in PLAIN])
def test_no_question_takes_a_command_and_every_question_takes_words(text: str, target: Route) -> None:
    """What is no plain word goes where it went without the question."""
    is_plain = isinstance(target, ToLane) and not target.is_named and not target.command
    words = target.text if isinstance(target, ToLane) else ""
    assert routed(text, ONE) == (ToQuestion(1, words) if is_plain else target)


def test_every_control_command_goes_before_lane_reply_and_question() -> None:
    """Also in front of a lane of that name, which therefore cannot be registered."""
    reply = ReplyTarget(lane="codex", question=1)
    for name in CONTROLS:
        assert routed(f"/{name} x", ONE, TWO, reply=reply, working=("codex",)) == ToControl(name, "x")
    assert frozenset(CONTROLS) == CONTROL_COMMANDS


def test_our_own_name_behind_a_command_makes_it_ours() -> None:
    """In any case of letters; every other name does not."""
    assert routed("/codex@OurBot fix", own_names=("ourbot",)) == ToLane("codex", "fix", is_named=True)
    assert routed("/codex@notours fix", own_names=("ourbot",)) == ForAnotherBot("/codex@notours")


def test_an_engines_command_goes_to_the_default_lane_else_to_the_only_lane_that_has_it() -> None:
    """With several others that have it, none is guessed."""
    assert routed("/compact", default="codex") == ToLane("codex", "", command="compact")
    assert routed("/context", default="codex") == ToLane("claude", "", command="context")
    assert routed("/compact", default="rehearse") == NotACommand("compact")
    assert routed("/compact", reply=ReplyTarget(lane="codex")) == ToLane("codex", "", command="compact")


def test_a_reply_goes_to_its_lane_and_into_its_turn_if_it_works() -> None:
    """Also to a lane that has delegated, and waits for the other one."""
    reply = ReplyTarget(lane="codex")
    assert routed("more", reply=reply) == ToLane("codex", "more", is_named=True)
    assert routed("more", reply=reply, working=("codex",)) == ToRunningTurn("codex", "more")
    outer = ReplyTarget(lane="claude")
    assert routed("more", reply=outer, working=("claude", "codex")) == ToRunningTurn("claude", "more")
    assert routed("more", reply=ReplyTarget(lane="gone")) == ToLane("claude", "more")


def test_a_reply_goes_before_the_open_question() -> None:
    """Except to the lane that asks: there it is the answer."""
    assert routed("blue", ONE, reply=ReplyTarget(lane="claude")) == ToLane("claude", "blue", is_named=True)
    assert routed("blue", ONE, reply=ReplyTarget(lane="codex")) == ToQuestion(1, "blue")
    assert routed("blue", ONE, TWO, reply=ReplyTarget(lane="codex", question=2)) == ToQuestion(2, "blue")
    assert routed("//blue", ONE, reply=ReplyTarget(question=1)) == ToQuestion(1, "/blue")


def test_words_from_before_a_question_never_answer_it() -> None:
    """Nobody had seen it."""
    assert routed("blue", ONE, said_at=9.9) == ToLane("claude", "blue")
    assert routed("blue", ONE, said_at=10.0) == ToQuestion(1, "blue")
    assert routed("blue", ONE, TWO, said_at=15.0) == ToQuestion(1, "blue")
    reply = ReplyTarget(lane="codex")
    assert routed("blue", ONE, said_at=9.9, reply=reply) == ToLane("codex", "blue", is_named=True)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("#1 blue", ToQuestion(1, "blue")),
        ("1: blue", ToQuestion(1, "blue")),
        ("2) blue\ngreen", ToQuestion(2, "blue\ngreen")),
        ("#2. blue", ToQuestion(2, "blue")),
        ("blue", WhichQuestion((1, 2))),
        ("3: blue", WhichQuestion((1, 2))),
        ("#1", WhichQuestion((1, 2))),
        ("1", WhichQuestion((1, 2))),
    ],
)
def test_of_several_questions_the_number_decides(text: str, answer: Route) -> None:
    """Without one the user is asked which."""
    assert routed(text, ONE, TWO) == answer


def test_a_number_is_part_of_the_answer_where_one_question_is_open() -> None:
    """Only a hash names it."""
    assert routed("1: blue", ONE) == ToQuestion(1, "1: blue")
    assert routed("#1 blue", ONE) == ToQuestion(1, "blue")


def test_only_who_may_answer_a_question_answers_it_by_words() -> None:
    """Approvals take an owner; other questions also whoever asked for the turn."""
    assert routed("yes", OWNERS, speaker=BEN) == ToLane("claude", "yes")
    assert routed("yes", OWNERS, speaker=Speaker("anna")) == ToQuestion(3, "yes")
    assert routed("blue", BENS, speaker=BEN) == ToQuestion(4, "blue")
    assert routed("blue", BENS, speaker=CARL) == ToLane("claude", "blue")
    assert routed("blue", OWNERS, BENS, speaker=BEN) == ToQuestion(4, "blue")
