"""The events made from recorded traces of the real Codex; `make golden` records them anew."""

from __future__ import annotations

import logging
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest

from laneway.core.model import Activity, Event, FromSubagent, Output, Text, Thought, TurnDone, TurnStarted
from laneway.testing.tape import event_data, play

GOLDEN = Path(__file__).parent.parent / "golden"
TRACES = sorted(GOLDEN.glob("*/*.jsonl"))
MAX_FRAMES = 100
"""A trace is read by people too."""

every_trace = pytest.mark.parametrize("trace", TRACES, ids=[f"{p.parent.name}-{p.stem}" for p in TRACES])


def lines_of(trace: Path) -> list[bytes]:
    return trace.read_bytes().splitlines()


async def threads_of(trace: Path) -> list[list[Event]]:
    """The events of the thread that was asked, and those of each thread that it started."""
    threads: dict[str, list[Event]] = {"": []}
    for event in await play(lines_of(trace)):
        if isinstance(event, FromSubagent):
            threads.setdefault(event.thread_id, []).append(event.inner)
        else:
            threads[""].append(event)
    return list(threads.values())


def completed_items(trace: Path) -> list[tuple[str, dict[str, Any]]]:
    """The finished items of a trace with their turns, as Codex told them."""
    frames = [msgspec.json.decode(line) for line in lines_of(trace)]
    return [
        (frame["params"]["turnId"], frame["params"]["item"])
        for frame in frames
        if frame.get("method") == "item/completed"
    ]


def test_there_are_traces_and_each_has_its_events() -> None:
    """An empty folder must not pass as a golden one."""
    assert len(TRACES) >= 15
    stored = {path.name.removesuffix(".events.json") for path in GOLDEN.glob("*/*.events.json")}
    assert stored == {path.stem for path in TRACES}


@every_trace
def test_a_trace_is_short_and_names_no_machine(trace: Path) -> None:
    """Traces are small, and nothing in them tells where they were recorded."""
    assert len(lines_of(trace)) < MAX_FRAMES
    text = trace.read_text()
    for clue in ("/root", "/tmp", "/Users", ".cache", str(Path.home()), "rollout-2"):
        assert clue not in text


@every_trace
async def test_a_trace_gives_the_events_that_are_stored_beside_it(
    trace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A change of the translation shows as a difference here, and nothing in a trace surprises it."""
    with caplog.at_level(logging.WARNING):
        events = event_data(await play(lines_of(trace)))
    assert events == msgspec.json.decode(trace.with_suffix(".events.json").read_bytes())
    assert caplog.messages == []


@every_trace
async def test_every_turn_begins_once_and_ends_once_and_last(trace: Path) -> None:
    """Whatever carries a turn's id lies between its one `TurnStarted` and its one `TurnDone`."""
    for events in await threads_of(trace):
        turns: dict[str, list[Event]] = defaultdict(list)
        for event in events:
            turn_id = getattr(event, "turn_id", None)
            if turn_id is not None:
                turns[turn_id].append(event)
        for told_of_turn in turns.values():
            assert isinstance(told_of_turn[0], TurnStarted)
            assert isinstance(told_of_turn[-1], TurnDone)
            assert sum(isinstance(event, TurnStarted | TurnDone) for event in told_of_turn) == 2


@every_trace
async def test_every_activity_that_starts_ends_once(trace: Path) -> None:
    """An activity is told as running until it is told, once, as anything else."""
    for events in await threads_of(trace):
        statuses: dict[str, list[str]] = defaultdict(list)
        for event in events:
            if isinstance(event, Activity):
                statuses[event.item_id].append(event.status)
        for told_of_item in statuses.values():
            *before, last = told_of_item
            assert set(before) == {"running"}
            assert last != "running"


@every_trace
async def test_the_pieces_of_a_message_make_the_message(trace: Path) -> None:
    """Joined, the texts and thoughts of an item are what Codex says the item became."""
    said: dict[str, str] = defaultdict(str)
    for events in await threads_of(trace):
        for event in events:
            if isinstance(event, Text | Thought):
                said[event.item_id] += event.text
    for _, item in completed_items(trace):
        if item["id"] in said:
            whole = item["text"] if item["type"] == "agentMessage" else "\n\n".join(item["summary"])
            assert said[item["id"]] == whole


@every_trace
async def test_no_byte_of_output_is_lost_or_told_twice(trace: Path) -> None:
    """What was told while a command ran and what came late are together its complete output."""
    aggregated = {(turn, item["id"]): item.get("aggregatedOutput") for turn, item in completed_items(trace)}
    for events in await threads_of(trace):
        pieces: dict[str, list[str]] = defaultdict(list)
        for event in events:
            if isinstance(event, Output):
                pieces[event.item_id].append(event.text)
            elif isinstance(event, Activity) and event.kind == "command" and event.status != "running":
                assert without(event.output or "", pieces[event.item_id]) == event.late_output
                if event.exit_code is not None:
                    assert event.output == aggregated[event.turn_id, event.item_id]


def without(whole: str, pieces: list[str]) -> str:
    """What is left of a text when each piece is taken out of it, in order."""
    rest = ""
    for piece in pieces:
        gap, found, whole = whole.partition(piece)
        assert found == piece
        rest += gap
    return rest + whole


@pytest.mark.parametrize("trace", [path for path in TRACES if path.stem == "subagent"])
async def test_a_subagent_is_heard_through_the_thread_that_started_it(trace: Path) -> None:
    """The turn of a subagent reaches the owner of its parent, marked as the subagent's."""
    _, below = await threads_of(trace)
    assert [event.text for event in below if isinstance(event, TurnDone)] == ["From below."]
