"""The rules of a session, proved without processes: every letter in every order."""

from __future__ import annotations

import itertools
import os
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule

from laneway.core.letters import (
    Answered,
    Begun,
    Cancel,
    CancelAll,
    Close,
    Decline,
    Deliver,
    Effect,
    Ended,
    Expired,
    Gone,
    GraceOver,
    Interrupt,
    Letter,
    Lost,
    Opened,
    Refused,
    Release,
    Released,
    Say,
    Settle,
    Start,
    State,
    Steer,
    SteerNow,
    Tick,
    TimedOut,
)
from laneway.core.step import MAX_WAITING, step


def run(*letters: Letter, state: State | None = None) -> tuple[State, list[Effect]]:
    """Post letters one after another; return the last state and all effects."""
    state = state or State()
    effects: list[Effect] = []
    for letter in letters:
        state, more = step(state, letter)
        effects += more
    return state, effects


def deeds(effects: list[Effect]) -> list[Effect]:
    """The effects that others see, without the clocks."""
    return [
        e
        for e in effects
        if isinstance(e, Start | Interrupt | Settle | Decline | Deliver | SteerNow | Release)
    ]


def running(ticket: str = "a", turn_id: str = "T") -> State:
    return run(Say(ticket), Tick(), Begun(turn_id, ticket))[0]


def test_words_said_during_a_turn_start_the_next_one() -> None:
    """First come, first served, one at a time."""
    _, effects = run(Say("b"), Tick(), Say("c"), Tick(), Ended("T"), Tick(), state=running())
    assert deeds(effects) == [Settle("a", "done"), Start("b")]


@pytest.mark.covers("FR-8.11", "FR-17.11")
def test_a_client_goes_before_mail_even_if_the_mail_came_first() -> None:
    """Mail never starts while a client's turn waits."""
    _, effects = run(Say("m", "mail"), Say("c"), Tick())
    assert deeds(effects) == [Start("c")]


@pytest.mark.covers("FR-17.11")
def test_a_cancel_that_waits_beside_a_turn_is_heard_before_it_starts() -> None:
    """Only a tick starts anything, and it comes after every letter that waits."""
    state, effects = run(Say("a"), Cancel("a"), Tick())
    assert deeds(effects) == [Settle("a", "cancelled", "cancel")]
    assert state == State()


def test_a_turn_cancelled_before_it_began_is_interrupted_as_soon_as_it_has() -> None:
    """There is nothing to interrupt before the engine has named the turn."""
    state, effects = run(Say("a"), Tick(), Cancel("a"), Begun("T", "a"), Ended("T"))
    assert deeds(effects) == [Start("a"), Interrupt("T"), Settle("a", "done", "cancel")]
    assert state == State()


@pytest.mark.covers("FR-17.10", "FR-17.11", "FR-18.5")
def test_closing_declines_first_then_fails_the_queue_then_interrupts_then_releases() -> None:
    """Close goes before everything, in the order that lets the turn end."""
    letters = (Opened("q"), Say("b"), Say("m", "mail"), Close("x"), Ended("T"), Tick(), Released())
    state, effects = run(*letters, state=running())
    assert deeds(effects) == [
        Decline("q", ends_turn=True),
        Settle("b", "closed"),
        Settle("m", "closed"),
        Interrupt("T"),
        Settle("a", "done", "close"),
        Release(),
        Settle("x", "ok"),
    ]
    assert state.status == "closed"


def test_a_close_with_a_last_turn_runs_it_when_nothing_else_runs() -> None:
    """The summary of a closing session, and nobody else's turn."""
    _, effects = run(
        Close("x", "last"),
        Ended("T"),
        Say("late"),
        Tick(),
        Begun("L", "last"),
        Ended("L"),
        Tick(),
        state=running(),
    )
    assert deeds(effects) == [
        Interrupt("T"),
        Settle("a", "done", "close"),
        Settle("late", "closed"),
        Start("last"),
        Settle("last", "done"),
        Release(),
    ]


def test_closing_twice_answers_both_and_does_it_once() -> None:
    """Close is idempotent, also when a second one comes in the middle or after the end."""
    _, effects = run(Close("x"), Close("y"), Tick(), Released(), Close("z"))
    assert deeds(effects) == [Release(), Settle("x", "ok"), Settle("y", "ok"), Settle("z", "ok")]


def test_the_first_answer_wins_and_later_ones_are_told_so() -> None:
    """A question is decided once."""
    _, effects = run(Opened("q"), Answered("1", "q"), Answered("2", "q"), state=running())
    assert deeds(effects) == [Deliver("q", "1"), Settle("1", "ok"), Settle("2", "question_gone")]


