"""What a restart finds: input that waited, turns that were cut, open questions, threads, what was told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import ConversationHeld
from laneway.core.conversations import ConversationRecord, InputRecord
from laneway.doors.chat.messages import Incoming, Place, ReplyTarget
from laneway.doors.chat.options import ChatOptions
from laneway.doors.chat.outputs import InputReceipt, QuestionOver, Said, Told, TurnBegan
from laneway.doors.chat.restoring import encode_message
from laneway.doors.chat.service import ChatService
from laneway.store.conversation_locks import ConversationLockFiles
from laneway.store.conversations import StoredConversations
from laneway.store.database import Database
from laneway.testing.chat_script import ScriptedLanes, ScriptedTurn, echo
from tests.doors.chat.chats import ANNA, HERE, Talk, chatting, talking

CHAT = "chat-1"


async def accepting(turn: ScriptedTurn) -> None:
    turn.accept()
    turn.text("working")


class Kept:
    """The store of a folder, as a process that was killed has left it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.locks = ConversationLockFiles(folder / "conversations")
        self.count = 0

    @asynccontextmanager
    async def store(self) -> AsyncIterator[StoredConversations]:
        with Database(self.folder / "laneway.db") as database:
            yield StoredConversations(database, self.locks)

    async def begin(self, **threads: str) -> None:
        async with self.store() as store:
            record = ConversationRecord(
                conversation_id=CHAT,
                cwd=str(self.folder),
                default_lane="claude",
                created_at=0.0,
                used_at=0.0,
                title="earlier",
                lane_threads=threads,
            )
            store.create(record)
            store.set_place(HERE.key, CHAT)

    async def left(self, text: str, state: Any = "waiting", *, at: float = 0.0, **more: Any) -> int:
        """An input in this state."""
        self.count += 1
        lane, ticket = more.pop("lane", ""), more.pop("ticket", "")
        message = Incoming(place=HERE, message_id=f"m{self.count}", sender=ANNA, text=text, **more)
        async with self.store() as store:
            input_id = store.add_input(CHAT, HERE.key, message.message_id, at, encode_message(message))
            assert input_id is not None
            if state != "waiting":
                store.mark_input(input_id, state, lane=lane, ticket=ticket or f"in-{input_id}")
        return input_id

    async def open_question(self) -> int:
        async with self.store() as store:
            return store.open_question(CHAT, "codex", "in-1")

    async def states(self) -> dict[int, str]:
        async with self.store() as store:
            found: list[InputRecord] = store.inputs(CHAT, ("waiting", "begun", "accepted", "done", "void"))
        return {each.input_id: each.state for each in found}


@pytest.fixture
async def kept(tmp_path: Path) -> Kept:
    found = Kept(tmp_path)
    await found.begin(codex="codex-earlier")
    return found


def at(seconds: float) -> Callable[[], float]:
    return lambda: seconds


async def all_shown(talk: Talk) -> list[Any]:
    return [each.output for each in await talk.chat.outputs(CHAT, 0)]


async def test_input_that_waited_runs_in_order_one_after_the_other(kept: Kept, tmp_path: Path) -> None:
    """Up to an hour old, each to its own lane; none stops the one before."""
    await kept.left("one")
    await kept.left("/codex two")
    await kept.left("three")
    lanes = ScriptedLanes(play=echo)
    async with talking(tmp_path, lanes, wall=at(3599.0)) as talk:
        await talk.view.ended("claude", 2)
        assert talk.view.begun == [("claude", "one"), ("codex", "two"), ("claude", "three")]
        assert lanes.lane("codex").resumed == "codex-earlier"
        await talk.chat.wait_ready(CHAT)
    assert await kept.states() == {1: "done", 2: "done", 3: "done"}


async def test_older_input_is_offered_and_runs_when_its_button_is_pressed(kept: Kept, tmp_path: Path) -> None:
    """Also after another restart; never twice."""
    await kept.left("/codex two")
    async with talking(tmp_path, ScriptedLanes(play=echo), wall=at(3601.0)) as talk:
        await talk.chat.wait_ready(CHAT)
        (told,) = [each for each in await all_shown(talk) if isinstance(each, Told)]
        assert "waited for too long" in told.text
        assert told.buttons[0].label == "Run it now"
        assert not talk.view.all(TurnBegan)
    async with talking(tmp_path, ScriptedLanes(play=echo), wall=at(3700.0)) as talk:
        assert len([each for each in await all_shown(talk) if isinstance(each, Told)]) == 1
        await talk.tap(told.buttons[0].data)
        assert (await talk.view.ended("codex")).text == "You said: two"
    async with talking(tmp_path, ScriptedLanes(play=echo), wall=at(3800.0)) as talk:
        late = await talk.say(told.buttons[0].data)
        assert "continued already" in (await talk.view.receipt(late)).text


