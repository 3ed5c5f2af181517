"""The rules of a session as a pure function: `step(state, letter) -> state, effects`.

One turn at a time. Close goes before cancel, cancel before a client's turn, a client's turn before
mail. Every ticket is settled exactly once, whatever the engine does. The actor
(`laneway.core.session`) posts the letters and carries out the effects. It sends `Tick` when no other
letter waits, and only a `Tick` starts a turn, so that letters of higher precedence come first.
"""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from laneway.core.letters import (
    Answered,
    Begun,
    Cancel,
    CancelAll,
    Close,
    Closing,
    Decline,
    Deliver,
    Effect,
    Ended,
    Expired,
    ForgetQuestion,
    Gone,
    GraceOver,
    Interrupt,
    Kind,
    Letter,
    Live,
    Lost,
    Opened,
    Refused,
    Release,
    Released,
    RunClock,
    Say,
    Settle,
    Start,
    StartGrace,
    State,
    Steer,
    SteerNow,
    Stop,
    StopGrace,
    Tick,
    TimedOut,
    Unheard,
    WatchQuestion,
)

MAX_WAITING = 64
"""Turns that may wait behind the running one. More is a caller that has lost control."""


def step(state: State, letter: Letter) -> tuple[State, list[Effect]]:
    match letter:
        case Say(ticket, kind):
            return _say(state, ticket, kind)
        case Cancel(ticket, why):
            return _cancel(state, ticket, why)
        case CancelAll():
            return _cancel_all(state)
        case Steer(ticket):
            live = state.live
            if live and live.turn_id and not live.stop:
                return state, [SteerNow(ticket, live.turn_id)]
            return state, [Settle(ticket, "no_turn")]
        case Close(ticket, last):
            return _close(state, ticket, last)
        case Answered(ticket, question_id):
            return _answered(state, ticket, question_id)
        case Begun(turn_id, ticket):
            return _begun(state, turn_id, ticket)
        case Refused(ticket):
            return _refused(state, ticket)
        case Ended(turn_id):
            return _ended(state, turn_id)
        case Opened(question_id):
            return _opened(state, question_id)
        case Gone(question_id):
            return _without(state, question_id)
        case Expired(question_id):
            return _expired(state, question_id)
        case TimedOut(ticket):
            if state.live and state.live.ticket == ticket and not state.live.stop:
                return _stop_live(state, state.live, "timeout")
            return state, []
        case Unheard(turn_id):
            runs = (state.live is not None and state.live.turn_id == turn_id) or state.foreign == turn_id
            return state, [Interrupt(turn_id)] if runs else []
        case GraceOver():
            return _grace_over(state)
        case Lost():
            return _lost(state)
        case Released():
            return _released(state)
        case Tick():
            return _tick(state)
        case _:
            assert_never(letter)


def _say(state: State, ticket: str, kind: Kind) -> tuple[State, list[Effect]]:
    if state.is_closed or state.closing:
        return state, [Settle(ticket, "closed")]
    if state.is_stuck:
        return state, [Settle(ticket, "stuck")]
    if len(state.clients) + len(state.mail) >= MAX_WAITING:
        return state, [Settle(ticket, "full")]
    if kind == "mail":
        return replace(state, mail=(*state.mail, ticket)), []
    return replace(state, clients=(*state.clients, ticket)), []


def _cancel(state: State, ticket: str, why: Stop) -> tuple[State, list[Effect]]:
    if ticket in state.clients or ticket in state.mail:
        clients = tuple(t for t in state.clients if t != ticket)
        mail = tuple(t for t in state.mail if t != ticket)
        return replace(state, clients=clients, mail=mail), [Settle(ticket, "cancelled", why)]
    live = state.live
    if live and live.ticket == ticket and not live.stop and live.kind != "last":
        return _stop_live(state, live, why)
    return state, []


def _cancel_all(state: State) -> tuple[State, list[Effect]]:
    effects: list[Effect] = [Settle(ticket, "cancelled", "cancel") for ticket in state.clients]
    state = replace(state, clients=())
    if state.foreign:
        effects.append(Interrupt(state.foreign))
    if state.live and not state.live.stop and state.live.kind != "last":
        state, more = _stop_live(state, state.live, "cancel")
        effects += more
    return state, effects


def _stop_live(state: State, live: Live, why: Stop) -> tuple[State, list[Effect]]:
    effects: list[Effect] = [RunClock(None), StartGrace()]
    if live.turn_id:
        effects.append(Interrupt(live.turn_id))
    return replace(state, live=replace(live, stop=why)), effects


def _close(state: State, ticket: str, last: str | None) -> tuple[State, list[Effect]]:
    effects: list[Effect] = []
    if state.is_closed:
        effects.append(Settle(ticket, "ok"))
    elif state.closing:
        state = replace(state, closing=replace(state.closing, waiters=(*state.closing.waiters, ticket)))
    else:
        return _begin_closing(state, ticket, last)
    if last:
        effects.append(Settle(last, "closed"))
    return state, effects


def _begin_closing(state: State, ticket: str, last: str | None) -> tuple[State, list[Effect]]:
    # Open questions are declined first: only then can the turn end.
    state, effects = _decline_all(state)
    effects += [Settle(waiting, "closed") for waiting in (*state.clients, *state.mail)]
    if last and state.is_stuck:
        effects.append(Settle(last, "stuck"))
        last = None
    state = replace(state, clients=(), mail=(), closing=Closing((ticket,), last))
    if state.foreign and not state.is_stuck:
        effects += [Interrupt(state.foreign), StartGrace()]
    if state.live and state.live.stop:
        return state, effects
    if state.live:
        state, more = _stop_live(state, state.live, "close")
        effects += more
    return state, effects


