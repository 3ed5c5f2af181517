"""When a worker may have changed files."""

from __future__ import annotations

from typing import Any

import pytest

from laneway.codex.exec import activities
from laneway.codex.exec.activities import ActivityLog, PatchedFile, WorkerActivity, kind_of

PATCH = {"type": "file_change", "changes": [{"path": "/a", "kind": "add"}, {"path": "/b", "kind": "delete"}]}


def command(item_id: str, text: str = "make", **more: Any) -> dict[str, Any]:
    return {"type": "command_execution", "id": item_id, "command": text, **more}


def test_commands_may_run_side_by_side() -> None:
    """Each has its own beginning and end, in the order in which they began."""
    log = ActivityLog()
    log.note("started", command("a"), 1, 0)
    log.note("started", command("b", "ls"), 2, 1)
    assert [activity.item_id for activity in log.running] == ["a", "b"]
    log.note("updated", command("a"), 3, 2)
    log.note("completed", command("b", "ls"), 4, 3)
    log.note("completed", command("a", ""), 5, 4)
    assert log.all == (
        WorkerActivity("a", "command", "make", 1, 5),
        WorkerActivity("b", "command", "ls", 2, 4),
    )
    assert log.running == ()
    assert log.is_complete


def test_a_patch_that_is_told_only_when_it_is_done_began_after_the_line_before() -> None:
    """As 0.104 does."""
    log = ActivityLog()
    log.note("completed", {**PATCH, "id": "p", "status": "completed"}, 7, 4)
    assert log.all == (WorkerActivity("p", "patch", "/a\n/b", 4, 7),)
    assert log.changes == [PatchedFile("/a", "add", "p"), PatchedFile("/b", "delete", "p")]


def test_a_patch_that_failed_changed_nothing_for_certain() -> None:
    """It is an activity all the same."""
    log = ActivityLog()
    log.note("started", {**PATCH, "id": "p", "status": "in_progress"}, 1, 0)
    log.note("completed", {**PATCH, "id": "p", "status": "failed"}, 2, 1)
    assert log.changes == []
    assert [activity.ended for activity in log.all] == [2]


def test_tools_and_what_is_not_known_may_change_files() -> None:
    """Thoughts, plans, messages and searches cannot."""
    harmless = ("agent_message", "reasoning", "todo_list", "web_search", "error")
    assert [kind_of(name) for name in harmless] == [None] * 5
    assert [kind_of(name) for name in ("mcp_tool_call", "dream", "")] == ["tool"] * 3
    log = ActivityLog()
    log.note("started", {"type": "mcp_tool_call", "id": "m", "server": "s", "tool": "ü"}, 1, 0)
    assert log.running[0].text == '{"type": "mcp_tool_call", "server": "s", "tool": "ü"}'
    log.note("completed", {"type": "reasoning", "id": "r"}, 2, 1)
    assert len(log.all) == 1


def test_what_is_not_kept_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker of endless commands or files fills no memory, and nothing is claimed for it."""
    monkeypatch.setattr(activities, "MAX_ACTIVITIES", 2)
    monkeypatch.setattr(activities, "MAX_CHANGES", 3)
    log = ActivityLog()
    for number in range(2):
        log.note("completed", {**PATCH, "id": f"p{number}", "status": "completed"}, number, 0)
    assert len(log.changes) == 3
    assert not log.is_complete
    log = ActivityLog()
    for number in range(3):
        log.note("started", command(str(number)), number, 0)
    assert len(log.all) == 2
    assert not log.is_complete
    log.note("completed", command("2"), 9, 8)
    assert len(log.all) == 2


@pytest.mark.parametrize("changes", [None, 5, "x", [None], [{}], [{"path": 5}], [{"path": ""}]])
def test_odd_changes_are_no_trouble(changes: Any) -> None:
    """What has no path is no file."""
    log = ActivityLog()
    patch = {"type": "file_change", "id": "p", "status": "completed"}
    log.note("completed", {**patch, "changes": changes}, 1, 0)
    assert log.changes == []
    log.note("completed", {**patch, "changes": [{"path": "/a", "kind": 7}]}, 2, 1)
    assert log.changes == [PatchedFile("/a", "", "p")]
