"""The order and the pace of messages, proved without a service and without a clock."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from laneway.doors.chat.outbox import (
    MAX_WAITING,
    ChatPace,
    OutboxEffect,
    OutboxLetter,
    OutboxState,
    OutboxTick,
    OutboxWake,
    PostCall,
    PostCallDone,
    PostDropped,
    PostHeld,
    PostOutcome,
    PostRefused,
    PostSent,
    PutPost,
    ServiceOffline,
    has_room,
    step,
)

PRIVATE = ChatPace(edit_s=1.0, call_s=1.0, burst=3)
GROUP = ChatPace(edit_s=3.0, call_s=3.0)


class Desk:
    """Drives the rules by hand: time stands still unless told otherwise."""

    def __init__(self, any_call_s: float = 0.0) -> None:
        self.now = 0.0
        self.state = OutboxState(any_call_s=any_call_s)
        self.calls: list[PostCall] = []
        self.dropped: list[PostDropped] = []
        self.wake_at: float | None = None

    def put(self, key: str, post: str, chat: str = "a", pace: ChatPace = PRIVATE, **more: Any) -> None:
        self.post(PutPost(now=self.now, chat=chat, pace=pace, key=key, post=post, **more))

    def end(self, outcome: PostOutcome, chat: str = "a") -> None:
        self.post(PostCallDone(now=self.now, chat=chat, outcome=outcome))

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.post(OutboxTick(now=self.now))

    def post(self, letter: OutboxLetter) -> None:
        self.state, effects = step(self.state, letter)
        self.wake_at = None
        for effect in effects:
            self.note(effect)

    def note(self, effect: OutboxEffect) -> None:
        match effect:
            case PostCall():
                self.calls.append(effect)
            case PostDropped():
                self.dropped.append(effect)
            case OutboxWake(at):
                self.wake_at = at

    @property
    def sent(self) -> list[tuple[str, str]]:
        """Posts and the messages that they edited."""
        return [(call.job.post, call.job.ref) for call in self.calls]


def test_a_message_goes_out_at_once_and_a_later_content_edits_it() -> None:
    desk = Desk()
    desk.put("text", "one")
    desk.end(PostSent("m1"))
    desk.put("text", "two")
    assert desk.sent == [("one", "")]
    desk.wait(1.0)
    assert desk.sent == [("one", ""), ("two", "m1")]


def test_of_several_edits_only_the_newest_is_sent() -> None:
    desk = Desk()
    desk.put("text", "0")
    desk.end(PostSent("m1"))
    for number in range(1, 100):
        desk.put("text", str(number))
    desk.wait(1.0)
    assert desk.sent == [("0", ""), ("99", "m1")]


def test_a_content_that_was_never_sent_is_replaced_and_keeps_its_place() -> None:
    desk = Desk()
    desk.put("first", "under way")
    desk.put("a", "old")
    desk.put("b", "b")
    desk.put("a", "new")
    for ref in ("1", "2", "3"):
        desk.end(PostSent(ref))
    assert [post for post, _ in desk.sent] == ["under way", "new", "b"]


def test_questions_go_first_then_messages_then_edits() -> None:
    desk = Desk()
    desk.put("text", "streams")
    desk.end(PostSent("m1"))
    desk.put("busy", "busy")
    desk.put("text", "streams more")
    desk.put("send", "a message")
    desk.put("ask", "a question", is_question=True)
    for _ in range(4):
        desk.end(PostSent("m"))
        desk.wait(5.0)
        if len(desk.calls) == 5:
            break
    assert [post for post, _ in desk.sent[2:]] == ["a question", "a message", "streams more"]


def test_groups_get_a_message_every_three_seconds() -> None:
    """So that twenty a minute, which is the service's limit, are not passed."""
    desk = Desk()
    for number in range(3):
        desk.put(f"m{number}", str(number), pace=GROUP)
    times: list[float] = []
    while len(times) < 3:
        if len(desk.calls) > len(times):
            times.append(desk.now)
            desk.end(PostSent("x"))
        else:
            desk.wait(0.5)
    assert times == [0.0, 3.0, 6.0]


