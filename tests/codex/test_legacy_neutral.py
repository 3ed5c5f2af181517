"""`LegacyEvents` for an engine that is not Codex: clients of the old events see what it does."""

from __future__ import annotations

from typing import Any

from laneway.codex.legacy import LegacyEvents
from laneway.codex.legacy_items import NEUTRAL_KINDS
from laneway.codex.legacy_neutral import _ITEMS
from laneway.core.model import (
    Activity,
    Asked,
    FileChange,
    Look,
    Notice,
    Question,
    Tokens,
    TurnDone,
    TurnStarted,
    Usage,
    UserSaid,
)
from laneway.core.ports import ThreadInfo
from tests.codex.legacy_support import fresh, messages_of, types
from tests.doors.sample_questions import CHOICES, COMMAND_WITH_WORDS

FRAME = b'{"type":"assistant","message":{"content":[]}}'


def activity(kind: Any, status: Any = "completed", **fields: Any) -> Activity:
    item = {"type": "tool_use", "name": "Something"}
    values = {"turn_id": "u", "item_id": "i", "kind": kind, "title": "t", "status": status, "item": item}
    return Activity(**{**values, **fields}, frame=FRAME)


def test_both_know_the_same_kinds() -> None:
    """A kind that only one of them knew would be lost."""
    assert set(_ITEMS) == NEUTRAL_KINDS


def test_a_thread_is_introduced_by_its_id() -> None:
    """Whatever the engine's own facts are."""
    info = ThreadInfo(thread_id="s1", cwd="/w", native={"model": "opus"})
    (message,) = LegacyEvents().opening(info)
    assert (message["type"], message["thread_id"], message["cwd"]) == ("session_configured", "s1", "/w")


def test_what_looks_at_files_is_a_command_with_its_parsed_form() -> None:
    """Also at the level of events that a person follows."""
    looks: list[tuple[Look, dict[str, Any]]] = [
        (Look(purpose="read", path="/w/a.py"), {"type": "read", "path": "/w/a.py", "name": "a.py"}),
        (
            Look(purpose="search", path="/w", pattern="x+"),
            {"type": "search", "path": "/w", "query": "x+"},
        ),
        (Look(purpose="list", pattern="*.py"), {"type": "list_files", "path": None, "query": "*.py"}),
    ]
    for look, parsed in looks:
        legacy = fresh("compact")
        begun = activity("read", "running", look=look, title="Looking", tool="Tool")
        over = activity("read", look=look, title="Looking", tool="Tool", output="text")
        begin, end = messages_of(legacy, begun, over)
        assert (begin["type"], end["type"]) == ("exec_command_begin", "exec_command_end")
        assert begin["parsed_cmd"] == [{"cmd": "Looking", **parsed}]
        assert begin["command"] == ["Tool", *(text for text in (look.pattern, look.path) if text)]
        assert (end["stdout"], end["status"]) == ("text", "completed")


def test_commands_edits_and_tools_have_the_old_names() -> None:
    """With output, exit code, changes and results."""
    legacy = fresh()
    command = activity("command", title="make it", output="no", exit_code=3, status="failed")
    (_, began), (_, ended) = (
        messages_of(legacy, activity("command", "running", title="make it")),
        messages_of(legacy, command),
    )
    assert (began["type"], began["command"]) == ("exec_command_begin", ["make", "it"])
    assert (ended["exit_code"], ended["stdout"], ended["status"]) == (3, "no", "failed")
    change = FileChange(path="/w/a", kind="add", diff="hi\n")
    edit = messages_of(legacy, activity("edit", "running", changes=(change,), item_id="e"))
    assert edit[1]["changes"] == {"/w/a": {"type": "add", "content": "hi\n"}}
    mcp = messages_of(legacy, activity("mcp", title="desk.ask", input={"a": 1}, content=[{"x": 1}]))
    assert mcp[-1]["invocation"] == {"server": "desk", "tool": "ask", "arguments": {"a": 1}}
    tool = messages_of(legacy, activity("tool", title="Web", input={"u": 1}, output="page"))
    assert (tool[-1]["tool"], tool[-1]["success"]) == ("Web", True)


def test_frames_of_another_protocol_cost_no_event() -> None:
    """Turns, usage, prompts and errors are told from the values alone."""
    legacy = fresh()
    messages = messages_of(
        legacy,
        TurnStarted(turn_id="u", frame=FRAME),
        UserSaid(turn_id="u", item_id="p", text="hello", frame=FRAME),
        Usage(turn_id="u", last=Tokens(total=1), total=Tokens(total=2), frame=FRAME),
        Notice(level="error", message="overloaded", turn_id="u", will_retry=True, frame=FRAME),
        TurnDone(turn_id="u", status="completed", text="bye", frame=FRAME),
    )
    kinds = types(messages)
    assert {"task_started", "item_started", "token_count", "stream_error", "task_complete"} <= set(kinds)
    assert messages[kinds.index("stream_error")]["message"] == "overloaded"


def test_questions_without_codexs_own_parameters_are_told_from_their_fields() -> None:
    """A command by its text, choices by their options."""

    def asked(fields: dict[str, Any]) -> Any:
        known = {"kind": "command", "question_id": "q", "thread_id": "t", "turn_id": "u", "item_id": "i"}
        (message,) = messages_of(fresh(), Asked(question=Question(**{**known, **fields})))
        return message

    assert asked(COMMAND_WITH_WORDS)["command"] == ["make", "test"]
    first = asked(CHOICES)["questions"][0]
    assert first["options"] == [
        {"label": "Red", "description": "warm"},
        {"label": "Blue", "description": "cool"},
    ]
