"""Streams of the HTTP door: order, resumption, and what happens when nobody reads."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from laneway.doors.http import streams
from laneway.doors.http.streams import ResponseStream, event_position
from laneway.wire.outbox import MAX_BACKLOG_BYTES

_EVENT = re.compile(rb"event: message\r\nid: (s\.\d+)\r\ndata: (.*?)\r\n\r\n", re.S)


@given(st.lists(st.sampled_from(["post", "read", "lose", "resume"]), max_size=60))
def test_whatever_is_lost_on_the_way_comes_once_and_in_order_after_a_resume(steps: list[str]) -> None:
    """A client that names the last event that it saw misses nothing and sees nothing twice."""
    stream = ResponseStream("s")
    reader = stream.attach()
    is_connected = True
    posted = 0
    seen: list[int] = []
    last = "s.0"
    for step in [*steps, "resume", "read"]:
        if step == "post":
            posted += 1
            stream.post(b"%d" % posted)
        elif step == "read" and is_connected:
            for event_id, data in _EVENT.findall(stream.take()):
                last = event_id.decode()
                seen.append(int(data))
        elif step == "lose":
            stream.take()  # it was sent and never arrived
            stream.detach(reader)
            is_connected = False
        elif step == "resume":
            where = event_position(last)
            assert where is not None
            resumed = stream.resume(where[1])
            assert resumed is not None
            reader, is_connected = resumed, True
    assert seen == list(range(1, posted + 1))


def test_what_is_too_old_cannot_be_resumed() -> None:
    """Only so much of what was sent is kept, and never pretended."""
    stream = ResponseStream("s")
    stream.attach()
    for _ in range(3):
        stream.post(b"x" * streams.MAX_REPLAY_BYTES)
        stream.take()
    assert stream.resume(0) is None
    assert stream.resume(2) is not None
    assert stream.resume(99) is None


def test_a_stream_without_a_name_keeps_nothing() -> None:
    """In the stateless era nobody comes back."""
    stream = ResponseStream()
    stream.post(b"1")
    assert b"id:" not in stream.take()
    assert stream.resume(0) is None


def test_notifications_are_dropped_when_nobody_reads_and_answers_are_not() -> None:
    """However far behind the client is."""
    stream = ResponseStream("s")
    while stream.tell(b"x" * 100_000):
        pass
    stream.settle(b"the answer")
    data = stream.take()
    assert MAX_BACKLOG_BYTES < len(data) < MAX_BACKLOG_BYTES + 400_000
    assert data.endswith(b"data: the answer\r\n\r\n")
    assert stream.is_ended
    assert not stream.tell(b"late")


def test_a_line_end_inside_a_message_does_not_end_the_event() -> None:
    """Foreign JSON may be spread over lines; an event's data is one."""
    stream = ResponseStream()
    stream.post(b'{"a":\r\n1}')
    assert stream.take() == b'event: message\r\ndata: {"a":  1}\r\n\r\n'


def test_a_new_reader_takes_over_from_one_whose_connection_is_stuck() -> None:
    """The old one is over at once."""
    stream = ResponseStream("s")
    old = stream.attach()
    new = stream.resume(0)
    assert new is not None
    assert old.is_over
    assert not new.is_over
    stream.detach(old)
    assert stream.is_read


@given(st.text(max_size=30))
def test_an_event_id_of_somebody_else_names_no_place(event_id: str) -> None:
    """Or it is one of ours by its form."""
    where = event_position(event_id)
    assert where is None or re.fullmatch(r".*\.[0-9]{1,18}", event_id, re.S)
