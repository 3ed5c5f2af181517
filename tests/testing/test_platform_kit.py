"""The kit of platforms: an ordinary platform passes it, a broken one fails the test that is about it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from laneway.base.errors import LanewayError
from laneway.doors.chat.messages import Incoming, Place, Sender, Tap
from laneway.doors.chat.outputs import (
    ActivityShown,
    InputReceipt,
    PlanShown,
    QuestionOver,
    QuestionShown,
    Said,
    Shown,
    TextDelta,
    TextDone,
    Told,
    TurnEnded,
)
from laneway.doors.chat.ports import Chat
from laneway.testing import platform_kit
from laneway.testing.hand_chat import HandChat
from laneway.testing.platform_kit import PlatformKit, PlatformStage


class PaperPlatform:
    """A platform on a sheet of paper: each thing that is shown is an entry of it."""

    name = "paper"
    echoes = forgets_questions = shows_all = keeps_plans = asks_again = ignores_moves = shows_pieces = False
    hides_failures = drops_names = stays = is_stranger = False

    def __init__(self, chat: Chat) -> None:
        self.chat = chat
        self.place = Place(self.name, "sheet")
        self.entries: dict[str, str] = {}
        self.questions: dict[int, QuestionShown] = {}
        self.conversation_id: str | None = None
        self._count = 0

    # ── a view ─────────────────────────────────────────────────────────────

    def show(self, shown: Shown) -> None:
        key = f"n{shown.number}"
        match shown.output:
            case Said(place=place) as said if place != self.place or self.echoes:
                by = "" if self.drops_names else f"{said.sender} ({said.platform}): "
                self.entries[key] = by + said.text
            case TextDelta(part=part, text=text):
                self.entries[part] = self.entries.get(part, "") + text
            case TextDone(part=part, text=text, lane=lane):
                if not self.shows_pieces:
                    self.entries.pop(part, None)
                self.entries[key] = f"{lane}: {text}"
            case ActivityShown(activity=activity):
                self.entries[activity.item_id] = activity.title
            case PlanShown(plan=plan):
                at = key if self.keeps_plans else "plan"
                self.entries[at] = "\n".join(step.text for step in plan.steps)
            case TurnEnded(failure=failure) if failure and not self.hides_failures:
                self.entries[key] = failure.message
            case Told(text=text, only=only) if only in (None, self.place) or self.shows_all:
                self.entries[key] = text
            case InputReceipt(kind="refused", text=text):
                self.entries[key] = text
            case QuestionShown(number=number) as question:
                self.questions[number] = question
                self.entries[f"q{number}"] = question.question.message
            case QuestionOver(number=number) if not self.forgets_questions:
                self.questions.pop(number, None)
            case _:
                pass

    def on_moved(self, conversation_id: str) -> None:
        if not self.ignores_moves:
            self.conversation_id = conversation_id

    # ── a person ───────────────────────────────────────────────────────────

    async def say(self, text: str) -> None:
        try:
            if self.conversation_id is None:
                state = await self.chat.join(self.place, self)
                self.conversation_id = state.record.conversation_id
            self._count += 1
            self.entries[f"own{self._count}"] = text
            await self.chat.take(
                Incoming(
                    place=self.place,
                    message_id=str(self._count),
                    sender=self.sender,
                    text=text,
                    conversation_id=self.conversation_id,
                )
            )
        except LanewayError as problem:
            self.entries[f"problem{self._count}"] = str(problem)

    async def press(self, label: str) -> None:
        question = list(self.questions.values())[-1]
        data = next(button.data for button in question.buttons if button.label == label)
        await self.chat.tap(Tap(place=self.place, sender=self.sender, data=data))

    async def reconnect(self) -> None:
        if not self.asks_again:
            self.questions.clear()
        state = await self.chat.join(self.place, self)
        self.questions |= {each.number: each for each in state.questions}

    async def offers(self) -> list[str]:
        return [button.label for each in self.questions.values() for button in each.buttons]

    async def shown(self) -> str:
        return "\n".join(self.entries.values())

    async def harm(self) -> str:
        return ""

    @property
    def sender(self) -> Sender:
        return Sender(platform=self.name, user_id="1", name="Ada", is_owner=not self.is_stranger)


class PaperKit(PlatformKit):
    platform: type[PaperPlatform] = PaperPlatform

    @asynccontextmanager
    async def stage(self, chat: HandChat) -> AsyncIterator[PlatformStage]:
        paper = self.platform(chat)
        yield PlatformStage(
            name=paper.name,
            say=paper.say,
            shown=paper.shown,
            offers=paper.offers,
            press=paper.press,
            harm=paper.harm,
            reconnect=paper.reconnect,
        )
        if not paper.stays:
            chat.leave(paper.place, paper)


class TestPaperPlatform(PaperKit):
    """An ordinary one passes all of it."""


@pytest.mark.parametrize(
    ("fault", "test"),
    [
        ("is_stranger", "what_a_person_writes_is_taken_once"),
        ("echoes", "own_words_are_not_repeated"),
        ("drops_names", "words_of_others_are_shown_with_name_and_platform"),
        ("shows_pieces", "a_text_that_arrives_in_pieces_is_shown_once"),
        ("hides_failures", "a_turn_that_failed_says_why"),
        ("keeps_plans", "a_plan_is_one_list_that_changes"),
        ("shows_all", "what_is_for_another_place_is_not_shown"),
        ("ignores_moves", "a_place_that_is_moved_shows_the_other_conversation"),
        ("forgets_questions", "the_choices_of_an_answered_question_are_gone"),
        ("stays", "nothing_is_shown_after_the_end"),
    ],
)
async def test_the_kit_fails_a_broken_platform(
    fault: str, test: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the one test that is about it."""
    monkeypatch.setattr(platform_kit, "SEE_S", 0.05)
    kit: Any = PaperKit()
    kit.platform = type("Broken", (PaperPlatform,), {fault: True})
    with pytest.raises(AssertionError):
        async with asyncio.timeout(10):
            await getattr(kit, f"test_{test}")()
