"""What a conversation shows reaches the people of a bot, once, also over restarts; and what they may do."""

from __future__ import annotations

import asyncio

import pytest

from laneway.core.model import Activity, Choice, Plan, PlanStep, Question
from laneway.doors.chat.messages import Place, ReplyTarget, TapResult
from laneway.doors.chat.outbox import PostHeld, PostRefused, ServiceOffline
from laneway.doors.chat.outputs import (
    ActivityShown,
    Button,
    InputReceipt,
    PlanShown,
    QuestionOver,
    QuestionShown,
    Said,
    TextDelta,
    TextDone,
    Told,
    TurnBegan,
    TurnEnded,
)
from laneway.doors.chat.platforms.bots.inbound import BotMessage, BotTap
from laneway.doors.chat.platforms.bots.place_views import place_of
from laneway.doors.chat.platforms.bots.posts import STOP_DATA
from laneway.testing.memory_conversations import MemoryConversations
from laneway.testing.stored_hand_chat import StoredHandChat
from tests.doors.chat.platforms.bots.support import ANA, BEN, DEADLINE_S, PLACE, BotService, views_of

ALLOW, DENY = Button("q:1:accept", "Allow once", "yes"), Button("q:1:decline", "Decline", "no")
YES = Choice(choice_id="accept", label="Allow once", grants="once")
NO = Choice(choice_id="decline", label="Decline", grants="nothing")


def approval(*, for_owners: bool = True, asked_by: str = BEN) -> QuestionShown:
    question = Question(
        question_id="q1",
        kind="command",
        thread_id="t",
        turn_id="u",
        item_id=None,
        message="Run make test?",
        command="make test",
        choices=(YES, NO),
    )
    return QuestionShown(
        number=1,
        lane="codex",
        ticket="t1",
        question=question,
        buttons=(ALLOW, DENY),
        for_owners=for_owners,
        asked_by=asked_by,
    )


def delta(text: str, offset: int) -> TextDelta:
    return TextDelta(lane="codex", ticket="t1", part="p1", offset=offset, text=text)


def done(text: str) -> TextDone:
    return TextDone(lane="codex", ticket="t1", part="p1", text=text)


def command(status: str) -> ActivityShown:
    activity = Activity(
        turn_id="u",
        item_id="i1",
        kind="command",
        title="npm test",
        status=status,  # type: ignore[arg-type]
        exit_code=1 if status == "failed" else None,
        output="1 failed\n" if status == "failed" else None,
    )
    return ActivityShown(lane="codex", ticket="t1", activity=activity)


class Bot:
    """A chat, its store and a service, over restarts."""

    def __init__(self, units: int = 400, edit_s: float = 0.0) -> None:
        self.store = MemoryConversations()
        self.chat = StoredHandChat(self.store)
        self.service = BotService(units, edit_s)

    async def show(self, *outputs: object) -> None:
        async with asyncio.timeout(DEADLINE_S), views_of(self.chat, self.store, self.service) as views:
            await views.view_of(PLACE)
            self.chat.show(PLACE, *outputs)  # type: ignore[arg-type]
            await views.wait_idle()

    async def tap(self, data: str, ref: str, user_id: str = ANA) -> TapResult:
        async with asyncio.timeout(DEADLINE_S), views_of(self.chat, self.store, self.service) as views:
            tap = BotTap(place=PLACE, tap_id="tap1", user_id=user_id, name="x", data=data, ref=ref)
            result = await views.tap(tap)
            await views.wait_idle()
            return result


async def test_a_turn_is_framed_by_banners_with_its_deeds_in_one_message() -> None:
    bot = Bot()
    await bot.show(
        TurnBegan(lane="codex", ticket="t1", task="fix the tests", has_banner=True),
        command("running"),
        command("failed"),
        done("Two tests *failed*."),
        TurnEnded(lane="codex", ticket="t1", status="completed", has_banner=True, seconds=12.3),
    )
    assert bot.service.texts == [
        "━━━ 🔶 **CODEX STARTED**: fix the tests ━━━",
        "🔧 codex::Bash `npm test` ✗ Exit code 1.\n```\n1 failed\n```",
        "Two tests *failed*.",
        "━━━ 🔶 **CODEX COMPLETED** · 12 s ━━━",
    ]
    assert not any(post.buttons for post in bot.service.messages.values())


