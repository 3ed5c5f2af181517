"""The document's functions for a program of one's own, with a session object as it describes one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from laneway.lanes import LaneInput, LanePlugin, get_active_lane, parse_lane_command, start_lane_task
from laneway.lanes.dispatch import MAX_CONTEXT_CHARS
from laneway.lanes.protocol import MessageFormatter, PlatformClient
from laneway.lanes.show import MarkdownFormatter
from tests.lanes.samples import Painter, registered, settle
from tests.lanes.test_registry import aider

pytestmark = pytest.mark.usefixtures("fresh_registry")


class Shown:
    """A platform that keeps what it shows."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    async def send_message(self, text: str) -> None:
        self.messages.append(text)

    async def send_thinking(self, text: str) -> None:
        self.messages.append(f"({text})")


@dataclass
class ClaudeSession:
    """With the fields of the document."""

    cwd: str = "/"
    lanes: dict[str, Any] = field(default_factory=dict)
    active_lane: str | None = None
    lane_context_prefix: str | None = None
    current_task: asyncio.Task[Any] | None = None
    platform: Shown | None = field(default_factory=Shown)

    def get_platform(self) -> PlatformClient | None:
        return self.platform

    def get_formatter(self) -> MessageFormatter:
        return MarkdownFormatter()

    @property
    def messages(self) -> list[str]:
        assert self.platform is not None
        return self.platform.messages


async def run(session: ClaudeSession, text: str, command: str = "paint") -> None:
    task = start_lane_task(session, command, LaneInput(text))
    assert task is not None
    await asyncio.wait({task}, timeout=20)


@pytest.mark.covers("003-lane.9")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/paint the shed", ("paint", "the shed")),
        ("/PAINT the shed", ("paint", "the shed")),
        ("/paint", ("paint", "")),
        ("/paint  ", ("paint", "")),
        ("/paint\nthe shed\nand the fence", ("paint", "the shed\nand the fence")),
        ("/paint@us the shed", ("paint", "the shed")),
        ("/paint@other the shed", None),
        ("//paint the shed", None),
        ("/paint/shed is a path", None),
        ("/draw the shed", None),
        ("paint the shed", None),
        (" /paint", None),
        ("", None),
    ],
)
def test_a_lane_command_is_the_first_word_and_nothing_else(text: str, found: object) -> None:
    """Several lines are one task; a path and another bot's command are none."""
    registered(Painter)
    assert parse_lane_command(text, "us") == found


def test_without_a_name_of_ones_own_every_name_is_ones_own() -> None:
    """The document's call takes the text only."""
    registered(Painter)
    assert parse_lane_command("/paint@bot the shed") == ("paint", "the shed")


@pytest.mark.covers("003-lane.10")
async def test_a_turn_runs_as_the_sessions_task_and_leaves_its_summary() -> None:
    """Started once for two turns; both summaries are kept."""
    cls: Any = registered(Painter)
    session = ClaudeSession()
    task = start_lane_task(session, "Paint", LaneInput("the shed"))
    assert (session.current_task, session.active_lane) == (task, "paint")
    assert task is not None
    await task
    assert (session.current_task, session.active_lane) == (None, None)
    await run(session, "the fence")
    assert session.messages == ["(hm)", "done", "(hm)", "done"]
    assert session.lane_context_prefix == "painted the shed\n\npainted the shed"
    assert [plugin.calls for plugin in cls.made] == [["start"]]
    assert list(session.lanes) == ["paint"]


@pytest.mark.covers("003-lane.11")
async def test_the_documents_sample_runs() -> None:
    """It shows nothing and leaves nothing."""
    aider()
    session = ClaudeSession()
    await run(session, "x", "aider")
    assert (session.messages, session.lane_context_prefix, list(session.lanes)) == ([], None, ["aider"])


async def test_no_such_lane_is_no_task() -> None:
    """And changes nothing."""
    session = ClaudeSession()
    assert start_lane_task(session, "nobody", LaneInput("x")) is None
    assert session == ClaudeSession(platform=session.platform)


