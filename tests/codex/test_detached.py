"""Commands that outlive their turn: their end is reported when it comes, with the output not yet sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.base.errors import EngineLost
from laneway.codex.items import activity
from laneway.codex.outputs import MAX_DETACHED, MAX_LIVE_CHARS, CommandOutputs
from laneway.codex.translate import Delta, Translator
from laneway.core.model import Activity, Event, Other, Outlived, Output, TurnDone, TurnStarted
from laneway.testing.tape import play

TRACE = Path(__file__).parent.parent / "golden" / "0.163.0" / "command-outlives-turn.jsonl"


class Thread:
    """A thread in the test's hand. Turns are `u-1`, `u-2` …; what they run is named by the test."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._translator = Translator(self.events.append)
        self._turns = 0

    def begin(self) -> str:
        self._turns += 1
        self._translator.begin(f"u-{self._turns}")
        return f"u-{self._turns}"

    def finish(self, turn: str, status: str = "completed") -> None:
        error = {"message": "no"} if status == "failed" else None
        self._tell("turn/completed", turn={"id": turn, "status": status, "error": error})

    def dies(self) -> None:
        self._translator.lost(EngineLost("killed"))

    def run(self, turn: str, item: str = "c") -> None:
        self._tell("item/started", turnId=turn, item=command(item, status="inProgress"))

    def prints(self, turn: str, text: str, item: str = "c") -> None:
        delta = Delta(threadId="t", turnId=turn, itemId=item, delta=text)
        self._translator.delta(Output, delta, b"")

    def ends(self, turn: str, item: str = "c", **how: Any) -> None:
        self._tell("item/completed", turnId=turn, item=command(item, **{"status": "completed"} | how))

    def outlived(self) -> list[Outlived]:
        return [event for event in self.events if isinstance(event, Outlived)]

    def _tell(self, method: str, **params: Any) -> None:
        self._translator.notification(method, {"threadId": "t", **params}, b"")


def command(item: str, **fields: Any) -> dict[str, Any]:
    return {"type": "commandExecution", "id": item, "command": "make", **fields}


def told_of(events: list[Event], turn: str) -> list[Event]:
    return [event for event in events if getattr(event, "turn_id", None) == turn]


async def test_codex_tells_the_end_of_such_a_command_and_so_do_we() -> None:
    """As recorded: the first piece was lost, the last one came behind its turn, and both are in the end."""
    events = await play(TRACE.read_bytes().splitlines())
    left = next(event for event in events if isinstance(event, Activity) and event.status == "detached")
    (late,) = [event for event in events if isinstance(event, Outlived)]
    assert (late.activity.turn_id, late.activity.item_id) == (left.turn_id, left.item_id)
    assert (late.activity.status, late.activity.exit_code) == ("completed", 0)
    assert (late.activity.output, late.activity.late_output) == ("begun\nended\n", "begun\nended\n")
    assert late.frame


def test_what_was_told_of_it_is_in_its_place_when_its_turn_ends() -> None:
    """Whoever looks then sees all that Codex has told so far."""
    thread = Thread()
    turn = thread.begin()
    thread.run(turn)
    thread.prints(turn, "so far\n")
    thread.finish(turn)
    *_, left, done = thread.events
    assert isinstance(left, Activity)
    assert (left.status, left.output, left.late_output) == ("detached", "so far\n", "")
    assert isinstance(done, TurnDone)


def test_what_nobody_was_told_is_told_once_the_lost_piece_apart_from_the_end() -> None:
    """A terminal cannot be rewritten, so its reader must know what belongs further up."""
    thread = Thread()
    turn = thread.begin()
    thread.run(turn)
    thread.prints(turn, "two\n")
    thread.finish(turn)
    thread.prints(turn, "three\n")
    thread.ends(turn, aggregatedOutput="one\ntwo\nthree\nfour\n", exitCode=0)
    (late,) = thread.outlived()
    assert late.activity.output == "one\ntwo\nthree\nfour\n"
    assert late.activity.late_output == "one\nthree\nfour\n"
    assert late.rest == "three\nfour\n"


def test_where_codex_shortens_its_account_the_pieces_behind_the_turn_are_kept() -> None:
    """Of more than a MiB it leaves out the middle, which only the stream has."""
    thread = Thread()
    turn = thread.begin()
    thread.run(turn)
    thread.prints(turn, "one\n")
    thread.finish(turn)
    for text in ("two\n", "three\n"):
        thread.prints(turn, text)
    thread.ends(turn, aggregatedOutput="one\n\n... 4 bytes omitted ...\nthree\n", exitCode=0)
    (late,) = thread.outlived()
    assert (late.activity.output, late.rest) == ("one\ntwo\nthree\n", "two\nthree\n")


