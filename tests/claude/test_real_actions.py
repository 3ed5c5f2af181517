"""What the real Claude Code does in a turn, as activities: commands, edits, reading, subagents, plans."""

from __future__ import annotations

import pytest

from laneway.core.model import (
    Activity,
    Answer,
    Asked,
    Compacted,
    Diff,
    Event,
    FromSubagent,
    Look,
    Outlived,
    Question,
    Text,
    TurnDone,
    TurnStarted,
    UserSaid,
)
from laneway.core.offers import Compaction
from laneway.core.ports import TurnSpec
from tests.claude.support import real, tool
from tests.codex.support import first, only, play, say
from tests.core.support import until

YES = Answer(choice_id="accept")


def allow(question: Question) -> Answer:
    return YES


def endings(events: list[Event]) -> list[Activity]:
    return [event for event in only(events, Activity) if event.status != "running"]


@pytest.mark.parametrize(
    ("command", "output", "exit_code", "status"),
    [
        ("echo hi", "hi", 0, "completed"),
        ("echo hi; exit 3", "hi", 3, "failed"),
        ("true", "", 0, "completed"),
    ],
)
async def test_a_command_ends_with_its_output_and_exit_code(
    command: str, output: str, exit_code: int, status: str
) -> None:
    """Announced before it is asked about; the code of a failed one is known from words."""
    async with real() as here:
        session = await here.session()
        events, result = await play(session, f"%run {command}", "%say went on", decide=allow)
        begun, ended = only(events, Activity)
        assert (begun.kind, begun.title, begun.status) == ("command", command, "running")
        assert (ended.output, ended.exit_code, ended.status) == (output, exit_code, status)
        assert ended.is_cut is False
        assert result.text == "went on"


@pytest.mark.parametrize(("end", "exit_code"), [("", 0), ("; exit 4", 4)])
async def test_output_that_claude_code_cut_says_so(end: str, exit_code: int) -> None:
    """It shows the model 30 kB at most, and less of a command that failed."""
    async with real() as here:
        session = await here.session()
        events, _ = await play(session, f"%run seq 1 20000{end}", decide=allow)
        (ended,) = endings(events)
        assert ended.output is not None
        assert (ended.is_cut, ended.exit_code) == (True, exit_code)
        assert ended.output.startswith("1\n2\n")


async def test_edits_show_their_changes_and_the_diff_of_the_turn() -> None:
    """With file, line and counts; two edits of one file are one diff."""
    async with real() as here:
        session = await here.session()
        path = here.work / "a.txt"
        path.write_text("one\ntwo\nthree\n")
        script = (f"%edit {path} two => 2", f"%edit {path} three => 3", "%patch new.txt x\\ny\\n")
        events, _ = await play(session, *script, decide=allow)
        first, _, added = endings(events)
        assert (first.kind, first.title, first.status) == ("edit", "Edit a.txt (+1 −1)", "completed")
        assert [(change.path, change.kind) for change in first.changes] == [(str(path), "update")]
        assert first.changes[0].diff == "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
        assert [(change.kind, change.diff) for change in added.changes] == [("add", "x\ny\n")]
        assert (path.read_text(), (here.work / "new.txt").read_text()) == ("one\n2\n3\n", "x\ny\n")
        assert only(events, Diff)[-1].diff == (
            "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n"
            " one\n-two\n-three\n+2\n+3\n"
            "diff --git a/new.txt b/new.txt\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,2 @@\n+x\n+y\n"
        )


async def test_what_is_read_is_told_as_reading() -> None:
    """Under `read-only` Claude Code has tools for files, their text and their names, and no others."""
    async with real() as here:
        (here.work / "a.txt").write_text("one\ntwo\n")
        session = await here.session(sandbox="read-only")
        path = str(here.work / "a.txt")
        events, result = await play(
            session,
            tool("Read", file_path=path),
            tool("Grep", pattern="two"),
            tool("Glob", pattern="*.txt"),
            "%run touch made.txt",
        )
        assert [ended.look for ended in endings(events)] == [
            Look(purpose="read", path=path),
            Look(purpose="search", pattern="two"),
            Look(purpose="list", pattern="*.txt"),
        ]
        assert {ended.kind for ended in endings(events)} == {"read"}
        assert [place.path for place in endings(events)[0].locations] == [path]
        assert "two" in str(endings(events)[0].output)
        assert result.text == "There is no tool Bash here."
        assert {each["name"] for each in here.model.requests[-1]["tools"]} <= {
            "Read",
            "Grep",
            "Glob",
            "DeferredToolPlaceholder",
        }


