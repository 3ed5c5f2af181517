"""Lines of `codex exec --json` as events: each shape, and everything that is none."""

from __future__ import annotations

import itertools
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.codex.exec import events
from laneway.codex.exec.activities import WorkerActivity
from laneway.codex.exec.events import MAX_WARNINGS, EventNormaliser, WorkerEvent, WorkerState, error_text
from laneway.codex.exec.tokens import TokenCount

CHANGES = [{"path": "/a", "kind": "add"}]
MCP = {"type": "mcp_tool_call", "server": "s", "tool": "t", "arguments": {"a": 1}}


def normaliser() -> EventNormaliser:
    """Its clock counts: 0 when it is made, then one more for each line."""
    return EventNormaliser(itertools.count().__next__)


def fed(*lines: dict[str, Any] | bytes) -> tuple[EventNormaliser, list[WorkerEvent]]:
    output = normaliser()
    told: list[WorkerEvent] = []
    for line in lines:
        told += output.feed(line if isinstance(line, bytes) else json.dumps(line).encode())
    return output, told


def item(phase: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"item.{phase}", "item": {"id": "item_0", **fields}}


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (item("completed", type="agent_message", text="hi"), ("message", {"text": "hi"})),
        (item("completed", type="reasoning", text="hm"), ("progress", {"kind": "reasoning", "text": "hm"})),
        (item("updated", type="todo_list", items=[]), ("progress", {"kind": "todo_list", "items": []})),
        (
            item("started", type="command_execution", command="ls", aggregated_output="", exit_code=None),
            ("tool_call", {"tool": "command", "id": "item_0", "command": "ls"}),
        ),
        (
            item(
                "completed",
                type="command_execution",
                command="ls",
                aggregated_output="",
                exit_code=0,
                status="completed",
            ),
            (
                "tool_result",
                {
                    "tool": "command",
                    "id": "item_0",
                    "command": "ls",
                    "status": "completed",
                    "exitCode": 0,
                    "output": "",
                },
            ),
        ),
        (
            item(
                "started", type="file_change", changes=[{"path": "/a", "kind": "add"}], status="in_progress"
            ),
            ("tool_call", {"tool": "patch", "id": "item_0", "changes": [{"path": "/a", "kind": "add"}]}),
        ),
        (
            item("started", **MCP, result=None, error=None, status="in_progress"),
            ("tool_call", {"tool": "mcp", "id": "item_0", "server": "s", "name": "t", "arguments": {"a": 1}}),
        ),
        (
            item("completed", **MCP, result=None, error={"message": "no"}, status="failed"),
            (
                "tool_result",
                {
                    "tool": "mcp",
                    "id": "item_0",
                    "server": "s",
                    "name": "t",
                    "arguments": {"a": 1},
                    "status": "failed",
                    "error": {"message": "no"},
                },
            ),
        ),
        (
            item("completed", type="web_search", query="q"),
            ("tool_result", {"tool": "web_search", "id": "item_0", "query": "q"}),
        ),
        (
            item("updated", type="command_execution", command="ls"),
            (
                "progress",
                {
                    "kind": "command_execution",
                    "phase": "updated",
                    "item": {"id": "item_0", "type": "command_execution", "command": "ls"},
                },
            ),
        ),
        (
            item("started", type="dream", about="sheep"),
            (
                "progress",
                {
                    "kind": "dream",
                    "phase": "started",
                    "item": {"id": "item_0", "type": "dream", "about": "sheep"},
                },
            ),
        ),
        ({"type": "turn.paused", "x": 1}, ("progress", {"kind": "turn.paused", "event": {"x": 1}})),
        ({"type": "turn.started"}, ("progress", {"kind": "turn.started"})),
    ],
)
def test_each_kind_of_line_is_one_event(line: dict[str, Any], event: tuple[str, dict[str, Any]]) -> None:
    """With the useful fields of what is known, and all of what is not."""
    _, told = fed(line)
    assert [(each.type, each.content, each.is_sign_of_life) for each in told] == [(*event, True)]


def test_what_codex_repeats_while_nothing_happens_is_no_sign_of_life() -> None:
    """Reconnecting, other errors, warnings, and what is no event at all."""
    _, told = fed(
        {"type": "error", "message": "Reconnecting... 2/5 (x)"},
        {"type": "error", "message": "x"},
        item("completed", type="error", message="careful"),
        b"garbage",
    )
    assert [(each.type, each.content["kind"], each.is_sign_of_life) for each in told] == [
        ("error", "reconnecting", False),
        ("error", "error", False),
        ("error", "warning", False),
        ("progress", "unreadable", False),
    ]


def test_a_whole_run_comes_to_a_state() -> None:
    """The thread, the turn, the last message, what was used."""
    usage = {"input_tokens": 5, "cached_input_tokens": 3, "output_tokens": 2, "reasoning_output_tokens": 1}
    output, _ = fed(
        {"type": "thread.started", "thread_id": "t"},
        item("completed", type="error", message="careful"),
        {"type": "turn.started"},
        item("completed", type="agent_message", text="one"),
        {"type": "error", "message": "Reconnecting... 1/5"},
        item("completed", type="agent_message", text="two"),
        {"type": "turn.completed", "usage": usage},
    )
    assert output.state == WorkerState(
        thread_id="t",
        turn="completed",
        last_error="Reconnecting... 1/5",
        last_message="two",
        usage=TokenCount(5, 3, 2, 1, 7),
        has_acted=True,
    )
    assert output.warnings == ["careful"]