def test_a_question_nobody_answers_is_declined() -> None:
    """Approvals fail closed."""
    _, effects = run(Opened("q"), Expired("q"), Expired("q"), state=running())
    assert deeds(effects) == [Decline("q")]


def test_a_question_asked_while_closing_is_declined_at_once() -> None:
    """Nobody will be there to answer it."""
    _, effects = run(Close("x"), Opened("q"), state=running())
    assert Decline("q", ends_turn=True) in effects


def test_a_turn_that_will_not_stop_answers_its_caller_and_everyone_behind_it() -> None:
    """No wedge: an engine that ignores an interrupt costs one session its future, nobody their answer."""
    state, effects = run(Say("b"), TimedOut("a"), GraceOver(), Say("c"), Tick(), state=running())
    assert deeds(effects) == [
        Interrupt("T"),
        Settle("a", "stuck", "timeout"),
        Settle("b", "stuck"),
        Settle("c", "stuck"),
    ]
    state, effects = run(Ended("T"), Say("d"), Tick(), state=state)
    assert deeds(effects) == [Start("d")], "when it ends after all, the session is usable again"


def test_a_turn_of_somebody_else_is_waited_for_not_steered() -> None:
    """`turn/start` on a busy thread would silently steer."""
    _, effects = run(Begun("F", None), Say("a"), Tick(), Ended("F"), Tick())
    assert deeds(effects) == [Start("a")]


def test_steering_needs_a_running_turn() -> None:
    """With none, or with one that is being stopped, the caller is told."""
    assert deeds(run(Steer("s"))[1]) == [Settle("s", "no_turn")]
    assert deeds(run(Steer("s"), state=running())[1]) == [SteerNow("s", "T")]
    assert deeds(run(Cancel("a"), Steer("s"), state=running())[1])[-1] == Settle("s", "no_turn")


def test_an_engine_that_dies_leaves_the_session_usable() -> None:
    """The running turn was ended by its own event; what waits may try again."""
    state, effects = run(Say("b"), Ended("T"), Lost(), Tick(), state=running())
    assert deeds(effects) == [Settle("a", "done"), Start("b")]
    assert state.live


def test_a_turn_that_begins_on_a_closed_session_changes_nothing() -> None:
    """Its actor has gone: whatever would be decided could not be carried out."""
    closed = State(is_closed=True)
    assert run(Begun("turn", "ticket"), state=closed) == (closed, [])


def test_too_many_waiting_turns_are_refused() -> None:
    """The queue is bounded."""
    state, effects = run(*(Say(str(n)) for n in range(MAX_WAITING + 1)), state=running())
    assert deeds(effects) == [Settle(str(MAX_WAITING), "full")]
    assert len(state.clients) == MAX_WAITING


