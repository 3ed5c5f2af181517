"""What an engine looks at, as tool calls; and output that the engine has cut."""

from __future__ import annotations

from typing import Any

import pytest

from laneway.core.model import Activity, Location, Look
from laneway.doors.acp.updates.tool_calls import ended, opened
from laneway.doors.acp.v2 import calls
from laneway.rendering.titles import CUT
from tests.doors.acp.calls import BARE, CWD, TERMINAL, THREAD, problems, texts


def read(look: Look, status: Any = "completed", **fields: Any) -> Activity:
    values = {"turn_id": "u", "item_id": "i", "kind": "read", "title": look.path, "status": status}
    return Activity(**{**values, "look": look, "tool": "Look", **fields})


@pytest.mark.parametrize(
    ("look", "kind", "title"),
    [
        (Look(purpose="read", path=f"{CWD}/a.py"), "read", "Read a.py"),
        (Look(purpose="read", path="/etc/hosts"), "read", "Read /etc/hosts"),
        (Look(purpose="search", pattern="x+"), "search", "Search for “x+”"),
        (Look(purpose="search", pattern="x+", path=f"{CWD}/src"), "search", "Search for “x+” in src"),
        (Look(purpose="list", pattern="*.py"), "search", "List *.py"),
        (Look(purpose="list", path=f"{CWD}/src"), "search", "List src"),
        (Look(purpose="read", path="a\n\u202eb"), "read", "Read a …"),
    ],
    ids=lambda value: value.purpose if isinstance(value, Look) else None,
)
def test_what_is_looked_at_is_in_the_title(look: Look, kind: str, title: str) -> None:
    """By its kind in both versions of the protocol, with its place and its name."""
    begun = opened(read(look, "running", input={"x": 1}), THREAD, BARE, cwd=CWD)
    assert (begun["kind"], begun["title"], begun["name"], begun["rawInput"]) == (
        kind,
        title,
        "Look",
        {"x": 1},
    )
    paths = [location["path"] for location in begun.get("locations", [])]
    assert paths == ([look.path] if look.path.startswith("/") else paths)
    over = ended(read(look, output="text"), THREAD, BARE, cwd=CWD)
    assert texts(over) == ["```\ntext\n```"]
    assert problems(BARE, begun, over) == []
    second = calls.call(read(look), THREAD, cwd=CWD)
    assert (second["kind"], second["title"]) == (kind, title)


def test_lines_that_were_read_are_places() -> None:
    """As the engine says."""
    place = Location(path=f"{CWD}/a.py", line=7)
    update = ended(read(Look(purpose="read", path=f"{CWD}/a.py"), locations=(place,)), THREAD, BARE, cwd=CWD)
    assert update["locations"] == [{"path": f"{CWD}/a.py", "line": 7}]


@pytest.mark.parametrize("client", [BARE, TERMINAL], ids=["bare", "terminal"])
def test_output_that_the_engine_has_cut_says_so(client: Any) -> None:
    """Beside how it ended, in both versions."""
    cut = Activity(
        turn_id="u",
        item_id="i",
        kind="command",
        title="make",
        status="failed",
        exit_code=3,
        output="a\nb",
        is_cut=True,
    )
    assert texts(ended(cut, THREAD, client, cwd=CWD))[-1] == f"Exit code 3. {CUT}"
    assert calls.call(cut, THREAD, cwd=CWD)["content"][-1]["content"]["text"] == CUT


def test_a_failure_without_a_word_names_its_engine() -> None:
    """Not always Codex."""
    failed = read(Look(purpose="read", path="/x"), "failed")
    update = ended(failed, THREAD, BARE, cwd=CWD, engine="Claude")
    assert texts(update) == ["Failed, and Claude did not say why."]
