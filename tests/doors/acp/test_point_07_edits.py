"""Point 7: edits name files and lines, lead to every hunk, and show their diff before they are made."""

from __future__ import annotations

from pathlib import Path

from tests.doors.acp.answerers import odd_model
from tests.doors.acp.golden import golden
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import Client, Message, Stage, select, text
from tests.doors.acp.telling import last_call, story, told

PATCH = """\
*** Begin Patch
*** Update File: poem.txt
@@
 line 4
-line 5
+LINE 5
+and more
 line 6
@@
 line 49
-line 50
 line 51
*** Update File: old.txt
*** Move to: new.txt
@@
-old
+new
*** Delete File: gone.txt
*** Add File: fresh.txt
+first
+second
*** End Patch"""
TITLE = "Edit fresh.txt (+2 −0), gone.txt (+0 −2), old.txt to new.txt (+1 −1) and 1 more"


def played(patch: str) -> str:
    return "!patch " + patch.replace("\n", "\\n")


def furnish(here: Stage) -> None:
    (here.work / "poem.txt").write_text("".join(f"line {number}\n" for number in range(1, 61)))
    (here.work / "old.txt").write_text("old\n")
    (here.work / "gone.txt").write_text("going\ngone\n")


async def in_mode(client: Client, mode: str) -> str:
    session = await client.new()
    await client.ask("session/set_mode", {"sessionId": session, "modeId": mode})
    return session


def lines_of(call: Message) -> list[tuple[str, int]]:
    return [(Path(place["path"]).name, place["line"]) for place in call["locations"]]


def diffs_of(call: Message) -> list[tuple[str, str | None, str]]:
    return [
        (Path(part["path"]).name, part.get("oldText"), part["newText"])
        for part in call["content"]
        if part["type"] == "diff"
    ]


async def test_an_edit_names_files_and_lines_and_is_shown_whole_before_it_is_allowed(shared: Shared) -> None:
    """Four files and two hunks in one of them; the same in the call and in the question about it."""
    async with shared.stage(answerer=odd_model()) as here, here.agent() as client:
        furnish(here)
        client.on_permission = lambda params: select(params, "allow_once")
        session = await in_mode(client, "ask")
        assert await client.prompt(session, played(PATCH)) == {"stopReason": "end_turn"}
        (asked,) = client.asked
        call = last_call(client, session)
        for shown in (call, asked["params"]["toolCall"]):
            assert shown["toolCallId"] == call["toolCallId"]
            assert shown["title"] == TITLE
            assert shown["kind"] == "edit"
            assert lines_of(shown) == [
                ("fresh.txt", 1),
                ("gone.txt", 1),
                ("new.txt", 1),
                ("poem.txt", 4),
                ("poem.txt", 50),
            ]
            assert diffs_of(shown) == [
                ("fresh.txt", None, "first\nsecond\n"),
                ("gone.txt", "going\ngone\n", ""),
                ("new.txt", "old\n", "new\n"),
                ("poem.txt", "line 4\nline 5\nline 6\n", "line 4\nLINE 5\nand more\nline 6\n"),
                ("poem.txt", "line 49\nline 50\nline 51\n", "line 49\nline 51\n"),
            ]
        assert call["status"] == "completed"
        assert (here.work / "new.txt").read_text() == "new\n"
        assert not (here.work / "gone.txt").exists()
    golden("point-07-edits", story(client))


async def test_an_edit_that_is_declined_keeps_its_diff_and_is_not_made(shared: Shared) -> None:
    """With the diff that was not applied; one that only deletes is a deletion."""
    async with shared.stage(answerer=odd_model()) as here, here.agent() as client:
        furnish(here)
        client.on_permission = lambda params: select(params, "decline")
        session = await in_mode(client, "ask")
        await client.prompt(session, "%edit old.txt old => new")
        call = last_call(client, session)
        assert (call["status"], text(call["content"][-1])) == ("failed", "Declined.")
        assert diffs_of(call) == [("old.txt", "old\n", "new\n")]
        assert (here.work / "old.txt").read_text() == "old\n"

        session = await in_mode(client, "code")
        deletes = "*** Begin Patch\n*** Delete File: gone.txt\n*** End Patch"
        await client.prompt(session, played(deletes))
        call = last_call(client, session)
        assert (call["kind"], call["title"], call["status"]) == (
            "delete",
            "Delete gone.txt (+0 −2)",
            "completed",
        )
        statuses = [update.get("status") for update in told(client, call["toolCallId"])]
        assert [status for status in statuses if status] == ["in_progress", "completed"]
        assert client.open_tool_calls() == {}
    golden("point-07-edits-declined", story(client))
