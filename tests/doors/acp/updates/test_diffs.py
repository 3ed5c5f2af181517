"""File changes as diffs, locations and titles: nothing that changes goes unseen."""

from __future__ import annotations

import difflib
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.core.model import FileChange
from laneway.doors.acp.updates import diffs
from laneway.doors.acp.updates.diffs import contents, locations
from laneway.rendering.diffs import MAX_LINE, Hunk, absolute, edit_kind, edit_title, hunks
from tests.doors.acp.calls import BARE, problems

NO_NEWLINE = "\\ No newline at end of file\n"

lines = st.lists(
    st.sampled_from(
        [
            "a",
            "b",
            "",
            " ",
            "-- x",
            "++ y",
            "- -",
            "+",
            "@@ -1 +1 @@",
            "Moved to: z",
            "\\ No",
            "\x0c",
            "c\r",
            "é\u2028",
        ]
    ),
    max_size=25,
)
files = st.tuples(lines, st.booleans()).map(
    lambda made: "\n".join(made[0]) + ("\n" if made[0] and made[1] else "")
)
names = st.text(alphabet="ab/.\n\0`*", max_size=8)
changes = st.builds(
    FileChange,
    path=names,
    kind=st.sampled_from(("add", "delete", "update")),
    diff=st.one_of(st.text(alphabet="@-+ \\\n1,ab", max_size=80), files),
    move_path=st.none() | names,
)


def change(
    diff: str,
    kind: Literal["add", "delete", "update"] = "update",
    path: str = "/work/a.py",
    move: str | None = None,
) -> FileChange:
    return FileChange(path=path, kind=kind, diff=diff, move_path=move)


def words(made: list[dict[str, Any]]) -> list[str]:
    return [part["content"]["text"] for part in made if part["type"] == "content"]


def split(text: str) -> list[str]:
    """Lines with their ends; only a newline ends one."""
    return [line + "\n" for line in text.split("\n")[:-1]] + (
        [text.rsplit("\n", 1)[-1]] if text[-1:] not in ("", "\n") else []
    )


def unified(old: str, new: str, context: int) -> str:
    """As Codex and git write it."""
    made = list(difflib.unified_diff(split(old), split(new), n=context))[2:]
    return "".join(line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}" for line in made)


# ── reading ────────────────────────────────────────────────────────────────


@given(files, files, st.sampled_from((1, 3)), st.booleans())
def test_hunks_lead_from_the_new_file_back_to_the_old(
    old: str, new: str, context: int, is_moved: bool
) -> None:
    """Each stands at its line, holds exactly what changed there, and leaves the rest alone."""
    diff = unified(old, new, context) + ("\n\nMoved to: /work/b.py" if is_moved else "")
    rest, rebuilt, at = split(new), [], 0
    for hunk in hunks(diff):
        assert hunk.line is not None
        here = split(hunk.new_text)
        start = hunk.line - 1
        assert rest[start : start + len(here)] == here
        rebuilt += [*rest[at:start], hunk.old_text]
        at = start + len(here)
    assert "".join([*rebuilt, *rest[at:]]) == old


@given(files, files)
def test_counts_of_lines_are_those_of_the_diff(old: str, new: str) -> None:
    """Also where a changed line looks like a header."""
    marks = [line[0] for line in list(difflib.unified_diff(split(old), split(new)))[2:]]
    expected = f"(+{marks.count('+')} −{marks.count('-')})"
    assert edit_title([change(unified(old, new, 3))]) == f"Edit a.py {expected}"


def test_a_header_without_counts_is_one_line() -> None:
    """So git writes it."""
    assert hunks("@@ -3 +4 @@ def f():\n-a\n+b\n") == (Hunk(4, "a\n", "b\n", 1, 1),)


def test_a_header_without_numbers_ends_at_the_next_one() -> None:
    """So models write patches; the line is not known then."""
    assert hunks("@@\n-a\n+b\n@@ def f():\n c\n+d\n") == (
        Hunk(None, "a\n", "b\n", 1, 1),
        Hunk(None, "c\n", "c\nd\n", 1, 0),
    )
    assert hunks("@@\n-a\n+b\n\n\nMoved to: c") == (Hunk(None, "a\n", "b\n", 1, 1),)


def test_a_diff_that_breaks_off_gives_what_there_is() -> None:
    """A patch is shown while it is being written."""
    assert hunks("@@ -1,9 +1,9 @@\n a\n-b\n+c") == (Hunk(1, "a\nb\n", "a\nc\n", 1, 1),)


def test_headers_of_git_are_no_part_of_a_hunk() -> None:
    """Nor is what stands behind one."""
    diff = "diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- a/y\n+++ b/y\n"
    assert hunks(diff) == (Hunk(1, "a\n", "b\n", 1, 1),)


# ── showing ────────────────────────────────────────────────────────────────


def test_an_update_is_a_diff_and_a_location_for_every_hunk() -> None:
    """An editor can jump to each of them."""
    made = [change("@@ -1,2 +1,2 @@\n Hello,\n-world.\n+reader.\n@@ -9,0 +10 @@\n+End.\n")]
    assert contents(made, "") == [
        {"type": "diff", "path": "/work/a.py", "oldText": "Hello,\nworld.\n", "newText": "Hello,\nreader.\n"},
        {"type": "diff", "path": "/work/a.py", "oldText": "", "newText": "End.\n"},
    ]
    assert locations(made, "") == [{"path": "/work/a.py", "line": 1}, {"path": "/work/a.py", "line": 10}]