@given(st.lists(st.text(max_size=4), max_size=8), st.integers(0, 8), st.data())
def test_whenever_its_turn_ends_and_whatever_is_lost_every_character_is_told_once(
    pieces: list[str], cut: int, data: st.DataObject
) -> None:
    """Live in its turn, or with its end."""
    thread = Thread()
    turn = thread.begin()
    thread.run(turn)
    for number, piece in enumerate(pieces):
        if number == cut:
            thread.finish(turn)
        if data.draw(st.booleans()):
            thread.prints(turn, piece)
    if cut >= len(pieces):
        thread.finish(turn)
    whole = "".join(pieces)
    thread.ends(turn, aggregatedOutput=whole, exitCode=0)
    live = "".join(event.text for event in thread.events if isinstance(event, Output))
    (late,) = thread.outlived()
    assert (late.activity.output or "") == whole
    assert sorted(live + late.activity.late_output) == sorted(whole)
    assert whole.endswith(late.rest)
    assert late.activity.late_output.endswith(late.rest)


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_its_end_is_told_once_and_its_turn_stays_closed(status: str) -> None:
    """During another turn, too, whose own events it is not among; also if its own failed."""
    thread = Thread()
    first = thread.begin()
    thread.run(first)
    thread.finish(first, status)
    second = thread.begin()
    thread.ends(first, status="failed", aggregatedOutput="no\n", exitCode=3)
    thread.ends(first, status="failed", aggregatedOutput="no\n", exitCode=3)
    thread.finish(second)
    (late,) = thread.outlived()
    assert (late.activity.status, late.activity.exit_code) == ("failed", 3)
    assert [event.method for event in thread.events if isinstance(event, Other)] == ["item/completed"]
    for turn in (first, second):
        begun, *_, done = told_of(thread.events, turn)
        assert (type(begun), type(done)) == (TurnStarted, TurnDone)


def test_what_was_cancelled_or_died_with_codex_has_no_other_end() -> None:
    """Its client is done with it."""
    cancelled, dead = Thread(), Thread()
    for thread in (cancelled, dead):
        turn = thread.begin()
        thread.run(turn)
        if thread is dead:
            thread.dies()
        else:
            thread.finish(turn, "interrupted")
        thread.ends(turn, aggregatedOutput="ran on\n", exitCode=0)
        *_, left, done, stray = thread.events
        assert isinstance(left, Activity)
        assert left.status == "interrupted"
        assert (type(done), type(stray)) == (TurnDone, Other)


def test_what_ended_in_its_turn_or_was_never_begun_has_no_other_end() -> None:
    """Such a frame is handed on as it came."""
    thread = Thread()
    turn = thread.begin()
    thread.run(turn)
    thread.ends(turn, aggregatedOutput="ok\n", exitCode=0)
    thread.finish(turn)
    thread.ends(turn, aggregatedOutput="ok\n", exitCode=0)
    thread.ends(turn, "stranger")
    thread.ends("another-turn")
    assert thread.outlived() == []
    assert sum(isinstance(event, Other) for event in thread.events) == 3


def test_of_too_many_the_oldest_are_forgotten() -> None:
    """Codex keeps no more processes itself."""
    thread = Thread()
    turn = thread.begin()
    for number in range(MAX_DETACHED + 1):
        thread.run(turn, f"c-{number}")
    thread.finish(turn)
    for number in range(MAX_DETACHED + 1):
        thread.ends(turn, f"c-{number}")
    assert [late.activity.item_id for late in thread.outlived()] == [
        f"c-{number}" for number in range(1, MAX_DETACHED + 1)
    ]


def test_what_they_have_printed_is_bounded_together() -> None:
    """However long they run on: what is beyond it comes from Codex's own account at their end."""
    outputs = CommandOutputs()
    for item, chars in (("long", MAX_LIVE_CHARS), ("short", 1)):
        outputs.add(item, "x" * chars)
        outputs.detach(msgspec.structs.replace(activity("u", command(item), ended=True), status="detached"))
        outputs.end_turn()
    assert [outputs.is_detached("u", item) for item in ("long", "short")] == [False, True]
    outputs.add_detached("u", "short", "y" * MAX_LIVE_CHARS)
    outputs.add_detached("u", "short", "z")
    late = outputs.end_detached(activity("u", command("short"), ended=True))
    assert late.rest == "y" * MAX_LIVE_CHARS
