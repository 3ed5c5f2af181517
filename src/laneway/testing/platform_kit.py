"""What every chat platform must do, as tests: a class derives from `PlatformKit` and says how it is run.

For platforms of anybody: `stage` runs the platform on the given `HandChat` (conversations that the test
drives by hand) and gives what a person at it does and sees. What a platform does not have is left out, and
its tests are skipped with the reason. Needs no pytest itself.
"""

from __future__ import annotations

import asyncio
import unittest
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

import msgspec

from laneway.core.model import Activity, Failure, Plan, PlanStep
from laneway.doors.chat.messages import Incoming, Place
from laneway.doors.chat.outputs import (
    ActivityShown,
    InputReceipt,
    PlanShown,
    Said,
    StatusNow,
    TextDelta,
    TextDone,
    Told,
    TurnBegan,
    TurnEnded,
)
from laneway.testing.hand_chat import HandChat, approval

DEADLINE_S = 60.0
"""For one test, with a real browser or a real client on a busy machine."""
SEE_S = 20.0
"""For one thing to be shown."""
LOOK_S = 0.02
"""Between two looks at what is shown."""
ELSEWHERE = Place(platform="elsewhere", chat="42")
HOSTILE = (
    "<img src=x onerror=alert(1)><script>alert(2)</script> [a](javascript:alert(3)) @everyone "
    "\x1b[2J\x1b]0;owned\x07 \u202egnp.exe ```` ``` </details> ![p](http://203.0.113.1/p.png)"
)
"""For browsers, terminals and chat services."""


class PlatformStage(msgspec.Struct, frozen=True, kw_only=True):
    """A platform that runs, and the one person at it, who owns it."""

    name: str
    """As in `Place.platform`."""
    say: Callable[[str], Awaitable[None]]
    """The person writes a message."""
    shown: Callable[[], Awaitable[str]]
    """All that the person can see of the conversation now, as text; folded parts may be left out."""
    offers: Callable[[], Awaitable[list[str]]] | None = None
    """The labels of the buttons that can be pressed now, or of the choices that can be made."""
    press: Callable[[str], Awaitable[None]] | None = None
    """The person presses the button of that label."""
    harm: Callable[[], Awaitable[str]] | None = None
    """What foreign text has done that it must not do, in words; empty if it was only shown."""
    reconnect: Callable[[], Awaitable[None]] | None = None
    """The connection is lost and comes back, or the person reloads the page."""