def _decline_all(state: State) -> tuple[State, list[Effect]]:
    effects: list[Effect] = []
    for question_id in state.questions:
        effects += [ForgetQuestion(question_id), Decline(question_id, ends_turn=True)]
    return replace(state, questions=()), effects


def _answered(state: State, ticket: str, question_id: str) -> tuple[State, list[Effect]]:
    if question_id not in state.questions:
        return state, [Settle(ticket, "question_gone")]
    state, effects = _without(state, question_id)
    return state, [Deliver(question_id, ticket), *effects, Settle(ticket, "ok")]


def _opened(state: State, question_id: str) -> tuple[State, list[Effect]]:
    if state.closing or state.is_closed or (state.live and state.live.stop):
        return state, [Decline(question_id, ends_turn=True)]
    state = replace(state, questions=(*state.questions, question_id))
    return state, [WatchQuestion(question_id), RunClock(None)]


def _without(state: State, question_id: str) -> tuple[State, list[Effect]]:
    if question_id not in state.questions:
        return state, []
    questions = tuple(q for q in state.questions if q != question_id)
    effects: list[Effect] = [ForgetQuestion(question_id)]
    live = state.live
    if not questions and live and not live.stop:
        effects.append(RunClock(live.ticket))
    return replace(state, questions=questions), effects


def _expired(state: State, question_id: str) -> tuple[State, list[Effect]]:
    if question_id not in state.questions:
        return state, []
    state, effects = _without(state, question_id)
    return state, [Decline(question_id), *effects]


def _begun(state: State, turn_id: str, ticket: str | None) -> tuple[State, list[Effect]]:
    live = state.live
    if state.is_closed:
        return state, []  # nobody is left to stop it; the engine has been told to release the thread
    if live is None or live.ticket != ticket or live.turn_id:
        # Not ours, or of a ticket that was settled as stuck, so that nobody waits for it any more.
        state = replace(state, foreign=turn_id)
        if state.closing:
            return state, [Interrupt(turn_id), StartGrace()]
        return state, [Interrupt(turn_id)] if ticket else []
    state = replace(state, live=replace(live, turn_id=turn_id))
    return state, [Interrupt(turn_id)] if live.stop else []


def _refused(state: State, ticket: str) -> tuple[State, list[Effect]]:
    if state.live is None or state.live.ticket != ticket:
        return replace(state, is_stuck=False) if state.is_stuck and not state.foreign else state, []
    stop = state.live.stop
    effects: list[Effect] = [StopGrace(), RunClock(None)]
    effects.append(
        Settle(ticket, "cancelled", stop)
        if stop in ("cancel", "timeout", "unreachable")
        else Settle(ticket, "refused", stop)
    )
    return replace(state, live=None), effects


def _ended(state: State, turn_id: str) -> tuple[State, list[Effect]]:
    effects: list[Effect] = []
    if turn_id == state.foreign:
        state = replace(state, foreign=None, is_stuck=False)
        if not (state.live and state.live.stop):
            effects.append(StopGrace())
    elif state.live and state.live.turn_id == turn_id:
        live = state.live
        effects += [StopGrace(), RunClock(None), Settle(live.ticket, "done", live.stop)]
        state = replace(state, live=None)
    else:
        return state, []
    state, declined = _decline_all(state)
    return state, [*declined, *effects]


def _grace_over(state: State) -> tuple[State, list[Effect]]:
    """A turn does not end: settle its ticket and those that wait behind it."""
    live = state.live
    stopped = live is not None and live.stop is not None
    if not stopped and not (state.foreign and state.closing):
        return state, []
    state, effects = _decline_all(state)
    if live and live.stop:
        effects.append(Settle(live.ticket, "stuck", live.stop))
        state = replace(state, live=None, foreign=live.turn_id or state.foreign)
    effects += [Settle(ticket, "stuck") for ticket in (*state.clients, *state.mail)]
    state = replace(state, clients=(), mail=(), is_stuck=True)
    if state.closing and state.closing.last:
        effects.append(Settle(state.closing.last, "stuck"))
        state = replace(state, closing=replace(state.closing, last=None))
    return state, effects


def _lost(state: State) -> tuple[State, list[Effect]]:
    state, effects = _decline_all(state)
    if state.live and state.live.turn_id:
        effects += [StopGrace(), RunClock(None), Settle(state.live.ticket, "lost", state.live.stop)]
        state = replace(state, live=None)
    # A turn that was stuck died with the process.
    return replace(state, foreign=None, is_stuck=False), effects


def _released(state: State) -> tuple[State, list[Effect]]:
    if state.closing is None:
        return state, []
    effects: list[Effect] = [Settle(waiter, "ok") for waiter in state.closing.waiters]
    return replace(state, closing=None, is_closed=True, foreign=None), effects


def _tick(state: State) -> tuple[State, list[Effect]]:
    if state.is_closed or state.live or (state.foreign and not state.is_stuck):
        return state, []
    if state.closing:
        return _go_on_closing(state, state.closing)
    if state.is_stuck:
        return state, []
    if state.clients:
        ticket, *rest = state.clients
        return replace(state, clients=tuple(rest), live=Live(ticket, "client")), [
            RunClock(ticket),
            Start(ticket),
        ]
    if state.mail:
        ticket, *rest = state.mail
        return replace(state, mail=tuple(rest), live=Live(ticket, "mail")), [RunClock(ticket), Start(ticket)]
    return state, []


def _go_on_closing(state: State, closing: Closing) -> tuple[State, list[Effect]]:
    if closing.releasing:
        return state, []
    if closing.last:
        live = Live(closing.last, "last")
        effects: list[Effect] = [RunClock(live.ticket), Start(live.ticket)]
        return replace(state, live=live, closing=replace(closing, last=None)), effects
    return replace(state, closing=replace(closing, releasing=True)), [Release()]
