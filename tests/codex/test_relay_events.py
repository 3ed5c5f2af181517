"""`RelayTranslator`: recorded events of the real `codex mcp-server` 0.153.4 as the core's events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.codex.relay_events import RelayScript, RelayTranslator
from laneway.core.model import (
    Activity,
    Diff,
    Event,
    Failure,
    FileChange,
    Notice,
    Other,
    Output,
    Plan,
    PlanStep,
    Text,
    Thought,
    TurnDone,
    TurnStarted,
    Usage,
)
from laneway.testing.mcp_traces import load

GOLDEN = Path(__file__).parent.parent / "golden" / "mcp-server-0.153.4"
TRACES = sorted(path.stem for path in GOLDEN.glob("*.json"))


def recorded(name: str) -> dict[str, list[dict[str, Any]]]:
    """The `codex/event` notifications of a recording, by thread."""
    threads: dict[str, list[dict[str, Any]]] = {}
    for line in load((GOLDEN / f"{name}.json").read_bytes()).lines:
        if line.message.get("method") == "codex/event":
            threads.setdefault(line.message["params"]["_meta"]["threadId"], []).append(line.message)
    return threads


def translated(messages: list[dict[str, Any]]) -> list[Event]:
    events: list[Event] = []
    translator = RelayTranslator(events.append)
    for message in messages:
        params = message["params"]
        translator.handle(params["id"], params["msg"], msgspec.json.encode(message))
    return events


def of(events: list[Event], kind: type[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def turn(*told: dict[str, Any]) -> list[Event]:
    """One turn of these events, up to what comes before its end."""
    begun = {"type": "task_started", "turn_id": "t"}
    return translated([{"params": {"id": "t", "msg": message}} for message in (begun, *told)])


@pytest.mark.parametrize("name", TRACES)
def test_every_recorded_event_is_told_once_in_order_and_as_it_was(name: str) -> None:
    """Whatever else is made of it, a door can hand it on."""
    for messages in recorded(name).values():
        script = RelayScript()
        told = [bytes(body) for event in translated(messages) for body in script.of(event)]
        assert told == [msgspec.json.encode(message["params"]["msg"]) for message in messages]


@pytest.mark.parametrize("name", TRACES)
def test_every_recorded_turn_begins_once_and_ends_once(name: str) -> None:
    """And what it did is over before it is; a failed one is ended by the thread, which knows who listens."""
    for messages in recorded(name).values():
        events = translated(messages)
        begun = [event.turn_id for event in of(events, TurnStarted)]
        done = [event.turn_id for event in of(events, TurnDone)]
        assert begun[: len(done)] == done
        assert len(begun) - len(done) == (name == "failure")
        running: set[str] = set()
        for shown in of(events, Activity):
            (running.add if shown.status == "running" else running.discard)(shown.item_id)
        assert not running


def test_a_recorded_command_shows_what_it_printed_and_how_it_ended() -> None:
    """Without the shell around it, and with its folder as a path."""
    (messages, *_) = recorded("commands").values()
    ended = [shown for shown in of(translated(messages), Activity) if shown.status != "running"]
    first = ended[0]
    assert "printf 'one\\ntwo\\n'" in first.title
    assert not first.title.startswith("/bin/")
    assert (first.kind, first.output, first.exit_code, first.cwd) == ("command", "one\ntwo\n", 0, "/work")


def test_a_recorded_patch_shows_the_files() -> None:
    """Kind and text of each change."""
    events = [event for messages in recorded("patches").values() for event in translated(messages)]
    ended = [shown for shown in of(events, Activity) if shown.status == "completed"]
    assert ended[0].changes == (FileChange(path="/work/hello.txt", kind="add", diff="Hello,\nworld.\n"),)
    assert of(events, Diff)


def test_recorded_words_thoughts_and_plans_are_told() -> None:
    """Each text once, though the old server tells it twice; tokens are counted."""
    events = [event for messages in recorded("words").values() for event in translated(messages)]
    said = {event.text for event in of(events, TurnDone)}
    assert "Two words, and some more." in said
    assert "".join(event.text for event in of(events, Text)).count("Two words, and some more.") == 1
    assert "Let me see." in "".join(event.text for event in of(events, Thought))
    steps = (PlanStep(text="Look", status="running"), PlanStep(text="Leap", status="pending"))
    assert [plan.steps for plan in of(events, Plan)] == [steps]
    assert of(events, Usage)[-1].total.total > 0


def test_output_that_is_cut_inside_a_character_is_put_together_again() -> None:
    """Pieces come as bytes; none of them is lost or told twice."""
    run = {"call_id": "c", "command": ["cat"], "cwd": "file:///a%20b"}
    halves = ("ww==", "qQo=")  # é and a newline, cut inside é
    pieces = [{"type": "exec_command_output_delta", "call_id": "c", "chunk": half} for half in halves]
    ended = {
        **run,
        "type": "exec_command_end",
        "aggregated_output": "é\n",
        "exit_code": 0,
        "status": "completed",
    }
    events = turn({**run, "type": "exec_command_begin"}, *pieces, ended)
    assert "".join(event.text for event in of(events, Output)) == "é\n"
    shown = of(events, Activity)[-1]
    assert (shown.output, shown.late_output, shown.cwd) == ("é\n", "", "/a b")


def test_an_error_that_is_tried_again_is_a_notice_and_one_that_is_not_ends_the_turn_in_failure() -> None:
    """The last word on the end is Codex's own."""
    events = turn(
        {"type": "stream_error", "message": "again"},
        {"type": "error", "message": "out", "codex_error_info": "usage_limit_exceeded"},
        {"type": "task_complete", "last_agent_message": None},
    )
    assert [(event.message, event.will_retry) for event in of(events, Notice)] == [
        ("again", True),
        ("out", False),
    ]
    (done,) = of(events, TurnDone)
    assert (done.status, done.failure) == ("failed", Failure(kind="usage_limit_exceeded", message="out"))


