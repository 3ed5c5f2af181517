"""When a lane's model gives work to another lane: a turn within its own. Pure: called by `step` alone."""

from __future__ import annotations

from laneway.base.plain import label
from laneway.doors.chat.conversation_draft import ConversationDraft
from laneway.doors.chat.conversation_letters import (
    BeginTurn,
    DelegationAsked,
    DelegationCancelled,
    RefuseDelegation,
)
from laneway.doors.chat.conversation_state import ChatTurn
from laneway.doors.chat.outputs import TurnBegan
from laneway.doors.chat.turn_rules import cut_task, interrupt


def on_delegation(draft: ConversationDraft, letter: DelegationAsked) -> None:
    state = draft.state
    caller = next((each for each in reversed(state.turns) if each.lane == letter.caller_lane), None)
    if caller is None or caller.stopped_by or state.is_quitting:
        draft.do(RefuseDelegation(letter.call_id, "The turn that asks for it is over."))
    elif letter.lane not in state.lanes:
        draft.do(RefuseDelegation(letter.call_id, f"There is no lane {label(letter.lane)}."))
    elif any(each.lane == letter.lane for each in state.turns):
        draft.do(RefuseDelegation(letter.call_id, f"{letter.lane} works already: wait for its result."))
    else:
        _delegate(draft, letter, caller)


def _delegate(draft: ConversationDraft, letter: DelegationAsked, caller: ChatTurn) -> None:
    turn = ChatTurn(
        ticket=f"call-{letter.call_id}",
        lane=letter.lane,
        caller=caller.ticket,
        caller_lane=caller.lane,
        call_id=letter.call_id,
        task=letter.task,
        has_banner=True,
    )
    draft.set(turns=(*draft.state.turns, turn))
    draft.show(
        TurnBegan(
            lane=turn.lane,
            ticket=turn.ticket,
            task=cut_task(letter.task),
            has_banner=True,
            caller=caller.lane,
        )
    )
    draft.do(BeginTurn(ticket=turn.ticket, lane=turn.lane, task=letter.task, text=letter.task))


def on_delegation_cancelled(draft: ConversationDraft, letter: DelegationCancelled) -> None:
    for turn in draft.state.turns:
        if turn.call_id == letter.call_id:
            interrupt(draft, turn, "delegation")