class SessionMachine(RuleBasedStateMachine):
    """Any letters in any order, against an engine that obeys, lags, refuses, is deaf or dies."""

    tickets = Bundle("tickets")
    questions = Bundle("questions")

    @initialize()
    def begin(self) -> None:
        self.names = (f"n{number}" for number in itertools.count())
        self.state = State()
        self.asked: set[str] = set()
        self.settled: dict[str, str] = {}
        self.last: set[str] = set()
        self.starting: str | None = None
        self.turn: tuple[str, str | None] | None = None
        self.releasing = False

    def post(self, letter: Letter) -> None:
        before = self.state
        self.state, effects = step(self.state, letter)
        for effect in effects:
            self.see(effect, before)

    def see(self, effect: Effect, before: State) -> None:
        match effect:
            case Start(ticket):
                assert (self.starting, self.turn) == (None, None), "single flight"
                assert ticket in self.asked - set(self.settled)
                if before.closing:
                    assert ticket in self.last
                elif ticket in before.mail:
                    assert not before.clients, "mail must wait for clients"
                self.starting = ticket
            case Settle(ticket, outcome):
                assert ticket in self.asked, f"{ticket} never asked for anything"
                assert ticket not in self.settled, f"{ticket} was answered twice"
                self.settled[ticket] = outcome
            case Interrupt(turn_id):
                assert self.turn is not None
                assert self.turn[0] == turn_id
            case Release():
                assert not self.releasing, "released twice"
                self.releasing = True
            case _:
                pass

    def ask(self, make: Any) -> str:
        ticket = next(self.names)
        self.asked.add(ticket)
        self.post(make(ticket))
        return ticket

    @rule(target=tickets, kind=st.sampled_from(["client", "mail"]))
    def say(self, kind: Any) -> str:
        return self.ask(lambda ticket: Say(ticket, kind))

    @rule(ticket=tickets)
    def cancel(self, ticket: str) -> None:
        self.post(Cancel(ticket))

    @rule()
    def cancel_all(self) -> None:
        self.post(CancelAll())

    @rule()
    def steer(self) -> None:
        before = self.state
        self.state, effects = step(before, Steer("s"))
        # The shell settles a steer that is sent; the rules settle one that cannot be.
        assert effects in ([Settle("s", "no_turn")], [SteerNow("s", self.turn[0] if self.turn else "")])
        assert self.state == before

    @rule(with_last=st.booleans())
    def close(self, with_last: bool) -> None:
        last = None
        if with_last:
            last = next(self.names)
            self.asked.add(last)
            self.last.add(last)
        self.ask(lambda ticket: Close(ticket, last))

    @rule()
    def tick(self) -> None:
        self.post(Tick())

    @precondition(lambda self: self.starting and self.turn is None)
    @rule()
    def engine_begins(self) -> None:
        ticket, self.starting = self.starting, None
        self.turn = (next(self.names), ticket)
        self.post(Begun(*self.turn))

    @precondition(lambda self: self.starting)
    @rule()
    def engine_refuses(self) -> None:
        ticket, self.starting = self.starting, None
        assert ticket is not None
        self.post(Refused(ticket))

    @precondition(lambda self: self.turn)
    @rule()
    def engine_ends_the_turn(self) -> None:
        assert self.turn is not None
        (turn_id, _), self.turn = self.turn, None
        self.post(Ended(turn_id))

    @precondition(lambda self: self.turn is None and self.starting is None and not self.state.is_closed)
    @rule()
    def somebody_else_starts_a_turn(self) -> None:
        self.turn = (next(self.names), None)
        self.post(Begun(*self.turn))

    @precondition(lambda self: self.turn)
    @rule(target=questions)
    def engine_asks(self) -> str:
        question_id = next(self.names)
        self.post(Opened(question_id))
        return question_id

    @rule(question_id=questions)
    def engine_withdraws(self, question_id: str) -> None:
        self.post(Gone(question_id))

    @rule(question_id=questions)
    def question_expires(self, question_id: str) -> None:
        self.post(Expired(question_id))

    @rule(question_id=questions)
    def somebody_answers(self, question_id: str) -> None:
        self.ask(lambda ticket: Answered(ticket, question_id))

    @rule(ticket=tickets)
    def time_is_up(self, ticket: str) -> None:
        self.post(TimedOut(ticket))

    @rule()
    def grace_is_over(self) -> None:
        self.post(GraceOver())

    @rule()
    def engine_dies(self) -> None:
        if self.turn is not None:
            (turn_id, _), self.turn = self.turn, None
            self.post(Ended(turn_id))
        self.post(Lost())
        if self.starting is not None:
            ticket, self.starting = self.starting, None
            self.post(Refused(ticket))

    @precondition(lambda self: self.releasing and not self.state.is_closed)
    @rule()
    def thread_is_released(self) -> None:
        self.post(Released())

    @invariant()
    def nothing_waits_in_a_closed_session(self) -> None:
        state = self.state
        if state.is_closed:
            assert state == State(is_closed=True, is_stuck=state.is_stuck)

    def teardown(self) -> None:
        """Liveness: closing always comes to an end, deaf engine or not, and everybody is answered."""
        if not hasattr(self, "state"):
            return
        self.ask(lambda ticket: Close(ticket, None))
        for _ in range(2 * MAX_WAITING):
            if self.state.is_closed:
                break
            self.post(Tick())
            if self.releasing:
                self.post(Released())
            elif self.state.live and not self.state.live.stop:
                self.post(TimedOut(self.state.live.ticket))
            else:
                self.post(GraceOver())
        assert self.state.is_closed
        assert self.asked == set(self.settled)

    @invariant()
    def whoever_is_not_answered_still_waits(self) -> None:
        state = self.state
        waiting = {*state.clients, *state.mail}
        if state.live:
            waiting.add(state.live.ticket)
        if state.closing:
            waiting |= {*state.closing.waiters, *([state.closing.last] if state.closing.last else [])}
        assert self.asked - set(self.settled) == waiting


TestSessionMachine = pytest.mark.chaos(SessionMachine.TestCase)
TestSessionMachine.settings = settings(
    max_examples=300 if os.environ.get("LANEWAY_CHAOS") else 40, stateful_step_count=60
)
