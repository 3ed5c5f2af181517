"""`LegacyEvents`: commands, edits, tools and unknown items in the old event names."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.core.model import (
    Activity,
    Asked,
    FileChange,
    FromSubagent,
    Notice,
    Other,
    Output,
    Question,
    Text,
    TurnDone,
    TurnStarted,
)
from tests.codex.legacy_support import fresh, messages_of, types

# ── activities ─────────────────────────────────────────────────────────────


def command(status: Any, **item: Any) -> Activity:
    record = {"type": "commandExecution", "command": "/bin/bash -lc 'ls -l'", "source": "agent", **item}
    return Activity(turn_id="u", item_id="c", kind="command", title="ls -l", status=status, item=record)


def test_a_command_begins_when_it_runs_not_when_it_waits_for_approval() -> None:
    """App-server shows it before it asks; its first output, or its end, tells that it ran."""
    legacy = fresh()
    assert messages_of(legacy, command("running")) == []
    messages = messages_of(
        legacy, Output(turn_id="u", item_id="c", text="x"), command("completed", processId="7")
    )
    assert types(messages) == [
        "item_started",
        "exec_command_begin",
        "exec_command_output_delta",
        "item_completed",
        "exec_command_end",
    ]
    assert messages[1]["command"] == ["/bin/bash", "-lc", "ls -l"]
    assert messages[2]["chunk"] == "eA=="


def test_a_command_of_an_older_shell_tool_has_no_process_and_begins_at_once() -> None:
    """The model's own call says which tool it is."""
    legacy = fresh()
    call = {"type": "function_call", "name": "shell_command", "call_id": "c"}
    messages_of(legacy, Other(method="rawResponseItem/completed", params={"item": call}))
    assert types(messages_of(legacy, command("running"))) == ["item_started", "exec_command_begin"]


@pytest.mark.parametrize(
    ("sandbox", "path", "unasked"),
    [
        ({"type": "workspaceWrite"}, "/w/a", True),
        ({"type": "workspaceWrite"}, "/elsewhere/a", False),
        ({"type": "workspaceWrite", "writableRoots": ["/elsewhere"]}, "/elsewhere/a", True),
        ({"type": "workspaceWrite"}, "/wider/a", False),
        ({"type": "readOnly"}, "/w/a", False),
        ({"type": "dangerFullAccess"}, "/w/a", True),
    ],
)
def test_an_edit_tells_whether_it_is_made_unasked(sandbox: Any, path: str, unasked: bool) -> None:
    """App-server does not say so; the sandbox does."""
    legacy = fresh(sandbox=sandbox)
    change = FileChange(path=path, kind="add", diff="x\n")
    edit = Activity(
        turn_id="u",
        item_id="e",
        kind="edit",
        title="Edit",
        status="running",
        changes=(change,),
        item={"type": "fileChange"},
    )
    assert messages_of(legacy, edit)[1]["auto_approved"] is unasked


def test_an_edit_that_moves_a_file_tells_the_diff_without_the_note_that_app_server_adds() -> None:
    """And the patch tool's own words, which app-server keeps to itself."""
    changes = (
        FileChange(path="/w/old", kind="update", diff="@@\n-a\n+b\n\n\nMoved to: /w/new", move_path="/w/new"),
        FileChange(path="/w/added", kind="add", diff="x\n"),
    )
    item = {"type": "fileChange", "status": "completed"}
    edit = Activity(
        turn_id="u", item_id="e", kind="edit", title="", status="completed", changes=changes, item=item
    )
    end = messages_of(fresh(), edit)[-1]
    assert end["changes"]["/w/old"] == {
        "type": "update",
        "unified_diff": "@@\n-a\n+b\n",
        "move_path": "/w/new",
    }
    assert end["stdout"] == "Success. Updated the following files:\nA added\nM old\n"


def mcp_call(status: str, **item: Any) -> Activity:
    record = {"type": "mcpToolCall", "server": "s", "tool": "t", "arguments": {"a": 1}, "status": status}
    core_status: Any = "running" if status == "inProgress" else status
    return Activity(
        turn_id="u", item_id="c", kind="mcp", title="s.t", status=core_status, item={**record, **item}
    )