async def test_a_text_that_grows_is_one_message_with_a_stop_button_until_it_is_done() -> None:
    bot = Bot()
    async with asyncio.timeout(DEADLINE_S), views_of(bot.chat, bot.store, bot.service) as views:
        await views.view_of(PLACE)
        bot.chat.flow(PLACE, delta("Hello", 0))
        await views.wait_idle()
        assert [button.data for button in bot.service.messages["m1"].buttons] == [STOP_DATA]
        bot.chat.flow(PLACE, delta(", world", 5), delta("!", 99))
        await views.wait_idle()
        assert bot.service.messages["m1"].text == "Hello, world"
        bot.chat.show(PLACE, done("Hello, world. I am done."))
        await views.wait_idle()
    assert bot.service.texts == ["Hello, world. I am done."]
    assert bot.service.messages["m1"].buttons == ()


async def test_a_plan_is_changed_in_place() -> None:
    bot = Bot()
    steps = [PlanStep(text="Read *it*", status="running"), PlanStep(text="Fix it", status="pending")]
    async with asyncio.timeout(DEADLINE_S), views_of(bot.chat, bot.store, bot.service) as views:
        await views.view_of(PLACE)
        bot.chat.show(PLACE, PlanShown(lane="codex", ticket="t1", plan=Plan(turn_id="u", steps=tuple(steps))))
        await views.wait_idle()
        steps[0] = PlanStep(text="Read *it*", status="completed")
        bot.chat.show(PLACE, PlanShown(lane="codex", ticket="t1", plan=Plan(turn_id="u", steps=tuple(steps))))
        await views.wait_idle()
    assert bot.service.texts == ["🔶 **CODEX plan**\n✅ Read \\*it\\*\n⬜ Fix it"]


async def test_receipts_are_reactions_in_their_own_place_and_words_where_needed() -> None:
    bot = Bot()
    other = Place(platform="web", chat="1")
    await bot.show(
        InputReceipt(input_id=1, place=PLACE, message_id="7", kind="begun"),
        InputReceipt(input_id=2, place=other, message_id="8", kind="begun"),
        InputReceipt(input_id=3, place=PLACE, message_id="9", kind="refused", text="Too many wait."),
        Said(input_id=2, place=other, message_id="8", sender="B*n", platform="web", text="hi"),
    )
    receipts = [(p.target, p.receipt) for p in bot.service.messages.values() if p.kind == "receipt"]
    assert receipts == [("7", "begun"), ("9", "refused")]
    assert bot.service.texts == ["Too many wait.", "👤 **B\\*n** (web): hi"]


async def test_what_is_for_another_place_is_not_shown_here() -> None:
    bot = Bot()
    await bot.show(Told(text="here", only=PLACE), Told(text="there", only=Place(platform="web", chat="1")))
    assert bot.service.texts == ["here"]


@pytest.mark.parametrize("outcome", [ServiceOffline(), PostHeld(0.01)])
async def test_what_was_not_sent_is_sent_again_under_the_same_key(outcome: object) -> None:
    bot = Bot()
    bot.service.outcomes = [outcome]  # type: ignore[list-item]
    await bot.show(Told(text="hello"))
    assert bot.service.texts == ["hello"]
    assert len(bot.service.calls) == 2
    assert bot.store.deliveries(PLACE.key) == []


async def test_a_death_before_the_note_repeats_the_message_and_no_other() -> None:
    bot = Bot()
    await bot.show(Told(text="one"))
    # As if the process had died after `put_delivery`: stored, perhaps sent, never noted.
    record = bot.store.deliveries(PLACE.key, unsent_only=False)[0]
    delivery_id = bot.store.put_delivery(PLACE.key, "conversation-1/told:99", record.content)
    async with asyncio.timeout(DEADLINE_S), views_of(bot.chat, bot.store, bot.service) as views:
        await views.wait_idle()
    assert bot.service.texts == ["one", "one"]
    sent = {r.delivery_id: r.is_sent for r in bot.store.deliveries(PLACE.key, unsent_only=False)}
    assert sent[delivery_id]