class PlatformKit:
    """Derive a test class from it, and define `stage`."""

    def stage(self, chat: HandChat) -> AbstractAsyncContextManager[PlatformStage]:
        """The platform runs on this chat; everything is gone at the end."""
        raise NotImplementedError

    # ── what people say ────────────────────────────────────────────────────

    async def test_what_a_person_writes_is_taken_once(self) -> None:
        """With the platform's name, an owner's word, an id of its own, and always of the same place."""
        async with _PlatformRun(self) as run:
            first = await run.begin("first words")
            await run.here.say("second words")
            second = await run.chat.next_taken(2)
            assert [each.text for each in run.chat.taken] == ["first words", "second words"]
            for message in (first, second):
                assert message.place.platform == message.sender.platform == run.here.name
                assert message.sender.is_owner
                assert message.sender.name.strip()
                assert message.message_id
            assert first.message_id != second.message_id
            assert first.conversation_id == second.conversation_id

    async def test_own_words_are_not_repeated(self) -> None:
        """The place that a message came from has it already."""
        async with _PlatformRun(self) as run:
            await run.begin("said only once")
            run.finish("Yes.")
            assert (await run.see("Yes.")).count("said only once") <= 1

    async def test_words_of_others_are_shown_with_name_and_platform(self) -> None:
        """Of a conversation that several places show."""
        async with _PlatformRun(self) as run:
            await run.begin()
            run.show(
                Said(
                    input_id=99,
                    place=ELSEWHERE,
                    message_id="m-elsewhere",
                    sender="Benedikt",
                    platform="elsewhere",
                    text="words from another place",
                )
            )
            text = await run.see("words from another place")
            assert "Benedikt" in text
            assert "elsewhere" in text

    async def test_a_message_that_was_not_taken_says_why(self) -> None:
        """At the place that it came from."""
        async with _PlatformRun(self) as run:
            message = await run.begin()
            run.show(
                InputReceipt(
                    input_id=1,
                    place=message.place,
                    message_id=message.message_id,
                    kind="refused",
                    text="Sixty-four messages wait already.",
                )
            )
            await run.see("Sixty-four messages wait already.")

    async def test_a_conversation_of_another_process_is_refused_with_its_name(self) -> None:
        """Whoever holds it is named to the person."""
        async with _PlatformRun(self) as run:
            message = await run.begin()
            assert message.conversation_id is not None
            run.chat.conversations[message.conversation_id].holder = "laneway chat (process 4711)"
            await run.here.say("anybody there?")
            await run.see("4711")

    # ── what lanes show ────────────────────────────────────────────────────

    async def test_what_a_lane_says_is_shown_in_order(self) -> None:
        """Lane by lane, each with its name."""
        async with _PlatformRun(self) as run:
            await run.begin()
            run.show(TurnBegan(lane="codex", ticket="t1", task="hello", has_banner=True))
            run.show(TextDone(lane="codex", ticket="t1", part="p1", text="The first answer."))
            run.show(TextDone(lane="codex", ticket="t1", part="p2", text="The second answer."))
            run.show(TurnEnded(lane="codex", ticket="t1", status="completed", has_banner=True))
            text = await run.see("The second answer.")
            assert text.index("The first answer.") < text.index("The second answer.")
            assert "codex" in text.lower()

    async def test_a_text_that_arrives_in_pieces_is_shown_once(self) -> None:
        """Whatever the platform has shown of it before."""
        async with _PlatformRun(self) as run:
            await run.begin()
            run.began()
            words = "Pieces of one sentence arrive one by one."
            for offset, letter in enumerate(words):
                run.show(TextDelta(lane="claude", ticket="t1", part="p1", offset=offset, text=letter))
                await asyncio.sleep(0)
            run.finish(words)
            run.show(Told(text="And this came after it."))
            assert (await run.see("And this came after it.")).count(words) == 1

    async def test_a_text_that_arrives_in_pieces_is_seen_before_its_end(self) -> None:
        """Unless the platform has no way to show it."""
        async with _PlatformRun(self) as run:
            await run.begin()
            run.began()
            words = "This sentence is not finished.\n\nAnd it goes on"
            run.show(TextDelta(lane="claude", ticket="t1", part="p1", offset=0, text=words))
            await run.see("This sentence is not finished.")
            run.finish(words + ".")

    async def test_a_command_and_its_failure_are_shown(self) -> None:
        """As what they are."""
        async with _PlatformRun(self) as run:
            await run.begin()
            run.began()
            for status, exit_code in (("running", None), ("failed", 3)):
                activity = Activity(
                    turn_id="t1",
                    item_id="i1",
                    kind="command",
                    title="make all-tests",
                    status=status,  # type: ignore[arg-type]
                    output="no rule" if exit_code else None,
                    exit_code=exit_code,
                )
                run.show(ActivityShown(lane="claude", ticket="t1", activity=activity))
            run.finish("That did not work.")
            assert "make all-tests" in await run.see("That did not work.")

    async def test_a_turn_that_failed_says_why(self) -> None:
        """In the words of the failure."""
        async with _PlatformRun(self) as run:
            await run.begin()
            run.began()
            failure = Failure(kind="other", message="the model is overloaded today")
            run.show(
                TurnEnded(lane="claude", ticket="t1", status="failed", has_banner=False, failure=failure)
            )
            await run.see("the model is overloaded today")

    async def test_a_plan_is_one_list_that_changes(self) -> None:
        """Edited in place, not shown again."""
        async with _PlatformRun(self) as run:
            await run.begin()
            run.began()
            for first, second in (("running", "pending"), ("completed", "running")):
                steps = (
                    PlanStep(text="Read the code", status=first),  # type: ignore[arg-type]
                    PlanStep(text="Write the tests", status=second),  # type: ignore[arg-type]
                )
                run.show(PlanShown(lane="claude", ticket="t1", plan=Plan(turn_id="t1", steps=steps)))
            run.finish("This is the plan.")
            text = await run.see("This is the plan.")
            assert text.count("Write the tests") == 1

    async def test_hostile_text_is_only_shown(self) -> None:
        """Of a lane, and of a person with a hostile name."""
        async with _PlatformRun(self) as run:
            if run.here.harm is None:
                raise unittest.SkipTest("the stage cannot tell what a text has done")
            await run.begin()
            run.show(
                Said(
                    input_id=98,
                    place=ELSEWHERE,
                    message_id="m-hostile",
                    sender=HOSTILE,
                    platform="elsewhere",
                    text=HOSTILE,
                )
            )
            run.began()
            run.show(TextDelta(lane="claude", ticket="t1", part="p1", offset=0, text=HOSTILE))
            run.finish(HOSTILE)
            run.show(Told(text="It is over."))
            await run.see("It is over.")
            assert await run.here.harm() == ""

    async def test_ten_thousand_lines_of_output_do_not_hide_what_follows(self) -> None:
        """The platform shows what it can, and goes on."""
        async with _PlatformRun(self) as run:
            await run.begin()
            run.began()
            output = "".join(f"line {number} of the log\n" for number in range(10_000))
            activity = Activity(
                turn_id="t1", item_id="i1", kind="command", title="make", status="completed", output=output
            )
            run.show(ActivityShown(lane="claude", ticket="t1", activity=activity))
            run.finish("It was a long log.")
            await run.see("It was a long log.")

    # ── places ─────────────────────────────────────────────────────────────

    async def test_what_is_for_another_place_is_not_shown(self) -> None:
        """The answer to somebody else's command."""
        async with _PlatformRun(self) as run:
            await run.begin()
            run.show(Told(text="This is for the others.", only=ELSEWHERE))
            run.show(Told(text="This is for all."))
            assert "This is for the others." not in await run.see("This is for all.")

    async def test_a_place_that_is_moved_shows_the_other_conversation(self) -> None:
        """And nothing of the former one any more; what is written there goes to the other one."""
        async with _PlatformRun(self) as run:
            chat = run.chat
            former = await run.begin("/new")
            other = chat.add(title="Another one")
            chat.move(former.place, other.record.conversation_id)
            chat.show(other.record.conversation_id, Told(text="Here is the other conversation."))
            await run.see("Here is the other conversation.")
            await run.here.say("hello again")
            message = await chat.next_taken(2)
            assert message.conversation_id == other.record.conversation_id

    # ── questions ──────────────────────────────────────────────────────────

    async def test_an_approval_is_asked_and_a_press_answers_it(self) -> None:
        """With what it is about, and with all of its choices."""
        async with _PlatformRun(self) as run:
            await run.begin()
            run.began()
            number = run.chat.ask(run.conversation_id, approval("rm -r build"))
            await run.see("rm -r build")
            await run.see_offer("Decline")
            press = _ability(run.here.press, "buttons")
            await press("Allow once")
            tap = await run.chat.next_tap()
            assert (tap.data, tap.place.platform) == (f"q:{number}:0", run.here.name)
            assert tap.sender.is_owner
            assert len(run.chat.taps) == 1

    async def test_the_choices_of_an_answered_question_are_gone(self) -> None:
        """Wherever the answer came from."""
        async with _PlatformRun(self) as run:
            await run.begin()
            run.began()
            number = run.chat.ask(run.conversation_id, approval("rm -r build"))
            await run.see_offer("Decline")
            run.chat.settle(run.conversation_id, number, by="Benedikt")
            await run.see_no_offer("Decline")

    async def test_open_questions_come_back_and_others_do_not(self) -> None:
        """After the connection was lost."""
        async with _PlatformRun(self) as run:
            reconnect = _ability(run.here.reconnect, "connection that can be lost")
            await run.begin()
            run.began()
            answered = run.chat.ask(run.conversation_id, approval("make first"))
            run.chat.ask(run.conversation_id, approval("make second"))
            await run.see("make second")
            run.chat.settle(run.conversation_id, answered)
            await reconnect()
            await run.see_offer("Decline")
            press = _ability(run.here.press, "buttons")
            await press("Decline")
            assert (await run.chat.next_tap()).data == "q:2:2"

    async def test_nothing_is_shown_after_the_end(self) -> None:
        """A platform that was ended has left its places."""
        async with _PlatformRun(self) as run:
            await run.begin()
        assert not [place for each in run.chat.conversations.values() for place in each.views]