async def test_an_interrupt_ends_the_command_that_runs() -> None:
    """The process is gone, and the activity says that it was interrupted."""
    async with real() as here:
        session = await here.session()
        began, over = here.work / "began", here.work / "over"
        turn = say(session, f"%run touch {began}; python3 -c 'import time; time.sleep(600)'; touch {over}")
        asked = await first(turn, Asked)
        await session.answer(asked.question.question_id, YES)
        await until(began.exists)
        turn.cancel()
        rest = [event async for event in turn.events]
        assert (await turn.result()).status == "interrupted"
        assert [each.status for each in endings(rest)] == ["interrupted"]
        await play(session, "%say fine")
        assert not over.exists()


async def test_a_command_in_the_background_outlives_its_turn() -> None:
    """It is detached at the turn's end; its own end comes later, and starts a turn of nobody."""
    async with real() as here:
        session = await here.session()
        subscription = session.subscribe()
        gate = here.work / "gate"
        command = f"until [ -e {gate} ]; do sleep 0.05; done; exit 3"
        turn = say(session, tool("Bash", command=command, run_in_background=True), "%say started it")
        seen: list[Event] = []
        async for event in subscription:
            seen.append(event)
            if isinstance(event, Asked):
                await session.answer(event.question.question_id, YES)
            if len(only(seen, TurnDone)) == 1 and not gate.exists():
                assert [each.status for each in endings(seen)] == ["detached"]
                gate.touch()
            if len(only(seen, TurnDone)) == 2:
                break
        assert (await turn.result()).text == "started it"
        (outlived,) = only(seen, Outlived)
        assert (outlived.activity.status, outlived.activity.exit_code) == ("failed", 3)
        assert [event.ticket for event in only(seen, TurnStarted)] == [turn.ticket, None]


async def test_a_subagent_is_a_thread_of_its_own_whose_questions_come_to_ours() -> None:
    """Its prompt, its command and its answer are told under its own id; the call is an activity of ours."""
    async with real() as here:
        session = await here.session()
        prompt = "%run echo sub; exit 2\n%say from sub"
        call = tool(
            "Agent",
            description="a helper",
            prompt=prompt,
            subagent_type="general-purpose",
            run_in_background=False,
        )
        events, result = await play(session, call, "%say parent", decide=allow)
        inner = [event.inner for event in only(events, FromSubagent)]
        assert {event.parent_id for event in only(events, FromSubagent)} == {session.thread_id}
        assert len({event.thread_id for event in only(events, FromSubagent)}) == 1
        assert isinstance(inner[0], TurnStarted)
        assert [said.text for said in only(inner, UserSaid)] == [prompt]
        (command,) = endings(inner)
        assert (command.title, command.exit_code, command.status) == ("echo sub; exit 2", 2, "failed")
        assert "".join(text.text for text in only(inner, Text)) == "from sub"
        assert isinstance(inner[-1], TurnDone)
        assert [(each.kind, each.title, each.status) for each in only(events, Activity)] == [
            ("agent", "a helper", "running"),
            ("agent", "a helper", "completed"),
        ]
        assert result.text == "parent"


async def test_a_subagent_in_the_background_outlives_its_turn_and_ends_by_itself() -> None:
    """Its end comes under its own id, and starts a turn of nobody that is told of it."""
    async with real() as here:
        session = await here.session()
        subscription = session.subscribe()
        gate = here.work / "gate"
        work = f"%run until [ -e {gate} ]; do sleep 0.05; done\n%say from sub"
        call = tool(
            "Agent",
            description="a helper",
            prompt=work,
            subagent_type="general-purpose",
            run_in_background=True,
        )
        turn = say(session, call, "%say parent")
        seen: list[Event] = []
        async for event in subscription:
            seen.append(event)
            if isinstance(event, Asked):
                await session.answer(event.question.question_id, YES)
            if len(only(seen, TurnDone)) == 1 and not gate.exists():
                assert only([each.inner for each in only(seen, FromSubagent)], TurnDone) == []
                gate.touch()
            if len(only(seen, TurnDone)) == 2:
                break
        assert (await turn.result()).text == "parent"
        inner = [event.inner for event in only(seen, FromSubagent)]
        assert "".join(text.text for text in only(inner, Text)) == "from sub"
        assert [done.status for done in only(inner, TurnDone)] == ["completed"]
        assert [event.ticket for event in only(seen, TurnStarted)] == [turn.ticket, None]


async def test_a_conversation_is_compacted_on_demand() -> None:
    """As a turn with one activity."""
    async with real() as here:
        session = await here.session()
        await play(session, "%say something to keep")
        turn = session.say(TurnSpec(parts=(), special_turn=Compaction()))
        events = [event async for event in turn.events]
        assert (await turn.result()).status == "completed"
        assert len(only(events, Compacted)) == 1
        assert [(each.kind, each.status) for each in only(events, Activity)] == [
            ("compaction", "running"),
            ("compaction", "completed"),
        ]
        _, again = await play(session, "%say fine")
        assert again.text == "fine"