async def test_outputs_of_a_time_without_a_bot_are_shown_when_it_is_back() -> None:
    """Shown by the conversation, but never handed to the outbox."""
    bot = Bot()
    await bot.show(Told(text="one"))
    bot.chat.show(PLACE, Told(text="two"), command("running"), done("three"))
    await bot.show()
    assert bot.service.texts == ["one", "two", "three"]
    await bot.show()
    assert bot.service.texts == ["one", "two", "three"]


async def test_a_place_that_joins_late_gets_the_open_question_once() -> None:
    bot = Bot()
    bot.chat.questions = (approval(),)
    for _ in range(2):
        await bot.show()
    assert [key for key, _ in bot.service.calls] == ["question:1"]


async def test_the_end_of_a_question_removes_the_buttons_also_after_a_restart() -> None:
    bot = Bot()
    await bot.show(approval())
    post = bot.service.messages["m1"]
    assert "```sh\nmake test\n```" in post.text
    assert post.buttons == (ALLOW, DENY)
    await bot.show(QuestionOver(number=1, lane="codex", how="void"))
    assert bot.service.messages["m1"].buttons == ()
    assert "needs no answer any more" in bot.service.messages["m1"].text
    assert list(bot.service.messages) == ["m1"]


async def test_a_button_of_an_approval_takes_only_an_owners_word() -> None:
    bot = Bot()
    await bot.show(approval(for_owners=True, asked_by=BEN))
    refused = await bot.tap(ALLOW.data, "m1", user_id=BEN)
    assert not refused.is_done
    assert "owners" in refused.text
    assert bot.chat.taps == []
    assert await bot.tap(ALLOW.data, "m1", user_id=ANA) == TapResult(text="Done.")
    assert [(tap.data, tap.sender.is_owner) for tap in bot.chat.taps] == [(ALLOW.data, True)]


async def test_who_asked_answers_the_questions_of_that_turn() -> None:
    bot = Bot()
    await bot.show(approval(for_owners=False, asked_by=BEN))
    assert (await bot.tap(ALLOW.data, "m1", user_id=BEN)).is_done
    assert not (await bot.tap(ALLOW.data, "m1", user_id="33")).is_done
    assert len(bot.chat.taps) == 1


@pytest.mark.parametrize(("ref", "is_removed"), [("m1", False), ("m2", True), ("unknown", True)])
async def test_a_button_that_was_never_there_is_stale(ref: str, is_removed: bool) -> None:
    """Of a message that we do not know, or that has no buttons any more, they are removed."""
    bot = Bot()
    await bot.show(approval(), Told(text="no buttons"))
    result = await bot.tap("q:1:always", ref)
    assert result.is_stale
    assert not result.is_done
    assert "earlier time" in result.text
    assert bot.chat.taps == []
    assert (f"unbutton-{ref}" in bot.service.messages) == is_removed


async def test_a_button_that_the_conversation_calls_stale_is_removed() -> None:
    bot = Bot()
    await bot.show(approval())
    bot.chat.tap_result = TapResult(text="Answered already.", is_done=False, is_stale=True)
    assert (await bot.tap(ALLOW.data, "m1")).text == "Answered already."
    assert "unbutton-m1" in bot.service.messages


async def test_any_user_stops_by_the_button_of_a_growing_text() -> None:
    bot = Bot()
    async with asyncio.timeout(DEADLINE_S), views_of(bot.chat, bot.store, bot.service) as views:
        await views.view_of(PLACE)
        bot.chat.flow(PLACE, delta("Hello", 0))
        await views.wait_idle()
        for _ in range(2):
            await views.tap(
                BotTap(place=PLACE, tap_id="9", user_id=BEN, name="Ben", data=STOP_DATA, ref="m1")
            )
    assert [(each.text, each.sender.user_id) for each in bot.chat.taken] == [("/stop", BEN)]