def test_the_result_of_a_tool_of_another_server_is_shown() -> None:
    """What it was called with, and what came of it, good or bad."""
    called = {"call_id": "m", "invocation": {"server": "s", "tool": "look", "arguments": {"at": 1}}}
    good = {**called, "type": "mcp_tool_call_end", "result": {"Ok": {"content": [{"text": "seen"}]}}}
    bad = {**called, "type": "mcp_tool_call_end", "result": {"Err": "no"}}
    for ended, status, content, output in (
        (good, "completed", [{"text": "seen"}], None),
        (bad, "failed", None, "no"),
    ):
        shown = of(turn({**called, "type": "mcp_tool_call_begin"}, ended), Activity)[-1]
        assert (shown.kind, shown.title, shown.input) == ("mcp", "s.look", {"at": 1})
        assert (shown.status, shown.content, shown.output) == (status, content, output)


def test_compact_tells_what_a_person_would_follow() -> None:
    """No raw items, no deltas."""
    script = RelayScript("compact")
    (messages, *_) = recorded("words").values()
    told = [msgspec.json.decode(body)["type"] for event in translated(messages) for body in script.of(event)]
    assert {"task_started", "agent_message", "task_complete"} <= set(told)
    assert not {"raw_response_item", "agent_message_content_delta", "item_started"} & set(told)


KINDS = st.sampled_from(
    sorted({m["params"]["msg"]["type"] for name in TRACES for ms in recorded(name).values() for m in ms})
)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
FIELDS = st.sampled_from(
    [
        "item",
        "item_id",
        "delta",
        "message",
        "call_id",
        "command",
        "chunk",
        "info",
        "plan",
        "changes",
        "turn_id",
    ]
)


@given(st.lists(st.tuples(KINDS, st.dictionaries(FIELDS, ODD, max_size=4)), max_size=8))
def test_no_shape_breaks_the_translation_and_no_event_is_lost(told: list[tuple[str, dict[str, Any]]]) -> None:
    """What cannot be understood is handed on as it came."""
    messages = [{"params": {"id": "t", "msg": {**fields, "type": kind}}} for kind, fields in told]
    begun = {"params": {"id": "t", "msg": {"type": "task_started", "turn_id": "t"}}}
    events = translated([begun, *messages])
    assert [event.frame for event in events if event.frame] == [
        msgspec.json.encode(m) for m in (begun, *messages)
    ]
    for other in of(events, Other):
        assert other.method == "codex/event"