def test_a_chat_that_must_wait_holds_up_no_other_chat() -> None:
    desk = Desk()
    desk.put("text", "one", chat="a")
    desk.end(PostHeld(30.0), chat="a")
    desk.put("text", "two", chat="b")
    assert desk.sent == [("one", ""), ("two", "")]
    desk.end(PostSent("m2"), chat="b")
    desk.wait(29.9)
    assert len(desk.calls) == 2
    desk.wait(0.1)
    assert desk.sent[-1] == ("one", "")


def test_when_a_second_chat_must_wait_all_do() -> None:
    desk = Desk()
    desk.put("text", "one", chat="a")
    desk.put("text", "two", chat="b")
    desk.end(PostHeld(30.0), chat="a")
    desk.end(PostHeld(5.0), chat="b")
    desk.put("text", "three", chat="c")
    desk.wait(29.0)
    assert len(desk.calls) == 2
    desk.wait(1.0)
    assert {post for post, _ in desk.sent[2:]} == {"one", "two", "three"}


def test_a_second_wait_long_after_the_first_is_only_its_own() -> None:
    desk = Desk()
    desk.put("text", "one", chat="a")
    desk.end(PostHeld(5.0), chat="a")
    desk.wait(10.0)
    desk.end(PostSent("m1"), chat="a")
    desk.put("text", "two", chat="b")
    desk.end(PostHeld(60.0), chat="b")
    desk.put("text", "three", chat="c")
    assert desk.sent[-1] == ("three", "")


def test_without_a_network_everything_waits_longer_each_time_and_nothing_is_lost() -> None:
    desk = Desk()
    desk.put("text", "one", chat="a")
    waits = []
    for _ in range(9):
        desk.end(ServiceOffline(), chat="a")
        assert desk.wake_at is not None
        waits.append(desk.wake_at - desk.now)
        desk.wait(desk.wake_at - desk.now)
    assert waits == sorted(waits)
    assert waits[-1] == 30.0
    desk.end(PostSent("m1"), chat="a")
    assert desk.sent == [("one", "")] * 10


def test_what_failed_gives_way_to_a_newer_content() -> None:
    desk = Desk()
    desk.put("text", "old")
    desk.put("text", "new")
    desk.end(ServiceOffline())
    desk.wait(60.0)
    assert [post for post, _ in desk.sent] == ["old", "new"]


def test_what_the_service_refuses_is_told_and_the_rest_goes_on() -> None:
    desk = Desk()
    desk.put("bad", "bad")
    desk.put("good", "good")
    desk.end(PostRefused("no such entity"))
    assert [(drop.job.post, drop.why) for drop in desk.dropped] == [("bad", "no such entity")]
    assert desk.sent[-1] == ("good", "")


def test_a_chat_that_is_gone_takes_everything_for_it_along() -> None:
    desk = Desk()
    desk.put("one", "one")
    desk.put("two", "two")
    desk.end(PostRefused("blocked", is_chat_gone=True))
    assert [drop.job.post for drop in desk.dropped] == ["one", "two"]
    assert desk.state.chats["a"].waiting == ()


def test_a_message_of_an_earlier_process_is_edited_and_not_sent_again() -> None:
    desk = Desk()
    desk.put("ask", "answered", ref="m7", is_question=True)
    assert desk.sent == [("answered", "m7")]


def test_what_is_not_stored_is_dropped_when_too_much_waits() -> None:
    desk = Desk()
    for number in range(MAX_WAITING + 1):
        desk.put(str(number), str(number))
    assert not has_room(desk.state, "a")
    desk.put("one more", "one more")
    desk.put("stored", "stored", delivery_id=1)
    assert [drop.job.post for drop in desk.dropped] == ["one more"]
    assert desk.state.chats["a"].waiting[-1].post == "stored"


