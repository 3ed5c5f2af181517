"""Open questions of a conversation: asked, answered once, withdrawn, expired. Pure: called by `step` alone.

The first valid answer wins, and later ones are told so. A lane that is being stopped is answered no at
once, and so is every question that nobody can answer.
"""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from laneway.core.model import DECLINE, Answer
from laneway.doors.chat.conversation_draft import ConversationDraft
from laneway.doors.chat.conversation_letters import (
    AnswerLane,
    CloseQuestion,
    DropTimer,
    LaneAsked,
    QuestionAnswered,
    QuestionExpired,
    QuestionWithdrawn,
    SetTimer,
)
from laneway.doors.chat.conversation_state import OpenQuestion, TakenInput
from laneway.doors.chat.outputs import QuestionOver, QuestionShown
from laneway.doors.chat.question_words import (
    AskAgain,
    from_words,
    is_for_owners,
    question_buttons,
)

OVER = "That question needs no answer any more."


def find(draft: ConversationDraft, number: int) -> OpenQuestion | None:
    return next((each for each in draft.state.questions if each.number == number), None)


def on_asked(draft: ConversationDraft, letter: LaneAsked) -> None:
    state, question = draft.state, letter.question
    turn = state.turn_of(letter.lane, question.turn_id or "") or next(
        (each for each in reversed(state.turns) if each.lane == letter.lane), None
    )
    asker = turn
    while asker is not None and asker.caller is not None:
        asker = state.turn(asker.caller)
    entry = OpenQuestion(
        number=letter.number,
        lane=letter.lane,
        ticket="" if turn is None else turn.ticket,
        question=question,
        asked_at=letter.at,
        for_owners=is_for_owners(question),
        asked_by="" if asker is None else asker.asked_by,
    )
    draft.set(questions=(*state.questions, entry))
    is_stopping = turn is not None and bool(turn.stopped_by)
    draft.show(
        QuestionShown(
            number=entry.number,
            lane=entry.lane,
            ticket=entry.ticket,
            question=replace(question, params=None),
            buttons=question_buttons(entry.number, question),
            for_owners=entry.for_owners,
            asked_by=entry.asked_by,
        )
    )
    if state.declines or is_stopping or state.is_quitting:
        _answer(draft, entry, DECLINE, QuestionOver(number=entry.number, lane=entry.lane, how="declined"))
        return
    draft.do(
        SetTimer(
            name=f"question:{entry.number}",
            seconds=state.options.question_s,
            letter=QuestionExpired(entry.number),
        )
    )


def on_words(draft: ConversationDraft, taken: TakenInput, number: int, text: str) -> None:
    """Words of a person for a question."""
    entry = find(draft, number)
    if entry is None or entry.is_answered:
        draft.refuse(taken, OVER)
        return
    result = from_words(entry.question, text, entry.values)
    if isinstance(result, AskAgain):
        _replace(draft, replace(entry, values=result.values))
        draft.refuse(taken, result.text, lane=entry.lane)
        return
    over = QuestionOver(
        number=number, lane=entry.lane, how=_how(entry, result.answer), by=taken.sender.name, text=result.text
    )
    _answer(draft, entry, result.answer, over)
    draft.finish(taken, "answered", lane=entry.lane)


def on_answered(draft: ConversationDraft, letter: QuestionAnswered) -> None:
    entry = find(draft, letter.number)
    if entry is None or entry.is_answered:
        return
    over = QuestionOver(
        number=letter.number, lane=entry.lane, how=_how(entry, letter.answer), by=letter.by, text=letter.text
    )
    _answer(draft, entry, letter.answer, over)


def on_expired(draft: ConversationDraft, letter: QuestionExpired) -> None:
    entry = find(draft, letter.number)
    if entry is not None and not entry.is_answered:
        _answer(draft, entry, DECLINE, QuestionOver(number=entry.number, lane=entry.lane, how="expired"))


def decline_all(draft: ConversationDraft) -> None:
    for entry in draft.state.open_questions:
        _answer(draft, entry, DECLINE, QuestionOver(number=entry.number, lane=entry.lane, how="declined"))


def on_withdrawn(draft: ConversationDraft, letter: QuestionWithdrawn) -> None:
    entry = next(
        (
            each
            for each in draft.state.questions
            if (each.lane, each.question.question_id) == (letter.lane, letter.question_id)
        ),
        None,
    )
    if entry is not None:
        withdraw(draft, entry)


def withdraw(draft: ConversationDraft, entry: OpenQuestion) -> None:
    """Its lane waits for no answer any more."""
    draft.set(questions=tuple(each for each in draft.state.questions if each.number != entry.number))
    if not entry.is_answered:
        draft.do(CloseQuestion(entry.number), DropTimer(f"question:{entry.number}"))
        draft.show(QuestionOver(number=entry.number, lane=entry.lane, how="withdrawn"))


def _answer(draft: ConversationDraft, entry: OpenQuestion, answer: Answer, over: QuestionOver) -> None:
    _replace(draft, replace(entry, is_answered=True))
    draft.do(
        CloseQuestion(entry.number),
        DropTimer(f"question:{entry.number}"),
        AnswerLane(lane=entry.lane, ticket=entry.ticket, question=entry.question, answer=answer),
    )
    draft.show(over)


def _replace(draft: ConversationDraft, entry: OpenQuestion) -> None:
    draft.set(
        questions=tuple(entry if each.number == entry.number else each for each in draft.state.questions)
    )


def _how(entry: OpenQuestion, answer: Answer) -> Literal["answered", "declined"]:
    chosen = next((each for each in entry.question.choices if each.choice_id == answer.choice_id), None)
    return "declined" if chosen is None or chosen.grants in ("nothing", "stop") else "answered"