class _PlatformRun:
    """The platform, its chat, and the first conversation of its person."""

    def __init__(self, kit: PlatformKit) -> None:
        self.chat = HandChat()
        self._stage = kit.stage(self.chat)
        self._deadline = asyncio.timeout(DEADLINE_S)
        self.here: PlatformStage
        self.conversation_id = ""

    async def __aenter__(self) -> _PlatformRun:
        await self._deadline.__aenter__()
        self.here = await self._stage.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        try:
            await self._stage.__aexit__(*error)  # type: ignore[arg-type]
        finally:
            await self._deadline.__aexit__(*error)  # type: ignore[arg-type]

    async def begin(self, text: str = "hello") -> Incoming:
        """The person says something, so that there is a conversation."""
        await self.here.say(text)
        message = await self.chat.next_taken()
        assert message.conversation_id is not None
        self.conversation_id = message.conversation_id
        return message

    def began(self) -> None:
        """The default lane begins to work."""
        self.show(TurnBegan(lane="claude", ticket="t1", task="hello", has_banner=False))
        self.show(StatusNow(default_lane="claude", active_lane="claude"))

    def finish(self, text: str) -> None:
        """The default lane has said this, and its turn is over."""
        self.show(TextDone(lane="claude", ticket="t1", part="p1", text=text))
        self.show(TurnEnded(lane="claude", ticket="t1", status="completed", has_banner=False, text=text))
        self.show(StatusNow(default_lane="claude", active_lane=None))

    def show(self, output: object) -> None:
        self.chat.show(self.conversation_id, output)  # type: ignore[arg-type]

    async def see(self, text: str) -> str:
        """Wait until the person can see this; returns all that can be seen then."""
        until = asyncio.get_running_loop().time() + SEE_S
        while text not in (seen := _joined(await self.here.shown())):
            assert asyncio.get_running_loop().time() < until, f"“{text}” was not shown. What was:\n{seen}"
            await asyncio.sleep(LOOK_S)
        return seen

    async def see_offer(self, label: str) -> None:
        await self._offers(label, is_there=True)

    async def see_no_offer(self, label: str) -> None:
        await self._offers(label, is_there=False)

    async def _offers(self, label: str, *, is_there: bool) -> None:
        offers = _ability(self.here.offers, "buttons")
        until = asyncio.get_running_loop().time() + SEE_S
        while (label in (labels := await offers())) != is_there:
            what = "is not offered" if is_there else "is still offered"
            assert asyncio.get_running_loop().time() < until, f"“{label}” {what}: {labels}"
            await asyncio.sleep(LOOK_S)


Ability = TypeVar("Ability")


def _joined(text: str) -> str:
    """Without the ends of lines, which depend on the width."""
    return " ".join(text.split())


def _ability(given: Ability | None, what: str) -> Ability:
    if given is None:
        raise unittest.SkipTest(f"the platform has no {what}")
    return given