def test_added_and_deleted_files_are_shown_whole() -> None:
    """A new file has no old text at all; a deleted one has an empty new one."""
    made = [change("new\n", "add"), change("@@ not a hunk\nold", "delete", "/work/b.py")]
    assert contents(made, "") == [
        {"type": "diff", "path": "/work/a.py", "oldText": None, "newText": "new\n"},
        {"type": "diff", "path": "/work/b.py", "oldText": "@@ not a hunk\nold", "newText": ""},
    ]
    assert locations(made, "") == [{"path": "/work/a.py", "line": 1}, {"path": "/work/b.py", "line": 1}]
    assert edit_title(made) == "Edit a.py (+1 −0), b.py (+0 −2)"


def test_a_rename_says_from_where_to_where() -> None:
    """With its edits, if it has some; the location is where the file will be."""
    made = [change("@@ -1 +1 @@\n-a\n+b\n\n\nMoved to: /work/c.py", move="/work/c.py")]
    assert contents(made, "") == [
        {"type": "content", "content": {"type": "text", "text": "Moved `/work/a.py` to `/work/c.py`."}},
        {"type": "diff", "path": "/work/c.py", "oldText": "a\n", "newText": "b\n"},
    ]
    assert locations(made, "") == [{"path": "/work/c.py", "line": 1}]
    assert (edit_kind(made), edit_title(made)) == ("move", "Move a.py to c.py (+1 −1)")


def test_a_rename_alone_needs_no_diff() -> None:
    """One sentence is all there is to say."""
    for diff in ("", "\n\nMoved to: /work/c.py"):
        assert words(contents([change(diff, move="/work/c.py")], "")) == [
            "Moved `/work/a.py` to `/work/c.py`."
        ]


def test_a_binary_change_is_told_in_gits_words() -> None:
    """It cannot be shown, and must not be hidden."""
    made = contents([change("Binary files a/x and b/x differ\n")], "")
    assert words(made) == ["This changes `/work/a.py`.\n\n```diff\nBinary files a/x and b/x differ\n```"]


@pytest.mark.parametrize("diff", ["", "@@ -0,0 +0,0 @@\n", "@@ -1 +1 @@\n a\n"])
def test_an_update_without_a_change_says_so(diff: str) -> None:
    """Whoever is asked about it is not shown an empty box."""
    assert words(contents([change(diff)], "")) == ["This changes `/work/a.py`. Its text stays the same."]


def test_a_change_at_the_end_of_a_file_keeps_its_missing_newline() -> None:
    """The newline may be all that changes."""
    diff = f"@@ -1 +1 @@\n-a\n{NO_NEWLINE}+a\n"
    assert contents([change(diff)], "") == [
        {"type": "diff", "path": "/work/a.py", "oldText": "a", "newText": "a\n"}
    ]


def test_a_diff_that_is_too_long_is_not_cut() -> None:
    """Half a file would be a lie; the next, shorter one is shown."""
    made = contents([change("x\n" * 100, "add"), change("y\n", "add", "/work/b.py")], "", max_chars=50)
    assert words(made) == ["This adds `/work/a.py`. It is too long to show: 100 lines added, 0 removed."]
    assert made[1] == {"type": "diff", "path": "/work/b.py", "oldText": None, "newText": "y\n"}


def test_relative_paths_are_taken_from_the_folder() -> None:
    """ACP demands absolute ones."""
    made = [change("x\n", "add", "src/../a.py")]
    assert contents(made, "/work") == [
        {"type": "diff", "path": "/work/a.py", "oldText": None, "newText": "x\n"}
    ]
    assert locations(made, "/work") == [{"path": "/work/a.py", "line": 1}]


@pytest.mark.parametrize("cwd", ["", "some/where"])
def test_a_path_that_stays_relative_is_told_in_words(cwd: str) -> None:
    """No client gets a path that it cannot open."""
    made = [change("x\n", "add", "a.py")]
    assert locations(made, cwd) == []
    [text] = words(contents(made, cwd))
    assert text.startswith("This adds `")
    assert text.endswith("a.py`.\n\n```diff\nx\n```")
    assert absolute("a.py", cwd) is None


def test_deletions_have_a_kind_of_their_own() -> None:
    """Only if nothing else is done."""
    gone, new = change("a\n", "delete"), change("b\n", "add")
    assert (edit_kind([gone]), edit_title([gone])) == ("delete", "Delete a.py (+0 −1)")
    assert edit_kind([gone, new]) == "edit"
    assert (edit_kind([]), edit_title([])) == ("edit", "Edit files")


def test_a_title_names_three_files_and_counts_the_rest() -> None:
    """It is one line."""
    made = [change("a\n", "add", f"/work/{number}") for number in range(5)]
    assert edit_title(made) == "Edit 0 (+1 −0), 1 (+1 −0), 2 (+1 −0) and 2 more"


def test_locations_are_bounded() -> None:
    """A change of a whole tree does not flood the client."""
    diff = "".join(f"@@ -{n} +{n} @@\n-a\n+b\n" for n in range(1, diffs.MAX_LOCATIONS + 50))
    assert len(locations([change(diff)], "")) == diffs.MAX_LOCATIONS
    far = change("@@ -99999999999 +99999999999 @@\n-a\n+b\n")
    assert locations([far], "") == [{"path": "/work/a.py", "line": MAX_LINE}]


@given(st.lists(changes, max_size=4), st.sampled_from(("", "/work", "rel")), st.integers(0, 100))
def test_whatever_a_change_looks_like_the_client_gets_what_acp_knows(
    made: list[FileChange], cwd: str, max_chars: int
) -> None:
    """And something for every change."""
    shown = contents(made, cwd, max_chars)
    update = {
        "sessionUpdate": "tool_call",
        "toolCallId": "c",
        "title": edit_title(made),
        "kind": edit_kind(made),
        "content": shown,
        "locations": locations(made, cwd),
    }
    assert problems(BARE, update) == []
    assert len(shown) >= len(made)