class AnyOrder(RuleBasedStateMachine):
    """Letters in any order; what must hold after each."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk(any_call_s=0.04)
        self.wanted: dict[tuple[str, str], str] = {}
        self.shown: dict[tuple[str, str], str] = {}
        self.seen = 0
        self.called: dict[str, list[float]] = {}
        self.held: dict[str, float] = {}

    @rule(
        chat=st.sampled_from("abc"), key=st.sampled_from("xyz"), post=st.text(max_size=3), ask=st.booleans()
    )
    def put(self, chat: str, key: str, post: str, ask: bool) -> None:
        self.wanted[chat, key] = post
        self.desk.put(key, post, chat=chat, delivery_id=1, is_question=ask)

    @rule(seconds=st.sampled_from([0.0, 0.1, 1.0, 10.0]))
    def wait(self, seconds: float) -> None:
        self.desk.wait(seconds)

    @rule(chat=st.sampled_from("abc"), how=st.sampled_from(["sent", "held", "offline"]))
    def end(self, chat: str, how: str) -> None:
        queue = self.desk.state.chats.get(chat)
        if queue is None or queue.in_flight is None:
            return
        job = queue.in_flight
        if how == "sent":
            self.shown[chat, job.key] = job.post
            self.desk.end(PostSent(job.ref or f"{chat}{job.key}"), chat=chat)
        elif how == "held":
            self.held[chat] = self.desk.now + 7.0
            self.desk.end(PostHeld(7.0), chat=chat)
        else:
            self.desk.end(ServiceOffline(), chat=chat)

    @invariant()
    def no_call_is_made_while_its_chat_is_held(self) -> None:
        for call in self.desk.calls[self.seen :]:
            assert self.held.get(call.chat, 0.0) <= self.desk.now
        self.seen = len(self.desk.calls)

    @invariant()
    def somebody_wakes_us_if_something_waits(self) -> None:
        is_waiting = any(
            queue.waiting and queue.in_flight is None for queue in self.desk.state.chats.values()
        )
        assert not is_waiting or self.desk.wake_at is not None

    def teardown(self) -> None:
        """With a service that works, everything arrives with its newest content."""
        for _ in range(200):
            for chat, queue in self.desk.state.chats.items():
                if queue.in_flight is not None:
                    self.end(chat, "sent")
            self.desk.wait(10.0)
        assert self.shown == self.wanted


AnyOrder.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
test_any_order = AnyOrder.TestCase


def test_a_draft_that_is_complete_is_sent_before_the_messages_that_follow_it() -> None:
    """It is no edit of a message, although it was shown before: its parts would come in the wrong order."""
    desk = Desk()
    desk.put("text", "grow", is_partial=True)
    desk.end(PostSent("draft:1", is_draft=True))
    desk.put("text", "growing", is_partial=True)
    assert len(desk.calls) == 1  # drafts are paced like edits
    desk.wait(1.0)
    desk.end(PostSent("draft:1", is_draft=True))
    desk.put("text", "grown, part one")
    desk.put("text+1", "part two")
    desk.wait(1.0)
    desk.end(PostSent("m1"))
    desk.wait(1.0)
    assert desk.sent == [
        ("grow", ""),
        ("growing", "draft:1"),
        ("grown, part one", "draft:1"),
        ("part two", ""),
    ]


def test_a_piece_that_comes_late_does_not_replace_the_whole() -> None:
    """It would be shown as a draft, which is no message, and the whole never."""
    desk = Desk()
    desk.put("busy", "busy")
    desk.put("text", "all of it", delivery_id=1)
    desk.put("text", "all", is_partial=True)
    desk.end(PostSent("m1"))
    assert desk.sent == [("busy", ""), ("all of it", "")]
    assert [call.job.delivery_id for call in desk.calls] == [0, 1]