def test_a_call_of_an_mcp_tool_is_told_with_its_invocation_and_its_result() -> None:
    """As 0.153.4 told it, failed ones included."""
    invocation = {"server": "s", "tool": "t", "arguments": {"a": 1}}
    content = [{"type": "text", "text": "bad"}]
    result = {"content": content, "structuredContent": None, "_meta": None}
    messages = messages_of(
        fresh(), mcp_call("inProgress"), mcp_call("failed", result=result, durationMs=1250)
    )
    assert messages[1] == {"type": "mcp_tool_call_begin", "call_id": "c", "invocation": invocation}
    assert messages[3] == {
        "type": "mcp_tool_call_end",
        "call_id": "c",
        "invocation": invocation,
        "duration": {"secs": 1, "nanos": 250_000_000},
        "result": {"Ok": {"content": content, "isError": True}},
    }


def test_an_approval_offers_the_decisions_in_the_old_servers_words() -> None:
    """What a client may answer is what it is told."""
    params = {
        "command": "/bin/bash -lc 'rm x'",
        "availableDecisions": [
            "accept",
            {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["rm"]}},
            "cancel",
        ],
    }
    question = Question(
        question_id="q",
        kind="command",
        thread_id="t",
        turn_id="u",
        item_id="c",
        message="",
        choices=(),
        cwd="/w",
        params=params,
    )
    (request,) = messages_of(fresh(), Asked(question=question))
    assert request["command"] == ["/bin/bash", "-lc", "rm x"]
    assert request["available_decisions"] == [
        "approved",
        {"approved_execpolicy_amendment": {"proposed_execpolicy_amendment": ["rm"]}},
        "abort",
    ]


# ── the unknown ────────────────────────────────────────────────────────────


def test_what_nobody_knows_is_passed_on_under_a_name_of_its_kind() -> None:
    """In full; whoever wants it compact wants less, not more."""
    news = Other(method="brand/newThing/happened", params={"x": 1})
    assert messages_of(fresh(), news) == [{"type": "brand_new_thing_happened", "x": 1}]
    assert messages_of(fresh("compact"), news) == []


def test_a_subagents_events_are_not_told_as_its_parents() -> None:
    """The old server never forwarded them."""
    inner = Text(turn_id="v", item_id="m", text="from below")
    assert messages_of(fresh(), FromSubagent(thread_id="s", parent_id="t", inner=inner)) == []


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
methods = st.sampled_from(
    [
        "rawResponseItem/completed",
        "rawResponse/completed",
        "mcpServer/startupStatus/updated",
        "account/rateLimits/updated",
        "brand/new",
    ]
)
item_types = st.sampled_from(
    [
        "commandExecution",
        "fileChange",
        "mcpToolCall",
        "webSearch",
        "imageView",
        "imageGeneration",
        "collabAgentToolCall",
        "dynamicToolCall",
        "teleport",
    ]
)


@given(methods, anything, item_types, st.dictionaries(st.text(max_size=8), anything, max_size=4))
def test_no_shape_of_anything_keeps_a_turn_from_being_told_to_its_end(
    method: str, params: Any, kind: str, item: dict[str, Any]
) -> None:
    """Codex changes every week, and what it then says is told, passed on or left out; nothing raises."""
    legacy = fresh()
    activity = Activity(
        turn_id="u", item_id="x", kind="other", title="", status="running", item={**item, "type": kind}
    )
    over = msgspec.structs.replace(activity, status="completed")
    unknown = Notice(level="error", message="odd", frame=b'{"method":"error"}')
    messages_of(
        legacy, TurnStarted(turn_id="u"), Other(method=method, params=params), activity, over, unknown
    )
    messages = messages_of(legacy, TurnDone(turn_id="u", status="completed", text="end"))
    assert messages[-1]["type"] == "task_complete"
    assert messages[-1]["last_agent_message"] == "end"