async def test_a_reply_names_the_turn_or_the_question_it_is_for() -> None:
    bot = Bot()
    await bot.show(approval(), done("words"))
    async with asyncio.timeout(DEADLINE_S), views_of(bot.chat, bot.store, bot.service) as views:
        for number, ref in enumerate(("m1", "m2", "m9")):
            await views.take(
                BotMessage(
                    place=PLACE,
                    message_id=str(number),
                    user_id=ANA,
                    name="Ana",
                    text="ok",
                    reply_ref=ref,
                )
            )
    assert [message.reply for message in bot.chat.taken] == [
        ReplyTarget(lane="codex", ticket="t1", question=1),
        ReplyTarget(lane="codex", ticket="t1"),
        None,
    ]


async def test_foreign_words_are_marked_and_cannot_hide_a_command() -> None:
    bot = Bot()
    async with asyncio.timeout(DEADLINE_S), views_of(bot.chat, bot.store, bot.service) as views:
        for number, text in enumerate(("what is this?", "/stop")):
            await views.take(
                BotMessage(
                    place=PLACE,
                    message_id=str(number),
                    user_id=ANA,
                    name="Ana",
                    text=text,
                    quote="delete all\nnow",
                    quote_name="Eve",
                    origin="forwarded from Eve",
                )
            )
    assert [message.text for message in bot.chat.taken] == [
        "what is this?\n\n[Quoted from Eve, not the sender's own words:]\n> delete all\n> now",
        "/stop",
    ]
    assert {message.origin for message in bot.chat.taken} == {"forwarded from Eve"}


async def test_a_message_that_comes_twice_is_taken_once() -> None:
    bot = Bot()
    message = BotMessage(place=PLACE, message_id="5", user_id=ANA, name="Ana", text="hello")
    async with asyncio.timeout(DEADLINE_S), views_of(bot.chat, bot.store, bot.service) as views:
        assert await views.take(message) is not None
        assert await views.take(message) is None
    assert len(bot.chat.taken) == 1


async def test_what_the_service_refuses_for_good_is_not_tried_for_ever() -> None:
    bot = Bot()
    bot.service.outcomes = [PostRefused("blocked", is_chat_gone=True)]
    await bot.show(Told(text="hello"))
    assert bot.store.deliveries(PLACE.key) == []
    await bot.show()
    assert len(bot.service.calls) == 1


async def test_what_the_service_refuses_in_every_form_is_told_instead() -> None:
    """A final answer that vanished would be waited for; a receipt that did is no loss."""
    bot = Bot()
    bot.service.outcomes = [PostRefused("blocked by *automatic* moderation")]
    await bot.show(Told(text="hello"), Told(text="and on"))
    refused = "⚠️ A message cannot be shown here: Telegram refused it (blocked by \\*automatic\\* moderation)."
    assert bot.service.texts == ["and on", refused]
    bot.service.outcomes = [PostRefused("no reactions here")]
    await bot.show(InputReceipt(input_id=1, message_id="m1", kind="done", place=PLACE))
    assert bot.service.texts == ["and on", refused]


async def test_a_place_moves_to_another_conversation_and_keys_stay_apart() -> None:
    bot = Bot()
    async with asyncio.timeout(DEADLINE_S), views_of(bot.chat, bot.store, bot.service) as views:
        await views.view_of(PLACE)
        bot.chat.show(PLACE, Told(text="one"))
        await views.wait_idle()
        bot.chat.move(PLACE)
        bot.chat.show(PLACE, Told(text="two"))
        await views.wait_idle()
    assert bot.service.texts == ["one", "two"]


async def test_a_view_that_falls_far_behind_reads_the_rest_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laneway.doors.chat.platforms.bots.place_view.MAX_SHOWN", 3)
    bot = Bot()
    await bot.show(*[Told(text=f"line {number}") for number in range(20)])
    assert bot.service.texts == [f"line {number}" for number in range(20)]


def test_a_places_key_leads_back_to_it() -> None:
    for place in (PLACE, Place(platform="telegram", chat="-100", topic="7")):
        assert place_of(place.key) == place
