"""The instructions for a boss say what happens: every call on the page is made, every answer compared."""

from __future__ import annotations

from pathlib import Path

from laneway.jobs import tool_schemas
from tests.jobs.orchestration import CONTRACT, PAGE, exchanges, rewritten


async def test_every_call_of_the_page_is_answered_as_it_says(tmp_path: Path) -> None:
    """By real workers; `python -m tests.jobs.orchestration` writes the answers anew."""
    page = PAGE.read_text()
    assert await rewritten(page, tmp_path) == page


def test_the_page_names_every_tool_and_prints_the_contract() -> None:
    """Word for word, and with the calls of each step that a boss has to know."""
    page = PAGE.read_text()
    assert CONTRACT in page
    for schema in tool_schemas.ALL:
        assert f"`{schema.name}`" in page
    called = {each.tool for each in exchanges(page)}
    assert called >= {"codex_spawn", "codex_wait_any", "codex_wait_all", "codex_result", "codex_resolve"}
    assert {each.arguments["action"] for each in exchanges(page) if "action" in each.arguments} == {
        *("show", "accept", "rerun", "rollback", "undo"),
    }
