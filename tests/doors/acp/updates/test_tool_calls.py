"""Activities as tool calls: their beginning, their changes, their output and their end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from laneway.core.model import Activity, Event, FromSubagent
from laneway.doors.acp.client import EditorClient, client_of
from laneway.doors.acp.updates.tool_calls import (
    changed,
    changed_fields,
    ended,
    ended_without,
    opened,
    printed,
    replayed,
)
from laneway.rendering.outputs import MAX_OUTPUT_CHARS
from laneway.testing.tape import play
from tests.doors.acp.calls import BARE, CALL, CWD, TERMINAL, THREAD, command, done, problems, texts

TRACES = sorted((Path(__file__).parents[3] / "golden").glob("0.*/*.jsonl"))
both_clients = pytest.mark.parametrize("client", [BARE, TERMINAL], ids=["bare", "terminal"])
PICTURE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
DIFF = "@@ -1 +1 @@\n-a\n+b\n"


def edit(status: str, *, diff: str = DIFF) -> Activity:
    changes = [{"path": "/work/a.py", "kind": {"type": "update", "move_path": None}, "diff": diff}]
    return done("fileChange", ended=status != "inProgress", changes=changes, status=status)


def life(client: EditorClient, *activities: Activity) -> list[dict[str, Any]]:
    """The updates of one call: begun, changed while it runs, ended."""
    first, *rest = activities
    updates = [opened(first, THREAD, client, cwd=CWD)]
    for each in rest:
        tell = changed if each.status == "running" else ended
        updates.append(tell(each, THREAD, client, cwd=CWD))
    return updates


# ── commands, as content ───────────────────────────────────────────────────


def test_a_command_is_shown_with_its_output() -> None:
    """Every client sees it, and sees it once."""
    begun, over = life(
        BARE, command("make", ended=False), command("make", aggregatedOutput="ok\n", exitCode=0)
    )
    assert begun == {
        "sessionUpdate": "tool_call",
        "toolCallId": CALL,
        "title": "make",
        "kind": "execute",
        "name": "shell",
        "status": "in_progress",
        "rawInput": {"command": "make", "cwd": CWD},
    }
    assert over == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": CALL,
        "title": "make",
        "kind": "execute",
        "name": "shell",
        "status": "completed",
        "rawInput": {"command": "make", "cwd": CWD},
        "content": [{"type": "content", "content": {"type": "text", "text": "```\nok\n```"}}],
    }


def test_a_command_that_fails_tells_its_exit_code() -> None:
    """Whatever status Codex gives it. As content: some clients show no content where there is `rawOutput`."""
    for status in ("completed", "failed"):
        over = ended(command(status=status, aggregatedOutput="no\n", exitCode=3), THREAD, BARE)
        assert (over["status"], over.get("rawOutput")) == ("failed", None)
        assert texts(over) == ["```\nno\n```", "Exit code 3."]


@pytest.mark.parametrize(
    ("activity", "read"),
    [
        (command(aggregatedOutput="a ``` b\n\n", exitCode=3), "a ``` b\nExit code 3."),
        (command(aggregatedOutput="", exitCode=0), None),
        (done("mcpToolCall", result={"content": [{"type": "text", "text": "Sunny."}]}), "Sunny."),
        (done("mcpToolCall", result={"content": [PICTURE]}), None),
    ],
    ids=["command", "silent", "tool", "picture"],
)
def test_a_client_that_reads_nothing_else_has_the_words_as_raw_output(activity: Activity, read: Any) -> None:
    """JupyterLab shows that alone, and without Markdown; others do not get it twice."""
    jupyter = client_of({"clientInfo": {"name": "Jupyter AI"}})
    assert ended(activity, THREAD, jupyter).get("rawOutput") == read
    assert not isinstance(ended(activity, THREAD, BARE).get("rawOutput"), str)


def test_what_such_a_client_reads_is_bounded() -> None:
    """The content is whole; saying it once more is not worth a long line."""
    jupyter = client_of({"clientInfo": {"name": "Jupyter AI"}})
    over = ended(command(aggregatedOutput="x" * 100_000, exitCode=0), THREAD, jupyter)
    assert len(over["rawOutput"]) < 70_000 < len(texts(over)[0])
    assert "characters are left out here" in over["rawOutput"]


@pytest.mark.parametrize(
    ("status", "shown", "note"),
    [
        ("declined", "failed", "Declined."),
        ("interrupted", "failed", "Interrupted."),
        ("detached", "completed", "Still running in the background."),
        ("failed", "failed", "Failed, and Codex did not say why."),
    ],
)
@both_clients
def test_every_way_to_end_ends_the_call(client: EditorClient, status: Any, shown: str, note: str) -> None:
    """And says how."""
    over = msgspec.structs.replace(command(), status=status)
    updates = life(client, command(ended=False), over)
    assert updates[-1]["status"] == shown
    assert texts(updates[-1])[-1] == note
    assert problems(client, *updates) == []


def test_output_cannot_leave_its_fence() -> None:
    """Escapes stay, backticks do not end the block."""
    over = ended(command(aggregatedOutput="\x1b[1m```\n# Not a title"), THREAD, BARE)
    assert texts(over) == ["````\n\x1b[1m```\n# Not a title\n````"]


def test_a_huge_output_is_cut_in_the_middle_and_says_so() -> None:
    """Up to the bound it is complete."""
    whole = "x" * MAX_OUTPUT_CHARS
    assert texts(ended(command(aggregatedOutput=whole), THREAD, BARE)) == [f"```\n{whole}\n```"]
    [cut] = texts(ended(command(aggregatedOutput=f"head{whole}tail"), THREAD, BARE))
    assert "[8 of 4,194,312 characters are left out here.]" in cut
    assert cut.startswith("```\nhead")
    assert cut.endswith("tail\n```")
    [cut] = texts(ended(command(aggregatedOutput="abcdef"), THREAD, BARE, max_chars=2))
    assert cut == "```\na\n[4 of 6 characters are left out here.]\nf\n```"


def test_a_running_command_shows_its_tail() -> None:
    """The end replaces it by the whole."""
    begun = command(ended=False)
    update = printed(begun, THREAD, BARE, "so far")
    assert update == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": CALL,
        "content": [{"type": "content", "content": {"type": "text", "text": "```\nso far\n```"}}],
    }
    assert problems(BARE, opened(begun, THREAD, BARE), update) == []


def test_a_long_command_is_shown_in_full_beside_its_title() -> None:
    """The title is one line, and nothing is hidden behind it, before, during and after."""
    words = "cat <<E\n\x1b[2J```\nE"
    fence = "````sh\ncat <<E\n\\x1b[2J```\nE\n````"
    begun = opened(command(words, ended=False), THREAD, BARE)
    assert (begun["title"], texts(begun)) == ("cat <<E …", [fence])
    assert texts(printed(command(words, ended=False), THREAD, BARE, "out")) == [fence, "```\nout\n```"]
    assert texts(ended(command(words, aggregatedOutput="out"), THREAD, BARE)) == [fence, "```\nout\n```"]
    long = opened(command("x" * 500, ended=False), THREAD, BARE)
    assert long["title"] == "x" * 199 + "…"
    assert texts(long) == [f"```sh\n{'x' * 500}\n```"]


# ── commands, in a terminal ────────────────────────────────────────────────


def test_a_client_with_terminals_gets_one() -> None:
    """Its output goes there, piece by piece, and nowhere else."""
    begun = opened(command(ended=False), THREAD, TERMINAL)
    assert begun["content"] == [{"type": "terminal", "terminalId": CALL}]
    assert begun["_meta"] == {"terminal_info": {"terminal_id": CALL, "cwd": CWD}}
    piece = printed(command(ended=False), THREAD, TERMINAL, "ok\n")
    assert piece == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": CALL,
        "_meta": {"terminal_output": {"terminal_id": CALL, "data": "ok\n"}},
    }
    over = ended(command(aggregatedOutput="ok\n", exitCode=0), THREAD, TERMINAL)
    assert over["content"] == [{"type": "terminal", "terminalId": CALL}]
    assert over["_meta"] == {"terminal_exit": {"terminal_id": CALL, "exit_code": 0, "signal": None}}
    assert problems(TERMINAL, begun, piece, over) == []


@pytest.mark.parametrize(
    ("output", "late", "data"),
    [
        ("one\ntwo\n", "one\ntwo\n", "one\ntwo\n"),
        ("one\ntwo\n", "two\n", "two\n"),
        ("one\ntwo\n", "one\n", "\n[This arrived late; it belongs further up:]\none\n"),
    ],
    ids=["all of it", "the end", "the head"],
)
def test_output_that_came_late_still_reaches_the_terminal(output: str, late: str, data: str) -> None:
    """Codex loses live pieces, the first one most often; out of order, it says so."""
    over = msgspec.structs.replace(command(exitCode=0), output=output, late_output=late)
    meta = ended(over, THREAD, TERMINAL)["_meta"]
    assert meta["terminal_output"] == {"terminal_id": CALL, "data": data}
    assert "terminal_exit" in meta


def test_a_terminal_for_a_command_that_never_ran_is_closed_and_taken_away() -> None:
    """An empty box tells nobody anything."""
    over = ended(command(status="declined"), THREAD, TERMINAL)
    assert over["content"] == [{"type": "content", "content": {"type": "text", "text": "Declined."}}]
    assert over["_meta"] == {"terminal_exit": {"terminal_id": CALL, "exit_code": None, "signal": None}}


def test_only_commands_have_terminals() -> None:
    """Whatever the client can show."""
    assert "_meta" not in opened(edit("inProgress"), THREAD, TERMINAL)


# ── edits while they are written ───────────────────────────────────────────


def test_an_edit_is_followed_while_it_is_written() -> None:
    """Title, diff and locations each time; the status is not repeated."""
    begun, more, over = life(BARE, edit("inProgress", diff=""), edit("inProgress"), edit("completed"))
    assert begun["title"] == "Edit a.py (+0 −0)"
    assert more == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": CALL,
        "title": "Edit a.py (+1 −1)",
        "kind": "edit",
        "name": "apply_patch",
        "locations": [{"path": "/work/a.py", "line": 1}],
        "content": [{"type": "diff", "path": "/work/a.py", "oldText": "a\n", "newText": "b\n"}],
    }
    assert over == more | {"status": "completed"}
    assert problems(BARE, begun, more, over) == []


@pytest.mark.parametrize(
    ("status", "note"), [("failed", "These changes were not made."), ("declined", "Declined.")]
)
def test_an_edit_that_was_not_made_says_so_beside_its_diff(status: str, note: str) -> None:
    """A diff alone would read as done."""
    over = ended(edit(status), THREAD, BARE)
    assert over["status"] == "failed"
    assert [part["type"] for part in over["content"]] == ["diff", "content"]
    assert texts(over) == [note]


def test_what_the_client_knows_is_not_told_again() -> None:
    """A diff goes over the line once, and its end is short."""
    begun, over = life(BARE, edit("inProgress"), edit("completed"))
    assert changed_fields(over, begun) == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": CALL,
        "status": "completed",
    }


# ── ends that nobody tells; history ────────────────────────────────────────


@both_clients
def test_a_call_without_an_end_is_ended(client: EditorClient) -> None:
    """What was known of it stays, with the reason."""
    for begun in (command("a\nb", ended=False), edit("inProgress")):
        first = opened(begun, THREAD, client, cwd=CWD)
        over = ended_without(CALL, "Codex ended.", client, last=begun, cwd=CWD)
        assert over["status"] == "failed"
        assert over["content"] == [
            *first["content"],
            {"type": "content", "content": {"type": "text", "text": "Codex ended."}},
        ]
        assert ("terminal_exit" in over.get("_meta", {})) == ("_meta" in first)
        assert problems(client, first, over) == []


def test_a_call_of_which_nothing_is_known_is_ended_too() -> None:
    """By its id."""
    over = ended_without(CALL, "The session was closed.", BARE)
    assert (over["toolCallId"], over["status"], texts(over)) == (CALL, "failed", ["The session was closed."])


def test_history_is_told_in_one_piece() -> None:
    """With its output, and without a terminal that is long gone."""
    past = replayed(command(aggregatedOutput="no\n", exitCode=1), THREAD, cwd=CWD)
    assert past["sessionUpdate"] == "tool_call"
    assert (past["status"], past.get("rawOutput")) == ("failed", None)
    assert texts(past) == ["```\nno\n```", "Exit code 1."]
    assert problems(BARE, past) == []
    assert replayed(command(ended=False), THREAD)["status"] == "in_progress"


# ── the real Codex ─────────────────────────────────────────────────────────


def lines_of(trace: Path) -> list[bytes]:
    return trace.read_bytes().splitlines()


def calls_of(events: list[Event], client: EditorClient) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Every update that a client would get of the activities in a trace, by call."""
    calls: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for event in events:
        thread_id = event.thread_id if isinstance(event, FromSubagent) else THREAD
        inner = event.inner if isinstance(event, FromSubagent) else event
        if isinstance(inner, Activity):
            told = calls.setdefault((thread_id, inner.item_id), [])
            if not told:
                told.append(opened(inner, thread_id, client, cwd=CWD))
            elif inner.status == "running":
                told.append(changed(inner, thread_id, client, cwd=CWD))
            if inner.status != "running":
                told.append(ended(inner, thread_id, client, cwd=CWD))
    return calls


@both_clients
@pytest.mark.parametrize("trace", TRACES, ids=[trace.stem for trace in TRACES])
async def test_what_the_real_codex_does_is_valid_acp_and_ends(trace: Path, client: EditorClient) -> None:
    """Every recorded activity, from its beginning to its one end."""
    calls = calls_of(await play(lines_of(trace)), client)
    for told in calls.values():
        assert [update["status"] in ("completed", "failed") for update in told if "status" in update] == [
            False,
            True,
        ]
    assert problems(client, *(update for told in calls.values() for update in told)) == []


def test_there_are_traces() -> None:
    """An empty folder must not pass as a golden one."""
    assert len(TRACES) > 10