@pytest.mark.parametrize(
    ("state", "given"),
    [("begun", "paint it"), ("accepted", "Go on with what you were doing: it was interrupted.")],
)
async def test_a_turn_that_was_cut_is_told_and_continues_only_when_somebody_says_so(
    state: str, given: str, kept: Kept, tmp_path: Path
) -> None:
    """With its own words if the engine may not have them."""
    await kept.left("paint it", state, lane="codex")
    lanes = ScriptedLanes(play=echo)
    async with talking(tmp_path, lanes, wall=at(10.0)) as talk:
        await talk.chat.wait_ready(CHAT)
        (told,) = [each for each in await all_shown(talk) if isinstance(each, Told)]
        assert told.lane == "codex"
        assert "ended in the middle of this turn" in told.text
        assert not lanes.made or not lanes.lane("codex").turns
        await talk.tap(told.buttons[0].data)
        assert (await talk.view.ended("codex")).text == f"You said: {given}"
        assert lanes.lane("codex").resumed == "codex-earlier"


async def test_continue_finds_a_turn_that_was_stopped_before_the_restart(tmp_path: Path) -> None:
    """Its button is still there."""
    lanes = ScriptedLanes(play=accepting)
    async with talking(tmp_path, lanes) as talk:
        await talk.say("/codex paint")
        await lanes.given("paint")
        await talk.say("/stop")
        (button,) = (await talk.view.ended("codex")).buttons
    again = ScriptedLanes(play=echo)
    async with talking(tmp_path, again) as talk:
        await talk.tap(button.data)
        turn = await again.given("Go on with what you were doing: it was interrupted.")
        await talk.view.ended("codex")
        assert turn.given.ticket != button.data
    async with talking(tmp_path, ScriptedLanes(play=echo)) as talk:
        assert "continued already" in (await talk.view.receipt(await talk.say(button.data))).text


async def test_a_continue_that_was_cut_itself_can_be_given_again(kept: Kept, tmp_path: Path) -> None:
    """The words of the first turn are not lost."""
    await kept.left("paint it", "void", lane="codex")
    await kept.left("/continue 1", "begun", lane="codex", ticket="in-2")
    lanes = ScriptedLanes(play=echo)
    async with talking(tmp_path, lanes, wall=at(10.0)) as talk:
        await talk.chat.wait_ready(CHAT)
        (told,) = [each for each in await all_shown(talk) if isinstance(each, Told)]
        assert told.buttons[0].data == "/continue 1"
        await talk.tap(told.buttons[0].data)
        assert (await talk.view.ended("codex")).text == "You said: paint it"


async def test_an_image_that_came_before_goes_along_when_a_cut_turn_continues(
    kept: Kept, tmp_path: Path
) -> None:
    """One turn is told once, whatever messages it was made of."""
    (tmp_path / "b.png").write_bytes(b"png")
    await kept.left("", "begun", lane="codex", ticket="in-3", images=(tmp_path / "a.png",))
    await kept.left("/attach b.png", "begun", lane="codex", ticket="in-3")
    await kept.left("what is this?", "begun", lane="codex", ticket="in-3")
    await kept.left("tell me all", "accepted", lane="codex", ticket="in-3")
    lanes = ScriptedLanes(play=echo)
    async with talking(tmp_path, lanes, wall=at(10.0)) as talk:
        await talk.chat.wait_ready(CHAT)
        (told,) = [each for each in await all_shown(talk) if isinstance(each, Told)]
        await talk.tap(told.buttons[0].data)
        turn = await lanes.given("what is this?")
        assert [each.name for each in turn.given.images] == ["a.png", "b.png"]
        await talk.view.ended("codex")


async def test_open_questions_are_void_and_say_so(kept: Kept, tmp_path: Path) -> None:
    """A late answer is told that it comes too late; words are no answer any more."""
    number = await kept.open_question()
    async with talking(tmp_path, ScriptedLanes(play=echo), wall=at(10.0)) as talk:
        await talk.chat.wait_ready(CHAT)
        (over,) = [each for each in await all_shown(talk) if isinstance(each, QuestionOver)]
        assert (over.number, over.how) == (number, "void")
        assert (await talk.tap(f"q:{number}:0")).is_stale
        late = await talk.say("yes", reply=ReplyTarget(lane="codex", question=number))
        assert "no answer any more" in (await talk.view.receipt(late)).text
        await talk.say("yes")
        assert (await talk.view.ended("claude")).text == "You said: yes"
    async with talking(tmp_path, ScriptedLanes(play=echo), wall=at(10.0)) as talk:
        assert len([each for each in await all_shown(talk) if isinstance(each, QuestionOver)]) == 1