def test_a_failed_turn_keeps_its_reason() -> None:
    """Or that of the error before it."""
    failed, _ = fed({"type": "turn.started"}, {"type": "turn.failed", "error": {"message": "why"}})
    assert (failed.state.turn, failed.state.last_error) == ("failed", "why")
    failed, _ = fed({"type": "error", "message": "before"}, {"type": "turn.failed"})
    assert (failed.state.turn, failed.state.last_error) == ("failed", "before")


def test_the_first_thread_is_the_workers() -> None:
    """Whatever comes later."""
    output, _ = fed(
        {"type": "thread.started", "thread_id": "a"}, {"type": "thread.started", "thread_id": "b"}
    )
    assert output.state.thread_id == "a"


def test_warnings_are_bounded() -> None:
    """A Codex that warns for ever fills no memory."""
    output, told = fed(*[item("completed", type="error", message="x")] * (MAX_WARNINGS + 5))
    assert len(output.warnings) == MAX_WARNINGS
    assert len(told) == MAX_WARNINGS + 5


def test_a_warning_about_features_that_we_switched_on_is_not_passed_on() -> None:
    """Those of a rehearsal; of a feature that the user has chosen it is."""
    text = "Under-development features enabled: {}. Under-development features are incomplete."
    ours = text.format("default_mode_request_user_input")
    theirs = text.format("default_mode_request_user_input, other")
    output, told = fed(*(item("completed", type="error", message=each) for each in (ours, theirs)))
    assert (output.warnings, len(told)) == ([theirs], 1)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("plain", "plain"),
        ('{"error": {"message": "inner"}}', "inner"),
        ('{"error": {"message": "{\\"error\\": {\\"message\\": \\"deep\\"}}"}}', "deep"),
        ('{"message": "flat"}', "flat"),
        ('{"detail": "other"}', '{"detail": "other"}'),
        ("{broken", "{broken"),
    ],
)
def test_a_providers_answer_is_unwrapped(message: str, words: str) -> None:
    """It comes as JSON, within JSON."""
    assert error_text({"message": message}) == words


# ── lines that are none ────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "line",
    [b"garbage", b"5", b"[]", b"null", b"{}", b'{"type": 5}', b"\xff\xfe", b"{" * 10_000, b"[" * 1_000_000],
)
def test_garbage_is_told_and_does_no_harm(line: bytes) -> None:
    """The next line is read as ever."""
    output, told = fed(line, {"type": "turn.started"})
    assert [each.content["kind"] for each in told] == ["unreadable", "turn.started"]
    assert output.state.turn == "running"


def test_blank_lines_are_nothing() -> None:
    """Not even an event."""
    assert fed(b"", b"  \r")[1] == []


def test_broken_characters_are_replaced() -> None:
    """Bytes that are no UTF-8, and half a surrogate pair: what is told can be written down."""
    lines = [
        b'{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"a\xffb"}}',
        b'{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"a\\ud800b\\ud83d\\ude00"}}',
    ]
    _, told = fed(*lines)
    assert [each.content for each in told] == [{"text": "a\ufffdb"}, {"text": "a\ufffdb😀"}]
    msgspec.json.encode([each.content for each in told])


def test_a_line_that_is_too_long_is_told_and_ends_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its beginning says what it is about."""
    start = item("started", type="command_execution", command="yes")
    end = item("completed", type="command_execution", command="yes", aggregated_output="y" * 500)
    monkeypatch.setattr(events, "MAX_LINE_BYTES", 200)
    output, told = fed(
        json.dumps(start, separators=(",", ":")).encode(),
        json.dumps(end, separators=(",", ":")).encode(),
        b"x" * 201,
    )
    assert told[1].content == {
        "kind": "too_long",
        "bytes": len(json.dumps(end, separators=(",", ":"))),
        "phase": "completed",
        "item": {"id": "item_0", "type": "command_execution"},
    }
    assert told[2].content == {"kind": "too_long", "bytes": 201}
    assert output.activities.all == (WorkerActivity("item_0", "command", "yes", 1, 2),)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
types = st.sampled_from(
    ["thread.started", "turn.completed", "turn.failed", "error", "item.started", "item.completed", "item.x"]
)
item_types = st.sampled_from(
    ["agent_message", "command_execution", "file_change", "mcp_tool_call", "reasoning", "error", "new"]
)
fields = st.sampled_from(["id", "text", "command", "changes", "status", "items", "message", "tool"])
items = st.builds(
    lambda kind, rest: {"type": kind, **rest}, item_types, st.dictionaries(fields, json_values, max_size=4)
)
shaped = st.builds(
    lambda kind, inner, rest: {"type": kind, "item": inner, **rest},
    types,
    items | json_values,
    st.dictionaries(st.sampled_from(["message", "error", "usage", "thread_id"]), json_values, max_size=2),
)


@given(
    lines=st.lists(st.binary(max_size=60) | shaped.map(lambda value: json.dumps(value).encode()), max_size=8)
)
def test_any_lines_give_events_that_can_be_written_down(lines: list[bytes]) -> None:
    """One each, and nothing raises."""
    output = normaliser()
    for line in lines:
        told = output.feed(line)
        assert len(told) == (1 if line.strip() else 0)
        msgspec.json.encode(told)
    msgspec.json.encode([output.state, output.activities.all, output.activities.changes, output.warnings])
