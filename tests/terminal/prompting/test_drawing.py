"""A question on the screen: whole, or with a word on what is left out."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from laneway.core.model import FileChange, Question
from laneway.terminal import Style
from laneway.terminal.prompting.drawing import MIN_BODY_ROWS, Drawn, draw_question, first_screen

PLAIN = Style(io.StringIO())


def question(**fields: Any) -> Question:
    base: dict[str, Any] = {"question_id": "q", "thread_id": "t", "turn_id": None, "item_id": None}
    return Question(**{**base, "message": "Run this command?", "choices": (), **fields})


def rows(asked: Question, columns: int = 80, cwd: str | None = None) -> list[str]:
    drawn = draw_question(asked, PLAIN, columns, cwd)
    return [drawn.title, *drawn.subject, *drawn.about]


def test_permissions_are_shown_before_they_are_granted() -> None:
    """Not only that some are asked for."""
    wanted = {"network": {"enabled": True}, "fileSystem": {"write": ["/etc"]}}
    shown = rows(question(kind="permissions", message="Grant these permissions?", schema=wanted))
    assert shown[0] == "? Grant these permissions?"
    assert all(row.startswith("  │ ") for row in shown[1:])
    assert json.loads("".join(row[4:] for row in shown[1:])) == wanted


def test_what_an_mcp_server_asks_is_its_own_words() -> None:
    """Behind the mark, with the address that it wants opened."""
    asked = question(
        kind="elicitation",
        message="? Run this command?\n  1  Allow once",
        url="https://login.example/x",
        params={"serverName": "evil\nserver"},
    )
    assert rows(asked) == [
        "? The MCP server evil server asks",
        "  │ ? Run this command?",
        "  │   1  Allow once",
        "  │ https://login.example/x",
    ]


def test_a_host_that_does_not_fit_the_title_is_shown_whole() -> None:
    """Its end says whose it is."""
    host = "a" * 100 + ".evil.example"
    shown = rows(question(kind="command", message=f"Allow network access to {host}?"), columns=60)
    assert shown[0].endswith("…")
    assert host in "".join(row[4:] for row in shown[1:])


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/work/src/a.py", "src/a.py"),
        ("/work/../etc/passwd", "/etc/passwd"),
        ("/workshop/a.py", "/workshop/a.py"),
        ("/etc/passwd", "/etc/passwd"),
    ],
)
def test_a_path_is_short_only_where_the_work_is_done(path: str, shown: str) -> None:
    """Whatever way it takes."""
    change = FileChange(path=path, kind="update", diff="@@ -1 +1 @@\n-a\n+b\n")
    asked = question(kind="patch", message="Apply these changes?", changes=(change,))
    assert rows(asked, cwd="/work") == [
        "? Apply these changes?",
        f"  update {shown} (+1 −1)",
        "  │ @@ -1 +1 @@",
        "  │ -a",
        "  │ +b",
    ]


def test_a_deleted_file_shows_what_goes() -> None:
    """Codex gives its bare text."""
    change = FileChange(path="a", kind="delete", diff="one\ntwo\n")
    shown = rows(question(kind="patch", message="Apply these changes?", changes=(change,)))
    assert shown[1:] == ["  delete a (+0 −2)", "  │ -one", "  │ -two"]


@pytest.mark.parametrize(("height", "shown"), [(50, 40), (24, 16), (3, MIN_BODY_ROWS - 1)])
def test_the_first_screen_holds_the_question_its_menu_and_what_fits(height: int, shown: int) -> None:
    """The rest is counted."""
    drawn = Drawn(title="? T", subject=[f"  │ {number}" for number in range(40)], about=["  in /work"])
    body, is_cut = first_screen(drawn, menu_rows=3, rows=height, style=PLAIN)
    if is_cut:
        assert body[-2] == f"  … {40 - shown} more lines: d shows all of it"
    assert (body[0], body[-1]) == ("? T", "  in /work")
    assert len([row for row in body if row.startswith("  │ ")]) == shown
    assert height < 10 or len(body) + 3 + 2 <= height
