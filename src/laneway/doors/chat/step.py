"""The rules of a conversation: what it does about each letter. Pure: `step(state, letter)` and nothing else.

The rules are in `input_rules` (messages), `turn_rules`, `delegation_rules` and `question_rules`; here is who
hears what.
"""

from __future__ import annotations

from typing import assert_never

from laneway.doors.chat import delegation_rules, input_rules, question_rules, turn_rules
from laneway.doors.chat.conversation_draft import ConversationDraft
from laneway.doors.chat.conversation_letters import (
    ChatEffect,
    ChatLetter,
    ControlDone,
    CutFound,
    DelegationAsked,
    DelegationCancelled,
    ImageExpired,
    InputAccepted,
    InputTaken,
    LaneAsked,
    LaneEnded,
    LaneSeen,
    LaneStarted,
    LeadChosen,
    NobodyAnswers,
    QuestionAnswered,
    QuestionExpired,
    QuestionWithdrawn,
    QuitAsked,
    SilenceReached,
    SteerEnded,
    StopLate,
)
from laneway.doors.chat.conversation_state import ConversationData


def step(state: ConversationData, letter: ChatLetter) -> tuple[ConversationData, list[ChatEffect]]:
    draft = ConversationDraft(state)
    _hear(draft, letter)
    turn_rules.begin_next(draft)
    return draft.state, draft.effects


def _hear(draft: ConversationDraft, letter: ChatLetter) -> None:
    match letter:
        case InputTaken():
            input_rules.on_input(draft, letter)
        case CutFound():
            input_rules.on_cut_found(draft, letter)
        case ImageExpired():
            input_rules.on_image_expired(draft, letter)
        case LaneStarted():
            turn_rules.on_started(draft, letter)
        case InputAccepted():
            turn_rules.on_accepted(draft, letter)
        case LaneEnded():
            turn_rules.on_ended(draft, letter)
        case SteerEnded():
            turn_rules.on_steer_ended(draft, letter)
        case StopLate():
            turn_rules.on_stop_late(draft, letter)
        case SilenceReached():
            turn_rules.on_silence(draft, letter)
        case DelegationAsked():
            delegation_rules.on_delegation(draft, letter)
        case DelegationCancelled():
            delegation_rules.on_delegation_cancelled(draft, letter)
        case LaneAsked():
            question_rules.on_asked(draft, letter)
        case QuestionWithdrawn():
            question_rules.on_withdrawn(draft, letter)
        case QuestionAnswered():
            question_rules.on_answered(draft, letter)
        case QuestionExpired():
            question_rules.on_expired(draft, letter)
        case NobodyAnswers():
            draft.set(declines=True)
            question_rules.decline_all(draft)
        case LeadChosen(lane=lane):
            draft.set(default_lane=lane)
        case ControlDone(taken=taken, text=text, is_refused=is_refused):
            if is_refused:
                draft.refuse(taken, text)
            else:
                draft.finish(taken, text=text)
        case LaneSeen():
            _see(draft, letter)
        case QuitAsked(by=by):
            _quit(draft, by)
        case _:
            assert_never(letter)


def _see(draft: ConversationDraft, letter: LaneSeen) -> None:
    state, lane = draft.state, frozenset({letter.lane})
    draft.set(
        deaf=state.deaf - lane if letter.steers else state.deaf | lane,
        blind=state.blind - lane if letter.takes_images else state.blind | lane,
    )


def _quit(draft: ConversationDraft, by: str) -> None:
    """Turns are interrupted. What waits is dropped, unless the process ends: then a restart runs it."""
    draft.set(is_quitting=True)
    if by == "quit":
        input_rules.tell_dropped(draft, turn_rules.drop_queue(draft))
    turn_rules.interrupt_all(draft, by)
