"""The instructions for a boss say what happens: every call on the page is made, every answer compared."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from laneway.jobs import tool_schemas
from laneway.jobs.orchestration import instructions
from tests.jobs.orchestration import CONTRACT, PAGE, exchanges, rewritten


@pytest.mark.covers("004-tools.3", "004-document.s", "J-boss.1")
async def test_every_call_of_the_page_is_answered_as_it_says(tmp_path: Path) -> None:
    """By real workers; `python -m tests.jobs.orchestration` writes the answers anew."""
    page = PAGE.read_text()
    assert await rewritten(page, tmp_path) == page


@pytest.mark.covers("004-recursion.s", "004-document.1", "J-tools.1", "J-workers.5")
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


def test_the_page_is_what_is_packaged(tmp_path: Path) -> None:
    """What the installed Laneway reads, and what a wheel has that is made from the archive of the sources."""
    page = PAGE.read_bytes()
    assert instructions().encode() == page
    root = PAGE.parents[2]
    argv = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), str(root)]
    subprocess.run(argv, capture_output=True, check=True, timeout=110)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        assert opened.read(f"laneway/jobs/{PAGE.name}") == page