async def test_what_was_told_before_the_kill_is_not_told_or_done_again(kept: Kept, tmp_path: Path) -> None:
    """Killed between an output and the mark of its input: a restart sees the output."""
    lanes = ScriptedLanes(play=echo)
    async with talking(tmp_path, lanes, wall=at(10.0)) as talk:
        await talk.say("one", message_id="m1")
        await talk.view.ended("claude")
        await talk.say("/lane codex", message_id="m2")
        await talk.say("/nothing", message_id="m3")
        await talk.chat.wait_ready(CHAT)
        before = await all_shown(talk)
    async with kept.store() as store:
        store.mark_input(1, "accepted", lane="claude", ticket="in-1")
        store.mark_input(2, "waiting")
        store.mark_input(3, "waiting")
    async with talking(tmp_path, ScriptedLanes(play=echo), wall=at(20.0)) as talk:
        await talk.chat.wait_ready(CHAT)
        assert await all_shown(talk) == before
    assert await kept.states() == {1: "done", 2: "void", 3: "void"}


async def test_an_input_is_over_only_once_its_end_is_stored(tmp_path: Path) -> None:
    """Whatever moment a kill takes: the mark is never ahead of the output."""

    class Watching(StoredConversations):
        def mark_input(self, input_id: int, state: Any, **more: Any) -> None:
            if state in ("done", "void"):
                stored = [each.output for each in self.outputs(conversation_id, 0, 500)]
                marks.append((state, any(ending in b"".join(stored) for ending in endings[input_id])))
            super().mark_input(input_id, state, **more)

    marks: list[tuple[str, bool]] = []
    endings = {
        1: (b'"turn_ended"',),
        2: (b'"refused"',),
        3: (b'"done"',),
        4: (b'"refused"',),
    }
    locks = ConversationLockFiles(tmp_path / "conversations")
    lanes = ScriptedLanes(play=accepting)
    with Database(tmp_path / "laneway.db") as database:
        options = ChatOptions(cwd=tmp_path)
        async with (
            asyncio.timeout(30),
            ChatService(lanes, Watching(database, locks), locks, options) as chat,
        ):
            talk = Talk(chat)
            conversation_id = (await talk.join()).record.conversation_id
            await talk.say("one")
            await lanes.given("one")
            await talk.say("/queue two")
            await talk.say("/stop")
            await talk.view.ended("claude")
            await talk.say("/nothing")
            await talk.chat.wait_ready(conversation_id)
    assert len(marks) == 4
    assert all(is_told for _, is_told in marks)


async def test_a_message_that_comes_twice_is_taken_once(tmp_path: Path) -> None:
    """By its platform's id; in another place the same id is another message."""
    async with talking(tmp_path, ScriptedLanes(play=echo), busy="queue") as talk:
        message = Incoming(place=HERE, message_id="77", sender=ANNA, text="hello")
        assert await talk.chat.take(message) is not None
        assert await talk.chat.take(message) is None
        other = Incoming(place=Place("terminal", "two"), message_id="77", sender=ANNA, text="hello")
        assert await talk.chat.take(other) is not None
        await talk.view.ended("claude")
        assert len(talk.view.all(Said)) == 1
    async with talking(tmp_path, ScriptedLanes(play=echo)) as talk:
        assert await talk.chat.take(message) is None


async def test_one_process_holds_a_conversation_and_a_second_is_told_which(tmp_path: Path) -> None:
    """Until the first lets it go."""
    async with talking(tmp_path, ScriptedLanes(play=echo)) as talk:
        conversation_id = await talk.conversation_id
        async with chatting(tmp_path, ScriptedLanes()) as second:
            other = Talk(second)
            with pytest.raises(ConversationHeld) as held:
                await other.join(conversation_id)
            assert "chat" in str(held.value)
            await talk.chat.quit(conversation_id)
            assert (await other.join(conversation_id)).record.conversation_id == conversation_id


async def test_a_shutdown_leaves_what_waits_to_the_next_process(tmp_path: Path) -> None:
    """The turn that it cut is told, what waited runs."""
    lanes = ScriptedLanes(play=accepting)
    async with talking(tmp_path, lanes) as talk:
        await talk.say("one")
        await lanes.given("one")
        await talk.say("/queue two")
        await talk.view.wait(InputReceipt, lambda each: each.kind == "queued")
    again = ScriptedLanes(play=echo)
    async with talking(tmp_path, again) as talk:
        assert (await talk.view.ended("claude")).text == "You said: two"
        ends = [each for each in await all_of(talk) if getattr(each, "stopped_by", "") == "shutdown"]
        assert len(ends) == 1
        assert ends[0].buttons[0].label == "Continue"


async def all_of(talk: Talk) -> list[Any]:
    return [each.output for each in await talk.chat.outputs(await talk.conversation_id, 0)]
