"""Answers to questions by buttons and forms, and what is not stored of a message: the words of a secret."""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from laneway.doors.chat.conversation_letters import ChatLetter, QuestionAnswered
from laneway.doors.chat.conversation_state import ConversationData, OpenQuestion
from laneway.doors.chat.messages import Incoming, Tap, TapResult
from laneway.doors.chat.question_words import (
    AskAgain,
    Understood,
    button_number,
    from_button,
    from_form,
    from_words,
    has_secret,
)
from laneway.doors.chat.routing import Speaker, ToQuestion, WhichQuestion, may_answer, route

OVER = TapResult("That question needs no answer any more.", is_done=False, is_stale=True)


class Answerable(Protocol):
    """A conversation."""

    state: ConversationData
    answering: set[int]
    """Questions that were answered a moment ago: the letter is on its way."""

    def post(self, letter: ChatLetter) -> None: ...


def answer(conversation: Answerable, tap: Tap) -> TapResult:
    """The first valid answer wins."""
    pressed = button_number(tap.data)
    if pressed is None:
        return TapResult("That button is not known here.", is_done=False, is_stale=True)
    number, index = pressed
    entry = next((each for each in conversation.state.open_questions if each.number == number), None)
    if entry is None or number in conversation.answering:
        return OVER
    if not may_answer(entry.facts, Speaker(tap.sender.user_id, tap.sender.is_owner)):
        return TapResult("You may not answer that.", is_done=False)
    understood = _understood(entry, index, tap)
    if not isinstance(understood, Understood):
        text = understood.text if understood is not None else "That is no answer to this question."
        return TapResult(text, is_done=False)
    conversation.answering.add(number)
    conversation.post(
        QuestionAnswered(number=number, answer=understood.answer, by=tap.sender.name, text=understood.text)
    )
    return TapResult(understood.text or "Answered.")


def _understood(entry: OpenQuestion, index: int | None, tap: Tap) -> Understood | AskAgain | None:
    if tap.values:
        return from_form(entry.question, tap.values)
    if index is not None:
        return from_button(entry.question, index, tap.words)
    return from_words(entry.question, tap.words, entry.values)


def without_secret(state: ConversationData, message: Incoming) -> Incoming:
    """As it may be stored: the answer to a question for a secret is not kept at all."""
    secret = {each.number for each in state.open_questions if has_secret(each.question)}
    if not secret:
        return message
    speaker = Speaker(message.sender.user_id, message.sender.is_owner)
    target = route(message.text, state.facts({}), reply=message.reply, speaker=speaker)
    match target:
        case ToQuestion(number=number):
            numbers: tuple[int, ...] = (number,)
        case WhichQuestion(numbers=numbers):  # it may be meant for the secret one
            pass
        case _:
            numbers = ()
    return replace(message, text="") if secret.intersection(numbers) else message