async def test_a_session_without_a_platform_is_free_again() -> None:
    """Nothing was started."""
    cls: Any = registered(Painter)
    session = ClaudeSession(platform=None)
    await run(session, "x")
    assert (session.current_task, session.active_lane, cls.made) == (None, None, [])


async def test_a_lane_that_raises_is_told_stopped_and_forgotten() -> None:
    """The next turn starts a new one."""
    cls: Any = registered(Painter)
    session = ClaudeSession()
    await run(session, "fail")
    assert session.messages == ["Lane paint error: out of paint, token=[redacted]"]
    assert (cls.made[0].calls, session.lanes, session.current_task) == (["start", "stop"], {}, None)
    await run(session, "again")
    assert len(cls.made) == 2


async def test_a_lane_that_cannot_start_is_stopped_and_told() -> None:
    """It may have started a process before it failed."""

    async def start(self: Painter, cwd: str, platform: object, formatter: object) -> None:
        raise OSError("no brush")

    cls: Any = registered(Painter, start=start)
    session = ClaudeSession()
    await run(session, "x")
    assert (session.messages, session.lanes) == (["Failed to start paint: no brush"], {})
    assert cls.made[0].calls == ["stop"]


@pytest.mark.covers("003-lane.10")
async def test_a_task_that_was_cancelled_late_leaves_the_next_ones_state_alone() -> None:
    """The fault of the document's sketch: it cleared whatever was there."""
    cls: Any = registered(Painter)
    session = ClaudeSession()
    first = start_lane_task(session, "paint", LaneInput("on"))
    assert first is not None
    await settle()
    second = start_lane_task(session, "paint", LaneInput("on"))
    assert second is not None
    first.cancel()
    await settle()
    assert (session.current_task, session.active_lane) == (second, "paint")
    assert [words.text for words in cls.made[0].inputs] == ["on", "on"]
    await cls.made[0].interrupt()
    await second
    assert session.current_task is None


async def test_one_turn_runs_at_a_time() -> None:
    """The second waits for the first, also if it is another lane's."""
    cls: Any = registered(Painter)
    registered(Painter, command="draw")
    session = ClaudeSession()
    first = start_lane_task(session, "paint", LaneInput("on"))
    second = start_lane_task(session, "draw", LaneInput("x"))
    assert first is not None
    assert second is not None
    await settle()
    assert session.messages == ["painting"]
    await cls.made[0].interrupt()
    await second
    assert session.messages == ["painting", "(hm)", "done"]


async def test_the_oldest_of_many_summaries_is_cut() -> None:
    """They are bounded; the newest is whole."""

    async def run_turn(self: Painter, words: LaneInput) -> str:
        return words.text * 1000

    registered(Painter, run_turn=run_turn)
    session = ClaudeSession()
    for letter in "abcdef":
        await run(session, letter)
    prefix = session.lane_context_prefix
    assert prefix is not None
    assert len(prefix) == MAX_CONTEXT_CHARS
    assert prefix.startswith("…c")
    assert prefix.endswith("f" * 1000)


class Waits:
    wants_user_input = True


class Works:
    wants_user_input = False


@pytest.mark.covers("003-lane.7")
def test_the_lane_that_waits_gets_the_answer() -> None:
    """The one whose turn runs before others; with several and none of them active, nobody guesses."""
    first: Any = Waits()
    second: Any = Waits()
    works: Any = Works()

    def active(lanes: dict[str, Any], name: str | None = None) -> LanePlugin | None:
        return get_active_lane(ClaudeSession(lanes=lanes, active_lane=name))

    assert active({}) is None
    assert active({"a": works}) is None
    assert active({"a": works, "b": first}) is first
    assert active({"a": first, "b": second}, "b") is second
    assert active({"a": first, "b": works}, "b") is first
    assert active({"a": first, "b": second}) is None
